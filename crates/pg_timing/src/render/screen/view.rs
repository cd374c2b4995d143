//! What the user selected, and what the terminal can show.

use crate::escape;
use ratatui::symbols::{bar, border};

/// The state of the screen that does not come from the monitor.
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
    Name,
    /// the slowest first
    ReadCost,
    /// the largest share first
    LostTime,
}

impl Sort {
    /// Returns the order that follows when the user presses the key.
    pub fn next(self) -> Sort {
        match self {
            Sort::Default => Sort::ReadCost,
            Sort::ReadCost => Sort::LostTime,
            Sort::LostTime => Sort::Name,
            Sort::Name => Sort::Default,
        }
    }

    /// Returns the name: that of a column if there is one.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Default => "default",
            Sort::Name => "clock",
            Sort::ReadCost => "one read",
            Sort::LostTime => "lost",
        }
    }
}

const DAY_S: f64 = 86_400.0;
const ASCII_BARS: bar::Set = bar::Set {
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
const ASCII_BORDER: border::Set = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

impl View {
    /// Returns a text of the report in one line that is safe to print, with the terminal's sign before a margin.
    pub fn text(&self, text: &str) -> String {
        escape::line(text).replace(" +- ", &format!(" {} ", self.plus_minus()))
    }

    /// Returns the sign between an estimate and its margin.
    pub fn plus_minus(&self) -> &'static str {
        if self.unicode { "±" } else { "+-" }
    }

    pub fn bars(&self) -> bar::Set<'static> {
        if self.unicode { bar::NINE_LEVELS } else { ASCII_BARS }
    }

    pub fn border(&self) -> border::Set<'static> {
        if self.unicode { border::PLAIN } else { ASCII_BORDER }
    }

    /// Returns a time of day like `18:55:06`, or the date if it is more than a day from `now`.
    pub fn time(&self, at: f64, now: f64) -> String {
        let part = if (now - at).abs() > DAY_S { 0 } else { 1 };
        (self.local_time)(at).and_then(|local| Some(local.split(' ').nth(part)?.into())).unwrap_or("-".into())
    }

    /// Returns a time of day with its time zone.
    pub fn time_with_zone(&self, at: f64) -> String {
        (self.local_time)(at).and_then(|local| Some(local.split_once(' ')?.1.into())).unwrap_or("-".into())
    }

    /// Shows events that are older by this number, of `events` events. A negative number shows newer ones.
    pub fn scroll_by(&mut self, older: isize, events: usize) {
        self.scroll = self.scroll.saturating_add_signed(older).min(events.saturating_sub(1));
    }
}
