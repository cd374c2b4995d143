//! The facts behind the advice.

use super::counts::Counts;
use super::gap::{Gap, RUN_AGAIN};
use crate::report::EventsAre;
use crate::server::clock::Clocks;
use crate::server::settings::Server;

/// The server, its clocks, and its statistics over the window.
pub struct Facts {
    pub server: Server,
    pub clocks: Clocks,
    pub counts: Counts,
    pub window_s: f64,
}

/// A backend reports its statistics at the end of a transaction, at most once per second (PGSTAT_MIN_INTERVAL). So the
/// window of the counted events can be longer or shorter by this time.
pub const REPORT_DELAY_S: f64 = 1.0;

/// Events that read the clock, and their reads per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Events {
    pub per_s: Option<f64>,
    pub are: EventsAre,
    /// lower bound, per second
    pub reads_low: f64,
    /// upper bound, per second; `None` if there is none
    pub reads_high: Option<f64>,
    /// the events that are not counted
    pub gap: Option<Gap>,
}

impl Events {
    /// No number is known.
    pub const NONE: Events =
        Events { per_s: None, are: EventsAre::Unknown, reads_low: 0.0, reads_high: None, gap: None };

    /// Returns unknown events with the reason.
    pub fn unknown(gap: Gap) -> Events {
        Events { gap: Some(gap), ..Events::NONE }
    }

    /// Returns events that are not counted, with an upper bound on their reads per second.
    pub fn at_most(reads_per_s: f64, gap: Gap) -> Events {
        Events { reads_high: Some(reads_per_s), ..Events::unknown(gap) }
    }

    /// Marks the count as a lower bound, with the reason.
    pub fn or_more(self, gap: Gap) -> Events {
        Events { are: EventsAre::AtLeast, reads_high: None, gap: Some(gap), ..self }
    }
}

impl Facts {
    /// Returns counted events, each with `low` to `high` reads.
    pub fn counted(&self, events: f64, low: f64, high: f64) -> Events {
        self.counted_reads(events, events * low, events * high)
    }

    /// Returns counted events, with bounds on all reads together.
    pub fn counted_reads(&self, events: f64, low: f64, high: f64) -> Events {
        if self.window_s <= 0.0 {
            return Events::unknown(Gap::new("stopped before anything was counted", RUN_AGAIN));
        }
        let shortest_window = self.window_s - REPORT_DELAY_S;
        Events {
            per_s: Some(events / self.window_s),
            are: EventsAre::Counted,
            reads_low: low / (self.window_s + REPORT_DELAY_S),
            reads_high: (shortest_window > 0.0).then(|| high / shortest_window),
            gap: None,
        }
    }
}
