//! `clocksource-not-persistent`: will the clock source of now be gone after a reboot?

use crate::report::{Fact, Finding, Fix, Report, Severity};

const ID: &str = "clocksource-not-persistent";

pub fn check(report: &Report) -> Finding {
    let (Fact::Known(current), Fact::Known(available)) = (&report.clocksource.current, &report.clocksource.available)
    else {
        return Finding::unknown(ID, "the clock source is unknown");
    };
    let Fact::Known(parameters) = &report.host.boot_parameters else {
        return Finding::unknown(ID, "the kernel's boot parameters are unknown");
    };
    let asked: Option<&str> = parameters.iter().filter_map(|word| word.strip_prefix("clocksource=")).next_back();
    // The kernel lists them best first and takes the first unless it is told otherwise.
    let own = available.first().unwrap_or(current);
    let at_boot = asked.filter(|name| available.iter().any(|a| a == name)).unwrap_or(own);
    if at_boot == current {
        return Finding::ok(ID, format!("a restart will bring {current} again"));
    }
    Finding::new(
        ID,
        Severity::Warning,
        format!("the clock source {current} was set by hand and will be {at_boot} again after a restart"),
    )
    .evidence(format!("available_clocksource, best first: {}", available.join(" ")))
    .evidence(match asked {
        Some(name) => format!("boot parameter: clocksource={name}"),
        None => "no boot parameter names a clock source".into(),
    })
    .why("what EXPLAIN ANALYZE costs on this host will change at the next restart")
    .fix(
        Fix::new(
            "to keep it, add the boot parameter (on Debian: GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub)",
        )
        .command(format!("clocksource={current}"))
        .undo("take it out again")
        .risk("if the kernel cannot take it at boot, it takes its own choice and says so in its log"),
    )
}
