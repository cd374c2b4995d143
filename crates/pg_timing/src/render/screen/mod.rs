//! The live screen of `pg_timing monitor`: a pure function of the monitor's report and of what the user selected.
//!
//! Each part of the screen is a list of lines. [`layout`] decides how many lines a part gets. A part shortens its lines to
//! the width.

mod bars;
mod chart;
mod clocks;
mod events;
mod facts;
mod figures;
mod findings;
mod footer;
mod header;
mod help;
mod layout;
#[cfg(test)]
mod samples;
mod server;
mod style;
#[cfg(test)]
mod tests;
mod view;

pub use view::{LocalTime, Sort, View};

use crate::report::MonitorReport;
use layout::{Part, Place, Wishes, divide};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Draws the report into the area.
pub fn draw(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if width == 0 || height == 0 {
        return;
    }
    let places = divide(height, &wishes(report, view, width));
    let used: usize = places.iter().map(|place| place.height + usize::from(place.gap)).sum();
    let mut y = area.top();
    for place in places {
        y += u16::from(place.gap);
        if place.part == Part::Footer {
            // The keys are in the last line, also if lines remain.
            y = y.saturating_add((height - used) as u16);
        }
        for (line, y) in lines(report, view, width, place).iter().take(place.height).zip(y..area.bottom()) {
            buffer.set_line(area.left(), y, line, area.width);
        }
        y += place.height as u16;
    }
    if view.help {
        help::draw(view, area, buffer);
    }
}

fn wishes(report: &MonitorReport, view: &View, width: usize) -> Wishes {
    Wishes {
        verdict: header::verdict(report, view, width, usize::from(u8::MAX)).len(),
        clocks: clocks::heights(report),
        chart: chart::lines(report, view, width, layout::HIGH_CHART).len(),
        facts: facts::lines(report, view, width).len(),
        server: server::heights(report, width),
        findings: findings::heights(report),
        // One line for the head. Without events, a line says so.
        events: report.events.len().max(1) + usize::from(!report.events.is_empty()),
    }
}

fn lines(report: &MonitorReport, view: &View, width: usize, place: Place) -> Vec<Line<'static>> {
    let height = place.height;
    match place.part {
        Part::Header => vec![header::line(report, view, width)],
        Part::Verdict => header::verdict(report, view, width, height),
        Part::Clocks => clocks::lines(report, view, width, height),
        Part::Chart => chart::lines(report, view, width, height),
        Part::Facts => facts::lines(report, view, width),
        Part::Server => server::lines(report, view, width, height),
        Part::Findings => findings::lines(report, view, width, height),
        Part::Events => events::lines(report, view, width, height),
        Part::Footer => vec![footer::line(report, view, width)],
    }
}
