//! What the results do not contain: plans that cannot be used, by reason, and plans of other hosts.

use super::entry::{Damage, Place};
use super::input::Sources;
use crate::error::Error;
use crate::plan::errors;
use crate::report::{LogHost, LogPlace, SkippedPlans};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All reasons by their hints. Errors with the same hint count as one reason: their texts can contain figures.
#[derive(Default)]
pub struct Skips(BTreeMap<String, Skipped>);

/// Plans that were skipped for one reason.
struct Skipped {
    plans: u64,
    /// of the first plan
    error: Error,
    first: Place,
}

impl Skips {
    pub fn add(&mut self, place: Place, error: Error) {
        let plans = &mut self.0.entry(error.hint.clone()).or_insert(Skipped { plans: 0, error, first: place }).plans;
        *plans += 1;
    }

    pub fn plans(&self) -> u64 {
        self.0.values().map(|skipped| skipped.plans).sum()
    }

    /// Returns the error if all plans were skipped.
    pub fn error(&self) -> Error {
        let plans = self.plans();
        match self.0.values().max_by_key(|skipped| skipped.plans) {
            None => errors::no_plan(),
            Some(most) if plans == 1 => most.error.clone(),
            Some(Skipped { plans: most, error, .. }) => {
                let what = format!("none of the {plans} plans can be used; {most} of them: {}", error.what);
                Error::new(what, error.hint.clone())
            }
        }
    }

    /// Returns the reasons, the most frequent one first.
    pub fn into_plans(self, sources: &Sources) -> Vec<SkippedPlans> {
        let of_one_reason = |Skipped { plans, error, first }: Skipped| {
            let is_damaged = is_damage(&error);
            let first = LogPlace { file: sources.file(first.file), line: first.line };
            SkippedPlans { plans, reason: error.what, hint: error.hint, first, is_damaged }
        };
        let mut all: Vec<SkippedPlans> = self.0.into_values().map(of_one_reason).collect();
        all.sort_by_key(|skipped| std::cmp::Reverse(skipped.plans));
        all
    }
}

/// Returns whether a part of the plan is missing or wrong. Otherwise it is complete, but has no times of this clock.
pub fn is_damage(error: &Error) -> bool {
    ![errors::not_executed(), errors::not_timed(), errors::timed_by_fast_timing()].contains(error)
}

/// Returns the error for a message that is damaged.
pub fn of_damage(damage: Damage) -> Error {
    let (what, hint) = match damage {
        Damage::Truncated => (
            "the end of the plan is missing: the log or its entry is truncated, or the log was rotated within the plan",
            "include all of the plan's lines; join the files of one log (cat FILE FILE), and give that",
        ),
        Damage::NoBeginning => (
            "the log begins in the middle of a plan",
            "join the file before it and this one (cat FILE FILE), and give that",
        ),
        Damage::Broken => (
            "a part of the plan is lost, or lines of something else are within it",
            "set logging_collector = on: the server then writes each entry as a whole; for syslog, set syslog_split_messages = off",
        ),
        Damage::TooLong => (
            "the plan is longer than 8 MB",
            "no real plan is that long, except over many thousand partitions; take it with EXPLAIN (FORMAT JSON)",
        ),
    };
    Error::new(what, hint)
}

/// Returns the hosts with their numbers of plans, the one with the most plans first, if the plans are not all from one.
pub fn several_hosts(plans: BTreeMap<Arc<str>, u64>) -> Vec<LogHost> {
    let mut all: Vec<LogHost> =
        plans.iter().map(|(name, plans)| LogHost { name: name.to_string(), plans: *plans }).collect();
    all.sort_by_key(|host| std::cmp::Reverse(host.plans));
    if all.len() > 1 { all } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_reason_are_counted_together() {
        let mut skips = Skips::default();
        for (line, error) in [
            (5, Error::new("a takes 5 ms", "a")),
            (6, errors::not_timed()),
            (7, Error::new("a takes 7 ms", "a")),
            (8, errors::timed_by_fast_timing()),
        ] {
            skips.add(Place { file: 0, line }, error);
        }
        assert!(skips.plans() == 4 && skips.error().what.starts_with("none of the 4 plans can be used; 2 of them: a"));
        let found = skips.into_plans(&Sources::new(vec!["log".into()]));
        let found: Vec<_> = found.iter().map(|s| (s.plans, s.reason.as_str(), s.first.line, s.is_damaged)).collect();
        let untimed = errors::not_timed().what;
        let fast = errors::timed_by_fast_timing().what;
        assert!(found.contains(&(2, "a takes 5 ms", 5, true)), "{found:?}");
        assert!(found.contains(&(1, &untimed, 6, false)) && found.contains(&(1, &fast, 8, false)), "{found:?}");
    }
}
