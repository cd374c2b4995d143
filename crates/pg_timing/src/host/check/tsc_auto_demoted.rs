//! `tsc-auto-demoted`: would PostgreSQL 19 use a TSC that the kernel does not trust?

use super::advice::system_clock_on_19;
use crate::report::{Finding, Report, Severity, finding_id};

const ID: &str = finding_id::TSC_AUTO_DEMOTED;

pub fn check(report: &Report) -> Finding {
    match (report.tsc.used_by_default, report.tsc.accepted_by_kernel) {
        (Some(true), Some(false)) => {}
        (Some(false), _) | (_, Some(true)) => {
            let summary = "PostgreSQL 19's timing_clock_source = auto does not use a TSC that the kernel distrusts";
            return Finding::ok(ID, summary);
        }
        _ => return Finding::unknown(ID, "not determined whether PostgreSQL 19 and the kernel use the TSC"),
    }
    let doubt = report.kernel.known().and_then(|kernel| kernel.demotion.as_ref()?.doubt.clone());
    let clean = |id: &str| report.findings.iter().any(|f| f.id == id && f.severity == Severity::Ok);
    if let Some(doubt) = doubt.filter(|_| clean(finding_id::CPU_SKEW) && clean(finding_id::TSC_RATE_MISMATCH)) {
        return Finding::ok(
            ID,
            "PostgreSQL 19 would use the TSC that the kernel demoted, and pg_timing found no fault of the TSC",
        )
        .evidence(format!("the kernel may have demoted it by mistake: {doubt}"));
    }
    let summary = "PostgreSQL 19's timing_clock_source = auto would use the TSC, which the kernel does not trust";
    let cost = |name: &str| report.clock(name).and_then(|clock| clock.cost_ns());
    let risk = match (cost("system"), cost("rdtsc")) {
        (Some(system), Some(tsc)) => format!("a read of the clock then costs {system:.0} ns instead of {tsc:.0} ns"),
        _ => "a read of the clock then costs as much as the system clock".into(),
    };
    Finding::new(ID, Severity::Warning, summary)
        .evidence("the CPU has the register TSC_ADJUST: PostgreSQL 19 then uses the TSC, whatever the kernel decided")
        .evidence("PostgreSQL 19 does not compare the CPUs' counters")
        .why("PostgreSQL 19's times can jump or have a wrong rate, and the server prints no warning")
        .fix(system_clock_on_19().risk(risk))
}
