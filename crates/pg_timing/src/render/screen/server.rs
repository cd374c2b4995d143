//! The server of `--server`: what timing costs it, as in `pg_timing advise`.

use super::facts::{LABEL, labeled};
use super::figures::{duration, fit, safe, wrap};
use super::style::{BOLD, of_severity};
use super::view::View;
use crate::human::count;
use crate::render::text::advise;
use crate::report::{AdviseReport, FastTiming, MonitorReport, ServerReport, Severity};
use ratatui::text::{Line, Span};

/// Lines of the verdict of `advise`. A longer one is cut.
const LONGEST: usize = 2;

/// Returns the number of lines of the summary, and of everything.
pub fn heights(report: &MonitorReport, width: usize) -> [usize; 2] {
    let Some(server) = &report.server else { return [0, 0] };
    let settings = server.advise.as_ref().map_or(0, |advise| advise.settings.len());
    let summary = verdict(server, width).len() + usize::from(server.fast_timing.is_some());
    [summary, summary + if settings > 0 { 1 + settings } else { 0 }]
}

/// Returns at most `height` lines: the verdict of `advise`, pg_fast_timing's figures, and the table of settings.
pub fn lines(report: &MonitorReport, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(server) = &report.server else { return Vec::new() };
    let mut lines: Vec<Line> = verdict(server, width).into_iter().map(|line| styled(server, line, view)).collect();
    let fast_timing = server.fast_timing.as_ref().map(|fast| fit(&labeled("fast timing", &fast_timing(fast)), width));
    lines.extend(fast_timing.map(Line::from));
    let settings = server.advise.iter().flat_map(|advise| settings(advise, width));
    // A part of the table would look like the whole one.
    lines.extend(settings.filter(|_| height >= heights(report, width)[1]));
    lines.truncate(height);
    lines
}

fn verdict(server: &ServerReport, width: usize) -> Vec<String> {
    let text = match (&server.error, &server.advise) {
        (Some(why), _) => format!("no figures: {}", safe(why)),
        (None, None) => "waiting for the first answer".into(),
        (None, Some(advise)) => {
            let verdict = &advise.verdict;
            let version = safe(&advise.server_version);
            format!("PostgreSQL {version}: {}  {}", verdict.severity.word(), safe(&verdict.summary))
        }
    };
    wrap(&labeled("server", &text), width, LABEL + 1, LONGEST)
}

/// Returns the line with the color of the severity, if it contains its word.
fn styled(server: &ServerReport, line: String, view: &View) -> Line<'static> {
    let severity = server.advise.as_ref().map_or(Severity::Unknown, |advise| advise.verdict.severity);
    match line.split_once(severity.word()).filter(|_| severity >= Severity::Warning) {
        Some((before, after)) => Line::from(vec![
            Span::raw(before.to_string()),
            Span::styled(severity.word(), of_severity(severity, view)),
            Span::raw(after.to_string()),
        ]),
        None => Line::from(line),
    }
}

fn fast_timing(fast: &FastTiming) -> String {
    let number = |figure: f64| if figure.is_finite() { count(figure as u64) } else { "-".into() };
    let missing =
        [("the TSC", fast.without_tsc), ("ticks", fast.without_ticks)].map(|(what, statements)| match statements {
            0.0 => String::new(),
            statements => format!("; {} statements without {what}", number(statements)),
        });
    let text = format!(
        "{} with {}: one call {}; {} statements; nodes: {} exact, {} estimated",
        safe(&fast.method),
        safe(&fast.clock),
        duration(fast.call_cost_ns),
        number(fast.statements),
        number(fast.exact_nodes),
        number(fast.estimated_nodes),
    );
    text + &missing.concat()
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
