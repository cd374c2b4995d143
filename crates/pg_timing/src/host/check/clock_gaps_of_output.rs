//! `clock-gaps` for the output of pg_test_timing, which does not show the cause of an interruption.

use crate::human::{count, duration};
use crate::report::{ClockReport, Finding, Fix, Gaps, INTERRUPTED_SHARE, Severity, finding_id};

const ID: &str = finding_id::CLOCK_GAPS;

/// Returns the finding, which is a warning if too much of the time was lost. The times of `gaps` are lower bounds.
pub fn finding(clock: &ClockReport, gaps: &Gaps) -> Finding {
    let share = gaps.share * 100.0;
    let evidence = format!(
        "{} of {} readings came more than {} after the previous one: at least {share:.1}% of the time",
        count(gaps.count),
        count(clock.reads),
        duration(gaps.threshold_ns)
    );
    let summary = match gaps.count {
        0 => "no interruption was measured".into(),
        _ => {
            let longest = duration(gaps.largest_ns);
            format!("interruptions took at least {share:.1}% of the time, the longest at least {longest}")
        }
    };
    if gaps.share <= INTERRUPTED_SHARE {
        return Finding::ok(ID, summary).evidence(evidence);
    }
    Finding::new(ID, Severity::Warning, summary)
        .evidence(evidence)
        .why(
            "a server on that host lost time in the same way, and EXPLAIN ANALYZE adds it to the node that was running. The \
             output does not show the cause",
        )
        .fix(Fix::new("run pg_timing on that host while no other program is busy; it shows the cause").command("pg_timing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(share: f64) -> Finding {
        let gaps = Gaps { threshold_ns: 16_000.0, count: 10, total_ns: share * 1e9, largest_ns: 4e6, share };
        finding(&ClockReport { reads: 1_000_000, ..ClockReport::default() }, &gaps)
    }

    #[test]
    fn more_than_10_percent_is_a_warning() {
        assert_eq!((at(0.10).severity, at(0.101).severity), (Severity::Ok, Severity::Warning));
        assert_eq!(at(0.883).summary, "interruptions took at least 88.3% of the time, the longest at least 4 ms");
    }
}
