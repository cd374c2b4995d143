//! `clock-syscall`: does a read of PostgreSQL's clock need a system call?

use super::advice::other_clocksource;
use crate::report::{AccessPath, Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::CLOCK_SYSCALL;

pub fn check(report: &Report) -> Finding {
    let Some((clock, path)) = report.system().and_then(|clock| clock.access_path.map(|path| (clock, path))) else {
        return Finding::unknown(ID, "the access path of PostgreSQL's clock was not measured");
    };
    let costs = || {
        let read = |name| report.clock(name).and_then(|clock| clock.read_ns);
        match (read("system"), read("system_syscall")) {
            (Some(own), Some(call)) => {
                format!("system: {own:.1} ns per read; by a plain system call: {call:.1} ns")
            }
            _ => format!("system: access by {path:?}"),
        }
    };
    match path {
        AccessPath::Instruction | AccessPath::Vdso => {
            Finding::ok(ID, "reads of PostgreSQL's clock need no system call (vDSO)").evidence(costs())
        }
        AccessPath::Syscall => Finding::new(ID, Severity::Warning, "each read of PostgreSQL's clock is a system call, because the vDSO cannot read this clock source")
            .evidence(costs())
            .why("programs can read the clock without a system call only with some clock sources (tsc, kvm-clock, the Hyper-V \
                  page, arch_sys_counter); with others a read costs 5 to 20 times as much")
            .fixes(other_clocksource(report)),
        AccessPath::Interposed => Finding::new(
            ID,
            Severity::Warning,
            "a read of PostgreSQL's clock costs more than a system call: something intercepts the reads",
        )
        .evidence(costs())
        .evidence(format!("{} ns per read at the 99.9th percentile", clock.percentiles.map_or(0.0, |p| p.p99_9_ns)))
        .why("a sandbox, a tracer or an LD_PRELOAD library adds its own work to each read")
        .fix(Fix::new("check whether LD_PRELOAD is set, whether a tracer is attached, and whether a sandbox runs this process")),
    }
}
