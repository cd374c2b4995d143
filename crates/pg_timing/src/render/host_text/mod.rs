//! The words of a host's report. The text screen and the HTML page both use them.

mod clocks;
mod kernel;

pub use clocks::{MAIN, access, loop_words, not_measured, one_read, step, went_back};
pub use kernel::{READ_LOG, important, kernel_log, meaning};

use super::plus_minus::plus_minus;
use crate::human::khz;
use crate::report::{Fact, Finding, Fix, Origin, Report, Severity, finding_id};

/// Returns the host's name, or what the report is about.
pub fn name(report: &Report) -> &str {
    let unnamed = if report.origin == Origin::Captured { "captured host" } else { "this host" };
    match (report.origin, report.excerpt) {
        (Origin::PgTestTiming, true) => "pg_test_timing output (incomplete)",
        (Origin::PgTestTiming, false) => "pg_test_timing output",
        _ => report.host.name.known().map_or(unnamed, String::as_str),
    }
}

/// Returns the facts of the first line: the machine and its clock source.
pub fn host_facts(report: &Report) -> Vec<String> {
    let mut facts = machine(report);
    facts.extend(clocksource(report));
    facts
}

/// Returns the kernel, the processor and the number of CPUs.
pub fn machine(report: &Report) -> Vec<String> {
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
    parts.retain(|part| !part.is_empty());
    parts
}

fn guest_of(hypervisor: &str, platform: Option<&String>) -> String {
    match platform {
        Some(platform) => format!("{platform}, {hypervisor} guest"),
        None if hypervisor.contains(' ') => format!("guest of {hypervisor}"),
        None => format!("{hypervisor} guest"),
    }
}

fn clocksource(report: &Report) -> Option<String> {
    let current = report.clocksource.current.known()?;
    let others: Vec<&str> = report
        .clocksource
        .available
        .known()
        .map(|names| names.iter().map(String::as_str).filter(|name| name != current).collect())
        .unwrap_or_default();
    Some(match others.is_empty() {
        true => format!("clock source {current}"),
        false => format!("clock source {current} (also: {})", others.join(" ")),
    })
}

/// Returns the name of the CPU's counter on the screen.
pub fn counter(report: &Report) -> &'static str {
    if report.tsc.counter == "cntvct" { "CNTVCT" } else { "TSC" }
}

/// Returns what is known about the counter. `None` if nothing is.
pub fn tsc(report: &Report) -> Option<String> {
    let tsc = &report.tsc;
    let rate = match (&tsc.frequency_khz, tsc.uncertainty_ppm) {
        (Fact::Known(rate), Some(ppm)) => {
            format!("{} {} {ppm} ppm{}", khz(*rate), plus_minus(), reference(tsc.independent))
        }
        (Fact::Known(rate), None) => format!("{} in use", khz(*rate)),
        (Fact::Unavailable { .. }, _) if tsc.distrust.is_empty() && report.origin != Origin::Measured => return None,
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
            ppm if ppm.abs() < 1e4 => format!("PostgreSQL's own calibration, {ERROR}, differs by {ppm:+.0} ppm"),
            ppm => format!("PostgreSQL's own calibration, {ERROR}, differs by {:+.1}%", ppm / 1e4),
        });
    }
    if report.origin != Origin::PgTestTiming && tsc.counter == "rdtsc" {
        parts.extend(tsc.used_by_default.map(|by_default| match by_default {
            true if !tsc.distrust.is_empty() => "PostgreSQL 19 still uses it by default".to_string(),
            true => "PostgreSQL 19 uses it by default".to_string(),
            false => "PostgreSQL 19 does not use it by default".to_string(),
        }));
    }
    Some(parts.join("; "))
}

fn reference(independent: Option<bool>) -> &'static str {
    match independent {
        Some(false) => ", measured against the kernel's clock (same counter)",
        Some(true) => ", measured against the kernel's clock (other hardware)",
        None => ", measured against the kernel's clock",
    }
}

/// Returns the disagreement of other sources with the counter's measured rate. `None` if there are none.
pub fn claims(report: &Report) -> Option<String> {
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
    (!sources.is_empty()).then(|| format!("other sources: {}", sources.join("; ")))
}

/// Returns whether the CPUs' clocks agree, with the finding's text. An alarm has its own block.
pub fn cpus(report: &Report) -> Option<&str> {
    let finding = report.findings.iter().find(|f| f.id == finding_id::CPU_SKEW)?;
    let one = report.cpus.online.known().is_some_and(|cpus| cpus.len() == 1);
    if report.cpus.skew.is_empty() && (one || report.origin != Origin::Measured) {
        return None;
    }
    Some(match finding.severity {
        Severity::Warning | Severity::Critical => "the clocks differ: see cpu-skew below",
        _ => finding.summary.strip_prefix("CPUs ").unwrap_or(&finding.summary),
    })
}

/// The warnings and critical findings of a host.
pub struct Alarms<'a> {
    /// those with a block of their own
    pub shown: Vec<Alarm<'a>>,
    /// consequences of a demoted TSC
    pub consequences: Vec<&'a Finding>,
}

/// A finding, with the fixes that no alarm before it has: a fix of several findings is shown once.
pub struct Alarm<'a> {
    pub finding: &'a Finding,
    pub fixes: Vec<&'a Fix>,
}

impl Alarms<'_> {
    pub fn of(report: &Report) -> Alarms<'_> {
        let alarms: Vec<&Finding> = report.findings.iter().filter(|f| f.severity >= Severity::Warning).collect();
        let demoted = alarms.iter().any(|f| f.id == finding_id::TSC_DEMOTED);
        let is_consequence = |f: &&Finding| demoted && finding_id::CONSEQUENCES_OF_TSC_DEMOTED.contains(&f.id.as_str());
        let (consequences, shown): (Vec<&Finding>, Vec<&Finding>) = alarms.into_iter().partition(is_consequence);
        let mut shown_fixes: Vec<&Fix> = Vec::new();
        let shown = shown.into_iter().map(|finding| {
            let fixes: Vec<&Fix> = finding.fix.iter().filter(|fix| !shown_fixes.contains(fix)).collect();
            shown_fixes.extend(&fixes);
            Alarm { finding, fixes }
        });
        Alarms { shown: shown.collect(), consequences }
    }
}

/// Returns a sentence if the measurement was stopped early.
pub fn interrupted(report: &Report) -> Option<String> {
    let stopped = || format!("Stopped after {:.1} s. The figures are from this time.", report.measured_seconds);
    report.interrupted.then(stopped)
}
