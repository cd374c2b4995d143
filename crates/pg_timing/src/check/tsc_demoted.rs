//! `tsc-demoted`: has the kernel given up a TSC that the CPU calls good?

use crate::report::{Finding, Fix, Report, Severity};

const ID: &str = "tsc-demoted";

pub fn check(report: &Report) -> Finding {
    let (Some(invariant), Some(accepted)) = (report.tsc.invariant, report.tsc.accepted_by_kernel) else {
        return Finding::unknown(ID, "what CPU and kernel say of the TSC is unknown");
    };
    if !invariant || accepted {
        return Finding::ok(
            ID,
            if accepted { "the kernel accepts the TSC" } else { "there is no invariant TSC to demote" },
        );
    }
    let list = |fact: &crate::report::Fact<Vec<String>>| fact.known().map(|names| names.join(" ")).unwrap_or_default();
    let current = report.clocksource.current.known().cloned().unwrap_or_default();
    let mut finding =
        Finding::new(ID, Severity::Warning, format!("the kernel does not trust this host's TSC and keeps time by {current}"))
            .evidence("CPUID calls the TSC invariant")
            .evidence(format!("available_clocksource has no tsc: {}", list(&report.clocksource.available)))
            .why("the kernel drops the TSC when it drifts from another clock or differs between CPUs: times taken with it may be wrong")
            .fix(Fix::new("look for the reason in the kernel log").command("dmesg | grep -i -E 'tsc|clocksource'"))
            .fix(
                Fix::new("a TSC that was dropped cannot be switched back on while this kernel runs: restart the machine")
                    .risk("stops what runs on it"),
            );
    if report.tsc.used_by_default == Some(true) {
        finding = finding
            .evidence("PostgreSQL 19's timing_clock_source = auto would use it all the same (the CPU has TSC_ADJUST)")
            .fix(
                Fix::new("tell PostgreSQL 19 not to use it")
                    .command("ALTER SYSTEM SET timing_clock_source = 'system'")
                    .undo("ALTER SYSTEM RESET timing_clock_source"),
            );
    }
    finding
}
