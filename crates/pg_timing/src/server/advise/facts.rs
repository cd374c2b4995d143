//! What the settings' files decide from.

use super::counts::Counts;
use crate::report::EventsAre;
use crate::server::clock::Clocks;
use crate::server::settings::Server;

pub struct Facts {
    pub server: Server,
    pub clocks: Clocks,
    pub counts: Counts,
    pub window_s: f64,
}

/// A backend reports what it did at most once a second, as a transaction ends (PGSTAT_MIN_INTERVAL):
/// what is counted in a window was done in one that is up to so much shorter or longer.
pub const LATE_S: f64 = 1.0;

/// How often something happens that reads the clock, and how many reads a second that makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Events {
    pub per_s: Option<f64>,
    pub are: EventsAre,
    /// in a second
    pub reads_low: f64,
    /// in a second; `None` without an upper bound
    pub reads_high: Option<f64>,
    /// what could not be seen
    pub unseen: Option<String>,
}

impl Events {
    /// Nothing is known, for the reason `why`.
    pub fn unknown(why: impl Into<String>) -> Events {
        let why = Some(why.into());
        Events { per_s: None, are: EventsAre::Unknown, reads_low: 0.0, reads_high: None, unseen: why }
    }

    /// They are not counted, but they cannot be more than make so many reads a second.
    pub fn at_most(reads_per_s: f64, why: impl Into<String>) -> Events {
        Events { reads_high: Some(reads_per_s), ..Events::unknown(why) }
    }

    /// There may be more of them than that.
    pub fn or_more(self, why: impl Into<String>) -> Events {
        Events { are: EventsAre::AtLeast, reads_high: None, unseen: Some(why.into()), ..self }
    }
}

impl Facts {
    /// So many were counted in the window, each with `low` to `high` reads.
    pub fn counted(&self, events: f64, low: f64, high: f64) -> Events {
        self.counted_reads(events, events * low, events * high)
    }

    /// The same, where the reads are known of all together.
    pub fn counted_reads(&self, events: f64, low: f64, high: f64) -> Events {
        if self.window_s <= 0.0 {
            return Events::unknown("it was stopped before anything was counted");
        }
        let shortest = self.window_s - LATE_S;
        Events {
            per_s: Some(events / self.window_s),
            are: EventsAre::Counted,
            reads_low: low / (self.window_s + LATE_S),
            reads_high: (shortest > 0.0).then(|| high / shortest),
            unseen: None,
        }
    }
}
