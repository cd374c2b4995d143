//! The checks: each has the signature `fn(&Report) -> Finding`. Checks of one subject share a file.

mod advice;
mod clocksource;
mod cost;
mod counter;
mod cpu_skew;
mod drift;
mod interruptions;
mod steps;
mod trust;
mod verdict;

pub use cost::tsc_slow_if;
pub use cpu_skew::differs;

use crate::report::{Finding, GOOD_READ_NS, ReadCostLimits, Report, Severity, finding_id as id};

type Check = fn(&Report) -> Finding;

/// Every check with its id, a cause before its effects. Findings are shown in this order.
const CHECKS: &[(&str, Check)] = &[
    (id::TSC_DEMOTED, trust::tsc_demoted),
    (id::CLOCK_BACKWARD, steps::clock_backward),
    (id::CLOCK_SLOW, cost::clock_slow),
    (id::CLOCK_COARSE, steps::clock_coarse),
    (id::CLOCKSOURCE_SLOW, cost::clocksource_slow),
    (id::CLOCK_SYSCALL, cost::clock_syscall),
    (id::CLOCKSOURCE_CHANGED, clocksource::clocksource_changed),
    (id::CLOCKSOURCE_REFUSED, clocksource::clocksource_refused),
    (id::CLOCKSOURCE_NOT_PERSISTENT, clocksource::clocksource_not_persistent),
    (id::TSC_DENIED, counter::tsc_denied),
    (id::TSC_ABSENT, counter::tsc_absent),
    (id::TSC_NOT_INVARIANT, counter::tsc_not_invariant),
    (id::TSC_RATE_MISMATCH, counter::tsc_rate_mismatch),
    (id::TSC_FIRMWARE, trust::tsc_firmware),
    (id::CPU_SKEW, cpu_skew::cpu_skew),
    (id::TSC_UNCHECKED, trust::tsc_unchecked),
    (id::TSC_AUTO_DEMOTED, trust::tsc_auto_demoted),
    (id::TSC_SLOW, cost::tsc_slow),
    (id::DRIFT, drift::drift),
    (id::CLOCK_GAPS, interruptions::clock_gaps),
];

/// Adds the findings and the verdict to the report.
pub fn judge(report: &mut Report) {
    // A check may use the findings of the checks before it.
    report.findings = Vec::new();
    for (id, check) in CHECKS {
        let finding = Finding { id: (*id).into(), ..check(report) };
        report.findings.push(finding);
    }
    conclude(report);
    report.read_cost_limits_ns = Some(ReadCostLimits { warning: GOOD_READ_NS, critical: cost::BAD_NS });
}

/// Sets the verdict for the findings of the report.
pub fn conclude(report: &mut Report) {
    report.verdict = verdict::verdict(report);
}

/// Returns a finding without its id, which [`judge`] adds.
fn with_severity(severity: Severity, summary: impl Into<String>) -> Finding {
    Finding::new("", severity, summary)
}

fn ok(summary: impl Into<String>) -> Finding {
    with_severity(Severity::Ok, summary)
}

/// Returns a finding that cannot be decided, for the reason `why`.
fn unknown(why: impl Into<String>) -> Finding {
    with_severity(Severity::Unknown, why)
}

fn warning(summary: impl Into<String>) -> Finding {
    with_severity(Severity::Warning, summary)
}

fn critical(summary: impl Into<String>) -> Finding {
    with_severity(Severity::Critical, summary)
}

/// Returns the finding with this id, if it is a warning or critical.
fn alarm<'a>(report: &'a Report, id: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| finding.id == id && finding.severity >= Severity::Warning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;

    #[test]
    fn each_id_has_one_check_in_the_same_order() {
        let mut report = Report::empty(Origin::Measured, "");
        judge(&mut report);
        let ids: Vec<&str> = report.findings.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!(ids, id::ALL);
    }
}
