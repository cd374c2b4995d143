//! The headline, the lines about the TSC and the CPUs, and the verdict.

use super::{BOLD, WIDTH, kernel, style, wrapped, wrapped_to};
use crate::human::khz;
use crate::render::plus_minus::plus_minus;
use crate::report::{Fact, Origin, Report, Severity, Verdict, finding_id};

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
        (Origin::PgTestTiming, true) => "pg_test_timing output (incomplete)",
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

/// Renders the lines about the counter, the CPUs and the kernel log.
pub fn facts(report: &Report) -> String {
    let mut out = String::new();
    tsc(&mut out, report);
    cpus(&mut out, report);
    kernel::line(&mut out, report);
    out
}

fn tsc(out: &mut String, report: &Report) {
    let tsc = &report.tsc;
    let label = if tsc.counter == "cntvct" { "CNTVCT     " } else { "TSC        " };
    let rate = match (&tsc.frequency_khz, tsc.uncertainty_ppm) {
        (Fact::Known(rate), Some(ppm)) => {
            format!("{} {} {ppm} ppm{}", khz(*rate), plus_minus(), reference(tsc.independent))
        }
        (Fact::Known(rate), None) => format!("{} in use", khz(*rate)),
        (Fact::Unavailable { .. }, _) if tsc.distrust.is_empty() && report.origin != Origin::Measured => return,
        (Fact::Unavailable { .. }, _) => "rate not measured".into(),
    };
    let mut parts = vec![rate];
    if !tsc.distrust.is_empty() {
        parts.push(format!("not safe to read directly: {}", tsc.distrust.join("; ")));
    }
    if let (Some(calibrated), Some(rate)) = (tsc.calibrated_khz, tsc.frequency_khz.known()) {
        const ERROR: &str = "which may be wrong by up to 1000 ppm";
        parts.push(match (calibrated - rate) / rate * 1e6 {
            0.0 => format!("from PostgreSQL's own calibration, {ERROR}"),
            ppm => format!("PostgreSQL's own calibration, {ERROR}, differs by {ppm:+.0} ppm"),
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
        Some(false) => ", measured against the kernel's clock (same counter)",
        Some(true) => ", measured against the kernel's clock (other hardware)",
        None => ", measured against the kernel's clock",
    }
}

fn claims(out: &mut String, report: &Report) {
    let sources: Vec<String> = report
        .tsc
        .claims
        .iter()
        .filter_map(|claim| {
            claim.disagreement_ppm.map(|ppm| {
                // Avoid -0.0.
                let ppm = if ppm.abs() < 0.05 { 0.0 } else { ppm };
                format!("{} {ppm:+.1} ppm", claim.source)
            })
        })
        .collect();
    if !sources.is_empty() {
        wrapped(out, "           ", &format!("other sources: {}", sources.join("; ")));
    }
}

/// Renders whether the CPUs' clocks agree, with the finding's text. An alarm has its own block.
fn cpus(out: &mut String, report: &Report) {
    let Some(finding) = report.findings.iter().find(|f| f.id == finding_id::CPU_SKEW) else { return };
    let one = report.cpus.online.known().is_some_and(|cpus| cpus.len() == 1);
    if report.cpus.skew.is_empty() && (one || report.origin != Origin::Measured) {
        return;
    }
    let text = match finding.severity {
        Severity::Warning | Severity::Critical => "the clocks differ: see cpu-skew below",
        _ => finding.summary.strip_prefix("CPUs ").unwrap_or(&finding.summary),
    };
    wrapped(out, "CPUs       ", text);
}

pub fn verdict(verdict: &Verdict) -> String {
    verdict_to(WIDTH, verdict)
}

/// Renders the verdict in lines of at most `width` columns.
pub fn verdict_to(width: usize, verdict: &Verdict) -> String {
    let severity = verdict.severity;
    let word = severity.word();
    let mut block = String::new();
    wrapped_to(width, &mut block, &format!("{word}  "), &verdict.summary);
    let color = style(severity);
    let rest = block.strip_prefix(word).unwrap_or(&block);
    format!("{color}{word}{color:#}{rest}")
}

pub fn interrupted(report: &Report) -> String {
    match report.interrupted {
        true => format!("Stopped after {:.1} s. The figures are from this time.\n", report.measured_seconds),
        false => String::new(),
    }
}
