//! A table as its rows come, and what shows of rows that are missing.

use std::cmp::Ordering;

use super::row::{Kind, Layout, Row, Scale, Titles};
use super::{Bin, Observed};

/// A table being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub kind: Kind,
    /// from the titles, else from the first row
    layout: Option<Layout>,
    scale: Option<Scale>,
    /// the span of the titles, and of the first row
    titles_span: Option<usize>,
    first_span: Option<usize>,
    bins: Vec<Bin>,
    observed: Vec<Observed>,
    last_bound: Option<u64>,
    /// how much of all readings the rows hold, in percent
    share: f64,
    /// lines of `...`, and the rows behind the last one
    elisions: u32,
    rows_behind: u32,
    /// a row was there and could not be taken
    damaged: bool,
    /// the rows began again: those are another table's
    over: bool,
}

impl Table {
    pub fn new(kind: Kind) -> Table {
        let layout = (kind == Kind::Observed).then_some(Layout::Running);
        Table { kind, layout, ..Table::default() }
    }

    pub fn title(&mut self, titles: Titles, body: &str) {
        self.layout = Some(titles.layout);
        self.scale = Some(titles.scale);
        let (first, _) = body.split_once('%').unwrap_or((body, ""));
        self.titles_span = span(body, first.trim_end());
    }

    /// Takes a row, if all of it is there.
    ///
    /// Its count may be cut, surely where the newline is missing too. The columns are flush right, so
    /// what follows the first one is as wide in each row as in the titles; wider where a count does
    /// not fit its column, which shows by the single blank before it; never narrower. Only 9.2's
    /// rows end in something else, a `%`.
    pub fn row(&mut self, body: &str, newline: bool) {
        let span = span(body, body.split(char::is_whitespace).next().unwrap_or(""));
        let expected = if self.is_empty() { self.titles_span } else { self.first_span };
        let fits = match expected {
            Some(width) if !newline => span == Some(width),
            Some(width) if !self.is_empty() => span.is_none_or(|span| span >= width),
            // one row against its titles does not tell which of them is wrong: see `settle`
            _ => newline,
        };
        let row = Row::of(body).filter(|row| fits || row.layout == Layout::Colon);
        match row.and_then(|row| self.take(row)) {
            Some(()) if self.len() == 1 => self.first_span = span,
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
            // the same bound again is a line pasted twice
            self.over = order != Some(Ordering::Equal);
            return None;
        }
        match bin {
            Some(bin) => self.bins.push(bin),
            None => self.observed.push(Observed { ns: row.bound, count: row.count }),
        }
        self.last_bound = Some(row.bound);
        self.rows_behind += 1;
        self.share = if row.layout == Layout::Running { row.share } else { self.share + row.share };
        Some(())
    }

    /// No more rows come: takes back a single one that is narrower than its titles.
    pub fn settle(&mut self) {
        let cut = self.len() == 1 && self.first_span.is_some() && self.first_span < self.titles_span;
        if cut {
            self.bins.clear();
            self.observed.clear();
            self.damaged = true;
        }
    }

    pub fn elision(&mut self) {
        self.elisions += 1;
        self.rows_behind = 0;
    }

    fn len(&self) -> usize {
        self.bins.len() + self.observed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In microseconds: no version that prints those has more than one clock.
    pub fn is_classic(&self) -> bool {
        self.scale.is_some_and(|scale| scale.unit_ns > 1.0)
    }

    /// Whether rows are missing, as far as it shows.
    pub fn is_cut(&self) -> bool {
        // 19's own `...` has just the longest duration behind it
        let own = self.kind == Kind::Observed && self.elisions == 1 && self.rows_behind == 1;
        // 32 rows rounded to 5 decimals are 0.00016 off at most, and a running share ends at 100.0000
        let short = self.share < 99.9998 && (self.kind == Kind::Observed || !self.is_empty());
        self.damaged || short || self.has_gap() || (self.elisions > 0 && !own)
    }

    /// Every version prints a histogram's empty rows too, from 0 to the longest duration.
    fn has_gap(&self) -> bool {
        let touch = |pair: &[Bin]| pair[0].below_ns == pair[1].from_ns || pair[1].below_ns == pair[0].from_ns;
        let from_zero = self.bins.is_empty() || self.bins.iter().any(|bin| bin.from_ns == 0.0);
        !from_zero || !self.bins.windows(2).all(touch)
    }

    /// The rows of a histogram, shortest first.
    pub fn into_bins(mut self) -> Vec<Bin> {
        self.bins.sort_by(|a, b| a.below_ns.total_cmp(&b.below_ns));
        self.bins
    }

    /// The rows of exact durations, shortest first.
    pub fn into_observed(self) -> Vec<Observed> {
        self.observed
    }
}

/// How wide the columns behind the first one are.
///
/// `None` where that says nothing: with tabs, or where the last has no more than the one blank
/// before it that parts columns (it is too wide, or a page has folded all blanks).
fn span(body: &str, first: &str) -> Option<usize> {
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
        table.settle();
        table
    }

    #[test]
    fn a_last_row_without_newline() {
        let whole =
            ["  < us   % of total      count", "     1     97.56040   39648979", "     2      2.43960     991459"];
        let table = read(&whole, false);
        assert_eq!((table.len(), table.is_cut()), (2, false), "it ends where the others end");
        let cut = [whole[0], whole[1], &whole[2][..29]];
        let table = read(&cut, false);
        assert_eq!((table.len(), table.is_cut()), (1, true));
        let blanks_gone = ["< us % of total count", "1 97.56040 39648979", "2 2.43960 9914"];
        assert_eq!(read(&blanks_gone, false).len(), 1);
        // too wide for their columns: these end where the titles do, and yet are cut
        for (part, whole) in [("1    100.00000 1234567890", "12"), ("16777216    100.00000       12", "34")] {
            let titles = "  < us   % of total      count";
            let whole = format!("{part}{whole}");
            assert_eq!(read(&[titles, part], false).len(), 0, "{part}");
            assert_eq!(read(&[titles, &whole], true).len(), 1, "{whole}");
        }
    }

    #[test]
    fn a_row_that_is_too_narrow_lost_something() {
        let titles = "  < us   % of total      count";
        let [first, second] = ["     1     97.56040   39648979", "     2      2.43960     991459"];
        let table = read(&[titles, first, &second[..29]], true);
        assert_eq!((table.len(), table.is_cut()), (1, true));
        let table = read(&[titles, &first[..29]], true);
        assert_eq!((table.len(), table.is_cut()), (0, true));
        // without indentation, with tabs, folded, or under other titles: that is only another form
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
    fn a_row_that_lost_a_column_is_no_row() {
        let titles = "   <= ns   % of total  running %      count";
        let table = read(&[titles, "       0       0.0000     0.0000          0", "       1       0.0000     0"], true);
        assert_eq!((table.len(), table.is_cut()), (1, true));
    }

    #[test]
    fn a_row_twice_counts_once() {
        let row = "     1    100.00000   39648979";
        let table = read(&["  < us   % of total      count", row, row], true);
        assert!(table.is_cut());
        assert_eq!(table.into_bins(), [Bin { from_ns: 0.0, below_ns: 1000.0, count: 39_648_979 }]);
    }

    #[test]
    fn rows_of_another_table_are_not_taken() {
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
