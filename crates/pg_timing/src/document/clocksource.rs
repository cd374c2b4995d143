//! The lists and steps of `clocksource`.

use super::host::{access, one_read};
use super::{Block, Column, Document, Facts, Row, Table};
use crate::human::{duration, times};
use crate::report::{ClockReport, ClocksourceList, ClocksourceRow, ClocksourceState, System, traits_of};

/// Returns the clock sources of a host, one row each, and below what each is.
pub fn list(list: &ClocksourceList) -> Document {
    let what = |row: &ClocksourceRow| {
        let what = row.traits.map_or("not known to pg_timing", |traits| traits.what);
        (format!("{}:", row.name), format!("{what}{}", state(&row.state).1))
    };
    let rows = list.rows.iter().map(|row| self::row(row, list.measured.as_ref()));
    let facts = Facts::new(0, list.rows.iter().map(what));
    let heads = ["clock source", "state", "one read"].map(Column::left);
    let mut blocks = vec![Block::Table(Table::new("", heads, rows)), Block::Facts(facts)];
    if list.live && list.is_best() {
        blocks.push(Block::Text("The current clock source is the best of these. Nothing to do.".into()));
    } else if let (true, Some(candidate)) = (list.live, list.candidate()) {
        blocks.push(Block::Text("To try another one for 10 seconds, as root:".into()));
        blocks.push(Block::Command(format!("pg_timing clocksource use {}", candidate.name)));
    }
    Document::default().with(blocks)
}

/// Returns a state in the table, and what follows from it.
fn state(state: &ClocksourceState) -> (&'static str, String) {
    const REJECTED: &str = "; the CPU reports a constant rate, but the kernel does not offer this clock source. The kernel log shows \
        the reason (pg_timing check). Only a restart makes the kernel check it again";
    const NOT_CONSTANT: &str = "; the CPU or its hypervisor does not guarantee a constant rate";
    match state {
        ClocksourceState::Current => ("current", String::new()),
        ClocksourceState::Available => ("available", String::new()),
        ClocksourceState::Rejected => ("not offered", REJECTED.into()),
        ClocksourceState::Forbidden(word) => ("not available", format!("; the boot parameter {word} disables it")),
        ClocksourceState::NotConstant => ("not available", NOT_CONSTANT.into()),
    }
}

fn row(row: &ClocksourceRow, measured: Option<&ClockReport>) -> Row {
    let read = match (measured.filter(|_| row.state == ClocksourceState::Current), row.traits) {
        (Some(clock), _) => format!("{} (measured)", one_read(clock)),
        (None, Some(traits)) => format!("{} (typical)", traits.read),
        (None, None) => "unknown".into(),
    };
    Row::new([row.name.clone(), state(&row.state).0.into(), read])
}

/// Returns how to undo a switch by hand.
pub fn undo(old: &str) -> Document {
    let command = Block::Command(System::Linux.switch_command(old));
    Document::default().with(vec![Block::Text("To undo this by hand, as root:".into()), command])
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
    let heads = ["", "clock source", "one read", "step", "access"].map(Column::left);
    let mut blocks = vec![Block::Table(Table::new("", heads, rows))];
    let overhead = |(_, clock): (&str, &ClockReport)| clock.overhead_per_node_ns().map(duration);
    blocks.extend(overhead(old).zip(overhead(new)).map(|(before, after)| {
        Block::Text(match is_same(old.1, new.1) {
            Some(true) => format!("A read costs about the same with {} and {}.", new.0, old.0),
            _ => format!(
                "EXPLAIN ANALYZE now adds up to about {after} per row and plan node; before, up to about {before}."
            ),
        })
    }));
    let (name, clock) = new;
    if clock.backward_steps > 0 {
        let (times, by) = (times(clock.backward_steps), duration(clock.largest_backward_ns));
        blocks.push(Block::Text(format!("Warning: with {name} the time went back {times}, by up to {by}.")));
    }
    Document::default().with(blocks)
}

/// Returns whether a read costs about the same: the difference is within both spreads, or 5%.
fn is_same(old: &ClockReport, new: &ClockReport) -> Option<bool> {
    let noise = (old.read_spread_ns? + new.read_spread_ns?).max(0.05 * old.read_ns?);
    Some((new.read_ns? - old.read_ns?).abs() <= noise)
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
    let stays = Block::Text(format!("The clock source stays {name} until the next restart."));
    let command = Block::Command(System::Linux.switch_command(old));
    Document::default().with(vec![stays, Block::Facts(Facts::new(11, facts)), command])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_within_the_spreads_or_5_percent_is_none() {
        let clock = |read_ns: f64| ClockReport {
            name: "system".into(),
            read_ns: Some(read_ns),
            read_spread_ns: Some(1.0),
            ..ClockReport::default()
        };
        for (before, after, is_same) in
            [(20.0, 22.0, true), (20.0, 18.0, true), (20.0, 23.0, false), (200.0, 209.0, true), (200.0, 211.0, false)]
        {
            let screen =
                crate::document::text::piped(&comparison(("tsc", &clock(before)), ("kvm-clock", &clock(after))));
            let words = "A read costs about the same with kvm-clock and tsc.";
            assert_eq!((screen.contains(words), screen.contains("EXPLAIN")), (is_same, !is_same), "{screen}");
        }
    }
}
