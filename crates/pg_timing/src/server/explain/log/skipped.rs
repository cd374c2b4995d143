//! The plans that cannot be analyzed, by reason.

use super::entry::{Damage, MAX_ENTRY_BYTES, Place};
use super::parse::Unusable;
use crate::error::Error;
use crate::server::explain::captured::errors::{self, TakenBy};
use std::collections::BTreeMap;

/// Plans that were skipped for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    pub plans: u64,
    /// of the first plan
    pub error: Error,
    /// the first plan
    pub first: Place,
    /// a part of the plan is missing or wrong; otherwise it has no times
    pub is_damaged: bool,
}

/// All reasons. Errors with the same hint count as one reason: their texts can contain figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skips(BTreeMap<String, Skipped>);

impl Skips {
    pub fn add(&mut self, place: Place, mut error: Error) {
        let is_damaged = !is_without_times(&error);
        if error.hint == errors::ONLY_PLAIN_TIME {
            error.hint = errors::ONLY_PLAIN_TIME_OF_ONE.into();
        }
        self.merge_one(Skipped { plans: 1, error, first: place, is_damaged });
    }

    fn merge_one(&mut self, skipped: Skipped) {
        match self.0.get_mut(&skipped.error.hint) {
            None => _ = self.0.insert(skipped.error.hint.clone(), skipped),
            Some(known) => {
                known.plans += skipped.plans;
                if skipped.first < known.first {
                    (known.first, known.error) = (skipped.first, skipped.error);
                }
            }
        }
    }

    pub fn merge(&mut self, other: Skips) {
        other.0.into_values().for_each(|skipped| self.merge_one(skipped));
    }

    pub fn plans(&self) -> u64 {
        self.0.values().map(|skipped| skipped.plans).sum()
    }

    /// Returns the reasons, the most frequent one first.
    pub fn into_vec(self) -> Vec<Skipped> {
        let mut all: Vec<Skipped> = self.0.into_values().collect();
        all.sort_by_key(|skipped| std::cmp::Reverse(skipped.plans));
        all
    }
}

/// Returns whether the plan is complete, but has no times of this clock.
fn is_without_times(error: &Error) -> bool {
    let settings = [TakenBy::Explain, TakenBy::AutoExplain].map(|by| [errors::not_executed(by), errors::not_timed(by)]);
    settings.as_flattened().contains(error) || *error == errors::timed_by_fast_timing()
}

/// Returns the error for a plan of a log that cannot be read.
pub fn error(unusable: &Unusable) -> Error {
    let damage = match unusable {
        Unusable::Unreadable(unreadable) => return errors::unreadable_plan(unreadable),
        Unusable::Damaged(damage) => damage,
    };
    match damage {
        Damage::Truncated => Error::new(
            "the end of the plan is missing: the log or its entry is truncated",
            "give the log's files in their order, and include all of the plan's lines",
        ),
        Damage::NoBeginning => Error::new(
            "the log begins in the middle of a plan",
            "give the file before it, too; the plan is skipped even then, unless both files are joined into one",
        ),
        Damage::Rotated => Error::new(
            "the plan ends in the next file: the log was rotated within the plan",
            "join both files into one (cat FILE FILE), and give that",
        ),
        Damage::LostParts => Error::new(
            "parts of the plan are missing: syslog or journald lost them",
            "look for the rate limits of rsyslog or journald, or let the server write a log file (logging_collector)",
        ),
        Damage::Mixed => Error::new(
            "lines of two plans are mixed: several processes wrote to the log at the same time",
            "set logging_collector = on: the server then writes each entry as a whole",
        ),
        Damage::Nul => Error::new(
            "NUL bytes replace a part of the plan",
            "the host crashed while the server wrote the log; this part of the log is lost",
        ),
        Damage::TooLong => Error::new(
            format!("the plan is longer than {} MB", MAX_ENTRY_BYTES >> 20),
            "no real plan is that long, except over many thousand partitions; take it with EXPLAIN, and give it without --all",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_reason_are_counted_together() {
        let place = |line| Place { file: 0, line };
        let (mut skips, mut others) = (Skips::default(), Skips::default());
        skips.add(place(7), Error::new("a takes 7 ms", "a"));
        others.add(place(5), Error::new("a takes 5 ms", "a"));
        others.add(place(6), errors::not_timed(TakenBy::AutoExplain));
        others.add(place(8), Error::new("a takes 8 ms", "a"));
        skips.merge(others);
        assert_eq!(skips.plans(), 4);
        let all = skips.into_vec();
        let found: Vec<_> = all.iter().map(|s| (s.plans, s.error.what.as_str(), s.first.line, s.is_damaged)).collect();
        assert_eq!(
            found,
            [(3, "a takes 5 ms", 5, true), (1, errors::not_timed(TakenBy::AutoExplain).what.as_str(), 6, false)]
        );
    }

    #[test]
    fn the_plain_time_of_several_plans_is_not_asked_for() {
        let mut skips = Skips::default();
        skips.add(Place::default(), errors::timed_by_fast_timing());
        let skipped = &skips.into_vec()[0];
        assert!(!skipped.is_damaged && skipped.error.hint.contains("--nth N"), "{skipped:?}");
    }
}
