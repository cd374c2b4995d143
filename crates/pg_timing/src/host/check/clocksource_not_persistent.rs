//! `clocksource-not-persistent`: will the clock source of now be gone after a reboot?

use crate::report::{Fact, Finding, Fix, Report, Severity, System, finding_id};

const ID: &str = finding_id::CLOCKSOURCE_NOT_PERSISTENT;

pub fn check(report: &Report) -> Finding {
    let (Fact::Known(current), Fact::Known(available)) = (&report.clocksource.current, &report.clocksource.available)
    else {
        return Finding::unknown(ID, "the clock source is unknown");
    };
    let system = System::of_facts(&report.host);
    let none = (system == System::FreeBsd).then(Vec::new);
    let Some(parameters) = report.host.boot_parameters.known().cloned().or(none) else {
        return Finding::unknown(ID, "the kernel's boot parameters are unknown");
    };
    let asked: Option<&str> = parameters.iter().filter_map(|word| word.strip_prefix("clocksource=")).next_back();
    // The kernel lists them best first and takes the first unless it is told otherwise.
    let own = available.first().unwrap_or(current);
    let at_boot = asked.filter(|name| available.iter().any(|a| a == name)).unwrap_or(own);
    let demotion = report.kernel.known().and_then(|kernel| kernel.demotion.as_ref());
    if at_boot == current && demotion.is_some_and(|demotion| !demotion.at_boot) {
        return Finding::ok(
            ID,
            format!("{current} is here because the TSC was given up; a restart tries the TSC again"),
        );
    }
    if at_boot == current {
        return Finding::ok(ID, format!("a restart will bring {current} again"));
    }
    Finding::new(
        ID,
        Severity::Warning,
        format!("the clock source {current} was set after boot: unless a start-up script sets it, it will be {at_boot} again after a restart"),
    )
    .evidence(format!("offered, best first: {}", available.join(" ")))
    .evidence(match (asked, system) {
        (Some(name), _) => format!("boot parameter: clocksource={name}"),
        (None, System::FreeBsd) => "the kernel chooses the one of the highest quality".into(),
        (None, System::Linux) => "no boot parameter names a clock source".into(),
    })
    .why("what EXPLAIN ANALYZE costs on this host will change at the next restart")
    .fix(
        Fix::new(format!("to keep it: {}", system.make_permanent(current)))
            .undo("take it out again")
            .risk("if the kernel cannot take it at boot, it takes its own choice and says so in its log"),
    )
}
