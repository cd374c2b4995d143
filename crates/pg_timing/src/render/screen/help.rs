//! The help: the keys, and the meaning of the columns.

use super::figures::fit;
use super::style::BOLD;
use super::view::View;
use crate::render::columns::{columns, left};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

/// The keys come first, and their texts are short: a screen of 40x10 shows only the beginning.
const ROWS: [(&str, &str); 20] = [
    ("q, Ctrl-C", "quit"),
    ("?, h", "show or close this help"),
    ("p, space", "pause; sampling continues"),
    ("s", "sort by another column"),
    ("up, down", "show newer or older events"),
    ("Page Up, Down", "the same, five at a time"),
    ("Ctrl-Z", "suspend; fg continues"),
    ("", ""),
    ("one read", "median cost of one read in the last sample"),
    ("last ...", "read cost over time; the median has half of the height"),
    ("step", "smallest step of the clock's value"),
    ("99.9%, worst", "differences between two readings, in the last sample"),
    ("went back", "readings below the previous one, since the start"),
    ("lost", "share of the time that interruptions took"),
    ("access", "how a program reads the clock"),
    ("", ""),
    ("percentiles", "of PostgreSQL's clock, in the last sample"),
    ("drift", "rate of a clock relative to another one"),
    ("pause", "the machine or pg_timing was stopped for a time"),
    ("alarm", "a finding that is a warning or critical"),
];
const KEY: usize = 14;
const BORDER_ASCII: border::Set = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// Draws the help over the middle of the area.
pub fn draw(view: &View, area: Rect, buffer: &mut Buffer) {
    let widest = ROWS.iter().map(|(_, text)| KEY + columns(text)).max().unwrap_or(0);
    // Without room for a frame, the text gets the whole area.
    let has_frame = usize::from(area.width) >= widest + 4 && usize::from(area.height) >= 10;
    let frame = if has_frame { 2 } else { 0 };
    let width = area.width.min((widest + 2 * frame) as u16);
    let height = area.height.min((ROWS.len() + frame) as u16);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(place, buffer);
    let inside = if has_frame {
        let set = if view.unicode { border::ROUNDED } else { BORDER_ASCII };
        let block = Block::bordered().border_set(set).title(" help ");
        let inside = block.inner(place);
        block.render(place, buffer);
        Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside }
    } else {
        place
    };
    Paragraph::new(lines(usize::from(inside.width))).render(inside, buffer);
}

fn lines(width: usize) -> Vec<Line<'static>> {
    let line = |(key, text): (&str, &str)| {
        let key = fit(&left(key, KEY), width);
        let text = fit(text, width - key.len());
        Line::from(vec![Span::styled(key, BOLD), Span::raw(text)])
    };
    ROWS.into_iter().map(line).collect()
}
