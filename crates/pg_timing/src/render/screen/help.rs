//! The help: the keys, and the meaning of the columns.

use super::BOLD;
use super::view::View;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

/// The keys come first: a small screen shows only the beginning.
const ROWS: [(&str, &str); 18] = [
    ("q, Ctrl-C", "quit"),
    ("?, h", "show or close this help"),
    ("p, space", "pause; sampling continues"),
    ("s", "sort by another column"),
    ("up, down", "show newer or older events"),
    ("Page Up, Down", "the same, five at a time"),
    ("Ctrl-Z", "suspend; fg continues"),
    ("", ""),
    ("one read", "median cost of one read in the last sample"),
    ("lost", "share of the time that interruptions took"),
    ("99.9%, worst", "differences between two readings, in the last sample"),
    ("went back", "readings below the previous one, since the start"),
    ("step", "smallest step of the clock's value"),
    ("access", "how a program reads the clock"),
    ("", ""),
    ("percentiles", "of PostgreSQL's clock, in the last sample"),
    ("drift", "rate of a clock relative to another one"),
    ("pause", "the machine or pg_timing was stopped for a time"),
];
const KEY: usize = 14;
/// The width and the height with the frame.
const WIDTH: u16 = 70;
const HEIGHT: u16 = ROWS.len() as u16 + 2;

/// Draws the help over the middle of the area.
pub fn draw(view: &View, area: Rect, buffer: &mut Buffer) {
    let (width, height) = (area.width.min(WIDTH), area.height.min(HEIGHT));
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let row = |(key, text)| Line::from(vec![Span::styled(format!("{key:KEY$}"), BOLD), Span::raw(text)]);
    Clear.render(place, buffer);
    Paragraph::new(ROWS.map(row).to_vec())
        .block(Block::bordered().border_set(view.border()).title(" help "))
        .render(place, buffer);
}
