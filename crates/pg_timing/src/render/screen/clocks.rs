//! The read cost of PostgreSQL's clock over time, and the table of clocks.

use super::parts::{duration, percent, period};
use super::{BOLD, DIM, MISSING, Part, Sort, View};
use crate::human::count;
use crate::render::columns::columns;
use crate::report::{AccessPath, MonitorReport, ReadCostLimits, SYSTEM, Severity, WatchedClock};
use ratatui::layout::Constraint;
use ratatui::text::Line;
use ratatui::widgets::{Cell, RenderDirection, Row, Sparkline, SparklineBar, Table, Widget};

/// The title and the bars. Fewer rows of bars hide small changes, and more show nothing new.
const HISTORY_LINES: [usize; 2] = [3, 5];
/// The height of the highest bar, in steps that are smaller than a terminal shows.
const FULL: f64 = 1000.0;
/// The head, PostgreSQL's clock and one more.
const LEAST_TABLE: usize = 3;
/// The columns, the most important first: a narrow screen does not have the last ones.
const HEADS: [&str; 8] = ["clock", "one read", "lost", "99.9%", "worst", "went back", "step", "access"];
const GAP: u16 = 2;

/// Returns the read cost of PostgreSQL's clock over time: one bar per sample, the newest at the right end. The highest one has
/// the full height. Bars above a limit have the color of its severity.
pub fn history<'a>(report: &'a MonitorReport, view: &'a View) -> Part<'a> {
    let history = report.system().map(|clock| &clock.history_ns);
    let Some(history) = history.filter(|history| history.iter().flatten().any(|ns| ns.is_finite())) else {
        return Part::of_lines(0, Vec::new());
    };
    Part::new(HISTORY_LINES[0], HISTORY_LINES[1], move |area, buffer| {
        let newest = history.iter().rev().take(area.width.into());
        let shown: Vec<Option<f64>> = newest.map(|ns| ns.map(f64::from).filter(|ns| ns.is_finite())).collect();
        let highest = shown.iter().flatten().copied().fold(0.0, f64::max);
        let height = |ns: f64| if highest > 0.0 { (ns / highest * FULL) as u64 } else { 0 };
        let bar = |ns: &Option<f64>| {
            let style = view.alarm(severity(*ns, report.read_cost_limits_ns)).unwrap_or(DIM);
            SparklineBar::from(ns.map(height)).style(style)
        };
        let time = period(shown.len() as f64 * report.interval_s);
        let title = format!("one read of PostgreSQL's clock, last {time}, at most {} ", duration(Some(highest)));
        Sparkline::default()
            .block(view.titled(title))
            .direction(RenderDirection::RightToLeft)
            .bar_set(view.bars())
            .max(FULL as u64)
            .absent_value_symbol(" ")
            .data(shown.iter().map(bar))
            .render(area, buffer);
    })
}

/// Returns the severity of a read cost of PostgreSQL's clock.
fn severity(ns: Option<f64>, limits: Option<ReadCostLimits>) -> Severity {
    match (ns, limits) {
        (Some(ns), Some(limits)) if ns > limits.critical => Severity::Critical,
        (Some(ns), Some(limits)) if ns > limits.warning => Severity::Warning,
        _ => Severity::Unknown,
    }
}

/// Returns the table of clocks.
pub fn table<'a>(report: &'a MonitorReport, view: &'a View) -> Part<'a> {
    if report.clocks.is_empty() {
        return Part::of_lines(0, Vec::new());
    }
    Part::new(LEAST_TABLE, 1 + report.clocks.len(), move |area, buffer| {
        let clocks = in_order(report, view.sort);
        let rows: Vec<[String; HEADS.len()]> = clocks.iter().map(|clock| cells(clock, view)).collect();
        let width = |(column, head): (usize, &&str)| {
            let cells = rows.iter().map(|row| columns(&row[column]));
            cells.fold(columns(head), usize::max).min(area.width.into()) as u16
        };
        let mut widths: Vec<u16> = HEADS.iter().enumerate().map(width).collect();
        while widths.iter().map(|width| usize::from(width + GAP)).sum::<usize>() > usize::from(area.width + GAP) {
            widths.pop();
        }
        let head = Row::new(HEADS.iter().enumerate().map(|(column, head)| cell(column, head))).style(BOLD);
        let rows = clocks.iter().zip(&rows).map(|(clock, cells)| row(clock, cells, report, view));
        let widths = widths.into_iter().map(Constraint::Length);
        Widget::render(Table::new(rows, widths).header(head).column_spacing(GAP), area, buffer);
    })
}

fn row<'a>(clock: &WatchedClock, cells: &'a [String], report: &MonitorReport, view: &View) -> Row<'a> {
    let limits = report.read_cost_limits_ns.filter(|_| clock.name == SYSTEM);
    let style = |column| match HEADS[column] {
        "one read" => view.alarm(severity(clock.read_ns, limits)),
        "went back" if clock.totals.backward_steps > 0 => view.alarm(Severity::Critical),
        _ => None,
    };
    let cells = cells.iter().enumerate();
    let row = Row::new(cells.map(|(column, text)| cell(column, text).style(style(column).unwrap_or_default())));
    if clock.unavailable.is_some() { row.style(DIM) } else { row }
}

/// Returns a cell. Figures are at the right.
fn cell(column: usize, text: &str) -> Cell<'_> {
    let line = Line::from(text);
    let is_text = ["clock", "went back", "access"].contains(&HEADS[column]);
    Cell::new(if is_text { line } else { line.right_aligned() })
}

/// Returns the clocks in the selected order. Clocks without the figure are last.
fn in_order(report: &MonitorReport, sort: Sort) -> Vec<&WatchedClock> {
    let mut clocks: Vec<&WatchedClock> = report.clocks.iter().collect();
    let figure = |figure: Option<f64>| figure.filter(|figure| figure.is_finite()).unwrap_or(f64::NEG_INFINITY);
    match sort {
        Sort::Default => clocks.sort_by_key(|clock| clock.name != SYSTEM),
        Sort::Name => clocks.sort_by(|a, b| a.name.cmp(&b.name)),
        Sort::ReadCost => clocks.sort_by(|a, b| figure(b.read_ns).total_cmp(&figure(a.read_ns))),
        Sort::LostTime => {
            clocks.sort_by(|a, b| figure(b.totals.lost_share()).total_cmp(&figure(a.totals.lost_share())));
        }
    }
    clocks
}

/// Returns the figures of a clock in the order of [`HEADS`].
fn cells(clock: &WatchedClock, view: &View) -> [String; HEADS.len()] {
    let went_back = match (clock.totals.backward_steps, clock.totals.measured_s > 0.0) {
        (0, false) => MISSING.into(),
        (0, true) => "never".into(),
        (1, _) => "once".into(),
        (steps, _) => format!("{} times", count(steps)),
    };
    let access = match clock.access_path {
        Some(AccessPath::Instruction) => "instruction",
        Some(AccessPath::Vdso) => "vDSO",
        Some(AccessPath::Syscall) => "system call",
        Some(AccessPath::Interposed) => "intercepted",
        None if clock.unavailable.is_some() => "not measured",
        None => MISSING,
    };
    [
        view.text(&clock.name),
        duration(clock.read_ns),
        percent(clock.totals.lost_share()),
        duration(clock.percentiles.map(|p| p.p99_9_ns)),
        duration(clock.percentiles.map(|p| p.max_ns)),
        went_back,
        duration(clock.granularity_ns),
        access.into(),
    ]
}
