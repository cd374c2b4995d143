//! The headline, the TSC line, the CPUs line, the verdict.

use super::{BOLD, style, wrapped};
use crate::human::{duration, khz, uptime};
use crate::report::{Cpus, Fact, KernelReport, Origin, Report, SYSTEM, Severity, Skew};

pub fn headline(report: &Report) -> String {
    let host = &report.host;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(host.kernel.known().cloned());
    match (host.cpu_model.known(), host.virtualization.known().map(String::as_str)) {
        (Some(model), Some("none") | None) => parts.push(model.clone()),
        (Some(model), Some(guest)) => parts.push(format!("{model} ({})", guest_of(guest, host.platform.known()))),
        (None, Some("none") | None) => {}
        (None, Some(guest)) => parts.push(guest_of(guest, host.platform.known())),
    }
    if let Some(cpus) = report.cpus.online.known().or(report.cpus.allowed.known()) {
        parts.push(format!("{} CPU{}", cpus.len(), if cpus.len() == 1 { "" } else { "s" }));
    }
    parts.push(clocksource(report));
    parts.retain(|part| !part.is_empty());
    let unnamed = if report.origin == Origin::Captured { "captured host" } else { "this host" };
    let name = host.name.known().map_or(unnamed, String::as_str);
    let name = match (report.origin, report.excerpt) {
        (Origin::PgTestTiming, true) => "pg_test_timing output, not the whole of it",
        (Origin::PgTestTiming, false) => "pg_test_timing output",
        _ => name,
    };
    let tail = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{BOLD}{name}{BOLD:#}{tail}\n")
}

fn guest_of(hypervisor: &str, platform: Option<&String>) -> String {
    match platform {
        Some(platform) => format!("{platform}, {hypervisor} guest"),
        None if hypervisor.contains(' ') => format!("guest of {hypervisor}"),
        None => format!("{hypervisor} guest"),
    }
}

fn clocksource(report: &Report) -> String {
    let Fact::Known(current) = &report.clocksource.current else { return String::new() };
    let others: Vec<&str> = report
        .clocksource
        .available
        .known()
        .map(|names| names.iter().map(String::as_str).filter(|name| name != current).collect())
        .unwrap_or_default();
    match others.is_empty() {
        true => format!("clock source {current}"),
        false => format!("clock source {current} (also: {})", others.join(" ")),
    }
}

/// The counter and the CPUs.
pub fn facts(report: &Report) -> String {
    let mut out = String::new();
    tsc(&mut out, report);
    cpus(&mut out, report);
    kernel(&mut out, report);
    out
}

/// More of the story than this does not fit on the screen; JSON has all of it.
const STORY: usize = 6;

/// What the kernel's log says; in short if that is nothing bad.
fn kernel(out: &mut String, report: &Report) {
    let since = report.host.uptime_seconds.known().map(|s| format!(", {} ago", uptime(*s))).unwrap_or_default();
    let kernel = match &report.kernel {
        Fact::Known(kernel) => kernel,
        Fact::Unavailable { unavailable } if report.origin == Origin::Measured => {
            let told = format!(
                "its log could not be read ({unavailable}); sudo dmesg | pg_timing check --kernel-log - brings it"
            );
            return wrapped(out, "kernel     ", &told);
        }
        Fact::Unavailable { .. } => return,
    };
    let quiet = kernel.demotion.is_none()
        && !kernel.unstable
        && !kernel.firmware_bug
        && !kernel.rate_warning
        && kernel.refused.is_none();
    match (quiet, kernel.since_boot) {
        (true, _) if other_clock(report, kernel) => {
            wrapped(
                out,
                "kernel     ",
                "its log ends on another clock source than this kernel runs on: an old log, or another host's",
            );
        }
        (true, true) => {
            let by_hand = kernel.switches.iter().rev().find(|switch| switch.seconds.is_some_and(|s| s > 60.0));
            let switched = by_hand.map(|switch| {
                let ago =
                    report.host.uptime_seconds.known().zip(switch.seconds).map(|(up, at)| uptime((up - at).max(0.0)));
                format!(
                    "; clock source switched by hand{}",
                    ago.map(|ago| format!(", last {ago} ago")).unwrap_or_default()
                )
            });
            let told = format!("nothing against this clock since boot{since}{}", switched.unwrap_or_default());
            wrapped(out, "kernel     ", &told);
        }
        (true, false) => {
            wrapped(out, "kernel     ", "nothing against this clock in its log, which does not reach back to the boot")
        }
        (false, _) => {
            let skipped = kernel.story.len().saturating_sub(STORY);
            let label = |nth: usize| if nth == 0 { "kernel     " } else { "           " };
            kernel.story.iter().skip(skipped).enumerate().for_each(|(nth, line)| wrapped(out, label(nth), line));
        }
    }
}

fn tsc(out: &mut String, report: &Report) {
    let tsc = &report.tsc;
    let label = if tsc.counter == "cntvct" { "CNTVCT     " } else { "TSC        " };
    let rate = match (&tsc.frequency_khz, tsc.uncertainty_ppm) {
        (Fact::Known(rate), Some(ppm)) => format!("{} +- {ppm} ppm{}", khz(*rate), reference(tsc.independent)),
        (Fact::Known(rate), None) => format!("{} in use", khz(*rate)),
        (Fact::Unavailable { .. }, _) if tsc.distrust.is_empty() && report.origin != Origin::Measured => return,
        (Fact::Unavailable { .. }, _) => "rate not measured".into(),
    };
    let mut parts = vec![rate];
    if !tsc.distrust.is_empty() {
        parts.push(format!("not to be used: {}", tsc.distrust.join("; ")));
    }
    if let (Some(calibrated), Some(rate)) = (tsc.calibrated_khz, tsc.frequency_khz.known()) {
        let known = "(it is known to be up to 1000 ppm off)";
        parts.push(match (calibrated - rate) / rate * 1e6 {
            0.0 => "PostgreSQL's own calibration, which is known to be up to 1000 ppm off".into(),
            off => format!("PostgreSQL's own calibration came out {off:+.0} ppm beside it {known}"),
        });
    }
    if report.origin != Origin::PgTestTiming && tsc.counter == "rdtsc" {
        parts.extend(tsc.used_by_default.map(|by_default| match by_default {
            true => "PostgreSQL 19 uses it by default".to_string(),
            false => "PostgreSQL 19 does not use it by default".to_string(),
        }));
    }
    wrapped(out, label, &parts.join("; "));
    claims(out, report);
}

fn reference(independent: Option<bool>) -> &'static str {
    match independent {
        Some(false) => " of the kernel's clock, which itself runs on this counter",
        Some(true) => " of the kernel's clock, which runs on other hardware",
        None => " of the kernel's clock",
    }
}

fn claims(out: &mut String, report: &Report) {
    let each: Vec<String> = report
        .tsc
        .claims
        .iter()
        .filter_map(|claim| {
            claim.disagreement_ppm.map(|ppm| {
                // Without the minus sign of a zero.
                let ppm = if ppm.abs() < 0.05 { 0.0 } else { ppm };
                format!("{} {ppm:+.1} ppm", claim.source)
            })
        })
        .collect();
    if !each.is_empty() {
        wrapped(out, "           ", &format!("others say: {}", each.join("; ")));
    }
}

fn other_clock(report: &Report, kernel: &KernelReport) -> bool {
    kernel.switches.last().zip(report.clocksource.current.known()).is_some_and(|(last, now)| last.to != *now)
}

fn cpus(out: &mut String, report: &Report) {
    let Cpus { skew, skew_unavailable, .. } = &report.cpus;
    // A counter that differs and that nobody uses is no trouble: PostgreSQL's clock is what is told.
    let proven = |s: &Skew| s.moving || s.low_ns > 0.0 || s.high_ns < 0.0;
    let unused = skew.iter().any(proven);
    let told: Vec<Skew> = skew.iter().filter(|s| !unused || s.clock == SYSTEM).cloned().collect();
    let (skew, aside) = (&told, if unused { "; their counters differ, and nobody uses them" } else { "" });
    let widest = skew.iter().map(|s| s.low_ns.abs().max(s.high_ns.abs())).reduce(f64::max);
    let differ = report.findings.iter().any(|f| f.id == "cpu-skew" && f.severity >= Severity::Warning);
    let line = match (widest, skew_unavailable, report.origin) {
        (_, _, Origin::PgTestTiming) | (None, _, Origin::Captured) => return,
        (Some(_), ..) if differ => "they differ: see cpu-skew below".into(),
        (Some(widest), why, _) => {
            let rest = why.as_ref().map(|why| format!(" (not all could be compared: {why})")).unwrap_or_default();
            match widest {
                w if w > crate::check::BROAD_SKEW_NS => format!(
                    "{}: whether their clocks agree cannot be told better than to {}{rest}",
                    who(skew),
                    duration(w)
                ),
                w => format!("{}: {} within {}{aside}{rest}", who(skew), what(skew), duration(w)),
            }
        }
        (None, ..) if report.cpus.online.known().is_some_and(|cpus| cpus.len() == 1) => return,
        (None, Some(why), _) => format!("whether their clocks agree is unknown: {why}"),
        (None, None, _) => return,
    };
    wrapped(out, "CPUs       ", &line);
}

/// The CPUs that were compared.
fn who(skew: &[Skew]) -> String {
    let mut cpus: Vec<usize> = skew.iter().flat_map(|s| [s.a, s.b]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    match cpus.as_slice() {
        [first, .., last] if cpus.len() > 4 => format!("{} of them, {first} to {last}", cpus.len()),
        few => few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The clocks in which they were compared.
fn what(skew: &[Skew]) -> &'static str {
    match (skew.iter().any(|s| s.clock == SYSTEM), skew.iter().any(|s| s.clock != SYSTEM)) {
        (true, true) => "counter and system clock agree",
        (true, false) => "their system clocks agree",
        _ => "their counters agree",
    }
}

pub fn verdict(report: &Report) -> String {
    let severity = report.verdict.severity;
    let word = severity.word();
    let mut block = String::new();
    wrapped(&mut block, &format!("{word}  "), &report.verdict.summary);
    let colour = style(severity);
    let rest = block.strip_prefix(word).unwrap_or(&block);
    format!("{colour}{word}{colour:#}{rest}")
}

pub fn interrupted(report: &Report) -> String {
    match report.interrupted {
        true => format!("Stopped after {:.1} s: the figures are what was measured by then.\n", report.measured_seconds),
        false => String::new(),
    }
}
