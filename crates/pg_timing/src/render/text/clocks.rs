//! The table of clocks.

use super::table::{Align, Table};
use super::{BOLD, DIM, wrapped};
use crate::human::duration;
use crate::render::columns::{columns, left};
use crate::render::host_text::{MAIN, access, loop_words, not_measured, one_read, step, went_back};
use crate::report::{ClockReport, Origin, Report};
use std::fmt::Write;

const HEAD: [&str; 7] = ["clock", "one read", "step", "99.9%", "worst", "went back", "access"];
/// The width of the clock's name, if no name is longer.
const NAME: usize = 6;
/// Between two columns.
const GAP: &str = "  ";

pub fn table(report: &Report) -> String {
    if report.origin == Origin::PgTestTiming {
        return loops(&report.clocks);
    }
    let mut out = String::new();
    let (main, other): (Vec<_>, Vec<_>) =
        report.clocks.iter().partition(|clock| MAIN.contains(&clock.name.as_str()) || clock.backward_steps > 0);
    let width = main.iter().map(|clock| columns(&clock.name)).fold(NAME, usize::max);
    let rows: Vec<_> = main.iter().map(|clock| row(clock, width)).collect();
    let measured = || main.iter().zip(&rows).filter(|(clock, _)| not_measured(clock).is_none()).map(|(_, row)| row);
    let table = Table::new([Align::Left; 7], &HEAD, measured());
    if main.iter().any(|clock| clock.unavailable.is_none()) {
        _ = writeln!(out, "{BOLD}{}{BOLD:#}", table.line(&HEAD));
    }
    for (clock, row) in main.iter().zip(&rows) {
        match not_measured(clock) {
            Some(why) => wrapped(&mut out, &format!("{}{GAP}", left(&clock.name, width)), &why),
            None => _ = writeln!(out, "{}", table.line(row)),
        }
    }
    other_clocks(&mut out, &other, width);
    out
}

/// Renders the clocks of a pg_test_timing output.
fn loops(clocks: &[ClockReport]) -> String {
    let width = clocks.iter().map(|clock| columns(&clock.name)).fold(NAME, usize::max);
    let mut out = String::new();
    for clock in clocks {
        let (looped, words) = loop_words(clock);
        let figures = if words.is_empty() { looped } else { format!("{looped}; {words}") };
        wrapped(&mut out, &format!("{}{GAP}", left(&clock.name, width)), &figures);
    }
    out
}

fn row(clock: &ClockReport, width: usize) -> [String; 7] {
    let or_dash = |ns: Option<f64>| ns.map_or("-".into(), duration);
    let percentiles = clock.percentiles;
    [
        left(&clock.name, width),
        one_read(clock),
        step(clock),
        or_dash(percentiles.map(|p| p.p99_9_ns)),
        or_dash(percentiles.map(|p| p.max_ns)),
        went_back(clock),
        clock.access_path.map_or("", access).into(),
    ]
}

/// Appends a line with the clocks that PostgreSQL does not read.
fn other_clocks(out: &mut String, clocks: &[&ClockReport], width: usize) {
    let cells: Vec<String> = clocks
        .iter()
        .filter_map(|clock| {
            let step = clock
                .granularity_ns
                .filter(|step| *step >= 1000.0)
                .map(|step| format!(" in steps of {}", duration(step)));
            let hidden = clock.granularity_unavailable.as_ref().map(|_| " (step unknown)".to_string());
            Some(format!("{} {}{}", clock.name, duration(clock.read_ns?), step.or(hidden).unwrap_or_default()))
        })
        .collect();
    if !cells.is_empty() {
        let mut line = String::new();
        wrapped(&mut line, &format!("{}{GAP}", left("also", width)), &cells.join(", "));
        _ = write!(out, "{DIM}{line}{DIM:#}");
    }
}
