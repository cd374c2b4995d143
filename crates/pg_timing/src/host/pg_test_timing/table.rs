//! What an output of pg_test_timing contains, and whether a table in it is complete.

use crate::report::ObservedDuration;

/// One run of pg_test_timing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// measuring time of each clock, from `Testing timing overhead for N seconds`
    pub duration_s: Option<u64>,
    /// the clocks in the printed order, each with a loop time or a table
    pub clocks: Vec<ClockTable>,
    /// the lines of PostgreSQL 19 about the TSC
    pub tsc: Option<TscLines>,
    /// whether the clock went back; a cut text can show that without the amount
    pub went_back: bool,
    /// The amount in ns, negative as printed. A printed `ms` means microseconds, or nanoseconds in an output that
    /// counts in nanoseconds, because no version ever measured milliseconds.
    pub warp_ns: Option<i64>,
    /// whether a part of the output is missing or damaged
    ///
    /// The `...` that PostgreSQL 19 prints before the longest duration does not count. Missing rows at the end of a
    /// classic table are noticed if their share is at least the rounding of the printed ones.
    pub cut_off: bool,
    /// where the output begins in its text, in bytes
    pub position: usize,
}

/// The printed results of one clock.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockTable {
    /// the name in reports: `system`, `rdtscp`, `rdtsc`, or that of an unknown clock
    pub name: String,
    /// elapsed time divided by the number of readings; includes the loop's own work
    pub loop_ns: Option<f64>,
    /// The unit of the differences. Up to version 18 it is 1000: each reading was cut to whole microseconds before the
    /// subtraction. If there is no table, it is 1.
    pub unit_ns: f64,
    /// the printed shares add up to 100%, so no row is missing
    pub whole: bool,
    /// the histogram, shortest durations first
    pub bins: Vec<Bin>,
    /// PostgreSQL 19's exact durations, shortest first
    pub observed: Vec<ObservedDuration>,
}

/// One row of the histogram: `count` durations d with `from_ns <= d < below_ns`.
///
/// The rows of a table in microseconds overlap, because both readings were cut to whole microseconds before the
/// subtraction. A difference of 1 us is a duration of more than 0 and less than 2 us.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// lower bound, inclusive
    pub from_ns: f64,
    /// upper bound, exclusive
    pub below_ns: f64,
    /// from the column `count`, because the percentages are rounded
    pub count: u64,
}

impl ClockTable {
    /// Returns the smallest and the largest difference that a row counts.
    pub fn differences_ns(&self, bin: &Bin) -> (f64, f64) {
        let smallest = if bin.below_ns > self.unit_ns { bin.below_ns / 2.0 } else { 0.0 };
        (smallest, bin.below_ns - self.unit_ns)
    }
}

/// The lines of PostgreSQL 19 about the TSC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TscLines {
    /// `TSC frequency source: ...`, such as `x86, hypervisor, calibration`
    pub source: Option<String>,
    /// `TSC frequency in use: N kHz`
    pub in_use_khz: Option<u64>,
    /// `TSC frequency from calibration: N kHz`
    pub calibrated_khz: Option<u64>,
    /// `TSC clock source is not usable`
    pub not_usable: bool,
    /// `TSC clock source will (not) be used by default`
    pub used_by_default: Option<bool>,
}

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Histogram,
    /// PostgreSQL 19's exact durations
    Observed,
}

/// The columns of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// bound, share, count: up to 18
    Share,
    /// bound, share, running share, count: 19
    Running,
    /// `bound: count share%`, longest first: in the first builds of 9.2
    Colon,
}

/// The meaning of the first column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
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
    fn bin(self, bound: u64, count: u64) -> Option<Bin> {
        let below = if self.inclusive { bound.checked_add(1)? } else { bound };
        let smallest = if below == 1 { 0.0 } else { below as f64 / 2.0 };
        let from = if self.unit_ns > 1.0 { (smallest - 1.0).max(0.0) } else { smallest };
        let bin = Bin { from_ns: from * self.unit_ns, below_ns: below as f64 * self.unit_ns, count };
        below.is_power_of_two().then_some(bin)
    }
}

/// A row as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub layout: Layout,
    pub bound: u64,
    /// in percent; the running share if there is one
    pub share: f64,
    /// the rounding error of `share`
    pub rounding: f64,
    pub count: u64,
}

impl Row {
    /// Parses a row at the start of these words. Returns also the number of its words.
    pub fn of(words: &[&str]) -> Option<(Row, usize)> {
        let first = whole(words.first()?.trim_end_matches(':'))?;
        let (layout, share, count) = match words {
            [bound, count, share, ..] if bound.ends_with(':') => (Layout::Colon, share.strip_suffix('%')?, count),
            [_, share, running, count, ..] if decimal(share).and(decimal(running)).is_some() => {
                (Layout::Running, *running, count)
            }
            [_, share, count, ..] if decimal(share).is_some() => (Layout::Share, *share, count),
            _ => return None,
        };
        let length = if layout == Layout::Running { 4 } else { 3 };
        let decimals = share.len() - share.find(['.', ','])? - 1;
        let rounding = 0.5 * 10f64.powi(-i32::try_from(decimals).ok()?);
        Some((Row { layout, bound: first, share: decimal(share)?, rounding, count: whole(count)? }, length))
    }
}

/// Parses a whole number, also with separators of thousands.
fn whole(word: &str) -> Option<u64> {
    let digits: String = match word.split_once(',') {
        Some((first, groups)) if (1..=3).contains(&first.len()) && groups.split(',').all(|group| group.len() == 3) => {
            word.replace(',', "")
        }
        Some(_) => return None,
        None => word.into(),
    };
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Parses a number with decimals. The decimal separator can be a comma, as in some locales; another separator before it
/// separates thousands.
pub fn decimal(word: &str) -> Option<f64> {
    let at = word.rfind(['.', ','])?;
    let (integer, fraction) = (&word[..at], &word[at + 1..]);
    let separates_decimals = |c: char| word[at..].starts_with(c);
    if integer.contains(separates_decimals) || !fraction.bytes().all(|b| b.is_ascii_digit()) || fraction.is_empty() {
        return None;
    }
    let integer = whole(&integer.replace(['.', '\''], ","))?;
    format!("{integer}.{fraction}").parse().ok()
}

/// A table that is being read.
#[derive(Debug)]
pub struct Table {
    pub kind: Kind,
    scale: Option<Scale>,
    rows: Vec<Row>,
    /// the number of rows before the last `...`
    elided_at: Option<usize>,
    damaged: bool,
}

impl Table {
    pub fn new(kind: Kind, scale: Option<Scale>) -> Table {
        Table { kind, scale, rows: Vec::new(), elided_at: None, damaged: false }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row if it fits the rows before it.
    pub fn add(&mut self, row: Row) {
        let fits = self.rows.last().is_none_or(|last| {
            last.layout == row.layout
                && if row.layout == Layout::Colon { row.bound < last.bound } else { row.bound > last.bound }
        });
        let valid = self.kind == Kind::Observed || self.scale_of(&row).bin(row.bound, row.count).is_some();
        match fits && valid {
            true => self.rows.push(row),
            false => self.damaged = true,
        }
    }

    /// Notes a part of a row.
    pub fn damage(&mut self) {
        self.damaged = true;
    }

    /// Notes a `...`.
    pub fn elision(&mut self) {
        self.damaged |= self.elided_at.is_some();
        self.elided_at = Some(self.rows.len());
    }

    fn scale_of(&self, row: &Row) -> Scale {
        self.scale.unwrap_or(if row.layout == Layout::Running { Scale::NANOSECONDS } else { Scale::MICROSECONDS })
    }

    /// Returns the unit of the first column.
    pub fn unit_ns(&self) -> f64 {
        self.rows.first().map_or(1.0, |row| self.scale_of(row).unit_ns)
    }

    /// Returns the rows of a histogram, shortest durations first.
    pub fn bins(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> =
            self.rows.iter().filter_map(|row| self.scale_of(row).bin(row.bound, row.count)).collect();
        bins.sort_by(|a, b| a.below_ns.total_cmp(&b.below_ns));
        bins
    }

    /// Returns the rows of exact durations, shortest first.
    pub fn observed(&self) -> Vec<ObservedDuration> {
        let observed = self.rows.iter().map(|row| ObservedDuration { ns: row.bound, count: row.count });
        let mut observed: Vec<ObservedDuration> = observed.collect();
        observed.sort_by_key(|duration| duration.ns);
        observed
    }

    /// Returns whether all rows are there. `total`: the number of readings.
    pub fn is_complete(&self, total: f64) -> bool {
        let whole_list = match (self.kind, self.elided_at) {
            (_, None) => true,
            // PostgreSQL's own `...`: only the longest duration follows.
            (Kind::Observed, Some(at)) => at + 1 == self.rows.len(),
            (Kind::Histogram, Some(_)) => false,
        };
        !self.damaged && whole_list && !self.has_gap() && self.shares_agree(total)
    }

    /// Returns whether a row within the histogram is missing. Every version also prints empty rows, starting at 0.
    fn has_gap(&self) -> bool {
        let bounds = |nth: usize| self.unit_ns() * 2f64.powi(i32::try_from(nth).unwrap_or(i32::MAX));
        self.kind == Kind::Histogram && self.bins().iter().enumerate().any(|(nth, bin)| bin.below_ns != bounds(nth))
    }

    /// Returns whether the printed shares add up to 100%.
    pub fn is_whole(&self) -> bool {
        let Some(last) = self.rows.last() else { return false };
        let sum: f64 = self.rows.iter().map(|row| row.share).sum();
        let sum = if last.layout == Layout::Running { last.share } else { sum };
        (sum - 100.0).abs() <= last.rounding * self.rows.len() as f64
    }

    /// Returns whether each printed share is that of its count, so that no digit and no row is missing.
    fn shares_agree(&self, total: f64) -> bool {
        let mut running = 0.0;
        let agree = self.rows.iter().enumerate().all(|(nth, row)| {
            running += row.count as f64;
            let counted = if row.layout == Layout::Running { running } else { row.count as f64 };
            // After the `...` the running share contains durations that are not listed.
            let hidden = self.elided_at.is_some_and(|at| nth >= at);
            let expected = if hidden { 100.0 } else { 100.0 * counted / total };
            (row.share - expected).abs() <= row.rounding * 1.001
        });
        agree && self.is_whole() && total > 0.0
    }
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
        assert_eq!(span(Scale::NANOSECONDS, 0), Some((0.0, 1.0)));
        assert_eq!(span(Scale::NANOSECONDS, 31), Some((16.0, 32.0)));
        // The last rows of a 64-bit histogram.
        assert_eq!(span(Scale::NANOSECONDS, i64::MAX as u64), Some((2f64.powi(62), 2f64.powi(63))));
        assert_eq!(span(Scale::NANOSECONDS, u64::MAX), None);
        for (scale, bound) in [(Scale::MICROSECONDS, 0), (Scale::MICROSECONDS, 3), (Scale::NANOSECONDS, 8)] {
            assert_eq!(span(scale, bound), None);
        }
    }

    #[test]
    fn numbers_have_separators() {
        for (word, value) in [("35.96", 35.96), ("28,01", 28.01), ("1,044.67", 1044.67), ("1.044,67", 1044.67)] {
            assert_eq!(decimal(word), Some(value), "{word}");
        }
        for word in ["35", ".5", "5.", "1,04.67", "1e9.0", "-nan", "1..5", "x.5"] {
            assert_eq!(decimal(word), None, "{word}");
        }
        assert_eq!(decimal(&format!("{}.5", "9".repeat(400))), None, "too big");
        assert_eq!(
            (whole("1,155,682"), whole("1155682"), whole("1,15"), whole("")),
            (Some(1_155_682), Some(1_155_682), None, None)
        );
    }
}
