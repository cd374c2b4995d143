//! What more than one finding advises.

use crate::report::{Fact, Fix, Report};

const DIR: &str = "/sys/devices/system/clocksource/clocksource0";

/// Clock sources that serve programs without a system call, best first.
const FAST: &[&str] = &["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"];

/// What to do about a clock that is slow, coarse or goes back: another clock source, if there is one.
pub fn other_clocksource(report: &Report) -> Option<Fix> {
    let (current, available) = match (&report.clocksource.current, &report.clocksource.available) {
        (Fact::Known(current), Fact::Known(available)) => (current, available),
        _ => return Some(unknown_host()),
    };
    // It is a fast one already: what is wrong lies elsewhere, and this is no advice.
    if FAST.contains(&current.as_str()) {
        return None;
    }
    let asked = format!("clocksource={current}");
    if report.host.boot_parameters.known().is_some_and(|words| words.contains(&asked)) {
        return Some(
            Fix::new(format!("the boot parameter {asked} asks for this: take it out and restart, and the kernel chooses the best it finds"))
                .undo(format!("put {asked} back"))
                .risk("somebody may have had a reason; the restart stops what runs here"),
        );
    }
    let Some(name) = FAST.iter().find(|name| available.iter().any(|a| a == *name)) else {
        return Some(Fix::new(format!(
            "this kernel offers no faster clock source (available: {})",
            available.join(" ")
        )));
    };
    let write = |name: &str| format!("echo {name} > {DIR}/current_clocksource");
    let fix = Fix::new(format!("switch the kernel to the clock source {name}, as root"))
        .command(write(name))
        .undo(write(current))
        .lasting(format!("the boot parameter clocksource={name}"))
        .risk("if the kernel or somebody left it for a reason (see the kernel log), time may run unevenly");
    Some(fix)
}

fn unknown_host() -> Fix {
    Fix::new("see which clock source that host's kernel uses and which it offers; tsc is the one to have, and pg_timing run there says more")
        .command(format!("cat {DIR}/[ac]*_clocksource"))
}
