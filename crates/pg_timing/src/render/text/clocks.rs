//! The table of clocks.

use super::{BOLD, DIM};
use crate::human::duration;
use crate::render::host_text::{MAIN, access, loop_words, not_measured, one_read, step, went_back};
use crate::report::{ClockReport, Origin, Report};
use std::fmt::Write;

pub fn table(report: &Report) -> String {
    if report.origin == Origin::PgTestTiming {
        return report.clocks.iter().map(loop_row).collect();
    }
    let mut out = String::new();
    let (main, other): (Vec<_>, Vec<_>) =
        report.clocks.iter().partition(|clock| MAIN.contains(&clock.name.as_str()) || clock.backward_steps > 0);
    if main.iter().any(|clock| clock.unavailable.is_none()) {
        let head = format!(
            "{:<12} {:<18} {:<8} {:<8} {:<8} {:<20} {}",
            "clock", "one read", "step", "99.9%", "worst", "went back", "access"
        );
        _ = writeln!(out, "{BOLD}{}{BOLD:#}", head.trim_end());
    }
    for clock in &main {
        let line = match not_measured(clock) {
            Some(why) => format!("{:<12} {why}", clock.name),
            None => row(clock),
        };
        _ = writeln!(out, "{}", line.trim_end());
    }
    other_clocks(&mut out, &other);
    out
}

/// Renders a clock from a pg_test_timing output.
fn loop_row(clock: &ClockReport) -> String {
    let (looped, words) = loop_words(clock);
    format!("{:<12} {looped:<18} {words}", clock.name).trim_end().to_string() + "\n"
}

fn row(clock: &ClockReport) -> String {
    let or_dash = |ns: Option<f64>| ns.map_or("-".into(), duration);
    let percentiles = clock.percentiles;
    format!(
        "{:<12} {:<18} {:<8} {:<8} {:<8} {:<20} {}",
        clock.name,
        one_read(clock),
        step(clock),
        or_dash(percentiles.map(|p| p.p99_9_ns)),
        or_dash(percentiles.map(|p| p.max_ns)),
        went_back(clock),
        clock.access_path.map_or("", access),
    )
}

/// Appends a line with the clocks that PostgreSQL does not read.
fn other_clocks(out: &mut String, clocks: &[&ClockReport]) {
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
        super::wrapped(&mut line, "also         ", &cells.join(", "));
        _ = write!(out, "{DIM}{line}{DIM:#}");
    }
}
