//! What the user selected: the order of the clocks, the pause, the help, and what the terminal can show.

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
    /// returns the local time of day for seconds since 1970; `None` if it is not determined
    pub local_time: fn(f64) -> Option<LocalTime>,
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

/// A local time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    pub year: i32,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    /// difference to UTC, positive in the east
    pub offset_minutes: i32,
}

const DAY_S: f64 = 86_400.0;

impl View {
    /// Returns a time of day like `18:55:06`, or the date if it is more than a day from `now`.
    pub fn time(&self, at: f64, now: f64) -> String {
        match (self.local_time)(at) {
            None => "-".into(),
            Some(t) if (now - at).abs() > DAY_S => format!("{:04}-{:02}-{:02}", t.year, t.month, t.day),
            Some(t) => format!("{:02}:{:02}:{:02}", t.hour, t.minute, t.second),
        }
    }

    /// Returns a time of day with its time zone, like `18:55:06 UTC+1`.
    pub fn time_with_zone(&self, at: f64) -> String {
        let Some(local) = (self.local_time)(at) else { return "-".into() };
        let (hours, minutes) = (local.offset_minutes / 60, (local.offset_minutes % 60).abs());
        let sign = if local.offset_minutes < 0 { '-' } else { '+' };
        let zone = match (hours.abs(), minutes) {
            (0, 0) => "UTC".into(),
            (hours, 0) => format!("UTC{sign}{hours}"),
            (hours, minutes) => format!("UTC{sign}{hours}:{minutes:02}"),
        };
        format!("{} {zone}", self.time(at, at))
    }

    /// Returns the sign between an estimate and its margin.
    pub fn plus_minus(&self) -> &'static str {
        if self.unicode { "±" } else { "+-" }
    }

    /// Shows events that are older by this number, of `events` events. A negative number shows newer ones.
    pub fn scroll_by(&mut self, older: isize, events: usize) {
        self.scroll = self.scroll.saturating_add_signed(older).min(events.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::samples::view;

    fn in_kathmandu(at: f64) -> Option<LocalTime> {
        let utc = (view().local_time)(at)?;
        Some(LocalTime { offset_minutes: 345, ..utc })
    }

    #[test]
    fn old_times_are_dates() {
        let view = view();
        assert_eq!(view.time(1e9, 1e9 + 5.0), "01:46:40");
        assert_eq!(view.time(1e9, 1e9 + 86_401.0), "2001-09-09");
        assert_eq!([f64::NAN, f64::INFINITY].map(|at| view.time(at, 1e9)), ["-", "-"]);
    }

    #[test]
    fn the_time_zone_is_shown() {
        assert_eq!(view().time_with_zone(1e9), "01:46:40 UTC");
        assert_eq!(View { local_time: in_kathmandu, ..view() }.time_with_zone(1e9), "01:46:40 UTC+5:45");
        let west = |at| Some(LocalTime { offset_minutes: -180, ..(view().local_time)(at)? });
        assert_eq!(View { local_time: west, ..view() }.time_with_zone(1e9), "01:46:40 UTC-3");
    }

    #[test]
    fn scrolling_ends_at_both_ends() {
        let mut view = view();
        for (older, scroll) in [(1, 1), (10, 2), (-1, 1), (-10, 0)] {
            view.scroll_by(older, 3);
            assert_eq!(view.scroll, scroll);
        }
        view.scroll_by(1, 0);
        assert_eq!(view.scroll, 0);
    }

    #[test]
    fn each_order_comes_back() {
        let mut sort = Sort::Default;
        let mut names = Vec::new();
        for _ in 0..4 {
            names.push(sort.name());
            sort = sort.next();
        }
        assert_eq!((names.join(","), sort), ("default,one read,lost,clock".into(), Sort::Default));
    }
}
