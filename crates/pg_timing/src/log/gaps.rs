//! What the results do not contain: plans that cannot be used, by reason, and plans of other hosts.

use super::entry::{Damage, MAX_BYTES, Place};
use super::input::Sources;
use crate::error::Error;
use crate::plan::errors::{self, TakenBy};
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
    pub fn add(&mut self, place: Place, mut error: Error) {
        if error.hint == errors::ONLY_PLAIN_TIME {
            error.hint = errors::ONLY_PLAIN_TIME_OF_ONE.into();
        }
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
    let settings = [TakenBy::Explain, TakenBy::AutoExplain].map(|by| [errors::not_executed(by), errors::not_timed(by)]);
    !settings.as_flattened().contains(error) && error.what != errors::timed_by_fast_timing().what
}

/// Returns the error for a message that is damaged.
pub fn of_damage(damage: Damage) -> Error {
    let (what, hint) = match damage {
        Damage::Truncated => (
            "the end of the plan is missing: the log or its entry is truncated",
            "give the log's files in their order, and include all of the plan's lines",
        ),
        Damage::NoBeginning => (
            "the log begins in the middle of a plan",
            "give the file before it, too; the plan is skipped even then, unless both files are joined into one",
        ),
        Damage::Rotated => (
            "the plan ends in the next file: the log was rotated within the plan",
            "join both files into one (cat FILE FILE), and give that",
        ),
        Damage::Split => (
            "syslog or a container has split a line of the plan, or has lost a part of it",
            "set syslog_split_messages = off, or let the server write a log file (logging_collector)",
        ),
        Damage::Mixed => (
            "lines of something else are within the plan: several processes wrote to the log at the same time, or formats are mixed",
            "set logging_collector = on: the server then writes each entry as a whole",
        ),
        Damage::Nul => (
            "NUL bytes replace a part of the plan",
            "the host crashed while the server wrote the log; this part of the log is lost",
        ),
        Damage::TooLong => {
            return Error::new(
                format!("the plan is longer than {} MB", MAX_BYTES >> 20),
                "no real plan is that long, except over many thousand partitions; take it with EXPLAIN (FORMAT JSON)",
            );
        }
    };
    Error::new(what, hint)
}

/// The names and numbers of plans of more hosts are not kept.
const MAX_HOSTS: usize = 1000;

/// The number of plans by host, container or pod.
#[derive(Default)]
pub struct Hosts {
    plans: BTreeMap<Arc<str>, u64>,
    /// plans of hosts after the first thousand
    others: u64,
}

impl Hosts {
    /// Counts a plan of a host.
    pub fn add(&mut self, host: &Arc<str>) {
        let has_room = self.plans.len() < MAX_HOSTS || self.plans.contains_key(host);
        *if has_room { self.plans.entry(Arc::clone(host)).or_default() } else { &mut self.others } += 1;
    }

    /// Returns the hosts, if the plans are not all from one. The one with the most plans comes first.
    pub fn several(&self) -> Vec<LogHost> {
        if self.plans.len() < 2 {
            return Vec::new();
        }
        let named = self.plans.iter().map(|(name, plans)| LogHost { name: name.to_string(), plans: *plans });
        let mut all: Vec<LogHost> = named.collect();
        all.sort_by_key(|host| std::cmp::Reverse(host.plans));
        if self.others > 0 {
            all.push(LogHost { name: "other hosts".into(), plans: self.others });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_reason_are_counted_together() {
        let mut skips = Skips::default();
        for (line, error) in [
            (5, Error::new("a takes 5 ms", "a")),
            (6, errors::not_timed(TakenBy::AutoExplain)),
            (7, Error::new("a takes 7 ms", "a")),
            (8, errors::timed_by_fast_timing()),
        ] {
            skips.add(Place { file: 0, line }, error);
        }
        assert!(skips.plans() == 4 && skips.error().what.starts_with("none of the 4 plans can be used; 2 of them: a"));
        let found = skips.into_plans(&Sources::new(vec!["log".into()]));
        let found: Vec<_> = found.iter().map(|s| (s.plans, s.reason.as_str(), s.first.line, s.is_damaged)).collect();
        let untimed = errors::not_timed(TakenBy::AutoExplain).what;
        let fast = errors::timed_by_fast_timing().what;
        assert!(found.contains(&(2, "a takes 5 ms", 5, true)), "{found:?}");
        assert!(found.contains(&(1, &untimed, 6, false)) && found.contains(&(1, &fast, 8, false)), "{found:?}");
    }

    fn counted(hosts: &Hosts) -> Vec<(String, u64)> {
        hosts.several().into_iter().map(|host| (host.name, host.plans)).collect()
    }

    #[test]
    fn plans_are_counted_by_host() {
        let of = |names: &[&str]| {
            let mut hosts = Hosts::default();
            names.iter().for_each(|name| hosts.add(&Arc::from(*name)));
            hosts
        };
        assert_eq!(counted(&of(&["db-1", "db-1"])), []);
        assert_eq!(
            counted(&of(&["db-1", "db-1", "db-2", "db-1", "db-3"])),
            [("db-1".into(), 3), ("db-2".into(), 1), ("db-3".into(), 1)]
        );
    }

    #[test]
    fn the_number_of_names_is_limited_but_all_plans_are_counted() {
        let mut hosts = Hosts::default();
        (0..MAX_HOSTS + 7).for_each(|number| hosts.add(&Arc::from(format!("db-{number}"))));
        let all = counted(&hosts);
        assert_eq!((all.len(), all.last()), (MAX_HOSTS + 1, Some(&("other hosts".into(), 7))));
    }
}
