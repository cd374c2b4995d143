//! `clocksource-slow`: does the kernel's clock stand on slow hardware?

use super::advice::other_clocksource;
use crate::report::{Fact, Finding, Report, Severity, finding_id, known};

const ID: &str = finding_id::CLOCKSOURCE_SLOW;

pub fn check(report: &Report) -> Finding {
    let current = match &report.clocksource.current {
        Fact::Known(current) => current,
        Fact::Unavailable { unavailable } => {
            return Finding::unknown(ID, format!("the clock source is unknown: {unavailable}"));
        }
    };
    let Some(known) = known(current) else {
        return Finding::unknown(ID, format!("{current} is no clock source that pg_timing knows"));
    };
    if !known.is_slow() {
        return Finding::ok(ID, format!("clock source {current}"));
    }
    // Some are slow on some kernels only: where the cost was measured, that decides.
    if report.system().and_then(|clock| clock.read_ns).is_some_and(|ns| ns <= super::clock_slow::LIMITS_NS.0) {
        return Finding::ok(ID, format!("clock source {current}, which costs little here"));
    }
    Finding::new(ID, Severity::Warning, format!("the kernel keeps time by {current}, a slow clock source"))
        .evidence(format!("{current}: {}; a read typically takes {}", known.what, known.read))
        .why("every process on this host pays it at every look at the time, PostgreSQL's EXPLAIN ANALYZE most of all")
        .fixes(other_clocksource(report))
}
