//! `clocksource-refused`: was a clock source asked for that the kernel would not take?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::CLOCKSOURCE_REFUSED;

pub fn check(report: &Report) -> Finding {
    let Some(kernel) = report.kernel.known() else {
        return Finding::unknown(ID, "the kernel log is not to be had");
    };
    let current = report.clocksource.current.known();
    let Some(name) = kernel.refused.as_ref().filter(|name| current != Some(*name)) else {
        return Finding::ok(ID, "no clock source that was asked for is refused");
    };
    let instead = current.map(|current| format!(" and keeps {current}")).unwrap_or_default();
    Finding::new(ID, Severity::Warning, format!("the kernel refuses the clock source {name} that was asked for{instead}"))
        .evidence(format!("kernel log: the override to {name} was refused"))
        .why("it is asked for by the boot parameter clocksource= or by a write to sysfs, and whoever did so believes that it is in use")
        .fix(Fix::new("see which sources this kernel offers; a tsc that is refused was marked unstable").command("pg_timing clocksource list"))
}
