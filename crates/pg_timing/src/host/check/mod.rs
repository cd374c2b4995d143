//! The checks: each file has one `fn(&Report) -> Finding`.

mod advice;
mod clock_backward;
mod clock_coarse;
mod clock_gaps;
mod clock_gaps_of_output;
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
mod tsc_not_invariant;
mod tsc_rate_mismatch;
mod tsc_slow;
mod tsc_unchecked;
mod verdict;

pub use cpu_skew::differs;
pub use tsc_slow::finding as tsc_slow;

use crate::report::{Finding, ReadCostLimits, Report};

/// Every check, a cause before its effects. Findings are shown in this order.
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
    tsc_not_invariant::check,
    tsc_rate_mismatch::check,
    tsc_firmware::check,
    cpu_skew::check,
    tsc_unchecked::check,
    tsc_auto_demoted::check,
    tsc_slow::check,
    drift::check,
    clock_gaps::check,
];

/// Adds the findings and the verdict to the report.
pub fn judge(report: &mut Report) {
    // A check may use the findings of the checks before it.
    report.findings = Vec::new();
    for check in CHECKS {
        let finding = check(report);
        report.findings.push(finding);
    }
    conclude(report);
    let (warning, critical) = clock_slow::LIMITS_NS;
    report.read_cost_limits_ns = Some(ReadCostLimits { warning, critical });
}

/// Sets the verdict for the findings of the report.
pub fn conclude(report: &mut Report) {
    report.verdict = verdict::verdict(report);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Origin, finding_id};

    #[test]
    fn each_id_has_one_check_in_the_same_order() {
        let mut report = Report::empty(Origin::Measured, "");
        judge(&mut report);
        let ids: Vec<&str> = report.findings.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!(ids, finding_id::ALL);
    }
}
