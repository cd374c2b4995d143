//! The table of clocks.

use super::{BOLD, DIM};
use crate::human::{count, duration};
use crate::render::plus_minus::plus_minus;
use crate::report::{AccessPath, ClockReport, Origin, Report, SYSTEM};
use std::fmt::Write;

/// The clocks with a row of their own: PostgreSQL's clock, and the counter's read instructions.
pub const MAIN: &[&str] = &[SYSTEM, "rdtscp", "rdtsc", "isb_cntvct", "cntvct"];

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
        let line = match &clock.unavailable {
            Some(why) if clock.reads > 0 => {
                format!("{:<12} no times: {why} ({} reads)", clock.name, count(clock.reads))
            }
            Some(why) => format!("{:<12} not measured: {why}", clock.name),
            None => row(clock),
        };
        _ = writeln!(out, "{}", line.trim_end());
    }
    other_clocks(&mut out, &other);
    out
}

/// Renders a clock from a pg_test_timing output.
fn loop_row(clock: &ClockReport) -> String {
    let looped = clock.loop_ns.map_or("no loop time".into(), |ns| format!("{ns:.2} ns per loop"));
    let mut parts = vec![match clock.reads {
        0 => String::new(),
        reads => format!("{} reads", count(reads)),
    }];
    parts.extend(clock.percentiles.map(|p| {
        format!("median {}, 99.9% {}, worst {}", duration(p.p50_ns), duration(p.p99_9_ns), duration(p.max_ns))
    }));
    parts.extend(clock.distribution());
    if clock.backward_steps > 0 {
        parts.push(format!("went back by {}", duration(clock.largest_backward_ns)));
    }
    parts.retain(|part| !part.is_empty());
    format!("{:<12} {looped:<18} {}", clock.name, parts.join("; ")).trim_end().to_string() + "\n"
}

fn row(clock: &ClockReport) -> String {
    let or_dash = |ns: Option<f64>| ns.map_or("-".into(), duration);
    let read = one_read(clock);
    let back = match (clock.backward_steps, clock.reads) {
        (0, 0) => "-".to_string(),
        (0, reads) => format!("never in {}", count(reads)),
        (steps, _) => format!("{} times, by {}", count(steps), duration(clock.largest_backward_ns)),
    };
    let percentiles = clock.percentiles;
    format!(
        "{:<12} {read:<18} {:<8} {:<8} {:<8} {back:<20} {}",
        clock.name,
        if clock.granularity_unavailable.is_some() { "unknown".into() } else { or_dash(clock.granularity_ns) },
        or_dash(percentiles.map(|p| p.p99_9_ns)),
        or_dash(percentiles.map(|p| p.max_ns)),
        clock.access_path.map_or("", access),
    )
}

/// Returns the read cost with its spread.
pub(super) fn one_read(clock: &ClockReport) -> String {
    match (clock.read_ns, clock.read_spread_ns) {
        (Some(read), Some(spread)) if read < 999.5 => {
            // A smaller spread would be shown as 0.0, but every figure has an error.
            format!("{read:.1} {} {:.1} ns", plus_minus(), spread.max(0.1))
        }
        (Some(read), Some(spread)) => {
            format!("{:.1} {} {:.1} us", read / 1e3, plus_minus(), (spread / 1e3).max(0.1))
        }
        (Some(read), None) => duration(read),
        _ => "-".into(),
    }
}

/// Returns the name of an access path.
pub fn access(path: AccessPath) -> &'static str {
    match path {
        AccessPath::Instruction => "instruction",
        AccessPath::Vdso => "vDSO",
        AccessPath::Syscall => "system call",
        AccessPath::Interposed => "intercepted",
    }
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
