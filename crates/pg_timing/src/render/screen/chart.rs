//! The read cost of PostgreSQL's clock over time, on a large screen.

use super::bars::{bars, fitted};
use super::clocks::system;
use super::figures::{MISSING, duration, period};
use super::style::{BOLD, DIM};
use super::view::View;
use crate::render::columns::{columns, right};
use crate::report::MonitorReport;
use ratatui::text::{Line, Span};

/// An empty line, the title and the axis.
const FRAME: usize = 3;
/// Columns of the figures on the left.
const LABEL: usize = 9;

/// Returns at most `height` lines, or none if the chart would be too low or has no figures.
pub fn lines(report: &MonitorReport, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let rows = height.saturating_sub(FRAME);
    let plot = width.saturating_sub(LABEL + 1);
    let Some(clock) = system(report).filter(|_| height > FRAME && plot > 0) else { return Vec::new() };
    let shown = fitted(&clock.history_ns, report.samples, plot);
    let values = shown.values.iter().flatten().filter(|ns| ns.is_finite());
    let Some(highest) = values.copied().max_by(f32::total_cmp).filter(|ns| *ns > 0.0).map(f64::from) else {
        return Vec::new();
    };
    // Usual values are not at the top, so that a rise is visible as one.
    let full = highest * 1.25;
    let offset = " ".repeat(plot - shown.values.len());
    let mut lines = vec![Line::default(), Line::styled("one read of PostgreSQL's clock", BOLD)];
    for (nth, spans) in bars(&shown.values, rows, full, report.read_cost_limits_ns, view).into_iter().enumerate() {
        let label = match nth {
            0 => duration(Some(full)),
            _ if nth == rows / 2 && rows.is_multiple_of(2) => duration(Some(full / 2.0)),
            _ => String::new(),
        };
        let mut line = vec![Span::styled(right(&label, LABEL), DIM), Span::raw(format!(" {offset}"))];
        line.extend(spans);
        lines.push(Line::from(line));
    }
    lines.push(axis(&period(shown.samples as f64 * report.interval_s), plot, shown.values.len()));
    lines
}

/// Returns the line below the bars: when the first and the last sample were.
fn axis(period: &str, plot: usize, shown: usize) -> Line<'static> {
    let first = if period == MISSING { String::new() } else { format!("{period} ago") };
    let last = "now";
    let fits = columns(&first) + 1 + columns(last) <= shown;
    let first = if fits { first } else { String::new() };
    let between = shown.saturating_sub(columns(&first) + columns(last));
    let text = format!("{} {}{first}{}{last}", right("0 ns", LABEL), " ".repeat(plot - shown), " ".repeat(between));
    Line::styled(text, DIM)
}
