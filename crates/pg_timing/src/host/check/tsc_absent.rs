//! `tsc-absent`: does the CPU have a counter with a constant rate?

use crate::report::{Finding, Report, finding_id};

const ID: &str = finding_id::TSC_ABSENT;

/// Never an alarm. If the system clock is slow because there is no TSC, `clock-slow` is the alarm.
pub fn check(report: &Report) -> Finding {
    match report.tsc.invariant {
        None => Finding::unknown(ID, "the CPU's description of its counter is unknown"),
        Some(true) => Finding::ok(ID, "the CPU has a counter with a constant rate"),
        Some(false) => Finding::ok(
            ID,
            "the CPU or the hypervisor offers no TSC with a constant rate, so PostgreSQL 19 uses the system clock",
        )
        .evidence("CPUID does not set the invariant TSC bit"),
    }
}
