//! `clocksource-refused`: did the kernel refuse a requested clock source?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::CLOCKSOURCE_REFUSED;

pub fn check(report: &Report) -> Finding {
    let kernel = match report.kernel_log() {
        Ok(kernel) => kernel,
        Err(why) => return Finding::unknown(ID, why),
    };
    let current = report.clocksource.current.known();
    let Some(name) = kernel.refused.as_ref().filter(|name| current != Some(*name)) else {
        return Finding::ok(ID, "the kernel refused no requested clock source");
    };
    let instead = current.map(|current| format!(" and keeps {current}")).unwrap_or_default();
    Finding::new(ID, Severity::Warning, format!("the kernel refused the requested clock source {name}{instead}"))
        .evidence(format!("kernel log: the override to {name} was refused"))
        .why("someone requested it with the boot parameter clocksource= or in sysfs, and may assume that it is in use")
        .fix(
            Fix::new("look at the available clock sources; if tsc was refused, the kernel had marked it unstable")
                .command("pg_timing clocksource list"),
        )
}
