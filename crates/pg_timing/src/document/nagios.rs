//! One line with performance data, in the format of the Monitoring Plugins' guidelines.

use crate::escape;
use crate::report::thresholds::{Judged, Thresholds};
use crate::report::{
    AdviseReport, BAD_READ_NS, CHEAP_SHARE, CRITICAL_SHARE, GOOD_READ_NS, Report, SYSTEM, SettingAdvice, Severity,
};

const NS_PER_S: f64 = 1e9;

/// Returns `SERVICE STATUS - text | performance data`.
fn line(service: &str, severity: Severity, text: &str, data: &[String]) -> String {
    // A vertical bar would start the performance data, and a line break would end the line.
    let text = escape::line(text).replace('|', "/");
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
fn sentence(Judged { figure, severity, value, limit }: &Judged) -> Option<String> {
    let option = if *severity == Severity::Critical { "-c" } else { "-w" };
    let (name, what) = (figure.name, figure.what);
    let Some(value) = value else {
        return Some(format!("The threshold for {name} could not be checked: {name} was not measured."));
    };
    let [value, limit] = [*value, (*limit)?].map(figure.text);
    // If the rounded figures are equal, the limit alone says more.
    let by =
        if value == limit { "slightly more than the limit of".into() } else { format!("{value}, and the limit is") };
    Some(format!("Threshold {option} {name} exceeded: {what} {by} {limit}."))
}

fn clock_data(report: &Report, thresholds: &Thresholds) -> Vec<String> {
    let mut data = Vec::new();
    for (figure, own) in thresholds.figures() {
        // The guidelines have no unit for nanoseconds.
        let (unit, scale, max) = if figure.units == "%" { ("%", 1.0, Some(100.0)) } else { ("s", NS_PER_S, None) };
        // The verdict has limits for the read cost, too. The lower one is exceeded first.
        let verdict = if figure.name == "read" { [GOOD_READ_NS, BAD_READ_NS].map(Some) } else { [None; 2] };
        let lower = |nth: usize| own[nth].into_iter().chain(verdict[nth]).reduce(f64::min).map(|limit| limit / scale);
        let value = (figure.value)(report).map(|value| value / scale);
        data.extend(value.map(|value| datum(figure.name, value, unit, [lower(0), lower(1), Some(0.0), max])));
        if figure.name == "read" {
            let steps = report.clock(SYSTEM).map(|clock| clock.backward_steps as f64);
            let zero = Some(0.0);
            data.extend(steps.map(|steps| datum("system_backward_steps", steps, "", [zero, zero, zero, None])));
        }
    }
    data.extend(report.tsc.frequency_khz.known().map(|khz| datum("tsc_frequency_khz", *khz, "", [None; 4])));
    data
}

const COST: &str = "TIMING COST";

/// Returns the line: the verdict, and the share of a core that each setting takes.
pub fn advise(report: &AdviseReport) -> String {
    let verdict = &report.verdict;
    let data: Vec<String> = report.settings.iter().filter_map(cost).collect();
    line(COST, verdict.severity, &verdict.summary, &data)
}

/// Returns the line if there is no report. Monitoring servers show stdout, and most of them hide stderr.
pub fn failed(why: &str) -> String {
    line(COST, Severity::Unknown, why, &[])
}

/// Returns the certain cost of a setting. Only a setting that is on has limits.
fn cost(setting: &SettingAdvice) -> Option<String> {
    let percent = setting.core_share?.low * 100.0;
    let [warning, critical] = [CHEAP_SHARE, CRITICAL_SHARE].map(|limit| setting.on.then_some(limit * 100.0));
    let label = format!("{}{}", setting.name, if setting.on { "" } else { "_if_on" });
    Some(datum(&label, percent, "%", [warning, critical, Some(0.0), None]))
}

/// Returns one figure: label (which needs no quotes), value, unit, limits for a warning and for critical, minimum and maximum.
fn datum(name: &str, value: f64, unit: &str, limits: [Option<f64>; 4]) -> String {
    // No exponent: the guidelines permit only digits, signs and points.
    let number = |number: f64| match unit {
        // Seconds have the digits of 0.1 ns.
        "s" if number != 0.0 => format!("{number:.10}"),
        "%" if number.fract() != 0.0 => format!("{number:.2}"),
        _ => format!("{number}"),
    };
    let limits = limits.map(|limit| limit.map_or(";".into(), |limit| format!(";{}", number(limit)))).concat();
    format!("{name}={}{unit}{}", number(value), limits.trim_end_matches(';'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trailing_empty_limits_are_left_out() {
        let limits = [Some(5.0), None, Some(0.0), None];
        assert_eq!(datum("lost", 3.9, "%", limits), "lost=3.90%;5;;0");
        assert_eq!(datum("tsc_frequency_khz", 2.9e6, "", [None; 4]), "tsc_frequency_khz=2900000");
        assert_eq!(datum("read", 20e-9, "s", [None, None, Some(0.0), None]), "read=0.0000000200s;;;0");
    }

    proptest! {
        #[test]
        fn any_number_can_be_read_back(value in 0.0..1e9f64) {
            let datum = datum("lost", value, "%", [None; 4]);
            let number = datum.strip_prefix("lost=").and_then(|rest| rest.strip_suffix('%')).unwrap();
            prop_assert!((number.parse::<f64>().unwrap() - value).abs() <= 0.005 + 1e-6);
        }
    }
}
