//! Collects the rows of a table, and notices missing rows.

use std::cmp::Ordering;

use super::row::{Kind, Layout, Row, Scale, Titles};
use super::{Bin, Observed};

/// A table that is being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub kind: Kind,
    /// from the titles, or else from the first row
    layout: Option<Layout>,
    scale: Option<Scale>,
    /// width of the titles and of the first row, without the first column
    titles_width: Option<usize>,
    first_width: Option<usize>,
    bins: Vec<Bin>,
    observed: Vec<Observed>,
    last_bound: Option<u64>,
    /// share of the readings in the rows, in percent
    share: f64,
    /// number of lines with `...`, and of rows after the last one
    elisions: u32,
    rows_after_elision: u32,
    /// whether a row was damaged
    damaged: bool,
    /// whether the bounds started again, so that the next rows belong to another table
    over: bool,
}

impl Table {
    pub fn new(kind: Kind) -> Table {
        let layout = (kind == Kind::Observed).then_some(Layout::Running);
        Table { kind, layout, ..Table::default() }
    }

    /// Stores the titles.
    pub fn title(&mut self, titles: Titles, body: &str) {
        self.layout = Some(titles.layout);
        self.scale = Some(titles.scale);
        let (first, _) = body.split_once('%').unwrap_or((body, ""));
        self.titles_width = width(body, first.trim_end());
    }

    /// Adds a row, if it is complete.
    ///
    /// The count can be cut off, especially if the newline is missing. The columns are right-aligned, so after the
    /// first column each row is as wide as the titles. A row is wider only if a count does not fit its column, and then
    /// a single space precedes the count. Only the rows of 9.2 end with `%` instead of a count.
    pub fn row(&mut self, body: &str, newline: bool) {
        let width = width(body, body.split(char::is_whitespace).next().unwrap_or(""));
        let expected = if self.is_empty() { self.titles_width } else { self.first_width };
        let fits = match expected {
            Some(expected) if !newline => width == Some(expected),
            Some(expected) if !self.is_empty() => width.is_none_or(|width| width >= expected),
            // If the first row differs from the titles, either of them can be wrong: see `finish`.
            _ => newline,
        };
        let row = Row::of(body).filter(|row| fits || row.layout == Layout::Colon);
        match row.and_then(|row| self.take(row)) {
            Some(()) if self.len() == 1 => self.first_width = width,
            Some(()) => {}
            None => self.damaged = true,
        }
    }

    fn take(&mut self, row: Row) -> Option<()> {
        if self.over || *self.layout.get_or_insert(row.layout) != row.layout {
            return None;
        }
        let by_layout = if row.layout == Layout::Running { Scale::NANOSECONDS } else { Scale::MICROSECONDS };
        let bin = match self.kind {
            Kind::Histogram => Some(self.scale.get_or_insert(by_layout).bin(row.bound, row.count)?),
            Kind::Observed => None,
        };
        let order = self.last_bound.map(|last| row.bound.cmp(&last));
        let forward = if row.layout == Layout::Colon { Ordering::Less } else { Ordering::Greater };
        if order.is_some_and(|order| order != forward) {
            // The same bound again is a duplicated line.
            self.over = order != Some(Ordering::Equal);
            return None;
        }
        match bin {
            Some(bin) => self.bins.push(bin),
            None => self.observed.push(Observed { ns: row.bound, count: row.count }),
        }
        self.last_bound = Some(row.bound);
        self.rows_after_elision += 1;
        self.share = if row.layout == Layout::Running { row.share } else { self.share + row.share };
        Some(())
    }

    /// Ends the table. Removes a single row that is narrower than the titles.
    pub fn finish(&mut self) {
        let cut = self.len() == 1 && self.first_width.is_some() && self.first_width < self.titles_width;
        if cut {
            self.bins.clear();
            self.observed.clear();
            self.damaged = true;
        }
    }

    /// Adds a line with `...`.
    pub fn elision(&mut self) {
        self.elisions += 1;
        self.rows_after_elision = 0;
    }

    fn len(&self) -> usize {
        self.bins.len() + self.observed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the table is in microseconds. Versions with such a table have only one clock.
    pub fn is_classic(&self) -> bool {
        self.unit_ns() > 1.0
    }

    /// Returns the unit of the first column.
    pub fn unit_ns(&self) -> f64 {
        self.scale.map_or(1.0, |scale| scale.unit_ns)
    }

    /// Returns whether rows are missing, as far as that is visible.
    pub fn is_cut(&self) -> bool {
        // After PostgreSQL 19's own `...` there is only the longest duration.
        let own = self.kind == Kind::Observed && self.elisions == 1 && self.rows_after_elision == 1;
        // The rounding error of 32 rows with 5 decimals is at most 0.00016. A running share ends at 100.0000.
        let short = self.share < 99.9998 && (self.kind == Kind::Observed || !self.is_empty());
        self.damaged || short || self.has_gap() || (self.elisions > 0 && !own)
    }

    /// Returns whether a row within the histogram is missing. Every version also prints empty rows, starting at 0.
    fn has_gap(&self) -> bool {
        let touch =
            |pair: &[Bin]| pair[0].below_ns * 2.0 == pair[1].below_ns || pair[1].below_ns * 2.0 == pair[0].below_ns;
        let from_zero = self.bins.is_empty() || self.bins.iter().any(|bin| bin.below_ns == self.unit_ns());
        !from_zero || !self.bins.windows(2).all(touch)
    }

    /// Returns the rows of a histogram, shortest durations first.
    pub fn into_bins(mut self) -> Vec<Bin> {
        self.bins.sort_by(|a, b| a.below_ns.total_cmp(&b.below_ns));
        self.bins
    }

    /// Returns the rows of exact durations, shortest first.
    pub fn into_observed(self) -> Vec<Observed> {
        self.observed
    }
}

/// Returns the width of the columns after the first one.
///
/// `None` if the width shows nothing: with tabs, or if only one space precedes the last column, because the column is
/// too wide or a page has folded all spaces.
fn width(body: &str, first: &str) -> Option<usize> {
    let before_last = body.trim_end_matches(|c: char| !c.is_whitespace());
    (before_last.ends_with("  ") && !body.contains('\t')).then(|| body.len() - first.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], newline_at_end: bool) -> Table {
        let titles = Titles::of(lines[0].trim()).unwrap();
        let mut table = Table::new(titles.kind);
        table.title(titles, lines[0].trim());
        for (at, line) in lines.iter().enumerate().skip(1) {
            table.row(line.trim(), newline_at_end || at + 1 < lines.len());
        }
        table.finish();
        table
    }

    #[test]
    fn a_last_row_without_newline_must_have_the_full_width() {
        let whole =
            ["  < us   % of total      count", "     1     97.56040   39648979", "     2      2.43960     991459"];
        let table = read(&whole, false);
        assert_eq!((table.len(), table.is_cut()), (2, false), "it is as wide as the others");
        let cut = [whole[0], whole[1], &whole[2][..29]];
        let table = read(&cut, false);
        assert_eq!((table.len(), table.is_cut()), (1, true));
        let blanks_gone = ["< us % of total count", "1 97.56040 39648979", "2 2.43960 9914"];
        assert_eq!(read(&blanks_gone, false).len(), 1);
        // These rows are too wide for their columns. They are as wide as the titles, but cut off.
        for (part, whole) in [("1    100.00000 1234567890", "12"), ("16777216    100.00000       12", "34")] {
            let titles = "  < us   % of total      count";
            let whole = format!("{part}{whole}");
            assert_eq!(read(&[titles, part], false).len(), 0, "{part}");
            assert_eq!(read(&[titles, &whole], true).len(), 1, "{whole}");
        }
    }

    #[test]
    fn a_narrow_row_is_damaged() {
        let titles = "  < us   % of total      count";
        let [first, second] = ["     1     97.56040   39648979", "     2      2.43960     991459"];
        let table = read(&[titles, first, &second[..29]], true);
        assert_eq!((table.len(), table.is_cut()), (1, true));
        let table = read(&[titles, &first[..29]], true);
        assert_eq!((table.len(), table.is_cut()), (0, true));
        // Without indentation, with tabs, with folded spaces, or below other titles, the rows are valid.
        let other = |line: &str, blank: &str| line.split_whitespace().collect::<Vec<_>>().join(blank);
        for lines in [
            [titles.trim(), first.trim(), second.trim()],
            [&other(titles, "\t"), &other(first, "\t"), &other(second, "\t")],
            [&other(titles, " "), &other(first, " "), &other(second, " ")],
            ["  < us    % of total       count", first, second],
        ] {
            assert_eq!(read(&lines, true).into_bins().iter().map(|bin| bin.count).sum::<u64>(), 40_640_438);
        }
    }

    #[test]
    fn a_row_without_a_column_is_damaged() {
        let titles = "   <= ns   % of total  running %      count";
        let table = read(&[titles, "       0       0.0000     0.0000          0", "       1       0.0000     0"], true);
        assert_eq!((table.len(), table.is_cut()), (1, true));
    }

    #[test]
    fn a_duplicated_row_counts_once() {
        let row = "     1    100.00000   39648979";
        let table = read(&["  < us   % of total      count", row, row], true);
        assert!(table.is_cut());
        assert_eq!(table.into_bins(), [Bin { from_ns: 0.0, below_ns: 1000.0, count: 39_648_979 }]);
    }

    #[test]
    fn rows_of_another_table_are_ignored() {
        let titles = "  < us   % of total      count";
        let rows =
            ["     1     97.56040   39648979", "     2      2.43960     991459", "     4      0.00000          1"];
        let table = read(&[titles, rows[0], rows[1], rows[0], rows[2]], true);
        assert_eq!((table.len(), table.is_cut()), (2, true));
        let table = read(&[titles, rows[0], rows[2]], true);
        assert_eq!((table.len(), table.has_gap()), (2, true));
        let table = read(&[titles, rows[1], rows[2]], true);
        assert_eq!((table.len(), table.has_gap()), (2, true));
    }
}
