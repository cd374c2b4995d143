//! The screens of `pg_timing clocksource`.

use super::table::{Align, Table};
use super::{BOLD, wrapped};
use crate::human::{duration, seconds, times};
use crate::render::host_text::{access, one_read};
use crate::report::{AccessPath, ClockReport, ClocksourceList, ClocksourceRow, ClocksourceState, SwitchEvent};
use crate::report::{Grade, System, Vdso};

/// Renders the clock sources of a host, one row each, and below what each is.
pub fn list(list: &ClocksourceList) -> String {
    let head = ["clock source", "state", "one read", "vDSO"];
    let rows: Vec<_> = list.rows.iter().map(|row| cells(row, list.measured.as_ref())).collect();
    let mut out = table(&head, &rows);
    out.push('\n');
    for row in &list.rows {
        let what = row.traits.map_or("not known to pg_timing", |traits| traits.what);
        let note = note(row).map_or(String::new(), |note| format!("; {note}"));
        wrapped(&mut out, &format!("{}: ", row.name), &format!("{what}{note}"));
    }
    wrapped(&mut out, "vDSO: ", "programs read the clock without a system call");
    if list.live && list.is_best() {
        out.push_str("\nThe current clock source is the best of these. Nothing to do.\n");
    } else if let (true, Some(candidate)) = (list.live, list.candidate()) {
        out.push_str("\nTo try another one for 10 seconds, as root:\n");
        out.push_str(&format!("    {BOLD}pg_timing clocksource use {}{BOLD:#}\n", candidate.name));
    }
    out
}

fn cells(row: &ClocksourceRow, measured: Option<&ClockReport>) -> [String; 4] {
    let state = match &row.state {
        ClocksourceState::Current => "current",
        ClocksourceState::Available => "available",
        ClocksourceState::Rejected => "not offered",
        ClocksourceState::Forbidden(_) | ClocksourceState::NotConstant => "not available",
        ClocksourceState::NegativeQuality => "negative quality",
    };
    let measured = measured.filter(|_| row.state == ClocksourceState::Current);
    let read = match (measured, row.traits) {
        (Some(clock), _) => format!("{} (measured)", one_read(clock)),
        (None, Some(traits)) => format!("{} (typical)", traits.read),
        (None, None) => "unknown".into(),
    };
    let vdso = match (measured.and_then(|clock| clock.access_path), row.traits.map(|traits| traits.vdso)) {
        (Some(AccessPath::Vdso), _) => "yes",
        (Some(_), _) => "no",
        (None, Some(Vdso::Yes)) => "yes",
        (None, Some(Vdso::No)) => "no",
        (None, Some(Vdso::Depends)) => "depends",
        (None, None) => "unknown",
    };
    [row.name.clone(), state.into(), read, vdso.into()]
}

fn note(row: &ClocksourceRow) -> Option<String> {
    Some(match &row.state {
        ClocksourceState::Rejected => {
            "the CPU reports a constant rate, but the kernel does not offer this clock source. The kernel log shows the \
             reason (pg_timing check). Only a restart makes the kernel check it again"
                .into()
        }
        ClocksourceState::Forbidden(word) => format!("the boot parameter {word} disables it"),
        ClocksourceState::NotConstant => "the CPU or its hypervisor does not guarantee a constant rate".into(),
        ClocksourceState::NegativeQuality => "the kernel gives it a negative quality".into(),
        ClocksourceState::Current | ClocksourceState::Available => return None,
    })
}

fn table<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> String {
    let table = Table::new([Align::Left; N], head, rows);
    let body: String = rows.iter().map(|row| table.line(row) + "\n").collect();
    format!("{BOLD}{}{BOLD:#}\n{body}", table.line(head))
}

/// Renders one step of a switch.
pub fn event(event: &SwitchEvent) -> String {
    match *event {
        SwitchEvent::AlreadyCurrent { name } => format!("The clock source is {name} already. Nothing to do.\n"),
        SwitchEvent::UndoCommand { command } => {
            format!("To undo this by hand, as root:\n    {BOLD}{command}{BOLD:#}\n\n")
        }
        SwitchEvent::Measured { old, new, overhead_ns } => comparison(old, new, overhead_ns),
        SwitchEvent::Waiting { old, left } => {
            format!("{old} will be restored in {}. Ctrl-C restores it at once.\n", seconds(left.0))
        }
        SwitchEvent::Restored { message, stopped_after: Some(after) } => {
            format!("Stopped after {}. {message}\n", seconds(after.0))
        }
        SwitchEvent::Restored { message, stopped_after: None } => format!("{message}\n"),
        SwitchEvent::Kept { name, grade, old, system } => kept(name, grade, old, system),
    }
}

/// Renders the old and the new clock source side by side.
fn comparison(old: (&str, &ClockReport), new: (&str, &ClockReport), overhead_ns: Option<[f64; 2]>) -> String {
    let row = |when: &str, (name, clock): (&str, &ClockReport)| match &clock.unavailable {
        Some(why) => [when.into(), name.into(), "-".into(), "-".into(), format!("not measured: {why}")],
        None => [
            when.into(),
            name.into(),
            one_read(clock),
            clock.granularity_ns.map_or("-".into(), duration),
            clock.access_path.map_or("unknown", access).into(),
        ],
    };
    let head = ["", "clock source", "one read", "step", "access"];
    let mut out = table(&head, &[row("before", old), row("now", new)]);
    out.push('\n');
    if let Some(sentence) = difference(old, new, overhead_ns) {
        wrapped(&mut out, "", &sentence);
    }
    let (name, clock) = new;
    if clock.backward_steps > 0 {
        let by = duration(clock.largest_backward_ns);
        wrapped(
            &mut out,
            "",
            &format!("Warning: with {name} the time went back {}, by up to {by}.", times(clock.backward_steps)),
        );
    }
    out
}

/// A smaller relative difference would be shown as 1.0 times.
const SAME: f64 = 0.05;

/// Returns what the difference means for EXPLAIN ANALYZE.
fn difference(old: (&str, &ClockReport), new: (&str, &ClockReport), overhead_ns: Option<[f64; 2]>) -> Option<String> {
    let (before, after) = (old.1.read_ns?, new.1.read_ns?);
    let noise = (old.1.read_spread_ns? + new.1.read_spread_ns?).max(SAME * before);
    if (after - before).abs() <= noise {
        return Some(format!("A read costs about the same with {} and {}.", new.0, old.0));
    }
    let change = match after / before {
        slower if slower > 1.0 => format!("costs {slower:.1} times as much as with {}", old.0),
        faster => format!("is {:.1} times as fast as with {}", 1.0 / faster, old.0),
    };
    let [overhead_before, overhead_after] = overhead_ns?.map(duration);
    Some(format!(
        "A read with {} {change}. EXPLAIN ANALYZE now adds up to about {} per row and plan node; before, up to about {}.",
        new.0, overhead_after, overhead_before,
    ))
}

/// Renders how to make the switch permanent, how to undo it, and its risk.
fn kept(name: &str, grade: Option<Grade>, old: &str, system: System) -> String {
    let mut out = String::new();
    wrapped(&mut out, "", &format!("The clock source stays {name} until the next restart."));
    wrapped(&mut out, "permanent: ", &system.make_permanent(name));
    out.push_str(&format!("undo:      {}\n", system.switch_command(old)));
    let mut risk =
        format!("if the kernel selected {old} for a reason (see pg_timing check), time may be unreliable with {name}");
    if name == "tsc" {
        risk += "; do not use the boot parameter tsc=reliable, which also switches off the kernel's checks";
    }
    risk += match grade {
        Some(Grade::Slow) => "; every program that reads the time becomes slower",
        Some(Grade::Stalls) => "; every program that reads the time becomes slower, and a large host can stall",
        Some(Grade::Coarse) => "; timers and times get the steps of the kernel's tick, and a host can stall",
        _ => "",
    };
    wrapped(&mut out, "risk:      ", &risk);
    out
}
