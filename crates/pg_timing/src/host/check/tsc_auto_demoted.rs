//! `tsc-auto-demoted`: would PostgreSQL 19 time with a TSC that the kernel has given up?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::TSC_AUTO_DEMOTED;

pub fn check(report: &Report) -> Finding {
    match (report.tsc.used_by_default, report.tsc.accepted_by_kernel) {
        (Some(true), Some(false)) => {}
        (Some(false), _) | (_, Some(true)) => {
            let summary = "PostgreSQL 19's timing_clock_source = auto takes no TSC that the kernel has given up";
            return Finding::ok(ID, summary);
        }
        _ => return Finding::unknown(ID, "what PostgreSQL 19 and the kernel make of the TSC is unknown"),
    }
    let doubt = report.kernel.known().and_then(|kernel| kernel.demotion.as_ref()?.doubt.clone());
    let clean = |id: &str| report.findings.iter().any(|f| f.id == id && f.severity == Severity::Ok);
    if let Some(doubt) = doubt.filter(|_| clean(finding_id::CPU_SKEW) && clean(finding_id::TSC_RATE_MISMATCH)) {
        return Finding::ok(ID, "PostgreSQL 19 goes on timing with the TSC, and nothing was found against it here")
            .evidence(format!("the kernel's verdict on it can be false: {doubt}"));
    }
    let summary = "PostgreSQL 19's timing_clock_source = auto would time with the TSC that the kernel does not trust";
    let cost = |name: &str| report.clock(name).and_then(|clock| clock.cost_ns());
    let risk = match (cost("system"), cost("rdtsc")) {
        (Some(system), Some(tsc)) => format!("a look at the clock then costs {system:.0} ns in place of {tsc:.0}"),
        _ => "a look at the clock then costs what the system clock costs here".into(),
    };
    Finding::new(ID, Severity::Warning, summary)
        .evidence("the CPU has TSC_ADJUST: for PostgreSQL 19 that is enough, whatever the kernel says")
        .evidence("PostgreSQL 19 does not compare the CPUs' counters")
        .why("times that it measures can jump or run at a wrong rate, and nothing would show it")
        .fix(
            Fix::new("on PostgreSQL 19, time with the system clock")
                .command("ALTER SYSTEM SET timing_clock_source = 'system'; SELECT pg_reload_conf()")
                .undo("ALTER SYSTEM RESET timing_clock_source; SELECT pg_reload_conf()")
                .risk(risk),
        )
}
