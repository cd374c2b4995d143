//! The line of `check`.

use super::perfdata::{Datum, Unit};
use crate::human::{duration, percent};
use crate::report::thresholds::{Judged, Limits, Thresholds, Watched, value};
use crate::report::{Report, SYSTEM, Severity};

/// Returns the line: exceeded thresholds, the verdict, and the performance data.
pub fn line(report: &Report, thresholds: &Thresholds) -> String {
    let mut sentences: Vec<String> = thresholds.judge(report).iter().filter_map(sentence).collect();
    sentences.push(report.verdict.summary.clone());
    super::line("CLOCKS", thresholds.severity(report), &sentences.join(" "), &data(report, thresholds))
}

/// Returns the exceeded threshold in words.
fn sentence(judged: &Judged) -> Option<String> {
    let option = match judged.severity {
        Severity::Critical => "-c",
        _ => "-w",
    };
    let (what, text): (_, fn(f64) -> String) = match judged.figure {
        Watched::Read => ("a read of PostgreSQL's clock costs", duration),
        Watched::Lost => ("interruptions took", |lost| percent(lost / 100.0)),
        Watched::Skew => ("the clocks of two CPUs differ by at least", duration),
    };
    let name = judged.figure.name();
    match (judged.value, judged.limit) {
        (Some(value), Some(limit)) => Some(match (text(value), text(limit)) {
            // The rounded figures are equal, so the limit alone says more.
            (value, limit) if value == limit => {
                format!("Threshold {option} {name} exceeded: {what} slightly more than the limit of {limit}.")
            }
            (value, limit) => format!("Threshold {option} {name} exceeded: {what} {value}, and the limit is {limit}."),
        }),
        (None, _) => Some(format!("The threshold for {name} could not be checked: {name} was not measured.")),
        (Some(_), None) => None,
    }
}

fn data(report: &Report, thresholds: &Thresholds) -> Vec<Datum> {
    let seconds = |ns: f64| ns / 1e9;
    let mut data = Vec::new();
    if let Some(clock) = report.clock(SYSTEM) {
        data.extend(clock.cost_ns().map(|ns| {
            let limits = report.read_cost_limits_ns;
            // The verdict has limits, too. The lower one is exceeded first.
            let limit = |own: &Limits, verdict: Option<f64>| {
                own.get(Watched::Read).into_iter().chain(verdict).reduce(f64::min).map(seconds)
            };
            Datum {
                warning: limit(&thresholds.warning, limits.map(|limits| limits.warning)),
                critical: limit(&thresholds.critical, limits.map(|limits| limits.critical)),
                ..Datum::new("read", seconds(ns), Unit::Seconds)
            }
        }));
        data.push(Datum {
            warning: Some(0.0),
            critical: Some(0.0),
            ..Datum::new("system_backward_steps", clock.backward_steps as f64, Unit::Number)
        });
    }
    data.extend(value(report, Watched::Lost).map(|lost| Datum {
        warning: thresholds.warning.get(Watched::Lost),
        critical: thresholds.critical.get(Watched::Lost),
        max: Some(100.0),
        ..Datum::new("lost", lost, Unit::Percent)
    }));
    data.extend(value(report, Watched::Skew).map(|ns| Datum {
        warning: thresholds.warning.get(Watched::Skew).map(seconds),
        critical: thresholds.critical.get(Watched::Skew).map(seconds),
        ..Datum::new("skew", seconds(ns), Unit::Seconds)
    }));
    let rate = report.tsc.frequency_khz.known();
    data.extend(rate.map(|khz| Datum { min: None, ..Datum::new("tsc_frequency_khz", *khz, Unit::Number) }));
    data
}
