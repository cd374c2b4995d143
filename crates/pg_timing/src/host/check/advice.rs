//! What more than one finding advises.

use crate::report::{Fact, Fix, Grade, Report, Severity, System, best_first, finding_id, known};

/// What to do about a clock that is slow, coarse or goes back: another clock source, if there is
/// one. Nothing where another finding has the cure.
pub fn other_clocksource(report: &Report) -> Option<Fix> {
    let (current, available) = match (&report.clocksource.current, &report.clocksource.available) {
        (Fact::Known(current), Fact::Known(available)) => (current, available),
        _ => return Some(unknown_host()),
    };
    // It is a fast one already: what is wrong lies elsewhere, and this is no advice.
    if known(current).is_some_and(|known| known.grade == Grade::Fast) {
        return None;
    }
    if let Some(asked) = asked_at_boot(report, current) {
        return Some(
            Fix::new(format!("the boot parameter {asked} asks for this: take it out and restart, and the kernel chooses the best it finds"))
                .undo(format!("put {asked} back"))
                .risk("somebody may have had a reason; the restart stops what runs here"),
        );
    }
    if let Some(name) = best_first().map(|known| known.name).find(|name| available.iter().any(|a| a == name)) {
        return Some(switch(report, current, name));
    }
    let demoted = report.findings.iter().any(|f| f.id == finding_id::TSC_DEMOTED && f.severity >= Severity::Warning);
    (!demoted)
        .then(|| Fix::new(format!("this kernel offers no faster clock source (available: {})", available.join(" "))))
}

fn asked_at_boot(report: &Report, current: &str) -> Option<String> {
    let asked = format!("clocksource={current}");
    report.host.boot_parameters.known().filter(|words| words.contains(&asked)).map(|_| asked)
}

fn switch(report: &Report, from: &str, to: &str) -> Fix {
    let system = System::of_facts(&report.host);
    let xen = report.host.virtualization.known().is_some_and(|guest| guest == "Xen");
    let advised = if xen { " (what AWS recommends for its Xen instances)" } else { "" };
    let what = format!(
        "switch the kernel to the {} {to}{advised}, as root; pg_timing clocksource use {to} tries it for 10 seconds",
        system.clocksource_term()
    );
    Fix::new(what)
        .command(system.switch_command(to))
        .undo(system.switch_command(from))
        .lasting(system.make_permanent(to))
        .risk(match xen {
            true => "Xen does not promise that its rate survives a move to another host: check again after one",
            false => "if the kernel or somebody left it for a reason (see the kernel log), time may run unevenly",
        })
}

fn unknown_host() -> Fix {
    Fix::new("see which clock source that host's kernel uses and which it offers; tsc is the one to have, and pg_timing run there says more")
        .command(System::Linux.show_command())
}

/// What to restart.
pub fn restart(report: &Report) -> &'static str {
    let guest = report.host.virtualization.known().is_some_and(|guest| guest != "none");
    match report.host.kernel.known() {
        Some(kernel) if kernel.contains("linuxkit") => "restart Docker Desktop, which restarts its virtual machine",
        _ if guest => "restart this virtual machine",
        _ => "restart this machine",
    }
}
