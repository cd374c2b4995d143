//! Cells of the table of clocks.

use crate::human::{count, duration, times};
use crate::render::plus_minus::plus_minus;
use crate::report::{AccessPath, ClockReport, SYSTEM};

/// The clocks with a row of their own: PostgreSQL's clock, and the counter's read instructions.
pub const MAIN: &[&str] = &[SYSTEM, "rdtscp", "rdtsc", "isb_cntvct", "cntvct"];

/// Returns the read cost with its spread.
pub fn one_read(clock: &ClockReport) -> String {
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

/// Returns the smallest step of the clock's value.
pub fn step(clock: &ClockReport) -> String {
    match clock.granularity_unavailable {
        Some(_) => "unknown".into(),
        None => clock.granularity_ns.map_or("-".into(), duration),
    }
}

/// Returns how often the clock went back. The finding `clock-backward` says by how much.
pub fn went_back(clock: &ClockReport) -> String {
    match (clock.backward_steps, clock.reads) {
        (0, 0) => "-".to_string(),
        (0, reads) => format!("never in {}", count(reads)),
        (steps, _) => times(steps),
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

/// Returns why a clock has no figures.
pub fn not_measured(clock: &ClockReport) -> Option<String> {
    clock.unavailable.as_ref().map(|why| match clock.reads {
        0 => format!("not measured: {why}"),
        reads => format!("no times: {why} ({} reads)", count(reads)),
    })
}

/// Returns the loop time of a clock in a pg_test_timing output, and the words about it.
pub fn loop_words(clock: &ClockReport) -> (String, String) {
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
    (looped, parts.join("; "))
}
