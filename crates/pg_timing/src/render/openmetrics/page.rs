//! Collects series, and writes them in the text format.

use super::table::{ALL, Kind, Metric, PREFIX};
use crate::escape::line;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// The series of a page.
#[derive(Default)]
pub struct Page {
    /// lines by the name of their metric
    lines: BTreeMap<&'static str, Vec<String>>,
    /// names with labels of all series: Prometheus refuses a whole page if one of them occurs twice
    series: HashSet<String>,
}

/// A figure that may be missing.
pub struct Figure(Option<f64>);

impl From<f64> for Figure {
    fn from(figure: f64) -> Figure {
        Figure(Some(figure))
    }
}

impl From<u64> for Figure {
    fn from(count: u64) -> Figure {
        // Prometheus stores doubles, too.
        Figure(Some(count as f64))
    }
}

impl<T: Into<Figure>> From<Option<T>> for Figure {
    fn from(figure: Option<T>) -> Figure {
        Figure(figure.and_then(|figure| figure.into().0))
    }
}

impl Page {
    /// Adds a series. `values` are those of the metric's labels, in their order. Nothing is added if the figure is missing
    /// or not finite, or if the page already has this series.
    pub fn add(&mut self, metric: &Metric, values: &[&str], figure: impl Into<Figure>) {
        debug_assert_eq!(metric.labels.len(), values.len(), "{}", metric.name);
        let labels: Vec<(&str, &str)> = metric.labels.iter().copied().zip(values.iter().copied()).collect();
        self.line(metric, "", &labels, figure.into());
    }

    /// Adds a histogram with one label. `counts` are numbers of values between the previous bound and this one, without
    /// the bound. All other values up to `count` are above the last bound.
    pub fn add_histogram(&mut self, metric: &Metric, value: &str, counts: &[(f64, u64)], count: u64, sum: f64) {
        let Some(&label) = metric.labels.first() else { return };
        if !sum.is_finite() {
            return;
        }
        let mut cumulative = 0;
        for (bound, in_row) in counts {
            cumulative += in_row;
            self.line(metric, "_bucket", &[(label, value), ("le", &number(*bound))], cumulative.into());
        }
        self.line(metric, "_bucket", &[(label, value), ("le", "+Inf")], count.into());
        self.line(metric, "_sum", &[(label, value)], sum.into());
        self.line(metric, "_count", &[(label, value)], count.into());
    }

    fn line(&mut self, metric: &Metric, end: &str, labels: &[(&str, &str)], Figure(figure): Figure) {
        let Some(figure) = figure.filter(|figure| figure.is_finite()) else { return };
        let mut series = format!("{PREFIX}{}{end}", metric.name);
        if !labels.is_empty() {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label(value))).collect();
            _ = write!(series, "{{{}}}", labels.join(","));
        }
        if self.series.insert(series.clone()) {
            self.lines.entry(metric.name).or_default().push(format!("{series} {}\n", number(figure)));
        }
    }

    /// Returns the page: the metrics in the order of the table, and the series of each one in the order in which they were
    /// added.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Metric { name, kind, help, .. } in ALL {
            let Some(lines) = self.lines.get(name) else { continue };
            _ = writeln!(text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {}", Kind::name(*kind));
            text.extend(lines.iter().map(String::as_str));
        }
        text
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_short() {
        for (figure, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (20.1 / 1e9, "2.01e-8"),
            (0.25, "0.25"),
            (2_596_098_013.0, "2596098013"),
            (1e20, "1e20"),
            (-0.5e-6, "-5e-7"),
        ] {
            assert_eq!(number(figure), text);
        }
    }

    #[test]
    fn label_values_are_escaped() {
        for (value, text) in [
            ("system", "system"),
            (r#"a"b\c"#, r#"a\"b\\c"#),
            ("a\nb", r"a\\nb"),
            ("\x1b[2J\0", r"\\u{1b}[2J\\u{0}"),
            ("Größe 数", "Größe 数"),
        ] {
            assert_eq!(label(value), text);
        }
    }

    proptest! {
        #[test]
        fn numbers_read_back_equal(figure in any::<f64>()) {
            prop_assume!(figure.is_finite());
            prop_assert_eq!(number(figure).parse::<f64>().unwrap().to_bits(), figure.to_bits());
        }
    }
}
