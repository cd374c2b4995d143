//! The first line: the host, its clock source, and the time of the last sample; and the verdict.

use super::figures::{duration, fit, safe, wrap};
use super::style::{BOLD, of_severity};
use super::view::View;
use crate::human::{count, grouped};
use crate::render::columns::{columns, left};
use crate::report::{Fact, MonitorReport, Severity};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const GAP: &str = "  ";

/// Returns the first line. Its right end shows the time of the last sample, and whether the figures are old.
pub fn line(report: &MonitorReport, view: &View, width: usize) -> Line<'static> {
    let host = if report.host.is_empty() { "this host".to_string() } else { safe(&report.host) };
    let time = if report.samples == 0 { String::new() } else { view.time_with_zone(report.sampled_at) };
    let (end, end_style) = match (view.paused, view.overdue) {
        (true, _) => (format!("paused at {time}"), BOLD),
        (_, true) => (format!("no sample since {time}"), BOLD),
        _ => (time, Style::new()),
    };
    // This is more important than the name: without it, old figures look like new ones.
    let end = fit(&end, width);
    let room = width.saturating_sub(columns(&end) + GAP.len());
    let host = fit(&host, room);
    let mut details = String::new();
    for (nth, part) in parts(report, view).into_iter().enumerate() {
        let next = format!("{details}{}{part}", if nth == 0 { ": " } else { ", " });
        if columns(&host) + columns(&next) <= room {
            details = next;
        }
    }
    let details = left(&details, room.saturating_sub(columns(&host)) + GAP.len());
    Line::from(vec![Span::styled(host, BOLD), Span::raw(details), Span::styled(end, end_style)])
}

fn parts(report: &MonitorReport, view: &View) -> Vec<String> {
    let mut parts = Vec::new();
    match &report.clocksource {
        Some(Fact::Known(name)) => parts.push(format!("clock source {}", safe(name))),
        Some(Fact::Unavailable { .. }) => parts.push("clock source not determined".into()),
        None => {}
    }
    if report.samples > 0 {
        let samples = if report.samples == 1 { "sample" } else { "samples" };
        let number = if report.samples < 1_000_000 { grouped(report.samples) } else { count(report.samples) };
        let since = view.time(report.started_at, report.sampled_at);
        parts.push(format!("{number} {samples} since {since}"));
        parts.push(format!("every {}", interval(report.interval_s)));
    }
    parts
}

/// Returns the interval in seconds with the decimals that it needs.
fn interval(seconds: f64) -> String {
    match seconds {
        s if s.fract() == 0.0 && (1.0..1e6).contains(&s) => format!("{s:.0} s"),
        s => duration(Some(s * 1e9)),
    }
}

/// Returns the verdict in at most `most` lines.
pub fn verdict(report: &MonitorReport, view: &View, width: usize, most: usize) -> Vec<Line<'static>> {
    let (severity, summary) = match &report.verdict {
        Some(verdict) => (verdict.severity, safe(&verdict.summary)),
        None if report.samples == 0 => (Severity::Unknown, "The first sample is not finished.".into()),
        None => (Severity::Unknown, "not determined".into()),
    };
    let word = severity.word();
    let text = format!("{word}  {}", with_sign(&summary, view));
    let lines = wrap(&text, width, word.len() + GAP.len(), most);
    let style = of_severity(severity, view);
    let mut lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
    if let Some(first) = lines.first_mut() {
        let text = first.to_string();
        *first = match text.strip_prefix(word) {
            Some(rest) => Line::from(vec![Span::styled(word, style), Span::raw(rest.to_string())]),
            None => Line::styled(text, style),
        };
    }
    lines
}

/// Replaces the sign before a margin in a text of a report.
pub fn with_sign(text: &str, view: &View) -> String {
    text.replace(" +- ", &format!(" {} ", view.plus_minus()))
}
