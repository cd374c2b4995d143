//! The live screen of `pg_timing monitor`: a pure function of the monitor's report and of what the user selected.

mod clocks;
mod help;
mod lines;
#[cfg(test)]
mod tests;
mod view;

pub use view::{Sort, View};

use crate::report::{MonitorReport, Severity};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

type Draw<'a> = Box<dyn FnOnce(Rect, &mut Buffer) + 'a>;

/// A part of the screen: the least number of lines with which it is useful, the number that it can use, and what draws it.
struct Part<'a> {
    least: usize,
    most: usize,
    draw: Draw<'a>,
}

impl<'a> Part<'a> {
    fn new(least: usize, most: usize, draw: impl FnOnce(Rect, &mut Buffer) + 'a) -> Part<'a> {
        Part { least: least.min(most), most, draw: Box::new(draw) }
    }

    fn of_lines(least: usize, lines: Vec<Line<'a>>) -> Part<'a> {
        Part::new(least, lines.len(), |area, buffer| Paragraph::new(lines).render(area, buffer))
    }
}

/// Draws the report into the area.
pub fn draw(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    // From top to bottom. The last part is in the last line.
    let parts = [
        Part::new(1, 1, |area, buffer| lines::header(report, view, area, buffer)),
        Part::of_lines(1, lines::verdict(report, view, width)),
        clocks::history(report, view),
        clocks::table(report, view),
        Part::of_lines(1, lines::findings(report, view)),
        Part::of_lines(3, lines::facts(report, view)),
        Part::of_lines(1, lines::server(report, view, width)),
        Part::new(3, 1 + report.events.len(), |area, buffer| lines::events(report, view, area, buffer)),
        Part::of_lines(1, vec![lines::footer(report, view)]),
    ];
    let heights = divide(&parts.each_ref().map(|part| (part.least, part.most)), usize::from(area.height));
    let last = parts.len() - 1;
    let mut y = area.top();
    for (nth, (part, height)) in parts.into_iter().zip(heights).enumerate() {
        let height = height as u16;
        let y_of_part = if nth == last { area.bottom() - height } else { y };
        y += height;
        (part.draw)(Rect { y: y_of_part, height, ..area }, buffer);
    }
    if view.help {
        help::draw(view, area, buffer);
    }
}

/// The parts of [`draw`] in the order in which they get their least number of lines: first what is wrong, where and when.
const FIRST: [usize; 9] = [1, 4, 0, 8, 3, 7, 6, 5, 2];
/// The order in which they get more lines.
const THEN: [usize; 9] = [1, 4, 6, 5, 3, 7, 2, 0, 8];

/// Divides the lines: each part gets its least number or none, and then at most the number that it can use.
fn divide(parts: &[(usize, usize); 9], lines: usize) -> [usize; 9] {
    let mut heights = [0; 9];
    let mut left = lines;
    for nth in FIRST {
        let (least, _) = parts[nth];
        if least <= left {
            heights[nth] = least;
            left -= least;
        }
    }
    for nth in THEN {
        let (least, most) = parts[nth];
        if heights[nth] == least {
            let more = (most - least).min(left);
            heights[nth] += more;
            left -= more;
        }
    }
    heights
}

/// Returns the style of a severity's word: the colors of `pg_timing check`.
fn of_severity(severity: Severity, view: &View) -> Style {
    let color = match severity {
        Severity::Ok => Color::Green,
        Severity::Warning => Color::Yellow,
        Severity::Critical => Color::Red,
        Severity::Unknown => Color::Cyan,
    };
    if view.color { BOLD.fg(color) } else { BOLD }
}
