//! `clock-syscall`: does a read of PostgreSQL's clock have to enter the kernel?

use super::advice::other_clocksource;
use crate::report::{AccessPath, Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::CLOCK_SYSCALL;

pub fn check(report: &Report) -> Finding {
    let Some((clock, through)) = report.system().and_then(|clock| clock.through.map(|through| (clock, through))) else {
        return Finding::unknown(ID, "how PostgreSQL's clock is read was not measured");
    };
    let costs = || {
        let read = |name| report.clock(name).and_then(|clock| clock.read_ns);
        match (read("system"), read("system_syscall")) {
            (Some(own), Some(call)) => {
                format!("system: {own:.1} ns a read; the same by a bare system call: {call:.1} ns")
            }
            _ => format!("system: through {through:?}"),
        }
    };
    match through {
        AccessPath::Instruction | AccessPath::Vdso => {
            Finding::ok(ID, "PostgreSQL's clock is read without a system call (vDSO)").evidence(costs())
        }
        AccessPath::Syscall => Finding::new(ID, Severity::Warning, "each read of PostgreSQL's clock is a system call: the vDSO does not serve it")
            .evidence(costs())
            .why("the kernel serves its clock to programs without a system call only on some clock sources (tsc, kvm-clock, \
                  the Hyper-V page, arch_sys_counter); on others each read costs 5 to 20 times as much")
            .fixes(other_clocksource(report)),
        AccessPath::Interposed => Finding::new(
            ID,
            Severity::Warning,
            "a read of PostgreSQL's clock costs more than a system call: something stands between programs and the kernel's clock",
        )
        .evidence(costs())
        .evidence(format!("{} ns a read at the 99.9th percentile", clock.percentiles.map_or(0.0, |p| p.p99_9_ns)))
        .why("a sandbox, a tracer or an LD_PRELOAD library pays for each read")
        .fix(Fix::new("see whether LD_PRELOAD, ptrace or a sandbox is at work in this process's environment")),
    }
}
