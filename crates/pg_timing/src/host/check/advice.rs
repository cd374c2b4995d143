//! Advice that several findings share.

use super::alarm;
use crate::report::{ClocksourceParameter, Fact, Fix, Grade, Report, System, best_first, finding_id, traits_of};

/// Returns the fix for a clock that is slow, coarse or goes back: another clock source, if there is one.
///
/// Returns nothing if the current clock source is fast, or if another finding has the fix.
pub fn other_clocksource(report: &Report) -> Option<Fix> {
    let (current, available) = match (&report.clocksource.current, &report.clocksource.available) {
        (Fact::Known(current), Fact::Known(available)) => (current, available),
        _ => {
            let what = "look at the current and the available clock sources of that host (tsc is best), or run pg_timing there";
            return Some(Fix::new(what).command(System::Linux.show_command()));
        }
    };
    // The clock source is already a fast one, so the fault has another cause.
    if traits_of(current).is_some_and(|traits| traits.grade == Grade::Fast) {
        return None;
    }
    let parameter = ClocksourceParameter::of(report.host.parameters()).filter(|parameter| parameter.name == current);
    if let Some(ClocksourceParameter { word: parameter, .. }) = parameter {
        return Some(
            Fix::new(format!("the boot parameter {parameter} selects it: remove the parameter and restart; then the kernel selects the best clock source"))
                .undo(format!("add {parameter} again"))
                .risk("someone may have had a reason for it; the restart stops everything on this machine"),
        );
    }
    if let Some(name) = best_first().map(|traits| traits.name).find(|name| available.iter().any(|a| a == name)) {
        return Some(switch(report, current, name));
    }
    let demoted = alarm(report, finding_id::TSC_DEMOTED).is_some();
    (!demoted).then(|| Fix::new(format!("this kernel has no faster clock source (available: {})", available.join(" "))))
}

/// Returns the fix for a TSC whose rate may change: a fast clock source that corrects it, if the kernel offers one.
pub fn other_than_tsc(report: &Report) -> Option<Fix> {
    let (Fact::Known(current), Fact::Known(available)) = (&report.clocksource.current, &report.clocksource.available)
    else {
        return None;
    };
    let corrected = best_first().map(|traits| traits.name).find(|name| {
        !timing_clock::clocksource::is_counter(name) && available.iter().any(|available| available == name)
    });
    Some(match corrected {
        Some(name) => switch(report, current, name),
        None => {
            Fix::new("watch the TSC: a long measurement shows changes of its rate").command("pg_timing check --long")
        }
    })
}

/// Returns the fix that switches the clock source.
fn switch(report: &Report, from: &str, to: &str) -> Fix {
    let system = System::of_facts(&report.host);
    let what = format!(
        "switch to the {} {to}, as root; \"pg_timing clocksource use {to}\" tries it for 10 seconds",
        system.clocksource_term()
    );
    Fix::new(what)
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
