//! `tsc-absent`: is there a counter that keeps one rate?

use crate::report::{Finding, Report, finding_id};

const ID: &str = finding_id::TSC_ABSENT;

/// Never an alarm by itself: where the system clock is slow for want of a TSC, `clock-slow` says so.
pub fn check(report: &Report) -> Finding {
    match report.tsc.invariant {
        None => Finding::unknown(ID, "what the CPU says of its counter is unknown"),
        Some(true) => Finding::ok(ID, "the CPU has a counter of constant rate"),
        Some(false) => Finding::ok(
            ID,
            "this CPU, or its hypervisor, offers no TSC of constant rate: PostgreSQL 19 uses the system clock",
        )
        .evidence("CPUID does not set the invariant TSC bit"),
    }
}
