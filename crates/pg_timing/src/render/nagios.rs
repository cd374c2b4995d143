//! One line with performance data, in the format of the Monitoring Plugins' guidelines.

use crate::escape;
use crate::human::{duration, percent};
use crate::report::thresholds::{Judged, Limits, Thresholds, Watched, value};
use crate::report::{AdviseReport, CHEAP_SHARE, CRITICAL_SHARE, Report, SYSTEM, SettingAdvice, Severity};

/// Returns `SERVICE STATUS - text | performance data`.
fn line(service: &str, severity: Severity, text: &str, data: &[Datum]) -> String {
    // A vertical bar would start the performance data, and a line break would end the line.
    let text = escape::line(text).replace('|', "/");
    let data: Vec<String> = data.iter().map(Datum::text).collect();
    let data = if data.is_empty() { String::new() } else { format!(" | {}", data.join(" ")) };
    format!("{service} {} - {text}{data}\n", severity.word())
}

/// Returns the line: exceeded thresholds, the verdict, and the performance data.
pub fn check(report: &Report, thresholds: &Thresholds) -> String {
    let mut sentences: Vec<String> = thresholds.judge(report).iter().filter_map(sentence).collect();
    sentences.push(report.verdict.summary.clone());
    line("CLOCKS", thresholds.severity(report), &sentences.join(" "), &clock_data(report, thresholds))
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

fn clock_data(report: &Report, thresholds: &Thresholds) -> Vec<Datum> {
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

const COST: &str = "TIMING COST";

/// Returns the line: the verdict, and the share of a core that each setting takes.
pub fn advise(report: &AdviseReport) -> String {
    let verdict = &report.verdict;
    let data: Vec<Datum> = report.settings.iter().filter_map(cost).collect();
    line(COST, verdict.severity, &verdict.summary, &data)
}

/// Returns the line if there is no report. Monitoring servers show stdout, and most of them hide stderr.
pub fn failed(why: &str) -> String {
    line(COST, Severity::Unknown, why, &[])
}

/// Returns the certain cost of a setting. Only a setting that is on has limits.
fn cost(setting: &SettingAdvice) -> Option<Datum> {
    let percent = setting.core_share?.low * 100.0;
    let label = if setting.on { setting.name.clone() } else { format!("{}_if_on", setting.name) };
    Some(Datum {
        warning: setting.on.then_some(CHEAP_SHARE * 100.0),
        critical: setting.on.then_some(CRITICAL_SHARE * 100.0),
        ..Datum::new(label, percent, Unit::Percent)
    })
}

/// A unit of measurement of the guidelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// the guidelines have no unit for nanoseconds
    Seconds,
    Percent,
    Number,
}

/// One figure. A missing limit is empty.
#[derive(Clone, Debug)]
struct Datum {
    label: String,
    value: f64,
    unit: Unit,
    warning: Option<f64>,
    critical: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
}

impl Datum {
    /// Returns a figure that is at least 0 and has no limits.
    fn new(label: impl Into<String>, value: f64, unit: Unit) -> Datum {
        Datum { label: label.into(), value, unit, warning: None, critical: None, min: Some(0.0), max: None }
    }

    fn text(&self) -> String {
        let unit = match self.unit {
            Unit::Seconds => "s",
            Unit::Percent => "%",
            Unit::Number => "",
        };
        let limits = [self.warning, self.critical, self.min, self.max];
        let limits = limits.map(|limit| limit.map(|limit| self.number(limit)).unwrap_or_default()).join(";");
        let limits = limits.trim_end_matches(';');
        let separator = if limits.is_empty() { "" } else { ";" };
        format!("{}={}{unit}{separator}{limits}", label(&self.label), self.number(self.value))
    }

    /// Returns a number without an exponent: the guidelines permit only digits, signs and points.
    fn number(&self, number: f64) -> String {
        match self.unit {
            // Seconds have the digits of 0.1 ns.
            Unit::Seconds if number != 0.0 => format!("{number:.10}"),
            Unit::Percent if number.fract() != 0.0 => format!("{number:.2}"),
            _ => format!("{number}"),
        }
    }
}

/// Returns the label, in quotes if it needs them. A label ends at `=`, and a vertical bar is not safe in quotes, either.
fn label(label: &str) -> String {
    let label = escape::line(label).replace(['|', '='], "_");
    match label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')) && !label.is_empty() {
        true => label,
        false => format!("'{}'", label.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trailing_empty_limits_are_left_out() {
        let datum = Datum { warning: Some(5.0), ..Datum::new("lost", 3.9, Unit::Percent) };
        assert_eq!(datum.text(), "lost=3.90%;5;;0");
        assert_eq!(Datum { max: Some(100.0), ..datum.clone() }.text(), "lost=3.90%;5;;0;100");
        let bare = Datum { min: None, ..Datum::new("tsc_frequency_khz", 2.9e6, Unit::Number) };
        assert_eq!(bare.text(), "tsc_frequency_khz=2900000");
        assert_eq!(Datum::new("read", 20e-9, Unit::Seconds).text(), "read=0.0000000200s;;;0");
    }

    #[test]
    fn labels_have_quotes_if_they_need_them() {
        for (text, expected) in
            [("track_io_timing", "track_io_timing"), ("auto_explain.log_timing", "auto_explain.log_timing")]
        {
            assert_eq!(label(text), expected);
        }
        assert_eq!(label("it's a=b | c\n"), "'it''s a_b _ c\\n'");
        assert_eq!(label(""), "''");
    }

    proptest! {
        /// Splits the text as a monitoring server does: a label in quotes or without spaces, then `=` and a number.
        #[test]
        fn any_label_and_number_can_be_read_back(text in any::<String>(), value in 0.0..1e9f64) {
            let datum = Datum::new(text, value, Unit::Percent).text();
            prop_assert!(!datum.contains(['|', '\n']));
            let (label, rest) = datum.split_once('=').unwrap();
            prop_assert!(label.starts_with('\'') && label.ends_with('\'') || !label.contains([' ', '\'']));
            let number = rest.split_once('%').unwrap().0;
            prop_assert!((number.parse::<f64>().unwrap() - value).abs() <= 0.005 + 1e-6);
        }
    }
}
