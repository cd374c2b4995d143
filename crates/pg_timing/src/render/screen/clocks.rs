//! The table of clocks. On a narrow screen it has fewer columns.

use super::bars::{bars, fitted, severity, usual_scale};
use super::figures::{MISSING, duration, fit, percent, period, safe};
use super::style::{BOLD, DIM, of_figure};
use super::view::{Sort, View};
use crate::human::count;
use crate::render::columns::{columns, left, right};
use crate::render::host_text::{MAIN, access};
use crate::report::{MonitorReport, SYSTEM, Severity, WatchedClock};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const GAP: usize = 2;
/// With fewer columns, a bar chart over time says little. Other columns are removed first.
const SHORTEST_HISTORY: usize = 14;
/// The columns in the order of the screen. The history is the third one.
const HEADS: [&str; 8] = ["clock", "one read", "step", "99.9%", "worst", "went back", "lost", "access"];
const NAME: usize = 0;
const ONE_READ: usize = 1;
const WENT_BACK: usize = 5;
/// The columns that a narrow screen does not have, the least important first. The name and the read cost remain.
const REMOVED: [usize; 6] = [7, 2, WENT_BACK, 4, 3, 6];

/// Returns the number of lines with the main clocks, and with all clocks.
pub fn heights(report: &MonitorReport) -> [usize; 2] {
    if report.clocks.is_empty() {
        return [0, 0];
    }
    let main = report.clocks.iter().filter(|clock| is_main(clock)).count();
    let others = usize::from(main < report.clocks.len());
    [1 + main + others, 1 + report.clocks.len()]
}

/// Returns PostgreSQL's clock.
pub fn system(report: &MonitorReport) -> Option<&WatchedClock> {
    report.clocks.iter().find(|clock| clock.name == SYSTEM)
}

/// Returns at most `height` lines: the head, the clocks, and a line with the clocks that have no place. A single line shows
/// PostgreSQL's clock.
pub fn lines(report: &MonitorReport, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let clocks = in_order(report, view.sort);
    if height == 1 {
        let first = system(report).or(clocks.first().copied());
        let row = first.map(|clock| Table::without_head(report, view, clock, width).row(clock));
        return row.into_iter().collect();
    }
    if height == 0 || clocks.is_empty() {
        return Vec::new();
    }
    // If a clock has no place, the last line names it. Two lines have no place for such a line.
    let is_named = clocks.len() >= height && height > 2;
    let places = height - 1 - usize::from(is_named);
    let (shown, rest) = clocks.split_at(places.min(clocks.len()));
    let table = Table::new(report, view, shown, width);
    let mut lines = vec![table.head()];
    lines.extend(shown.iter().map(|clock| table.row(clock)));
    if is_named {
        let name = columns("also").max(table.widths[NAME]) + GAP;
        let costs = rest.iter().map(|clock| format!("{} {}", safe(&clock.name), duration(clock.read_ns)));
        let text = left("also", name) + &costs.collect::<Vec<_>>().join(", ");
        lines.push(Line::styled(fit(&text, width), DIM));
    }
    lines
}

fn is_main(clock: &WatchedClock) -> bool {
    MAIN.contains(&clock.name.as_str()) || clock.totals.backward_steps > 0
}

/// Returns the clocks in the selected order. Clocks without the figure are last.
fn in_order(report: &MonitorReport, sort: Sort) -> Vec<&WatchedClock> {
    let mut clocks: Vec<&WatchedClock> = report.clocks.iter().collect();
    let descending = |figure: fn(&WatchedClock) -> Option<f64>| {
        move |clock: &&WatchedClock| std::cmp::Reverse(Ordered(figure(clock).filter(|figure| figure.is_finite())))
    };
    match sort {
        Sort::Default => clocks.sort_by_key(|clock| (clock.name != SYSTEM, !is_main(clock))),
        Sort::Name => clocks.sort_by(|a, b| a.name.cmp(&b.name)),
        Sort::ReadCost => clocks.sort_by_key(descending(|clock| clock.read_ns)),
        Sort::LostTime => clocks.sort_by_key(descending(|clock| clock.totals.lost_share())),
    }
    clocks
}

/// A figure with a total order. A missing one is the lowest.
#[derive(PartialEq)]
struct Ordered(Option<f64>);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> std::cmp::Ordering {
        let [a, b] = [self, other].map(|Ordered(figure)| figure.unwrap_or(f64::NEG_INFINITY));
        a.total_cmp(&b)
    }
}

struct Table<'a> {
    report: &'a MonitorReport,
    view: &'a View,
    /// width of each column of [`HEADS`]; 0 if it is not shown
    widths: [usize; HEADS.len()],
    history: usize,
    width: usize,
}

impl<'a> Table<'a> {
    /// Returns a table with the name, the read cost and its history. Other figures have no meaning without a head.
    fn without_head(report: &'a MonitorReport, view: &'a View, clock: &WatchedClock, width: usize) -> Table<'a> {
        let cells = cells(clock);
        let mut widths = [0; HEADS.len()];
        [NAME, ONE_READ].into_iter().for_each(|column| widths[column] = columns(&cells[column]));
        Table { report, view, widths, history: history_width(&widths, width), width }
    }

    fn new(report: &'a MonitorReport, view: &'a View, clocks: &[&WatchedClock], width: usize) -> Table<'a> {
        let mut widths = HEADS.map(columns);
        for clock in clocks {
            for (width, cell) in widths.iter_mut().zip(cells(clock)) {
                *width = (*width).max(columns(&cell));
            }
        }
        for column in REMOVED {
            if history_width(&widths, width) < SHORTEST_HISTORY {
                widths[column] = 0;
            }
        }
        Table { report, view, widths, history: history_width(&widths, width), width }
    }

    fn head(&self) -> Line<'static> {
        self.line(HEADS.map(|head| (head.into(), BOLD)), vec![Span::styled(self.history_head(), BOLD)])
    }

    /// Returns the head of the history: the time that the bars show. It is above the first bar if it fits there.
    fn history_head(&self) -> String {
        let longest = self.report.clocks.iter().map(|clock| &clock.history_ns).max_by_key(|history| history.len());
        let bars = longest.map_or(0, |history| fitted(history, self.report.samples, self.history).values.len());
        let samples = longest.map_or(0, |history| history.len());
        let head = match period(samples as f64 * self.report.interval_s) {
            period if period == MISSING || samples == 0 => String::new(),
            period => fit(&format!("last {period}"), self.history),
        };
        let before = self.history - bars.max(columns(&head));
        left(&(" ".repeat(before) + &head), self.history)
    }

    fn row(&self, clock: &WatchedClock) -> Line<'static> {
        if let Some(why) = &clock.unavailable {
            let name = left(&safe(&clock.name), self.widths[NAME] + GAP);
            return Line::styled(fit(&format!("{name}not measured: {}", safe(why)), self.width), DIM);
        }
        let limits = self.report.read_cost_limits_ns.filter(|_| clock.name == SYSTEM);
        let mut cells = cells(clock).map(|cell| (cell, Style::new()));
        cells[ONE_READ].1 = of_figure(severity(clock.read_ns, limits), self.view);
        if clock.totals.backward_steps > 0 {
            cells[WENT_BACK].1 = of_figure(Severity::Critical, self.view);
        }
        let shown = fitted(&clock.history_ns, self.report.samples, self.history).values;
        let scale = usual_scale(clock.history_ns.iter().copied());
        let mut history = vec![Span::raw(" ".repeat(self.history - shown.len()))];
        history.extend(bars(&shown, 1, scale, limits, self.view).into_iter().flatten());
        self.line(cells, history)
    }

    /// Returns a line of cells, with the history after the read cost.
    fn line(&self, cells: [(String, Style); HEADS.len()], history: Vec<Span<'static>>) -> Line<'static> {
        let mut spans = Vec::new();
        let mut history = Some(history);
        for (column, ((cell, style), width)) in cells.into_iter().zip(self.widths).enumerate() {
            if width > 0 {
                let is_text = column == NAME || column >= WENT_BACK && HEADS[column] != "lost";
                spans.push(Span::styled(if is_text { left(&cell, width) } else { right(&cell, width) }, style));
                spans.push(Span::raw(" ".repeat(GAP)));
            }
            if let Some(history) = history.take_if(|_| column == ONE_READ && self.history > 0) {
                spans.extend(history);
                spans.push(Span::raw(" ".repeat(GAP)));
            }
        }
        Line::from(spans)
    }
}

/// Returns the columns that remain for the history.
fn history_width(widths: &[usize; HEADS.len()], width: usize) -> usize {
    let used: usize = widths.iter().filter(|width| **width > 0).map(|width| width + GAP).sum();
    width.saturating_sub(used)
}

/// Returns the figures of a clock in the order of [`HEADS`].
fn cells(clock: &WatchedClock) -> [String; HEADS.len()] {
    let reads = clock.totals.histogram.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let went_back = match (clock.totals.backward_steps, reads) {
        (0, 0) => MISSING.into(),
        (0, _) => "never".into(),
        (1, _) => "once".into(),
        (steps, _) => format!("{} times", count(steps)),
    };
    [
        safe(&clock.name),
        duration(clock.read_ns),
        duration(clock.granularity_ns),
        duration(clock.percentiles.map(|p| p.p99_9_ns)),
        duration(clock.percentiles.map(|p| p.max_ns)),
        went_back,
        percent(clock.totals.lost_share()),
        clock.access_path.map_or(MISSING, access).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::samples::{clock, view};
    use crate::report::AccessPath;

    fn report() -> MonitorReport {
        let figures =
            [("b", Some(2.0)), ("nan", Some(f64::NAN)), (SYSTEM, Some(1.0)), ("a", Some(3.0)), ("none", None)];
        let clocks = figures.map(|(name, read_ns)| WatchedClock { read_ns, ..clock(name, 20.0, AccessPath::Vdso, 0) });
        MonitorReport { clocks: clocks.into(), ..MonitorReport::default() }
    }

    #[test]
    fn clocks_without_the_figure_are_last() {
        let report = report();
        let names = |sort| in_order(&report, sort).iter().map(|clock| clock.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(Sort::Default), ["system", "b", "nan", "a", "none"]);
        assert_eq!(names(Sort::ReadCost), ["a", "b", "system", "nan", "none"]);
        assert_eq!(names(Sort::Name), ["a", "b", "nan", "none", "system"]);
    }

    #[test]
    fn each_height_shows_as_many_clocks_as_possible() {
        let shown = |height| -> Vec<String> {
            let lines = lines(&report(), &view(), 60, height);
            lines.iter().map(|line| line.to_string().split(' ').next().unwrap_or_default().into()).collect()
        };
        assert_eq!(shown(0), [""; 0]);
        assert_eq!(shown(1), ["system"]);
        assert_eq!(shown(2), ["clock", "system"]);
        assert_eq!(shown(4), ["clock", "system", "b", "also"]);
        assert_eq!(shown(9), ["clock", "system", "b", "nan", "a", "none"]);
    }

    #[test]
    fn a_narrow_table_has_fewer_columns() {
        let columns = |width| lines(&report(), &view(), width, 9)[0].to_string().split_whitespace().count();
        // "one read" and "went back" are two words. There is no history, so it has no head.
        assert_eq!([100, 72, 30, 10].map(columns), [10, 9, 3, 3]);
    }

    #[test]
    fn backward_steps_are_never_hidden() {
        let with = |backward_steps, reads| {
            let mut clock = clock("rdtsc", 9.0, AccessPath::Instruction, 0);
            (clock.totals.backward_steps, clock.totals.histogram) = (backward_steps, vec![reads]);
            cells(&clock)[WENT_BACK].clone()
        };
        assert_eq!([with(0, 0), with(0, 9), with(1, 9), with(12_345, 0)], ["-", "never", "once", "12 k times"]);
    }
}
