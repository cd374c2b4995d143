//! The last line: the keys, and what the monitor itself uses.

use super::figures::{fit, percent};
use super::style::DIM;
use super::view::View;
use crate::render::columns::columns;
use crate::report::{MonitorReport, OwnUse};
use ratatui::text::{Line, Span};

const GAP: usize = 3;

/// Returns as many keys as fit, the most important first.
pub fn line(report: &MonitorReport, view: &View, width: usize) -> Line<'static> {
    let pause = if view.paused { "continue" } else { "pause" };
    let arrows = if view.unicode { "↑↓" } else { "up/down" };
    let keys = [
        ("q", "quit".to_string()),
        ("?", "help".into()),
        ("p", pause.into()),
        ("s", format!("sort: {}", view.sort.name())),
        (arrows, "events".into()),
    ];
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, what) in keys {
        let needed = columns(key) + 1 + columns(&what) + if used == 0 { 0 } else { GAP };
        if used + needed > width {
            break;
        }
        spans.push(Span::raw(" ".repeat(if used == 0 { 0 } else { GAP }) + key));
        spans.push(Span::styled(format!(" {what}"), DIM));
        used += needed;
    }
    if spans.is_empty() {
        return Line::from(fit("q", width));
    }
    let own = own_use(&report.own);
    if used + GAP + columns(&own) <= width && report.samples > 0 {
        spans.push(Span::styled(" ".repeat(width - used - columns(&own)) + &own, DIM));
    }
    Line::from(spans)
}

fn own_use(own: &OwnUse) -> String {
    let memory = match own.memory_bytes {
        None => String::new(),
        Some(bytes) => format!(", {} MB", bytes.div_ceil(1_000_000)),
    };
    format!("uses {} of a CPU{memory}", percent(Some(own.cpu_share)))
}
