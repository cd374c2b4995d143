//! Findings about the choice of the clock source: changed, refused, lost at a restart. And the advice to select another one.

use super::*;

/// `clocksource-changed`: did the kernel's clock source change after boot?
pub fn clocksource_changed(report: &Report) -> Judged {
    if let (Some(before), Some(now)) = (&report.clocksource.before, report.clocksource.current.known()) {
        return Ok(warning(format!("the clock source changed from {before} to {now} while the clocks were measured"))
            .evidence(format!("current_clocksource: {before} at the start, {now} at the end"))
            .why("figures from before the change and after it belong to different clocks; measure again"));
    }
    let kernel = report.kernel_log()?;
    let now = report.clocksource.current.known();
    if let Some((now, last)) = now.and_then(|now| Some((now, kernel.other_last_clocksource(now)?))) {
        return Err(format!("the kernel log ends with {last}, but {now} is current: it is old or from another host"));
    }
    if kernel.switches.iter().any(|switch| switch.seconds.is_none()) {
        return Err("the kernel log has no times since boot".into());
    }
    let Some((from, to, seconds)) = kernel.late_switch() else {
        return ok(match kernel.since_boot {
            true => "the clock source is the one that the kernel selected at boot",
            false => "the kernel log shows no change of the clock source; its beginning is missing",
        });
    };
    let from = from.unwrap_or("another one");
    let summary = format!("the clock source changed from {from} to {to} at {seconds:.0} s after boot");
    // A switch by the kernel is an alarm. A manual switch is intended.
    if !kernel.unstable {
        let finding = with_severity(Severity::Ok, summary + ", manually");
        return Ok(finding.evidence("kernel log: no clock source was marked unstable"));
    }
    Ok(warning(summary)
        .evidence("kernel log: a clock source was marked unstable")
        .why("plans and logs from before that time used another clock, so their times are not comparable"))
}

/// `clocksource-refused`: did the kernel refuse a requested clock source?
pub fn clocksource_refused(report: &Report) -> Judged {
    let kernel = report.kernel_log()?;
    let current = report.clocksource.current.known();
    let Some(name) = kernel.refused.as_ref().filter(|name| current != Some(*name)) else {
        return ok("the kernel refused no requested clock source");
    };
    let instead = current.map(|current| format!(" and keeps {current}")).unwrap_or_default();
    let fix = "look at the available clock sources; if tsc was refused, the kernel had marked it unstable";
    Ok(warning(format!("the kernel refused the requested clock source {name}{instead}"))
        .why("someone requested it with the boot parameter clocksource= or in sysfs, and may assume that it is in use")
        .fix(Fix::new(fix).command("pg_timing clocksource list")))
}

/// `clocksource-not-persistent`: will a restart change the clock source?
pub fn clocksource_not_persistent(report: &Report) -> Judged {
    let (current, available) = report.clocksource.known().ok_or("the clock source is unknown")?;
    let system = System::of_facts(&report.host);
    if system == System::Linux {
        report.host.boot_parameters.known().ok_or("the kernel's boot parameters are unknown")?;
    }
    if !available.is_empty() && !available.contains(current) {
        // A kernel that has just demoted the TSC still uses it for some milliseconds.
        return Err(format!("the kernel does not offer the current clock source {current} any more"));
    }
    let requested = HostFacts::clocksource_parameter(report.host.parameters());
    // The kernel lists the best first and selects it, unless a boot parameter names another.
    let at_boot = requested.map(|(_, name)| name).filter(|name| available.iter().any(|a| a == name));
    let at_boot = at_boot.or(available.first().map(String::as_str)).unwrap_or(current);
    if at_boot == current {
        return ok(match report.demotion() {
            Some(demotion) if !demotion.at_boot => format!(
                "{current} is in use because the kernel marked the TSC unstable; after a restart it tries the TSC again"
            ),
            _ => format!("after a restart the clock source will be {current} again"),
        });
    }
    let fix = Fix::new(format!("to keep it: {}", system.make_permanent(current)))
        .undo("remove it again")
        .risk("if the kernel cannot use it at boot, it selects another one and writes that to its log");
    let will_be = format!("after a restart it will be {at_boot}, unless a startup script sets it");
    Ok(warning(format!("the clock source {current} was set after boot; {will_be}"))
        .evidence(format!("available, best first: {}", available.join(" ")))
        .evidence(match (requested, system) {
            (Some((word, _)), _) => format!("boot parameter: {word}"),
            (None, System::FreeBsd) => "the kernel selects the one with the highest quality".into(),
            (None, System::Linux) => "no boot parameter names a clock source".into(),
        })
        .why("the overhead of EXPLAIN ANALYZE on the host will change at the next restart")
        .fix(fix))
}

/// Returns the fix for a clock that is slow, coarse or goes back: another clock source, if there is one.
///
/// Returns nothing if the current clock source is fast, or if another finding has the fix.
pub fn other_clocksource(report: &Report) -> Option<Fix> {
    let Some((current, available)) = report.clocksource.known() else {
        let what = "look at the clock sources of that host (tsc is best), or run pg_timing there";
        return Some(Fix::new(what).command(SHOW_CLOCKSOURCES));
    };
    // The clock source is already a fast one, so the fault has another cause.
    if traits_of(current).is_some_and(|traits| traits.grade == Grade::Fast) {
        return None;
    }
    let parameter = HostFacts::clocksource_parameter(report.host.parameters()).filter(|(_, name)| name == current);
    if let Some((parameter, _)) = parameter {
        let fix = remove_parameter(parameter, "; then the kernel selects the best clock source");
        return Some(fix.risk("someone may have had a reason for it; the restart stops everything on this machine"));
    }
    if let Some(name) = best(available, |_| true) {
        return Some(switch(report, current, name));
    }
    let demoted = alarm(report, finding_id::TSC_DEMOTED).is_some();
    (!demoted).then(|| Fix::new(format!("this kernel has no faster clock source (available: {})", available.join(" "))))
}

/// Returns the fix for a TSC whose rate may change: a fast clock source that corrects it, if the kernel offers one.
pub fn other_than_tsc(report: &Report) -> Option<Fix> {
    let (current, available) = report.clocksource.known()?;
    let corrected = best(available, |name| !timing_clock::clocksource::is_counter(name));
    let watch = "watch the TSC: a long measurement shows changes of its rate";
    let watch = || Fix::new(watch).command("pg_timing check --long");
    Some(corrected.map_or_else(watch, |name| switch(report, current, name)))
}

/// Returns the best fast clock source that is available and `wanted`.
fn best(available: &[String], wanted: fn(&str) -> bool) -> Option<&'static str> {
    best_first().find(|name| wanted(name) && available.iter().any(|a| a == name))
}

/// Returns the fix that removes a boot parameter.
pub fn remove_parameter(parameter: &str, effect: &str) -> Fix {
    Fix::new(format!("remove the boot parameter {parameter} and restart{effect}"))
        .undo(format!("add {parameter} again"))
}

/// Returns the fix that switches the clock source.
fn switch(report: &Report, from: &str, to: &str) -> Fix {
    let system = System::of_facts(&report.host);
    let term = if system == System::Linux { "clock source" } else { "timecounter" };
    Fix::new(format!("switch to the {term} {to}, as root; \"pg_timing clocksource use {to}\" tries it for 10 seconds"))
        .command(system.switch_command(to))
        .undo(system.switch_command(from))
        .lasting(system.make_permanent(to))
        .risk("if the kernel or someone stopped using it for a reason (see the kernel log), time may be unreliable")
}

/// Returns the fix for a TSC that PostgreSQL 19 uses and should not use.
pub fn system_clock_on_19() -> Fix {
    Fix::new("on PostgreSQL 19, use the system clock")
        .command("ALTER SYSTEM SET timing_clock_source = 'system'; SELECT pg_reload_conf();")
        .undo("ALTER SYSTEM RESET timing_clock_source; SELECT pg_reload_conf();")
}

/// Returns what to restart, as an instruction.
pub fn restart(report: &Report) -> &'static str {
    match report.host.kernel.known() {
        Some(kernel) if kernel.contains("linuxkit") => "restart Docker Desktop, which restarts its virtual machine",
        _ if report.host.is_guest() => "restart this virtual machine",
        _ => "restart this machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::*;

    mod clocksource_not_persistent {
        use super::*;

        fn finding(current: &str, parameter: &str) -> Finding {
            let mut report = Report::empty(Origin::Captured, "");
            report.clocksource.current = Fact::Known(current.into());
            report.clocksource.available = Fact::Known(["tsc", "hpet", "acpi_pm"].map(String::from).to_vec());
            report.host.boot_parameters = Fact::Known(vec![parameter.into()]);
            crate::host::check::finding("", clocksource_not_persistent(&report))
        }

        #[test]
        fn a_clock_source_that_the_kernel_drops_at_this_moment_is_no_choice_of_a_user() {
            assert_eq!(finding("kvm-clock", "quiet").severity, Severity::Unknown);
            assert_eq!(finding("hpet", "quiet").severity, Severity::Warning);
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
}
