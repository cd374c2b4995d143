//! `clock-coarse`: are the clock's steps too large to time a plan node?

use super::advice::other_clocksource;
use crate::human::duration;
use crate::report::{Finding, Report, Severity, finding_id};

/// EXPLAIN prints microseconds, so a coarser clock makes visible digits wrong.
const VISIBLE_NS: f64 = 1_000.0;
/// Most nodes take less than a step of such a clock (jiffies: 1 to 10 ms).
const USELESS_NS: f64 = 1_000_000.0;

const ID: &str = finding_id::CLOCK_COARSE;

pub fn check(report: &Report) -> Finding {
    let Some(clock) = report.system() else {
        return Finding::unknown(ID, "PostgreSQL's clock was not measured");
    };
    if let Some(duration_ns) = clock.stood_still_ns {
        let summary = format!("PostgreSQL's clock stands still: it did not move in {}", duration(duration_ns));
        return Finding::new(ID, Severity::Critical, summary)
            .evidence(format!("{} readings, all equal", clock.reads))
            .why("EXPLAIN ANALYZE would print 0 for every time");
    }
    let Some(step) = clock.granularity_ns else {
        return Finding::unknown(ID, "the step of PostgreSQL's clock is unknown");
    };
    let severity = match step {
        step if step >= USELESS_NS => Severity::Critical,
        step if step > VISIBLE_NS => Severity::Warning,
        _ => return Finding::ok(ID, format!("PostgreSQL's clock moves in steps of {}", duration(step))),
    };
    Finding::new(ID, severity, format!("PostgreSQL's clock is coarse: it moves in steps of {}", duration(step)))
        .evidence(format!("system: the smallest step was {step} ns"))
        .why(
            "a node's time is the sum of many short intervals; each interval is measured as 0 or as a whole \
             step, at random",
        )
        .fixes(other_clocksource(report))
}
