//! Finds the nested plans within the time of their caller's plan. The caller's plan is later in the log, because a
//! statement ends after those that it executed.

#[cfg(test)]
mod tests;

use super::nesting::{Nesting, Session};
use crate::report::Range;
use std::collections::HashMap;

/// Sessions with plans whose caller is not read yet. A session that ends with an error leaves such plans.
const MAX_SESSIONS: usize = 1000;

/// Plans of a session whose caller is not read yet. Beyond this, the two oldest are added up: a function can execute a
/// million statements.
const MAX_WAITING: usize = 64;

/// Lines of the contexts of all waiting plans. Each takes 8 bytes.
const MAX_LINES: usize = 500_000;

/// A log's times are rounded to this.
const ROUNDING_MS: f64 = 0.001;

/// The time of one or more plans, and how much of it timing takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub plans: u64,
    pub reported_ms: f64,
    pub overhead_ms: Range,
    pub clock_ms: Range,
}

impl Cost {
    pub fn add(&mut self, other: &Cost) {
        self.plans += other.plans;
        self.reported_ms += other.reported_ms;
        self.overhead_ms = self.overhead_ms + other.overhead_ms;
        self.clock_ms = self.clock_ms + other.clock_ms;
    }
}

/// The nested plans whose caller's plan is not read yet.
#[derive(Default)]
pub struct Calls {
    sessions: HashMap<Session, Waiting>,
    /// lines of all contexts
    lines: usize,
    /// number of plans so far
    plans: u64,
}

#[derive(Default)]
struct Waiting {
    /// in the order of the log
    plans: Vec<Called>,
    /// number of the latest plan
    latest: u64,
}

/// A nested plan, or several of them. The overhead includes that of the plans within it.
struct Called {
    nesting: Nesting,
    cost: Cost,
}

impl Calls {
    /// Receives the next plan of the log. Returns the plans directly within its time; their overhead includes that of the
    /// plans within them.
    pub fn add(&mut self, nesting: Nesting, own: &Cost) -> Cost {
        self.plans += 1;
        let within = self.take_within(&nesting, own.reported_ms);
        if nesting.is_nested() {
            let Cost { plans, reported_ms, mut overhead_ms, mut clock_ms } = *own;
            (overhead_ms, clock_ms) = (overhead_ms + within.overhead_ms, clock_ms + within.clock_ms);
            self.wait(Called { nesting, cost: Cost { plans, reported_ms, overhead_ms, clock_ms } });
        } else {
            self.end_statement(&nesting);
        }
        within
    }

    /// The client's statement has ended. Plans of its session that still wait have no caller in the log.
    pub fn end_statement(&mut self, nesting: &Nesting) {
        // A plan of an unknown session may belong to another client.
        if !nesting.is_nested() && nesting.session.is_known() {
            self.remove(nesting.session);
        }
    }

    fn remove(&mut self, session: Session) {
        if let Some(waiting) = self.sessions.remove(&session) {
            self.lines -= waiting.plans.iter().map(Called::lines).sum::<usize>();
        }
    }

    /// Removes the plans that a caller can have executed: the latest ones, as far as they fit into its time. Others remain
    /// from statements that failed or have no plan.
    fn take_within(&mut self, caller: &Nesting, caller_ms: f64) -> Cost {
        let mut within = Cost::default();
        let Some(waiting) = self.sessions.get_mut(&caller.session) else { return within };
        let mut index = waiting.plans.len();
        while let Some(before) = index.checked_sub(1) {
            index = before;
            if !waiting.plans[index].nesting.is_within(caller) {
                continue;
            }
            let cost = waiting.plans[index].cost;
            let rounding_ms = ROUNDING_MS * (within.plans + cost.plans + 1) as f64;
            if within.reported_ms + cost.reported_ms > caller_ms + rounding_ms {
                break;
            }
            within.add(&cost);
            self.lines -= waiting.plans.remove(index).lines();
        }
        within
    }

    fn wait(&mut self, called: Called) {
        let session = called.nesting.session;
        self.lines += called.lines();
        let waiting = self.sessions.entry(session).or_default();
        waiting.latest = self.plans;
        waiting.plans.push(called);
        if waiting.plans.len() > MAX_WAITING {
            let [oldest, next] = [waiting.plans.remove(0), waiting.plans.remove(0)];
            let lines = oldest.lines() + next.lines();
            let both = oldest.merged(next);
            self.lines = self.lines + both.lines() - lines;
            waiting.plans.insert(0, both);
        }
        while self.sessions.len() > MAX_SESSIONS || self.lines > MAX_LINES {
            let oldest = self.sessions.iter().min_by_key(|(_, waiting)| waiting.latest);
            let Some(oldest) = oldest.map(|(session, _)| *session) else { break };
            self.remove(oldest);
        }
    }
}

impl Called {
    fn lines(&self) -> usize {
        self.nesting.callers.len()
    }

    /// Adds up two plans. A caller of both has a context that both of them end with.
    fn merged(self, other: Called) -> Called {
        let (ours, theirs) = (&self.nesting.callers, &other.nesting.callers);
        let common = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        // One more line, so that a caller with exactly the common lines contains both plans.
        let callers = ours[..common].iter().copied().chain([0]).collect();
        let is_in_command = self.nesting.is_in_command && other.nesting.is_in_command;
        let mut cost = self.cost;
        cost.add(&other.cost);
        Called { nesting: Nesting { session: self.nesting.session, callers, is_in_command }, cost }
    }
}
