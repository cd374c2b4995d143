//! Styles. Color marks a severity, and the text always says the same.

use super::view::View;
use crate::report::Severity;
use ratatui::style::{Color, Modifier, Style};

pub const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Returns the style of a severity's word: the colors of `pg_timing check`.
pub fn of_severity(severity: Severity, view: &View) -> Style {
    let color = match severity {
        Severity::Ok => Color::Green,
        Severity::Warning => Color::Yellow,
        Severity::Critical => Color::Red,
        Severity::Unknown => Color::Cyan,
    };
    if view.color { BOLD.fg(color) } else { BOLD }
}

/// Returns the style of a figure: that of its severity if it is a warning or critical, otherwise none.
pub fn of_figure(severity: Severity, view: &View) -> Style {
    if severity >= Severity::Warning { of_severity(severity, view) } else { Style::new() }
}
