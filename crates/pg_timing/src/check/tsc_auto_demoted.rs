//! `tsc-auto-demoted`: would PostgreSQL 19 time with a TSC that the kernel has given up?

use crate::report::{Finding, Fix, Report, Severity};

const ID: &str = "tsc-auto-demoted";

pub fn check(report: &Report) -> Finding {
    match (report.tsc.used_by_default, report.tsc.accepted_by_kernel) {
        (Some(true), Some(false)) => {}
        (Some(false), _) | (_, Some(true)) => {
            return Finding::ok(
                ID,
                "PostgreSQL 19's timing_clock_source = auto takes no TSC that the kernel has given up",
            );
        }
        _ => return Finding::unknown(ID, "what PostgreSQL 19 and the kernel make of the TSC is unknown"),
    }
    Finding::new(
        ID,
        Severity::Warning,
        "PostgreSQL 19's timing_clock_source = auto would time with the TSC that the kernel does not trust",
    )
    .evidence("the CPU has TSC_ADJUST: for PostgreSQL 19 that is enough, whatever the kernel says")
    .evidence("it does not compare the CPUs' counters either")
    .why("times that it measures can jump or run at a wrong rate, and nothing would show it")
    .fix(
        Fix::new("on PostgreSQL 19, time with the system clock")
            .command("ALTER SYSTEM SET timing_clock_source = 'system'; SELECT pg_reload_conf()")
            .undo("ALTER SYSTEM RESET timing_clock_source; SELECT pg_reload_conf()")
            .risk("EXPLAIN ANALYZE then costs what the system clock costs here"),
    )
}
