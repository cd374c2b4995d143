//! `tsc-demoted`: has the kernel given up a TSC that the CPU calls good?

use crate::human::duration;
use crate::report::{Demoted, Fact, Finding, Fix, Report, Severity};

const ID: &str = "tsc-demoted";

pub fn check(report: &Report) -> Finding {
    let demotion = report.kernel.known().and_then(|kernel| kernel.demotion.as_ref());
    let accepted = report.tsc.accepted_by_kernel;
    match (report.tsc.invariant, accepted) {
        (_, Some(true)) => return Finding::ok(ID, "the kernel accepts the counter"),
        (Some(false), _) if demotion.is_none() => {
            return Finding::ok(ID, "there is no TSC of constant rate to give up");
        }
        (None, None) if demotion.is_none() => {
            return Finding::unknown(ID, "what CPU and kernel say of the TSC is unknown");
        }
        (_, None) if demotion.is_none() => {
            return Finding::unknown(ID, "which clock sources the kernel offers is unknown");
        }
        _ => {}
    }
    let current =
        report.clocksource.current.known().map(|name| format!(" and keeps time by {name}")).unwrap_or_default();
    let summary = match demotion {
        Some(demotion) => format!("{}{current}", story(demotion)),
        None => format!("the kernel does not trust this host's TSC{current}"),
    };
    let finding = Finding::new(ID, Severity::Warning, summary);
    let finding = evidence(report, demotion).into_iter().fold(finding, Finding::evidence);
    finding
        .why("the kernel drops the TSC when it drifts from another clock or differs between CPUs, and then reads slower hardware")
        .fixes(fixes(report, demotion))
}

/// `the kernel marked the TSC unstable at 7823 s on CPU 2 because it drifted from hpet`
fn story(demotion: &Demoted) -> String {
    let when = demotion.when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
    let cpu = demotion.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    format!("the kernel marked the TSC unstable{when}{cpu} because {}", demotion.because)
}

fn evidence(report: &Report, demotion: Option<&Demoted>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Fact::Known(available) = &report.clocksource.available {
        lines.push(format!("available_clocksource has no tsc: {}", available.join(" ")));
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
    if let (None, Fact::Unavailable { unavailable }) = (demotion, &report.kernel) {
        lines.push(format!("the reason would stand in the kernel log, which is not to be had: {unavailable}"));
    }
    lines
}

fn fixes(report: &Report, demotion: Option<&Demoted>) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if demotion.is_none() {
        let read = "dmesg | pg_timing check --kernel-log -";
        fixes.push(Fix::new("look for the reason in the kernel log").command(read));
    }
    fixes.push(back(report, demotion));
    fixes.push(
        Fix::new("meanwhile, leave the clock out of it; or time by sampling, with the extension pg_fast_timing")
            .command("EXPLAIN (ANALYZE, TIMING OFF, BUFFERS) SELECT ..."),
    );
    fixes
}

/// How to get the TSC back. A restart helps only against what came up while the machine ran.
fn back(report: &Report, demotion: Option<&Demoted>) -> Fix {
    let guest = report.host.virtualization.known().is_some_and(|guest| guest != "none");
    let parameter =
        report.host.boot_parameters.known().and_then(|words| words.iter().find(|word| *word == "tsc=unstable"));
    if let Some(parameter) = parameter {
        return Fix::new(format!("the boot parameter {parameter} asks for this: take it out and restart"))
            .undo(format!("put {parameter} back"))
            .risk("somebody may have had a reason");
    }
    if demotion.is_some_and(|demotion| demotion.at_boot) {
        return match guest {
            true => Fix::new(
                "it was found as the machine came up, and will be at each boot: ask for an invariant TSC in the virtual \
                 machine's CPU settings, or for another host",
            ),
            false => Fix::new(
                "it was found as the machine came up, and will be at each boot: look for a newer firmware (BIOS)",
            ),
        };
    }
    let what = match report.host.kernel.known().map(String::as_str) {
        Some(kernel) if kernel.contains("linuxkit") => "restart Docker Desktop, which restarts its virtual machine",
        _ if guest => "restart this virtual machine",
        _ => "restart this machine",
    };
    Fix::new(format!("{what}: a TSC that was given up cannot be switched back on while this kernel runs"))
        .risk("stops what runs on it; if the reason is still there, the TSC will be given up again")
}
