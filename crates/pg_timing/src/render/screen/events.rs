//! The last events, the newest first.

use super::figures::{fit, safe};
use super::header::with_sign;
use super::style::{BOLD, DIM, of_severity};
use super::view::View;
use crate::render::columns::{columns, left};
use crate::report::{EventKind, MonitorEvent, MonitorReport, Severity};
use ratatui::text::{Line, Span};

/// Returns at most `height` lines. From three lines on, the first one is a head with the position in the list.
pub fn lines(report: &MonitorReport, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let all = report.events.len();
    if all == 0 || height == 0 {
        return if height == 0 { Vec::new() } else { vec![Line::styled(fit("no events", width), DIM)] };
    }
    let has_head = height >= 3;
    let rows = height - usize::from(has_head);
    let skipped = view.scroll.min(all.saturating_sub(rows));
    let shown: Vec<&MonitorEvent> = report.events.iter().rev().skip(skipped).take(rows).collect();
    let mut lines = Vec::new();
    if has_head {
        let position = match shown.len() < all {
            true => format!("  {} to {} of {all}", skipped + 1, skipped + shown.len()),
            false => String::new(),
        };
        let head = fit("events", width);
        let rest = fit(&position, width - head.len());
        lines.push(Line::from(vec![Span::styled(head, BOLD), Span::styled(rest, DIM)]));
    }
    let times: Vec<String> = shown.iter().map(|event| view.time(event.unix_seconds, report.sampled_at)).collect();
    let widest = times.iter().map(|time| columns(time)).max().unwrap_or(0);
    lines.extend(shown.iter().zip(times).map(|(event, time)| line(event, &left(&time, widest), view, width)));
    lines
}

fn line(event: &MonitorEvent, time: &str, view: &View, width: usize) -> Line<'static> {
    let severity =
        event.severity.filter(|severity| *severity >= Severity::Warning && event.event != EventKind::FindingCleared);
    let time = fit(&format!("{time}  "), width);
    let word = match (event.event, severity) {
        (EventKind::FindingCleared, _) => "cleared  ".into(),
        (_, Some(severity)) => format!("{}  ", severity.word()),
        (_, None) => String::new(),
    };
    let word = fit(&word, width.saturating_sub(columns(&time)));
    let room = width.saturating_sub(columns(&time) + columns(&word));
    let summary = fit(&with_sign(&safe(&event.summary), view), room);
    let style = severity.map_or_else(Default::default, |severity| of_severity(severity, view));
    Line::from(vec![Span::styled(time, DIM), Span::styled(word, style), Span::raw(summary)])
}
