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
    ("hyperv_clocksource_msr", "the Hyper-V counter read through the hypervisor: 1 us or more"),
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
        return Finding::ok(ID, format!("clock source {current}"));
    };
    Finding::new(ID, Severity::Warning, format!("the kernel keeps time by {current}, a slow clock source"))
        .evidence(format!("current_clocksource: {current}"))
        .evidence(format!("{current}: {what}"))
        .why("every process on this host pays it at every look at the time, PostgreSQL's EXPLAIN ANALYZE most of all")
        .fixes(other_clocksource(report))
}
