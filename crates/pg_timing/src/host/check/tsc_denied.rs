//! `tsc-denied`: may this process read the counter?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::TSC_DENIED;

pub fn check(report: &Report) -> Finding {
    match report.tsc.permitted {
        None => Finding::unknown(ID, "whether this process may read the counter was not asked"),
        Some(true) => Finding::ok(ID, "the CPU's counter may be read"),
        Some(false) => Finding::new(ID, Severity::Warning, "reading the CPU's counter is denied to this process (PR_SET_TSC)")
            .evidence("prctl(PR_GET_TSC) answers PR_TSC_SIGSEGV")
            .evidence("denied with it: RDTSC, RDTSCP, and every clock that the vDSO serves; only system calls and COARSE clocks are left")
            .why("a program started under this rule dies at its first look at the clock, PostgreSQL too; what is measured \
                  here is what is left, and not what a server on this host pays")
            .fix(Fix::new("run pg_timing outside the sandbox that set it (seccomp profiles and replay debuggers do)")),
    }
}
