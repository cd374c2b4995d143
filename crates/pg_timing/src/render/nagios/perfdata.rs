//! Performance data: `label=value[UOM];[warn];[crit];[min];[max]`.

use crate::escape;

/// A unit of measurement of the guidelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// the guidelines have no unit for nanoseconds
    Seconds,
    Percent,
    Number,
}

/// One figure. A missing limit is empty.
#[derive(Clone, Debug)]
pub struct Datum {
    pub label: String,
    pub value: f64,
    pub unit: Unit,
    pub warning: Option<f64>,
    pub critical: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Datum {
    /// Returns a figure that is at least 0 and has no limits.
    pub fn new(label: impl Into<String>, value: f64, unit: Unit) -> Datum {
        Datum { label: label.into(), value, unit, warning: None, critical: None, min: Some(0.0), max: None }
    }

    pub fn text(&self) -> String {
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
