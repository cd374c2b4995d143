//! Figures and errors as text for people.

use crate::statistics::Range;

/// The sign between an estimate and its margin. Reports contain it, so that JSON is the same everywhere.
pub const PLUS_MINUS: &str = "+-";

/// Returns a text with `±` between estimates and their margins, for a page or a UTF-8 terminal.
pub fn with_sign(text: &str) -> String {
    let (mut signed, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(PLUS_MINUS) {
        let is_margin = after.is_empty() || after.trim_start_matches(' ').starts_with(|c: char| c.is_ascii_digit());
        let is_sign = is_margin && before.chars().next_back().is_none_or(|c| c == ' ' || c == '(');
        signed.extend([before, if is_sign { "±" } else { PLUS_MINUS }]);
        rest = after;
    }
    signed + rest
}

/// Returns the text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns whether one margin describes both sides of an interval: the shorter side is nearly as long as the longer one.
pub fn is_even(range: Range) -> bool {
    const EVEN: f64 = 0.9;
    (range.high - range.estimate).min(range.estimate - range.low) >= EVEN * range.margin()
}

/// Returns `40.0 +-3.0`, or `0 to 3` if the lower bound is close to 0.
pub fn with_margin(range: Range) -> String {
    match range.low > 0.0 && range.margin() < range.estimate || range.high == 0.0 {
        true if range.margin() == 0.0 => digits(range.estimate),
        true => format!("{} {}{}", digits(range.estimate), PLUS_MINUS, margin(range)),
        false => interval(range),
    }
}

/// Returns the margin with the decimals of the estimate. A margin that would then be 0 has its own digits.
fn margin(range: Range) -> String {
    let decimals = digits(range.estimate).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let margin = format!("{:.decimals$}", range.margin());
    if margin.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { margin } else { digits(range.margin()) }
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

/// Returns a duration with at most three digits.
pub fn duration(ns: f64) -> String {
    for (unit, size) in [("ns", 1.0), ("us", 1e3), ("ms", 1e6)] {
        let number = ns / size;
        if number.abs() < 999.5 {
            return trim(number, usize::from(number.abs() < 99.95), unit);
        }
    }
    seconds(ns)
}

/// Returns a duration in seconds, with two decimals if it is below 1 s.
pub fn seconds(ns: f64) -> String {
    match ns / 1e9 {
        s if s < 0.995 => format!("{s:.2} s"),
        s if s < 99.5 => format!("{s:.1} s"),
        s => format!("{s:.0} s"),
    }
}

/// Returns a number with its unit, without a trailing `.0`.
fn trim(value: f64, decimals: usize, unit: &str) -> String {
    let text = format!("{value:.decimals$}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text} {unit}")
}

/// Returns a count, rounded to thousands, millions or billions if it is large.
pub fn count(n: u64) -> String {
    match n {
        0..=9_999 => n.to_string(),
        10_000..=999_499 => format!("{:.0} k", n as f64 / 1e3),
        999_500..=9_949_999 => trim(n as f64 / 1e6, 1, "M"),
        9_950_000..=999_499_999 => format!("{:.0} M", n as f64 / 1e6),
        _ => format!("{:.1} G", n as f64 / 1e9),
    }
}

/// Returns how often something happened.
pub fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{} times", count(n)) }
}

/// Returns a count with all its digits, and with spaces between thousands.
pub fn grouped(n: u64) -> String {
    with_spaces(&n.to_string())
}

/// Returns a rate in kHz, with spaces between thousands, and with all decimals of the number.
pub fn khz(khz: f64) -> String {
    format!("{} kHz", with_spaces(&khz.to_string()))
}

fn with_spaces(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut grouped = number.to_string();
    for at in (1..whole).rev().filter(|at| (whole - at).is_multiple_of(3)) {
        grouped.insert(at, ' ');
    }
    grouped
}

/// Returns a fraction as a percentage, with the digits that matter next to 1%.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0%".into(),
        p if p < 0.001 => "<0.001%".into(),
        p if p < 0.01 => format!("{p:.3}%"),
        p if p < 1.0 => format!("{p:.2}%"),
        p if p < 10.0 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

/// Returns the bounds of a share with their units. Without `high`, there is no upper bound.
pub fn percent_range(low: f64, high: Option<f64>) -> String {
    /// Smaller shares are not shown.
    const LEAST: f64 = 0.0001;
    let low_text = percent(low);
    match high {
        None if low < LEAST => "> 0%".into(),
        None => format!(">= {low_text}"),
        Some(high) if high < LEAST => format!("< {}", percent(LEAST)),
        Some(high) if low < LEAST => format!("up to {}", percent(high)),
        Some(high) if percent(high) == low_text => low_text,
        Some(high) => format!("{low_text} to {}", percent(high)),
    }
}

/// Returns a time since an event in minutes, hours or days.
pub fn uptime(seconds: f64) -> String {
    let plural = |n: f64, unit: &str| format!("{n:.0} {unit}{}", if n.round() == 1.0 { "" } else { "s" });
    match seconds {
        s if s < 60.0 => "less than a minute".into(),
        s if s < 7200.0 => plural((s / 60.0).floor(), "minute"),
        s if s < 172_800.0 => plural((s / 3600.0).floor(), "hour"),
        s => plural((s / 86_400.0).floor(), "day"),
    }
}

/// Returns a time in seconds since 1970, like `2026-11-25T18:55:06Z`.
pub fn utc(unix_seconds: f64) -> String {
    /// Year 9999: a later time has no date of four digits.
    const LAST_S: f64 = 253_402_300_799.0;
    let since = std::time::Duration::try_from_secs_f64(unix_seconds.min(LAST_S)).unwrap_or_default();
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since).to_string()
}

/// Returns the system's error message, without Rust's ` (os error 2)`.
pub fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (ns, text) in [
            (8.96, "9 ns"),
            (20.14, "20.1 ns"),
            (395.4, "395 ns"),
            (999.6, "1 us"),
            (7353.94, "7.4 us"),
            (4e6, "4 ms"),
            (34_612_000.0, "34.6 ms"),
            (2.5e9, "2.5 s"),
            (-34_612_000.0, "-34.6 ms"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!((seconds(1.2e8), seconds(4.4e10)), ("0.12 s".into(), "44.0 s".into()));
    }

    #[test]
    fn only_margins_get_the_sign() {
        for (text, signed) in [
            ("30 +- 1 ns", "30 ± 1 ns"),
            ("219 ms (+-4)", "219 ms (±4)"),
            ("9.8 +-31% and 1 +-2", "9.8 ±31% and 1 ±2"),
            (PLUS_MINUS, "±"),
            ("a+-b a +-b +-", "a+-b a +-b ±"),
        ] {
            assert_eq!(with_sign(text), signed);
        }
    }

    #[test]
    fn both_bounds_of_a_range_have_a_unit() {
        for (low, high, text) in [
            (0.25, Some(1.33), "25% to 133%"),
            (0.0, Some(0.02), "up to 2.0%"),
            (0.0, Some(0.0), "< 0.01%"),
            (0.25, Some(0.251), "25%"),
            (0.25, None, ">= 25%"),
            (0.0, None, "> 0%"),
        ] {
            assert_eq!(percent_range(low, high), text);
        }
    }

    #[test]
    fn large_counts_are_rounded_and_thousands_are_separated() {
        assert_eq!([count(0), count(12_345), count(94_000_000), count(2_100_000_000)], ["0", "12 k", "94 M", "2.1 G"]);
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1 234 567"]);
        assert_eq!([khz(2_299_998.03), khz(62_500.0)], ["2 299 998.03 kHz", "62 500 kHz"]);
        assert_eq!([utc(1e9), utc(-1.0), utc(1e30)].map(|time| time[..4].to_string()), ["2001", "1970", "9999"]);
        assert_eq!([uptime(7.0), uptime(61.0), uptime(86_400.0 * 3.2)], ["less than a minute", "1 minute", "3 days"]);
    }
}
