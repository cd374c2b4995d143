//! Parses a line of a table: its column titles, or a row.

use super::Bin;
use super::line::decimal;

/// The kind of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Histogram,
    /// PostgreSQL 19's exact durations
    Observed,
}

/// The columns of a row. All rows of a table have the same columns, so a row with a missing column is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// bound, share, count: up to 18
    Share,
    /// bound, share, running share, count: 19
    Running,
    /// `bound: count share%`, longest first: in the first builds of 9.2
    Colon,
}

/// The meaning of the first column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// `<=`, not `<`
    pub inclusive: bool,
    /// 1 or 1000
    pub unit_ns: f64,
}

impl Scale {
    pub const MICROSECONDS: Scale = Scale { inclusive: false, unit_ns: 1000.0 };
    pub const NANOSECONDS: Scale = Scale { inclusive: true, unit_ns: 1.0 };

    /// Returns the row with this bound, or `None` if no version prints such a bound.
    ///
    /// Bounds are powers of two, or one less if inclusive. The differences of a row start at the end of the previous
    /// row, those of the first row at 0. Microseconds were cut before the subtraction, so a duration can be shorter
    /// than the difference by almost 1 us.
    pub fn bin(self, bound: u64, count: u64) -> Option<Bin> {
        let below = if self.inclusive { bound.checked_add(1)? } else { bound };
        let smallest = if below == 1 { 0.0 } else { below as f64 / 2.0 };
        let from = if self.unit_ns > 1.0 { (smallest - 1.0).max(0.0) } else { smallest };
        let bin = Bin { from_ns: from * self.unit_ns, below_ns: below as f64 * self.unit_ns, count };
        below.is_power_of_two().then_some(bin)
    }
}

/// The column titles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Titles {
    pub kind: Kind,
    pub layout: Layout,
    pub scale: Scale,
}

impl Titles {
    /// Parses a line of column titles.
    pub fn of(body: &str) -> Option<Titles> {
        let tokens: Vec<&str> = tokens(body).take(9).collect();
        let (first, layout) = match tokens.as_slice() {
            [first @ .., "%", "of", "total", "count"] => (first, Layout::Share),
            [first @ .., "%", "of", "total", "running", "%", "count"] => (first, Layout::Running),
            [first @ .., "count", "percent"] => (first, Layout::Colon),
            _ => return None,
        };
        let (inclusive, unit) = match first {
            ["ns"] => return Some(Titles { kind: Kind::Observed, layout, scale: Scale::NANOSECONDS }),
            ["<" | "&lt;", unit] => (false, *unit),
            ["<=" | "&lt;=", unit] => (true, *unit),
            _ => return None,
        };
        let unit_ns = match unit.trim_end_matches(':') {
            "us" | "usec" => 1000.0,
            "ns" | "nsec" => 1.0,
            _ => return None,
        };
        Some(Titles { kind: Kind::Histogram, layout, scale: Scale { inclusive, unit_ns } })
    }
}

/// A row as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub layout: Layout,
    pub bound: u64,
    /// in percent; the running share if there is one
    pub share: f64,
    pub count: u64,
}

impl Row {
    /// Parses a row.
    pub fn of(body: &str) -> Option<Row> {
        let tokens: Vec<&str> = tokens(body.trim_start_matches(':')).take(5).collect();
        let (layout, bound, share, count) = match *tokens.as_slice() {
            [bound, count, share] if bound.ends_with(':') => {
                (Layout::Colon, bound.trim_end_matches(':'), share.strip_suffix('%')?, count)
            }
            [bound, share, count] => (Layout::Share, bound, share, count),
            [bound, share, running, count] => {
                decimal(share)?;
                (Layout::Running, bound, running, count)
            }
            _ => return None,
        };
        Some(Row { layout, bound: whole(bound)?, share: decimal(share)?, count: whole(count)? })
    }

    /// Returns whether the line can be a row or a part of one: it contains only numbers.
    pub fn is_likely(body: &str) -> bool {
        let body = body.trim_start_matches([':', ' ']);
        body.starts_with(|c: char| c.is_ascii_digit())
            && body.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || ".,:%|│…".contains(c))
            && tokens(body).next().is_some_and(|first| whole(first.trim_end_matches(':')).is_some())
    }
}

fn tokens(body: &str) -> impl Iterator<Item = &str> {
    body.split(|c: char| c.is_whitespace() || c == '|' || c == '│').filter(|token| !token.is_empty())
}

fn whole(token: &str) -> Option<u64> {
    token.bytes().all(|b| b.is_ascii_digit()).then(|| token.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_powers_of_two() {
        let span = |scale: Scale, bound| scale.bin(bound, 7).map(|bin| (bin.from_ns, bin.below_ns));
        assert_eq!(span(Scale::MICROSECONDS, 1), Some((0.0, 1000.0)));
        assert_eq!(span(Scale::MICROSECONDS, 2), Some((0.0, 2000.0)));
        assert_eq!(span(Scale::MICROSECONDS, 4), Some((1000.0, 4000.0)));
        assert_eq!(span(Scale::MICROSECONDS, 8), Some((3000.0, 8000.0)));
        assert_eq!(span(Scale::NANOSECONDS, 0), Some((0.0, 1.0)));
        assert_eq!(span(Scale::NANOSECONDS, 1), Some((1.0, 2.0)));
        assert_eq!(span(Scale::NANOSECONDS, 31), Some((16.0, 32.0)));
        // The last rows of a 64-bit histogram.
        assert_eq!(span(Scale::NANOSECONDS, i64::MAX as u64), Some((2f64.powi(62), 2f64.powi(63))));
        assert_eq!(span(Scale::NANOSECONDS, u64::MAX), None);
        for (scale, bound) in [(Scale::MICROSECONDS, 0), (Scale::MICROSECONDS, 3), (Scale::NANOSECONDS, 8)] {
            assert_eq!(span(scale, bound), None);
        }
    }

    #[test]
    fn titles_of_every_version_are_parsed() {
        let of = |text| Titles::of(text).map(|titles| (titles.kind, titles.layout, titles.scale));
        let us = Scale::MICROSECONDS;
        assert_eq!(of("< us   % of total      count"), Some((Kind::Histogram, Layout::Share, us)));
        assert_eq!(of("< usec   % of total      count"), Some((Kind::Histogram, Layout::Share, us)));
        assert_eq!(of("< usec:      count   percent"), Some((Kind::Histogram, Layout::Colon, us)));
        let ns = Scale::NANOSECONDS;
        assert_eq!(of("<= ns   % of total  running %      count"), Some((Kind::Histogram, Layout::Running, ns)));
        assert_eq!(of("&lt;= ns | % of total | count"), Some((Kind::Histogram, Layout::Share, ns)));
        assert_eq!(of("ns   % of total  running %      count"), Some((Kind::Observed, Layout::Running, ns)));
        for other in
            ["", "count", "% of total count", "< s % of total count", "12 % of total count", "a b count percent"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn rows() {
        let row = |text| Row::of(text).map(|row| (row.layout, row.bound, row.share, row.count));
        assert_eq!(row("1     97.56040   39648979"), Some((Layout::Share, 1, 97.5604, 39_648_979)));
        assert_eq!(row(": 1  0.1  3"), Some((Layout::Share, 1, 0.1, 3)));
        assert_eq!(row("31 | 99.7213 | 99.8213 | 12"), Some((Layout::Running, 31, 99.8213, 12)));
        assert_eq!(row("16:          2  0.00001%"), Some((Layout::Colon, 16, 0.00001, 2)));
        let too_big = format!("1 0.1 {}", u128::MAX);
        for other in ["", "1", "1 0.1", "1 2 3", "1 0.1 3 4", "1 0.1 -3", "1 0.1 +3", "1: 2 0.1", "-1 0.1 3", &too_big]
        {
            assert_eq!(row(other), None, "{other}");
        }
    }

    #[test]
    fn likely_rows() {
        for text in ["16", "16  0.0", "16: 2", ": 1", "31 | 99.7213 |", "1 0.1 12...", "1 0.1 3"] {
            assert!(Row::is_likely(text), "{text}");
        }
        for text in ["", "(1 row)", "3 seconds", "2024-01-01", "10:32:05", "0.5"] {
            assert!(!Row::is_likely(text), "{text}");
        }
    }
}
