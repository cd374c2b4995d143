//! `tsc-demoted`: has the kernel given up a TSC that the CPU calls good?

use super::advice::restart;
use crate::human::duration;
use crate::report::{ClockReport, Demoted, Fact, Finding, Fix, Report, Severity, System, finding_id};

const ID: &str = finding_id::TSC_DEMOTED;

pub fn check(report: &Report) -> Finding {
    let demotion = report.kernel.known().and_then(|kernel| kernel.demotion.as_ref());
    match (report.tsc.invariant, report.tsc.accepted_by_kernel) {
        (_, Some(true)) => return Finding::ok(ID, "the kernel accepts the counter"),
        (Some(false), _) if demotion.is_none() => {
            return Finding::ok(ID, "there is no TSC of constant rate to give up");
        }
        (None, _) if demotion.is_none() => return Finding::unknown(ID, "what the CPU says of its TSC is unknown"),
        (_, None) if demotion.is_none() => {
            return Finding::unknown(ID, "which clock sources the kernel offers is unknown");
        }
        _ => {}
    }
    let current = report.clocksource.current.known().map_or("another clock", String::as_str);
    let summary = match demotion {
        Some(demotion) => story(demotion, current),
        None => format!("the kernel does not trust this host's TSC and keeps time by {current}"),
    };
    // A hypervisor's clock corrects the bare counter: the kernel prefers it, and nobody pays for that.
    let served = report.clocksource.verdict().is_some_and(|kernel| kernel.uses_counter());
    let cheap = report.system().and_then(ClockReport::cost_ns).is_none_or(|ns| ns <= super::clock_slow::LIMITS_NS.0);
    let finding = match served && cheap {
        true => return evidence(report, demotion).into_iter().fold(Finding::ok(ID, summary), Finding::evidence),
        false => Finding::new(ID, Severity::Warning, summary),
    };
    evidence(report, demotion)
        .into_iter()
        .fold(finding, Finding::evidence)
        .why("the kernel drops the TSC when it drifts from another clock or differs between CPUs, and then reads slower hardware")
        .fixes(fixes(report, demotion))
}

/// `at 7823 s CPU 2 saw that the TSC drifted from hpet: the kernel marked it unstable and keeps time by hpet`
fn story(demotion: &Demoted, current: &str) -> String {
    let when = demotion.when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
    let cpu = demotion.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    format!("the kernel marked the TSC unstable{when}{cpu}, because {}; it keeps time by {current}", demotion.because)
}

fn evidence(report: &Report, demotion: Option<&Demoted>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Fact::Known(available) = &report.clocksource.available {
        lines.push(format!("offered clock sources, without tsc: {}", available.join(" ")));
    }
    if report.tsc.invariant == Some(true) {
        lines.push("CPUID calls the TSC invariant".into());
    }
    if let Some((skew, interval)) =
        demotion.and_then(|d| d.skew_ns.zip(d.interval_ns)).filter(|(_, interval)| *interval > 0)
    {
        let ppm = skew as f64 / interval as f64 * 1e6;
        lines.push(format!("kernel log: {} in {} is {ppm:+.0} ppm", duration(skew as f64), duration(interval as f64)));
    }
    let reason = demotion.and_then(|d| d.reason.as_ref());
    lines.extend(reason.map(|reason| format!("kernel log: Marking TSC unstable due to {reason}")));
    lines.extend(demotion.and_then(|d| d.doubt.clone()).map(|doubt| format!("this verdict can be false: {doubt}")));
    if let (None, Fact::Unavailable { unavailable }, System::Linux) =
        (demotion, &report.kernel, System::of_facts(&report.host))
    {
        lines.push(format!("the reason would stand in the kernel log, which is not to be had: {unavailable}"));
    }
    lines
}

fn fixes(report: &Report, demotion: Option<&Demoted>) -> Vec<Fix> {
    if System::of_facts(&report.host) == System::FreeBsd {
        return vec![
            Fix::new("FreeBSD gives the TSC a negative quality and judges so at each boot: see what it says")
                .command("sysctl kern.timecounter machdep.tsc_freq"),
        ];
    }
    let mut fixes = Vec::new();
    if demotion.is_none() {
        let read = "dmesg | pg_timing check --kernel-log -";
        fixes.push(Fix::new("look for the reason in the kernel log").command(read));
    }
    fixes.push(back(report, demotion));
    fixes
}

/// How to get the TSC back. A restart helps only against what came up while the machine ran.
fn back(report: &Report, demotion: Option<&Demoted>) -> Fix {
    let has = |word: &str| report.host.boot_parameters.known().is_some_and(|words| words.iter().any(|w| w == word));
    if has("tsc=unstable") {
        return Fix::new("the boot parameter tsc=unstable asks for this: take it out and restart")
            .undo("put tsc=unstable back")
            .risk("somebody may have had a reason");
    }
    if demotion.and_then(|d| d.reason.as_deref()).is_some_and(|reason| reason.contains("halts in idle")) {
        return Fix::new("this CPU's TSC stops while it sleeps: no setting makes it fit to keep time by");
    }
    let guest = report.host.virtualization.known().is_some_and(|guest| guest != "none");
    match demotion {
        Some(Demoted { at_boot: true, .. }) if guest => Fix::new(
            "it was found as the machine came up, and will be at each boot: ask for an invariant TSC in the virtual machine's \
             CPU settings, or for another host",
        ),
        Some(Demoted { at_boot: true, .. }) => Fix::new(
            "it was found as the machine came up, and may well be again: restart once, and if it comes back look for a newer \
             firmware (BIOS)",
        ),
        _ => Fix::new(format!("{}: a TSC that was given up cannot be switched back on while this kernel runs", restart(report)))
            .risk("stops what runs on it; if the reason is still there (a machine that is often paused or put to sleep), the TSC will be given up again"),
    }
}
