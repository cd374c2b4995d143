//! The live screen of `pg_timing monitor`: a pure function of the monitor's report and of what the user selected.

mod clocks;
mod parts;
#[cfg(test)]
mod tests;

use crate::escape;
use crate::report::{MonitorReport, Severity};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::{bar, border};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Widget};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const MISSING: &str = "-";

/// What the user selected, and what the terminal can show.
#[derive(Clone, Debug)]
pub struct View {
    pub sort: Sort,
    pub paused: bool,
    /// no sample came for a long time
    pub overdue: bool,
    /// the events that are not in the file of events, and the reason
    pub unwritten: Option<String>,
    pub help: bool,
    /// number of newer events that are not shown
    pub scroll: usize,
    pub color: bool,
    /// whether the terminal shows UTF-8
    pub unicode: bool,
    /// returns the local time for seconds since 1970, like `2026-11-25 18:55:06 UTC`; `None` if it is not determined
    pub local_time: fn(f64) -> Option<String>,
}

/// The order of the clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// PostgreSQL's clock, then the others in the order of `pg_timing check`
    #[default]
    Default,
    /// the slowest first
    ReadCost,
    /// the largest share first
    LostTime,
    Name,
}

impl Sort {
    /// Each order, and its name: that of a column if there is one.
    const ALL: [(Sort, &str); 4] =
        [(Sort::Default, "default"), (Sort::ReadCost, "one read"), (Sort::LostTime, "lost"), (Sort::Name, "clock")];

    /// Returns the order that follows when the user presses the key.
    pub fn next(self) -> Sort {
        Sort::ALL[(self as usize + 1) % Sort::ALL.len()].0
    }

    fn name(self) -> &'static str {
        Sort::ALL[self as usize].1
    }
}

impl View {
    /// Returns a text of the report in one line that is safe to print, with the terminal's sign before a margin.
    fn text(&self, text: &str) -> String {
        escape::line(text).replace(" +- ", &format!(" {} ", self.plus_minus()))
    }

    /// Returns the sign between an estimate and its margin.
    fn plus_minus(&self) -> &'static str {
        if self.unicode { "±" } else { "+-" }
    }

    fn bars(&self) -> bar::Set<'static> {
        const ASCII: bar::Set = bar::Set {
            full: "#",
            seven_eighths: "*",
            three_quarters: "+",
            five_eighths: "=",
            half: "-",
            three_eighths: ".",
            one_quarter: "_",
            one_eighth: "_",
            empty: " ",
        };
        if self.unicode { bar::NINE_LEVELS } else { ASCII }
    }

    /// Returns a frame, or a line with a title.
    fn block(&self, borders: Borders) -> Block<'static> {
        const ASCII: border::Set = border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        };
        Block::new().borders(borders).border_set(if self.unicode { border::PLAIN } else { ASCII })
    }

    /// Returns a line with a title, above a part of the screen.
    fn titled(&self, title: String) -> Block<'static> {
        self.block(Borders::TOP).border_style(DIM).title(Line::styled(title, BOLD))
    }

    /// Returns the style of a severity's word: the colors of `pg_timing check`.
    fn style(&self, severity: Severity) -> Style {
        let color = match severity {
            Severity::Ok => Color::Green,
            Severity::Warning => Color::Yellow,
            Severity::Critical => Color::Red,
            Severity::Unknown => Color::Cyan,
        };
        if self.color { BOLD.fg(color) } else { BOLD }
    }

    /// Returns the style of an alarm, if it is one.
    fn alarm(&self, severity: Severity) -> Option<Style> {
        (severity >= Severity::Warning).then(|| self.style(severity))
    }

    /// Returns a time of day like `18:55:06`, or the date if it is more than a day from `now`.
    fn time(&self, at: f64, now: f64) -> String {
        const DAY_S: f64 = 86_400.0;
        let part = if (now - at).abs() > DAY_S { 0 } else { 1 };
        (self.local_time)(at).and_then(|local| Some(local.split(' ').nth(part)?.into())).unwrap_or(MISSING.into())
    }

    /// Returns a time of day with its time zone.
    fn time_with_zone(&self, at: f64) -> String {
        (self.local_time)(at).and_then(|local| Some(local.split_once(' ')?.1.into())).unwrap_or(MISSING.into())
    }

    /// Shows events that are older by this number, of `events` events. A negative number shows newer ones.
    pub fn scroll_by(&mut self, older: isize, events: usize) {
        self.scroll = self.scroll.saturating_add_signed(older).min(events.saturating_sub(1));
    }
}

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

/// The number of parts.
const PARTS: usize = 9;
/// The parts of [`draw`] in the order in which they get their least number of lines: first what is wrong, where and when.
const FIRST: [usize; PARTS] = [1, 4, 0, 8, 3, 7, 6, 5, 2];
/// The order in which they get more lines.
const THEN: [usize; PARTS] = [1, 4, 6, 5, 3, 7, 2, 0, 8];

/// Draws the report into the area.
pub fn draw(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    // From top to bottom. The last part is in the last line.
    let parts = [
        Part::new(1, 1, |area, buffer| parts::header(report, view, area, buffer)),
        Part::of_lines(1, parts::verdict(report, view, width)),
        clocks::history(report, view),
        clocks::table(report, view),
        Part::of_lines(1, parts::findings(report, view)),
        Part::of_lines(3, parts::facts(report, view)),
        Part::of_lines(1, parts::server(report, view, width)),
        Part::new(3, 1 + report.events.len(), |area, buffer| parts::events(report, view, area, buffer)),
        Part::of_lines(1, vec![parts::footer(report, view)]),
    ];
    let heights = divide(&parts.each_ref().map(|part| (part.least, part.most)), usize::from(area.height));
    let mut y = area.top();
    for (nth, (part, height)) in parts.into_iter().zip(heights).enumerate() {
        let height = height as u16;
        let y_of_part = if nth == PARTS - 1 { area.bottom() - height } else { y };
        y += height;
        (part.draw)(Rect { y: y_of_part, height, ..area }, buffer);
    }
    if view.help {
        help(view, area, buffer);
    }
}

/// Divides the lines: each part gets its least number or none, and then at most the number that it can use.
fn divide(parts: &[(usize, usize); PARTS], lines: usize) -> [usize; PARTS] {
    let mut heights = [0; PARTS];
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

/// Draws the help over the middle of the area: the keys, and the meaning of the columns.
fn help(view: &View, area: Rect, buffer: &mut Buffer) {
    // The keys come first: a small screen shows only the beginning.
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
    /// The width with the frame.
    const WIDTH: u16 = 70;
    let (width, height) = (area.width.min(WIDTH), area.height.min(ROWS.len() as u16 + 2));
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let row = |(key, text)| Line::from(vec![Span::styled(format!("{key:14}"), BOLD), Span::raw(text)]);
    Clear.render(place, buffer);
    Paragraph::new(ROWS.map(row).to_vec()).block(view.block(Borders::ALL).title(" help ")).render(place, buffer);
}
