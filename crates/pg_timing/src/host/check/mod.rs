//! From facts to findings: one check a file, each `fn(&Report) -> Finding`.

mod advice;
mod clock_backward;
mod clock_coarse;
mod clock_gaps;
mod clock_slow;
mod clock_syscall;
mod clocksource_changed;
mod clocksource_not_persistent;
mod clocksource_refused;
mod clocksource_slow;
mod cpu_skew;
mod drift;
mod tsc_absent;
mod tsc_auto_demoted;
mod tsc_demoted;
mod tsc_denied;
mod tsc_firmware;
mod tsc_rate_mismatch;
mod tsc_unchecked;
mod verdict;

pub use cpu_skew::differs;

use crate::report::{Finding, Report};

/// Every check there is, a cause before what it brings about: the order in which findings are shown.
const CHECKS: &[fn(&Report) -> Finding] = &[
    tsc_demoted::check,
    clock_backward::check,
    clock_slow::check,
    clock_coarse::check,
    clocksource_slow::check,
    clock_syscall::check,
    clocksource_changed::check,
    clocksource_refused::check,
    clocksource_not_persistent::check,
    tsc_denied::check,
    tsc_absent::check,
    tsc_rate_mismatch::check,
    tsc_firmware::check,
    cpu_skew::check,
    tsc_unchecked::check,
    tsc_auto_demoted::check,
    drift::check,
    clock_gaps::check,
];

/// Fills in the report's findings and verdict.
pub fn judge(report: &mut Report) {
    // One after the other: a check may look at what those before it found.
    report.findings = Vec::new();
    for check in CHECKS {
        let finding = check(report);
        report.findings.push(finding);
    }
    report.verdict = verdict::verdict(report);
    report.read_cost_limits_ns = Some(clock_slow::LIMITS_NS);
}
