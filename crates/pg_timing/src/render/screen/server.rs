//! The server of `--server`: what timing costs it, as in `pg_timing advise`.

use super::facts::line;
use super::figures::{duration, fit, safe};
use super::style::{BOLD, of_severity};
use super::view::View;
use crate::human::count;
use crate::render::text::advise;
use crate::report::{AdviseReport, FastTiming, MonitorReport, ServerReport, Severity};
use ratatui::text::{Line, Span};

/// Returns the number of lines of the summary, and of everything.
pub fn heights(report: &MonitorReport) -> [usize; 2] {
    let Some(server) = &report.server else { return [0, 0] };
    let settings =
        server.advise.as_ref().map_or(0, |advise| advise.settings.len() + usize::from(!advise.settings.is_empty()));
    let summary = 1 + usize::from(server.fast_timing.is_some());
    [summary, summary + settings]
}

/// Returns at most `height` lines: the verdict of `advise`, pg_fast_timing's figures, and the table of settings.
pub fn lines(report: &MonitorReport, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(server) = &report.server else { return Vec::new() };
    let mut lines = vec![first(server, view, width)];
    lines.extend(server.fast_timing.as_ref().map(|fast| line("fast timing", &fast_timing(fast), width)));
    let settings = server.advise.iter().flat_map(|advise| settings(advise, width));
    // A part of the table would look like the whole one.
    lines.extend(settings.filter(|_| height >= heights(report)[1]));
    lines.truncate(height);
    lines
}

fn first(server: &ServerReport, view: &View, width: usize) -> Line<'static> {
    match (&server.error, &server.advise) {
        (Some(why), _) => line("server", &format!("no figures: {}", safe(why)), width),
        (None, None) => line("server", "the first answer has not come", width),
        (None, Some(advise)) => {
            let severity = advise.verdict.severity;
            let name = format!("PostgreSQL {}", safe(&advise.server_version));
            let text = format!("{name}: {}  {}", severity.word(), safe(&advise.verdict.summary));
            let line = line("server", &text, width);
            if severity < Severity::Warning {
                return line;
            }
            let text = line.to_string();
            match text.split_once(severity.word()) {
                Some((before, after)) => Line::from(vec![
                    Span::raw(before.to_string()),
                    Span::styled(severity.word(), of_severity(severity, view)),
                    Span::raw(after.to_string()),
                ]),
                None => line,
            }
        }
    }
}

fn fast_timing(fast: &FastTiming) -> String {
    let number = |figure: f64| if figure.is_finite() { count(figure as u64) } else { "-".into() };
    format!(
        "{} with {}: one call {}; {} statements; nodes: {} exact, {} estimated",
        safe(&fast.method),
        safe(&fast.clock),
        duration(fast.call_cost_ns),
        number(fast.statements),
        number(fast.exact_nodes),
        number(fast.estimated_nodes),
    )
}

/// Returns the table of `advise`.
fn settings(advise: &AdviseReport, width: usize) -> Vec<Line<'static>> {
    let rows: Vec<[String; 5]> =
        advise.settings.iter().map(|setting| advise::full_cells(setting).map(|cell| safe(&cell))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let table = advise::table_of(&rows);
    let mut lines = vec![Line::styled(fit(&table.line(&advise::COLUMNS), width), BOLD)];
    lines.extend(rows.iter().map(|row| Line::from(fit(&table.line(row), width))));
    lines
}
