//! The lists and steps of `clocksource`.

use super::host::{access, one_read};
use super::{Block, Column, Document, Facts, Row, Table};
use crate::human::{duration, times};
use crate::report::{
    AccessPath, ClockReport, ClocksourceList, ClocksourceRow, ClocksourceState, System, Vdso, traits_of,
};

/// Returns the clock sources of a host, one row each, and below what each is.
pub fn list(list: &ClocksourceList) -> Document {
    let what = |row: &ClocksourceRow| {
        let what = row.traits.map_or("not known to pg_timing", |traits| traits.what);
        let note = note(row).map_or(String::new(), |note| format!("; {note}"));
        (format!("{}:", row.name), format!("{what}{note}"))
    };
    let vdso = ("vDSO:".to_string(), "programs read the clock without a system call".to_string());
    let mut blocks = vec![
        table(
            &["clock source", "state", "one read", "vDSO"],
            list.rows.iter().map(|row| self::row(row, list.measured.as_ref())),
        ),
        Block::Facts(Facts::new(0, list.rows.iter().map(what).chain([vdso]))),
    ];
    if list.live && list.is_best() {
        blocks.push(Block::Text("The current clock source is the best of these. Nothing to do.".into()));
    } else if let (true, Some(candidate)) = (list.live, list.candidate()) {
        blocks.push(Block::Text("To try another one for 10 seconds, as root:".into()));
        blocks.push(Block::Command(format!("pg_timing clocksource use {}", candidate.name)));
    }
    Document::default().with(blocks)
}

fn table(heads: &[&str], rows: impl Iterator<Item = Row>) -> Block {
    let columns = heads.iter().copied().map(Column::left).collect();
    Block::Table(Table { columns, rows: rows.collect(), ..Table::default() })
}

fn row(row: &ClocksourceRow, measured: Option<&ClockReport>) -> Row {
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
    Row::new([row.name.clone(), state.into(), read, vdso.into()])
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

/// Returns how to undo a switch by hand.
pub fn undo(old: &str) -> Document {
    Document::default().with(vec![
        Block::Text("To undo this by hand, as root:".into()),
        Block::Command(System::Linux.switch_command(old)),
    ])
}

/// Returns the old and the new clock source side by side.
pub fn comparison(old: (&str, &ClockReport), new: (&str, &ClockReport)) -> Document {
    let row = |(when, (name, clock)): (&str, (&str, &ClockReport))| match &clock.unavailable {
        Some(why) => Row::new([when, name, "-", "-", &format!("not measured: {why}")]),
        None => {
            let step = clock.granularity_ns.map_or("-".into(), duration);
            Row::new([when, name, &one_read(clock), &step, clock.access_path.map_or("unknown", access)])
        }
    };
    let rows = [("before", old), ("now", new)].into_iter().map(row);
    let mut blocks = vec![table(&["", "clock source", "one read", "step", "access"], rows)];
    blocks.extend(difference(old, new).map(Block::Text));
    let (name, clock) = new;
    if clock.backward_steps > 0 {
        let (times, by) = (times(clock.backward_steps), duration(clock.largest_backward_ns));
        blocks.push(Block::Text(format!("Warning: with {name} the time went back {times}, by up to {by}.")));
    }
    Document::default().with(blocks)
}

/// A smaller relative difference would be shown as 1.0 times.
const SAME: f64 = 0.05;

/// Returns what the difference means for EXPLAIN ANALYZE.
fn difference(old: (&str, &ClockReport), new: (&str, &ClockReport)) -> Option<String> {
    let (before, after) = (old.1.read_ns?, new.1.read_ns?);
    let noise = (old.1.read_spread_ns? + new.1.read_spread_ns?).max(SAME * before);
    if (after - before).abs() <= noise {
        return Some(format!("A read costs about the same with {} and {}.", new.0, old.0));
    }
    let change = match after / before {
        slower if slower > 1.0 => format!("costs {slower:.1} times as much as with {}", old.0),
        faster => format!("is {:.1} times as fast as with {}", 1.0 / faster, old.0),
    };
    let overhead = |clock: &ClockReport| clock.overhead_per_node_ns().map(duration);
    Some(format!(
        "A read with {} {change}. EXPLAIN ANALYZE now adds up to about {} per row and plan node; before, up to about {}.",
        new.0,
        overhead(new.1)?,
        overhead(old.1)?,
    ))
}

/// Returns how to make the switch permanent, how to undo it, and its risk.
pub fn kept(name: &str, old: &str) -> Document {
    let mut risk =
        format!("if the kernel selected {old} for a reason (see pg_timing check), time may be unreliable with {name}");
    if name == "tsc" {
        risk += "; do not use the boot parameter tsc=reliable, which also switches off the kernel's checks";
    }
    if traits_of(name).is_some_and(|traits| !traits.is_good()) {
        risk += "; programs that read the time become slower or get coarse times, and a large host can stall";
    }
    let facts = [("permanent:", System::Linux.make_permanent(name)), ("risk:", risk), ("undo:", String::new())];
    Document::default().with(vec![
        Block::Text(format!("The clock source stays {name} until the next restart.")),
        Block::Facts(Facts::new(11, facts)),
        Block::Command(System::Linux.switch_command(old)),
    ])
}
