//! `clocksource-slow`: does the kernel's clock stand on slow hardware?

use super::advice::other_clocksource;
use crate::report::{Fact, Finding, Report, Severity};

/// Clock sources that cost a trip to a device or lack a vDSO, with what they are.
const SLOW: &[(&str, &str)] = &[
    ("hpet", "a timer chip that is read over the bus: 0.5 to 1 us a read, more in a virtual machine"),
    ("acpi_pm", "a timer chip that is read over a port: 0.5 to 1 us a read or more, in steps of 280 ns"),
    ("jiffies", "the kernel's tick: steps of 1 to 10 ms"),
    ("refined-jiffies", "the kernel's tick: steps of 1 to 10 ms"),
    ("pit", "the PC's old timer: several us a read"),
    ("xen", "Xen's clock, which older kernels serve by a system call only"),
    ("HPET", "a timer chip that is read over the bus: 0.5 to 1 us a read"),
    ("ACPI-fast", "a timer chip that is read over a port: 0.5 to 1 us a read or more"),
    ("ACPI-safe", "a timer chip that is read over a port, three times for each look"),
    ("i8254", "the PC's old timer: several us a read"),
    ("hyperv_clocksource_msr", "the Hyper-V counter read through the hypervisor: 1 us or more"),
];

/// The others that are known: nothing but an instruction and arithmetic.
const KNOWN_FAST: &[&str] = &[
    "tsc",
    "tsc-early",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "TSC",
    "TSC-low",
    "kvmclock",
    "Hyper-V-TSC",
];

const ID: &str = "clocksource-slow";

pub fn check(report: &Report) -> Finding {
    let current = match &report.clocksource.current {
        Fact::Known(current) => current,
        Fact::Unavailable { unavailable } => {
            return Finding::unknown(ID, format!("the clock source is unknown: {unavailable}"));
        }
    };
    let Some((_, what)) = SLOW.iter().find(|(name, _)| name == current) else {
        return match KNOWN_FAST.contains(&current.as_str()) {
            true => Finding::ok(ID, format!("clock source {current}")),
            false => Finding::unknown(ID, format!("{current} is no clock source that pg_timing knows")),
        };
    };
    // Some are slow on some kernels only: where the cost was measured, that decides.
    if report.system().and_then(|clock| clock.read_ns).is_some_and(|ns| ns <= super::READ_COST_LIMITS_NS.0) {
        return Finding::ok(ID, format!("clock source {current}, which costs little here"));
    }
    Finding::new(ID, Severity::Warning, format!("the kernel keeps time by {current}, a slow clock source"))
        .evidence(format!("{current}: {what}"))
        .why("every process on this host pays it at every look at the time, PostgreSQL's EXPLAIN ANALYZE most of all")
        .fixes(other_clocksource(report))
}
