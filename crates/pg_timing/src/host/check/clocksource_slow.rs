//! `clocksource-slow`: does the kernel's clock run on slow hardware?

use super::advice::other_clocksource;
use crate::report::{Fact, Finding, Report, Severity, finding_id, traits_of};

const ID: &str = finding_id::CLOCKSOURCE_SLOW;

pub fn check(report: &Report) -> Finding {
    let current = match &report.clocksource.current {
        Fact::Known(current) => current,
        Fact::Unavailable { unavailable } => {
            return Finding::unknown(ID, format!("the clock source is unknown: {unavailable}"));
        }
    };
    let Some(traits) = traits_of(current) else {
        return Finding::unknown(ID, format!("pg_timing does not know the clock source {current}"));
    };
    if !traits.is_slow() {
        return Finding::ok(ID, format!("clock source {current}"));
    }
    // Some clock sources are slow only on some kernels, so a measured cost decides.
    if report.system().and_then(|clock| clock.read_ns).is_some_and(|ns| ns <= super::clock_slow::LIMITS_NS.0) {
        return Finding::ok(ID, format!("clock source {current}, which is cheap on this host"));
    }
    Finding::new(ID, Severity::Warning, format!("the kernel's clock source is {current}, which is slow"))
        .evidence(format!("{current}: {}; a read typically takes {}", traits.what, traits.read))
        .why("every process on this host pays this for each read of the clock, and EXPLAIN ANALYZE reads it most often")
        .fixes(other_clocksource(report))
}
