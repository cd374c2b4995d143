//! `clock-coarse`: are the clock's steps too big to time a plan node?

use super::advice::other_clocksource;
use crate::human::duration;
use crate::report::{Finding, Report, Severity, finding_id};

/// EXPLAIN prints microseconds: a coarser clock spoils digits that are shown.
const VISIBLE_NS: f64 = 1_000.0;
/// A clock that ticks this slowly (jiffies: 1 to 10 ms) tells nothing of most nodes.
const USELESS_NS: f64 = 1_000_000.0;

const ID: &str = finding_id::CLOCK_COARSE;

pub fn check(report: &Report) -> Finding {
    let Some(clock) = report.system() else {
        return Finding::unknown(ID, "PostgreSQL's clock was not measured");
    };
    if let Some(watched) = clock.stood_still_ns {
        let summary = format!("PostgreSQL's clock stands still: it did not move in {}", duration(watched));
        return Finding::new(ID, Severity::Critical, summary)
            .evidence(format!("{} readings, all the same", clock.reads))
            .why("every time that EXPLAIN ANALYZE prints would be 0");
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
        .evidence(format!("system: smallest step seen {step} ns"))
        .why(
            "a node's time is the sum of many short spans, and each is rounded to a whole step: \
             short spans count as nothing or as a whole step, by chance",
        )
        .fixes(other_clocksource(report))
}
