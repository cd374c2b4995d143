//! What `pg_timing clocksource` shows.

use super::clocks::{one_read, through};
use super::{BOLD, wrapped};
use crate::host::check::added_per_node_ns;
use crate::host::clocksource::{Grade, List, Row, State, System, Vdso, best_first, known};
use crate::human::{count, duration, seconds};
use crate::report::{ClockReport, Through};
use timing_clock::Nanos;

/// The clock sources of a host, a row each, and what to say of some of them.
pub fn list(list: &List) -> String {
    let head = ["clock source", "kernel says", "one read", "vDSO", "what it is"].map(String::from);
    let rows: Vec<_> = list.rows.iter().map(|row| cells(row, list.measured.as_ref())).collect();
    let mut out = table(&head, &rows);
    out.push('\n');
    for row in &list.rows {
        if let Some(note) = note(row) {
            wrapped(&mut out, &format!("{}: ", row.name), &note);
        }
    }
    wrapped(&mut out, "vDSO: ", "programs read it by themselves, without a system call");
    let offered =
        |name: &str| list.rows.iter().any(|row| row.name == name && matches!(row.state, State::InUse | State::Offered));
    let best = best_first().find(|known| offered(known.name)).map(|known| known.name);
    let best = best.is_some_and(|best| list.rows.iter().any(|row| row.name == best && row.state == State::InUse));
    if list.live && best {
        out.push_str("\nThe one in use is the best of these: nothing to change.\n");
    } else if let (true, Some(other)) = (list.live, list.other()) {
        out.push_str("\nTo try another one for 10 seconds, as root:\n");
        out.push_str(&format!("    {BOLD}pg_timing clocksource use {}{BOLD:#}\n", other.name));
    }
    out
}

fn cells(row: &Row, measured: Option<&ClockReport>) -> [String; 5] {
    let state = match &row.state {
        State::InUse => "in use",
        State::Offered => "offered",
        State::GivenUp => "given up",
        State::Forbidden(_) | State::NotConstant => "not offered",
        State::Refused => "refused",
    };
    let measured = measured.filter(|_| row.state == State::InUse);
    let read = match (measured, row.known) {
        (Some(clock), _) => format!("{} (measured)", one_read(clock)),
        (None, Some(known)) => format!("{} (typical)", known.read),
        (None, None) => "unknown".into(),
    };
    let vdso = match (measured.and_then(|clock| clock.through), row.known.map(|known| known.vdso)) {
        (Some(Through::Vdso), _) => "yes",
        (Some(_), _) => "no",
        (None, Some(Vdso::Yes)) => "yes",
        (None, Some(Vdso::No)) => "no",
        (None, Some(Vdso::Depends)) => "depends",
        (None, None) => "unknown",
    };
    let what = row.known.map_or("not known to pg_timing", |known| known.what);
    [row.name.clone(), state.into(), read, vdso.into(), what.into()]
}

fn note(row: &Row) -> Option<String> {
    Some(match &row.state {
        State::GivenUp => {
            "the CPU says that its rate is constant, yet the kernel does not offer it: it does not trust it, and its log says \
             why (pg_timing check). It cannot be switched back on while this kernel runs; only a restart makes the kernel \
             judge anew"
                .into()
        }
        State::Forbidden(word) => format!("ruled out by the boot parameter {word}"),
        State::NotConstant => "the CPU, or its hypervisor, does not promise that its rate is constant".into(),
        State::Refused => "the kernel itself calls its quality negative".into(),
        State::InUse | State::Offered => return None,
    })
}

/// Columns as wide as their widest cell; the first row is the head.
fn table<const N: usize>(head: &[String; N], rows: &[[String; N]]) -> String {
    let all = || std::iter::once(head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    let body: String = rows.iter().map(|row| line(row) + "\n").collect();
    format!("{BOLD}{}{BOLD:#}\n{body}", line(head))
}

pub fn in_use_already(name: &str) -> String {
    format!("The clock source is {name} already: nothing to do.\n")
}

/// Shown before anything is changed.
pub fn way_back(command: &str) -> String {
    format!("The way back by hand, as root:\n    {BOLD}{command}{BOLD:#}\n\n")
}

/// The old clock source beside the new one, each with its name.
pub fn comparison(old: (&str, &ClockReport), new: (&str, &ClockReport)) -> String {
    let row = |when: &str, (name, clock): (&str, &ClockReport)| match &clock.unavailable {
        Some(why) => [when.into(), name.into(), "-".into(), "-".into(), format!("not measured: {why}")],
        None => [
            when.into(),
            name.into(),
            one_read(clock),
            clock.granularity_ns.map_or("-".into(), duration),
            clock.through.map_or("unknown", through).into(),
        ],
    };
    let head = ["", "clock source", "one read", "step", "through"].map(String::from);
    let mut out = table(&head, &[row("before", old), row("now", new)]);
    out.push('\n');
    if let Some(words) = difference(old, new) {
        wrapped(&mut out, "", &words);
    }
    let (name, clock) = new;
    if clock.backward_steps > 0 {
        let (times, by) = (count(clock.backward_steps), duration(clock.largest_backward_ns));
        let words = format!("Beware: on {name} the time went back {times} x while it was measured, by up to {by}.");
        wrapped(&mut out, "", &words);
    }
    out
}

/// A difference below this share would be shown as 1.0 times.
const SAME: f64 = 0.05;

/// What the difference means to whoever reads plans.
fn difference(old: (&str, &ClockReport), new: (&str, &ClockReport)) -> Option<String> {
    let (before, after) = (old.1.read_ns?, new.1.read_ns?);
    let noise = (old.1.read_spread_ns? + new.1.read_spread_ns?).max(SAME * before);
    let explain = |ns: f64| duration(added_per_node_ns(ns));
    if (after - before).abs() <= noise {
        return Some(format!("A read takes about as long on {} as on {}.", new.0, old.0));
    }
    let change = match after / before {
        slower if slower > 1.0 => format!("takes {slower:.1} times as long"),
        faster => format!("is {:.1} times as fast", 1.0 / faster),
    };
    let ((new, _), (old, _)) = (new, old);
    Some(format!(
        "On {new} a read {change}: EXPLAIN ANALYZE adds up to {} per row and plan node; on {old} it was up to {}.",
        explain(after),
        explain(before),
    ))
}

pub fn waiting(old: &str, left: Nanos) -> String {
    format!("Back to {old} in {}; Ctrl-C goes back at once.\n", seconds(left.0))
}

/// `early`: how long the new one was in use, if a signal has cut it short.
pub fn put_back(told: &str, early: Option<Nanos>) -> String {
    match early {
        Some(after) => format!("Stopped after {}. {told}\n", seconds(after.0)),
        None => format!("{told}\n"),
    }
}

/// With what it takes to make it last, and what it risks.
pub fn kept(name: &str, old: &str, system: System) -> String {
    let mut out = String::new();
    wrapped(&mut out, "", &format!("The clock source stays {name} until the next restart."));
    wrapped(&mut out, "lasting: ", &system.lasting(name));
    out.push_str(&format!("undo:    {}\n", system.set(old)));
    let mut risk = format!(
        "if the kernel had chosen {old} for a reason (pg_timing check tells what it has logged), time may run unevenly on {name}"
    );
    if name == "tsc" {
        risk += "; leave the boot parameter tsc=reliable alone: it also switches off the checks that would notice";
    }
    risk += match known(name).map(|known| known.grade) {
        Some(Grade::Slow) => "; every program that looks at the time pays for it",
        Some(Grade::Stalls) => "; every program that looks at the time pays for it, and a large host can stall",
        _ => "",
    };
    wrapped(&mut out, "risk:    ", &risk);
    out
}
