//! `tsc-denied`: may this process read the counter?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::TSC_DENIED;

pub fn check(report: &Report) -> Finding {
    match report.tsc.permitted {
        None => Finding::unknown(ID, "not determined whether this process may read the counter"),
        Some(true) => Finding::ok(ID, "this process may read the CPU's counter"),
        Some(false) => Finding::new(ID, Severity::Warning, "this process may not read the CPU's counter (PR_SET_TSC)")
            .evidence("prctl(PR_GET_TSC) returns PR_TSC_SIGSEGV")
            .evidence("also denied: RDTSC, RDTSCP, and every clock that the vDSO reads; only system calls and COARSE clocks work")
            .why("a program under this rule, for example PostgreSQL, is killed when it first reads the clock; these figures are \
                  not valid for a server outside of the sandbox")
            .fix(Fix::new("run pg_timing outside of the sandbox that set this rule (a seccomp profile or a replay debugger)")),
    }
}
