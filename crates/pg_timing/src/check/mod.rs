//! From facts to findings: one check a file, each `fn(&Report) -> Finding`.

mod advice;
mod clock_backward;
mod clock_coarse;
mod clock_gaps;
mod clock_slow;
mod clock_syscall;
mod clocksource_slow;
mod cpu_skew;
mod drift;
mod tsc_absent;
mod tsc_demoted;
mod tsc_denied;
mod tsc_rate_mismatch;
mod verdict;

use crate::report::{Finding, Report};

/// Every check there is, gravest subject first: the order in which findings are shown.
const CHECKS: &[fn(&Report) -> Finding] = &[
    clock_backward::check,
    clock_slow::check,
    clock_coarse::check,
    clocksource_slow::check,
    clock_syscall::check,
    tsc_denied::check,
    tsc_demoted::check,
    tsc_absent::check,
    tsc_rate_mismatch::check,
    cpu_skew::check,
    drift::check,
    clock_gaps::check,
];

/// Fills in the report's findings and verdict.
pub fn judge(report: &mut Report) {
    report.findings = CHECKS.iter().map(|check| check(report)).collect();
    report.verdict = verdict::verdict(report);
}

/// What EXPLAIN ANALYZE adds at most: it reads the clock as a node is entered and as it is left.
pub fn added_per_node_ns(read_ns: f64) -> f64 {
    2.0 * read_ns
}
