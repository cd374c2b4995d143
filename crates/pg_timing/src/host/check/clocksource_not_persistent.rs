//! `clocksource-not-persistent`: will a restart change the clock source?

use crate::report::{ClocksourceParameter, Fact, Finding, Fix, Report, Severity, System, finding_id};

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
    let requested = ClocksourceParameter::of(&parameters);
    // The kernel lists the best first and selects it, unless a boot parameter names another.
    let best = available.first().unwrap_or(current);
    let at_boot = requested.map(|parameter| parameter.name).filter(|name| available.iter().any(|a| a == name));
    let at_boot = at_boot.unwrap_or(best);
    let demotion = report.kernel.known().and_then(|kernel| kernel.demotion.as_ref());
    if at_boot == current && demotion.is_some_and(|demotion| !demotion.at_boot) {
        return Finding::ok(
            ID,
            format!(
                "{current} is current because the kernel marked the TSC unstable; after a restart it tries the TSC again"
            ),
        );
    }
    if at_boot == current {
        return Finding::ok(ID, format!("after a restart the clock source will be {current} again"));
    }
    Finding::new(
        ID,
        Severity::Warning,
        format!("the clock source {current} was set after boot; after a restart it will be {at_boot}, unless a startup script sets it"),
    )
    .evidence(format!("available, best first: {}", available.join(" ")))
    .evidence(match (requested, system) {
        (Some(parameter), _) => format!("boot parameter: {}", parameter.word),
        (None, System::FreeBsd) => "the kernel selects the one with the highest quality".into(),
        (None, System::Linux) => "no boot parameter names a clock source".into(),
    })
    .why("the overhead of EXPLAIN ANALYZE on the host will change at the next restart")
    .fix(
        Fix::new(format!("to keep it: {}", system.make_permanent(current)))
            .undo("remove it again")
            .risk("if the kernel cannot use it at boot, it selects another one and writes that to its log"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;

    fn finding(current: &str, parameter: &str) -> Finding {
        let mut report = Report::empty(Origin::Captured, "");
        report.clocksource.current = Fact::Known(current.into());
        report.clocksource.available = Fact::Known(["tsc", "hpet", "acpi_pm"].map(String::from).to_vec());
        report.host.boot_parameters = Fact::Known(vec![parameter.into()]);
        check(&report)
    }

    #[test]
    fn the_old_boot_parameter_counts() {
        for parameter in ["clock=acpi_pm", "clock=pmtmr", "clocksource=acpi_pm"] {
            assert_eq!(finding("acpi_pm", parameter).severity, Severity::Ok, "{parameter}");
            let changed = finding("tsc", parameter);
            assert_eq!(changed.severity, Severity::Warning, "{parameter}");
            assert!(changed.evidence.contains(&format!("boot parameter: {parameter}")), "{changed:?}");
        }
        assert_eq!(finding("acpi_pm", "clock=frob").severity, Severity::Warning, "the kernel does not have it");
    }
}
