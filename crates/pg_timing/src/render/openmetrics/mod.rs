//! Metrics in the text format of Prometheus, version 0.0.4:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

pub mod table;
#[cfg(test)]
mod tests;

use crate::escape::line;
use crate::report::MonitorReport;
use std::collections::HashSet;
use std::fmt::Write;
use table::PREFIX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
    Histogram,
}

impl Kind {
    /// Returns the name in a TYPE line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric.
pub struct Metric {
    /// without the prefix
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    /// one sentence
    pub help: &'static str,
    /// adds the series of a report
    pub values: fn(&MonitorReport, &mut Series),
}

/// Returns the page for Prometheus. A figure that is missing or not finite has no series.
pub fn text(report: &MonitorReport) -> String {
    let mut text = String::new();
    for metric in table::ALL {
        let mut series = Series { metric, text: String::new(), known: HashSet::new() };
        (metric.values)(report, &mut series);
        if !series.text.is_empty() {
            let (name, kind) = (metric.name, metric.kind.name());
            _ = writeln!(text, "# HELP {PREFIX}{name} {}\n# TYPE {PREFIX}{name} {kind}", metric.help);
            text += &series.text;
        }
    }
    text
}

/// The number of buckets. Their number must not depend on the data, because a bucket that appears later would look like new
/// values. The largest bound is 2^30 - 1 ns, about 1 s: all longer differences are suspends or stops of the machine.
const BUCKETS: usize = 31;

/// The series of one metric.
pub struct Series<'a> {
    metric: &'a Metric,
    text: String,
    /// names with labels of all series: Prometheus refuses a whole page if one of them occurs twice
    known: HashSet<String>,
}

impl Series<'_> {
    /// Adds a series. `values` are those of the metric's labels, in their order. Nothing is added if the figure is missing
    /// or not finite, or if there is already this series.
    fn add(&mut self, values: &[&str], figure: impl Into<Option<f64>>) {
        debug_assert_eq!(self.metric.labels.len(), values.len(), "{}", self.metric.name);
        let labels: Vec<(&str, &str)> = self.metric.labels.iter().copied().zip(values.iter().copied()).collect();
        self.line("", &labels, figure.into());
    }

    /// Adds a histogram with one label. Row n counts the values from the bound of row n - 1 up to its own: 0, 1, 3, 7, 15 ... ns.
    fn add_histogram(&mut self, value: &str, rows: &[u64], sum: f64) {
        let Some(label) = self.metric.labels.first().map(|name| (*name, value)).filter(|_| sum.is_finite()) else {
            return;
        };
        let mut cumulative = 0;
        for row in 0..BUCKETS {
            cumulative += rows.get(row).copied().unwrap_or(0);
            self.line("_bucket", &[label, ("le", &number(bound_s(row)))], Some(cumulative as f64));
        }
        let count = Some(rows.iter().sum::<u64>() as f64);
        self.line("_bucket", &[label, ("le", "+Inf")], count);
        self.line("_sum", &[label], Some(sum));
        self.line("_count", &[label], count);
    }

    fn line(&mut self, end: &str, labels: &[(&str, &str)], figure: Option<f64>) {
        let Some(figure) = figure.filter(|figure| figure.is_finite()) else { return };
        let mut series = format!("{PREFIX}{}{end}", self.metric.name);
        if !labels.is_empty() {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label(value))).collect();
            _ = write!(series, "{{{}}}", labels.join(","));
        }
        if self.known.insert(series.clone()) {
            _ = writeln!(self.text, "{series} {}", number(figure));
        }
    }
}

/// Returns the upper bound of a histogram's row in seconds.
fn bound_s(row: usize) -> f64 {
    ((1_u64 << row) - 1) as f64 / 1e9
}

/// Returns the value of a label between its quotes. Unsafe characters are visible, as on the screen. Then backslashes and
/// quotes are escaped for the format.
fn label(value: &str) -> String {
    line(value).replace('\\', "\\\\").replace('"', "\\\"")
}

/// Returns the shortest decimal number that reads back as the same double.
fn number(figure: f64) -> String {
    let (plain, scientific) = (format!("{figure}"), format!("{figure:e}"));
    if plain.len() <= scientific.len() { plain } else { scientific }
}
