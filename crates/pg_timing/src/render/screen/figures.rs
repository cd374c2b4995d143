//! Figures and texts on the screen. A missing figure is a dash.

use crate::human;
use crate::render::columns;

pub const MISSING: &str = "-";

/// Longer durations are not figures of a clock, but results of a broken one: 30 years.
const LONGEST_NS: f64 = 1e18;

/// Returns a duration, or a dash.
pub fn duration(ns: Option<f64>) -> String {
    match ns {
        Some(ns) if ns.is_finite() && ns.abs() < LONGEST_NS => human::duration(ns),
        _ => MISSING.into(),
    }
}

/// Returns a time in seconds, minutes, hours or days, or a dash.
pub fn period(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 || s * 1e9 > LONGEST_NS => MISSING.into(),
        s if s < 10.0 => human::duration(s * 1e9),
        s if s < 59.5 => format!("{s:.0} s"),
        s => human::uptime(s.max(60.0)),
    }
}

/// Returns a share as a percentage, or a dash.
pub fn percent(share: Option<f64>) -> String {
    match share {
        Some(share) if share.is_finite() && (0.0..1e6).contains(&share) => human::percent(share),
        _ => MISSING.into(),
    }
}

/// Returns a text from outside in one line that is safe to print.
pub fn safe(text: &str) -> String {
    crate::escape::line(text)
}

/// Returns the text, or as much of it as fits into these columns. From 8 columns on, an ellipsis shows that it is cut.
pub fn fit(text: &str, width: usize) -> String {
    match width {
        8.. => columns::cut(text, width),
        _ => columns::beginning(text, width).into(),
    }
}

/// Returns the text in lines of at most `width` columns, of which the lines after the first are indented. At most `most`
/// lines are returned: the last one is cut.
pub fn wrap(text: &str, width: usize, indent: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let used = columns::columns(&line);
        if used > indent && used + 1 + columns::columns(word) > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    if lines.len() > most {
        let rest = lines.split_off(most);
        if let Some(last) = lines.last_mut() {
            rest.iter().for_each(|line| last.extend([" ", line.trim_start()]));
        }
    }
    lines.iter().map(|line| fit(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn missing_figures_are_dashes() {
        for ns in [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1e300)] {
            assert_eq!(duration(ns), "-");
        }
        assert_eq!([duration(Some(0.0)), duration(Some(20.14))], ["0 ns", "20.1 ns"]);
        assert_eq!([f64::NAN, -1.0, f64::INFINITY, 1e200].map(period), ["-"; 4]);
        assert_eq!([period(1.5), period(12.0), period(59.6), period(7300.0)], ["1.5 s", "12 s", "1 minute", "2 hours"]);
        assert_eq!([None, Some(f64::NAN), Some(-0.1)].map(percent), ["-"; 3]);
        assert_eq!(percent(Some(0.0012)), "0.12%");
    }

    #[test]
    fn long_texts_are_wrapped_and_cut() {
        assert_eq!(wrap("OK  one two three four", 12, 4, 9), ["OK  one two", "    three", "    four"]);
        assert_eq!(wrap("OK  one two three four", 12, 4, 2), ["OK  one two", "    three..."]);
        assert_eq!(wrap("OK  one two", 12, 4, 0), [""; 0]);
    }

    proptest! {
        #[test]
        fn lines_fit(text in "(a|\u{65e5}|\u{301}| ){0,40}", width in 0..30usize, indent in 0..9usize, most in 0..5usize) {
            let lines = wrap(&text, width, indent, most);
            prop_assert!(lines.len() <= most);
            prop_assert!(lines.iter().all(|line| columns::columns(line) <= width), "{lines:?}");
        }
    }
}
