//! Lines with a label: percentiles, lost time, the counter's rate, drift, CPUs, the kernel, and failures.

use super::clocks::system;
use super::figures::{MISSING, duration, fit, percent, period, safe};
use super::header::with_sign;
use super::view::View;
use crate::human::{count, khz};
use crate::render::columns::left;
use crate::report::{Collector, Drift, MonitorReport, SYSTEM, Severity, WatchedClock, finding_id};
use ratatui::text::Line;

/// Columns of a label, as on the screen of `pg_timing check`.
pub const LABEL: usize = 11;
const NOT_DETERMINED: &str = "not determined";

/// Returns the lines, the most important first.
pub fn lines(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if report.samples == 0 {
        return Vec::new();
    }
    if let Some(unwritten) = &view.unwritten {
        facts.push(("not written", safe(unwritten)));
    }
    // The part of the server shows its own error.
    for collector in report.collectors.iter().filter(|collector| collector.name != Collector::SERVER) {
        if let Some(why) = &collector.error {
            facts.push(("no figures", format!("{}: {}", collector.name, safe(why))));
        }
    }
    if let Some(clock) = system(report).filter(|clock| clock.unavailable.is_none()) {
        facts.push(("lost time", lost_time(clock)));
        facts.push(("percentiles", percentiles(clock)));
    }
    facts.push((counter_label(report), counter(report, view)));
    facts.push(("drift", drifts(report, view)));
    facts.push(("CPUs", cpus(report, view)));
    facts.push(("kernel", kernel(report, view)));
    facts.iter().map(|(label, text)| line(label, text, width)).collect()
}

/// Returns a line with a label.
fn line(label: &str, text: &str, width: usize) -> Line<'static> {
    Line::from(fit(&labeled(label, text), width))
}

/// Returns the text after a label.
pub fn labeled(label: &str, text: &str) -> String {
    format!("{} {text}", left(label, LABEL))
}

/// Returns the percentiles that the table does not have.
fn percentiles(clock: &WatchedClock) -> String {
    let Some(p) = clock.percentiles else { return NOT_DETERMINED.into() };
    let figures =
        [("50%", p.p50_ns), ("90%", p.p90_ns), ("99%", p.p99_ns), ("99.99%", p.p99_99_ns), ("99.999%", p.p99_999_ns)];
    figures.map(|(name, ns)| format!("{name} {}", duration(Some(ns)))).join("  ")
}

fn lost_time(clock: &WatchedClock) -> String {
    let totals = &clock.totals;
    match totals.lost_share() {
        Some(share) => format!(
            "{}: {} interruption{} took {} of {}",
            percent(Some(share)),
            count(totals.gaps),
            if totals.gaps == 1 { "" } else { "s" },
            period(totals.gap_s),
            period(totals.measured_s),
        ),
        None => NOT_DETERMINED.into(),
    }
}

/// Returns the name of the CPU's counter, which the clocks show.
fn counter_label(report: &MonitorReport) -> &'static str {
    let has = |part: &str| report.clocks.iter().any(|clock| clock.name.contains(part));
    match (has("rdtsc"), has("cntvct")) {
        (true, _) => "TSC",
        (_, true) => "CNTVCT",
        _ => "counter",
    }
}

fn counter(report: &MonitorReport, view: &View) -> String {
    match report.counter {
        Some(rate) if rate.hz.is_finite() && (0.0..1e15).contains(&rate.hz) => {
            // One decimal of a kHz is 0.03 ppm at 3 GHz: less than the error.
            let rounded = (rate.hz / 100.0).round() / 10.0;
            format!("{} {}", khz(rounded), margin(rate.uncertainty_ppm, view))
        }
        _ => "rate not determined".into(),
    }
}

/// Returns the margin of a figure in ppm.
fn margin(ppm: f64, view: &View) -> String {
    match ppm.is_finite() {
        true => format!("{} {} ppm", view.plus_minus(), ppm_figure(ppm)),
        false => "(error not determined)".into(),
    }
}

/// Returns a margin in ppm with the digits that matter. It is rounded up, and is never shown as 0.
fn ppm_figure(ppm: f64) -> String {
    match ppm {
        ppm if ppm < 1.0 => format!("{:.2}", (ppm.max(0.01) * 100.0).ceil() / 100.0),
        ppm if ppm < 100.0 => format!("{:.1}", (ppm * 10.0).ceil() / 10.0),
        ppm if ppm < 1e9 => format!("{ppm:.0}"),
        _ => "more than 1e9".into(),
    }
}

fn drifts(report: &MonitorReport, view: &View) -> String {
    let shown = report.drifts.iter().find(|drift| drift.clock == SYSTEM).or(report.drifts.first());
    let Some(drift) = shown else { return NOT_DETERMINED.into() };
    let steps = report.offset_steps.values().fold(0, |sum: u64, steps| sum.saturating_add(*steps));
    let steps = match steps {
        0 => "no steps".into(),
        1 => "1 step".into(),
        steps => format!("{} steps", count(steps)),
    };
    format!("{}; {steps}", rate(drift, view))
}

fn rate(drift: &Drift, view: &View) -> String {
    // The list of clocks has CLOCK_MONOTONIC_RAW under its short name, and a line has 80 columns.
    let reference = drift.reference.strip_prefix("CLOCK_").unwrap_or(&drift.reference).to_lowercase();
    let names = format!("{} against {}", safe(&drift.clock), safe(&reference));
    match drift.rate_ppm.is_finite() && drift.rate_ppm.abs() < 1e9 {
        // Avoid -0.00.
        true => {
            let ppm = if drift.rate_ppm.abs() < 0.005 { 0.0 } else { drift.rate_ppm };
            format!("{names} {ppm:+.2} {}", margin(drift.uncertainty_ppm, view))
        }
        false => format!("{names} {NOT_DETERMINED}"),
    }
}

/// Returns whether the CPUs' clocks agree, with the finding's text.
fn cpus(report: &MonitorReport, view: &View) -> String {
    let finding = report.findings.iter().map(|watched| &watched.finding).find(|f| f.id == finding_id::CPU_SKEW);
    match finding {
        Some(finding) if finding.severity >= Severity::Warning => "the clocks differ: see cpu-skew".into(),
        Some(finding) => {
            let summary = finding.summary.strip_prefix("CPUs ").unwrap_or(&finding.summary);
            with_sign(&safe(summary), view)
        }
        None => report.skew_unavailable.as_deref().map_or(NOT_DETERMINED.into(), safe),
    }
}

fn kernel(report: &MonitorReport, view: &View) -> String {
    let messages = match report.kernel_messages {
        0 => "no messages about clocks".into(),
        1 => "1 message about clocks".into(),
        messages => format!("{} messages about clocks", count(messages)),
    };
    let stops = [("suspend", report.suspends, report.suspended_s), ("pause", report.pauses, report.paused_s)];
    let stops = stops.map(|(what, number, seconds)| match number {
        0 => format!("no {what}s"),
        1 => format!("1 {what}{}", took(seconds)),
        number => format!("{} {what}s{}", count(number), took(seconds)),
    });
    format!("since {}: {messages}, {}", view.time(report.started_at, report.sampled_at), stops.join(", "))
}

fn took(seconds: f64) -> String {
    match period(seconds) {
        period if period == MISSING => String::new(),
        period => format!(" ({period})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::samples::{healthy, view};
    use crate::report::CounterRate;

    fn texts(report: &MonitorReport) -> Vec<String> {
        lines(report, &view(), 200).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_error_is_rounded_up() {
        let errors = [0.0, 0.001, 0.019, 0.99, 1.01, 120.0, 1e12].map(ppm_figure);
        assert_eq!(errors, ["0.01", "0.01", "0.02", "0.99", "1.1", "120", "more than 1e9"]);
    }

    #[test]
    fn a_missing_fact_is_not_zero() {
        let report = MonitorReport { samples: 1, ..healthy() };
        let missing = MonitorReport {
            counter: Some(CounterRate { hz: f64::NAN, uncertainty_ppm: 1.0 }),
            drifts: vec![],
            findings: vec![],
            clocks: vec![WatchedClock { name: SYSTEM.into(), ..WatchedClock::default() }],
            ..report
        };
        let texts = texts(&missing);
        assert_eq!(texts[..2], ["lost time   not determined", "percentiles not determined"]);
        assert_eq!(
            texts[2..5],
            ["counter     rate not determined", "drift       not determined", "CPUs        not determined"]
        );
    }

    #[test]
    fn counts_have_the_right_number() {
        let mut report = healthy();
        (report.kernel_messages, report.suspends, report.suspended_s) = (1, 1, 12.5);
        (report.pauses, report.paused_s) = (2, f64::NAN);
        report.offset_steps.insert(("system".into(), "realtime".into()), 1);
        report.clocks[0].totals.gaps = 1;
        let text = texts(&report).join("\n");
        assert!(text.ends_with(": 1 message about clocks, 1 suspend (12 s), 2 pauses"), "{text}");
        assert!(text.contains("; 1 step\n") && text.contains(" 1 interruption took "), "{text}");
    }

    #[test]
    fn a_drift_is_never_minus_zero() {
        let mut report = healthy();
        report.drifts[0].rate_ppm = -0.001;
        assert!(texts(&report).iter().any(|text| text.contains("monotonic_raw +0.00 ± 0.01 ppm;")));
    }
}
