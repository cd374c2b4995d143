//! Figures with units and margins.

use crate::human::PLUS_MINUS;
use crate::report::{ExplainReport, Range};

/// Returns `40.0 +-3.0 ns per call`, or `1.00 ns per call (0 to 3.00)` if the lower bound is 0.
pub fn per_call(ns: Range) -> String {
    match ns.low > 0.0 {
        true => format!("{} ns per call", with_margin(ns)),
        false => format!("{} ns per call ({})", digits(ns.estimate), interval(ns)),
    }
}

/// Returns `40.0 +-3.0`, or `0 to 3` if the lower bound is close to 0.
pub fn with_margin(range: Range) -> String {
    match range.low > 0.0 && range.half_width() < range.estimate || range.high == 0.0 {
        true if range.half_width() == 0.0 => digits(range.estimate),
        true => format!("{} {}{}", digits(range.estimate), PLUS_MINUS, margin(range)),
        false => interval(range),
    }
}

/// Returns the margin with the decimals of the estimate. A margin that would then be 0 has its own digits.
fn margin(range: Range) -> String {
    let decimals = digits(range.estimate).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let margin = format!("{:.decimals$}", range.half_width());
    if margin.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { margin } else { digits(range.half_width()) }
}

/// Returns milliseconds with three digits. EXPLAIN prints no time below 1 us.
pub fn ms(ms: f64) -> String {
    format!("{} ms", digits(ms))
}

/// Returns bounds without their unit: `55.0 to 103`.
pub fn interval(range: Range) -> String {
    format!("{} to {}", digits(range.low), digits(range.high))
}

/// Returns a number with three digits, and all digits before the point.
pub fn digits(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        n if n < 0.0005 => "<0.001".into(),
        n if n < 0.9995 => format!("{number:.3}"),
        n if n < 9.995 => format!("{number:.2}"),
        n if n < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// Returns the settings whose names pass the test: `jit off, track_io_timing off`.
pub fn settings(report: &ExplainReport, test: impl Fn(&String) -> bool) -> String {
    let settings = report.settings.iter().filter(|(name, _)| test(name)).map(|(name, value)| format!("{name} {value}"));
    settings.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        assert_eq!([0.01234, 1.2345, 12.345, 123.45, 12345.6].map(digits), ["0.012", "1.23", "12.3", "123", "12346"]);
        assert_eq!([9.996, 0.0, 0.0004, 0.0006].map(ms), ["10.0 ms", "0 ms", "<0.001 ms", "0.001 ms"]);
    }

    #[test]
    fn a_range_from_zero_shows_its_upper_bound() {
        assert_eq!(per_call(Range { low: 37.0, estimate: 40.0, high: 43.0 }), "40.0 +-3.0 ns per call");
        assert_eq!(per_call(Range { low: 0.0, estimate: 1.0, high: 3.0 }), "1.00 ns per call (0 to 3.00)");
        assert_eq!(with_margin(Range { low: 43.6, estimate: 44.1, high: 44.6 }), "44.1 +-0.5");
        assert_eq!(with_margin(Range { low: 219.8, estimate: 220.0, high: 220.2 }), "220 +-0.200");
        assert_eq!(with_margin(Range { low: 0.0, estimate: 1.0, high: 3.0 }), "0 to 3.00");
        assert_eq!(with_margin(Range { low: 0.5, estimate: 1.0, high: 3.0 }), "0.500 to 3.00");
        assert_eq!(with_margin(Range::default()), "0");
        assert_eq!(interval(Range { low: 0.0, estimate: 1.0, high: 3.0 }), "0 to 3.00");
    }
}
