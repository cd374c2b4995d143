//! Finds the nested plans within the time of their caller's plan. The caller's plan is later in the log, because a
//! statement ends after those that it executed.

#[cfg(test)]
mod tests;

use super::entry::Place;
use super::evidence::Command;
use super::nesting::{Nesting, Session};
use super::relation::{Caller, Ends, Relation};
use crate::report::Range;
use std::collections::{HashMap, VecDeque};

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
    /// Returns the cost of one plan.
    pub fn of(reported_ms: f64, corrected_ms: Range, clock_ms: Range) -> Cost {
        let without = |ms: f64| (reported_ms - ms).max(0.0);
        let Range { low, estimate, high } = corrected_ms;
        let overhead_ms = Range { low: without(high), estimate: without(estimate), high: without(low) };
        Cost { plans: 1, reported_ms, overhead_ms, clock_ms }
    }

    pub fn add(&mut self, other: &Cost) {
        self.plans += other.plans;
        self.reported_ms += other.reported_ms;
        self.overhead_ms = self.overhead_ms + other.overhead_ms;
        self.clock_ms = self.clock_ms + other.clock_ms;
    }
}

/// A plan of the log.
pub struct Executed<'a> {
    pub nesting: Nesting,
    pub place: Place,
    /// the statement
    pub text: Option<&'a str>,
    pub own: Cost,
}

/// Nested plans that may be within a later plan, but the log does not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Uncertain {
    pub plans: u64,
    pub first: Option<Place>,
    /// plans of entries without the client's command
    pub without_command: u64,
}

/// The nested plans whose caller's plan is not read yet.
#[derive(Default)]
pub struct Calls {
    pub uncertain: Uncertain,
    sessions: HashMap<Session, Waiting>,
    /// lines of all contexts
    lines: usize,
    /// number of plans so far
    plans: u64,
}

#[derive(Default)]
struct Waiting {
    /// in the order of the log
    plans: VecDeque<Called>,
    /// number of the latest plan
    latest: u64,
}

/// A nested plan, or several of them. The overhead includes that of the plans within it.
struct Called {
    nesting: Nesting,
    cost: Cost,
    /// the time of the shortest one
    least_ms: f64,
    ends: Option<Ends>,
    /// where the first of them is
    place: Place,
}

impl Calls {
    /// Receives the next plan of the log. Returns the plans directly within its time; their overhead includes that of the
    /// plans within them.
    pub fn add(&mut self, plan: Executed) -> Cost {
        let Executed { nesting, place, text, own } = plan;
        self.plans += 1;
        let within = self.take_within(&Caller { nesting: &nesting, ms: own.reported_ms, text });
        if nesting.is_nested() {
            let Cost { plans, reported_ms, mut overhead_ms, mut clock_ms } = own;
            (overhead_ms, clock_ms) = (overhead_ms + within.overhead_ms, clock_ms + within.clock_ms);
            let ends = nesting.evidence.time.map(|time| Ends { first: time, last: time });
            let cost = Cost { plans, reported_ms, overhead_ms, clock_ms };
            self.wait(Called { nesting, cost, least_ms: reported_ms, ends, place });
        } else {
            self.end_statement(&nesting);
        }
        within
    }

    /// The client's statement has ended. Plans of its session that still wait have no caller in the log, except those of a
    /// cursor that is still open.
    pub fn end_statement(&mut self, nesting: &Nesting) {
        // A plan of an unknown session may belong to another client.
        if !nesting.is_nested() && nesting.session.is_known() {
            self.retain(nesting.session, |called| {
                let evidence = called.nesting.evidence;
                evidence.command == Some(Command::Fetch) && evidence.transaction == nesting.evidence.transaction
            });
        }
    }

    /// The client's statement has failed, so its plan is not in the log.
    pub fn fail(&mut self, session: Session) {
        if session.is_known() {
            self.remove(session);
        }
    }

    fn retain(&mut self, session: Session, is_kept: impl Fn(&Called) -> bool) {
        let Some(waiting) = self.sessions.get_mut(&session) else { return };
        waiting.plans.retain(|called| {
            let is_kept = is_kept(called);
            self.lines -= if is_kept { 0 } else { called.lines() };
            is_kept
        });
        if waiting.plans.is_empty() {
            self.sessions.remove(&session);
        }
    }

    fn remove(&mut self, session: Session) {
        if let Some(waiting) = self.sessions.remove(&session) {
            self.lines -= waiting.plans.iter().map(Called::lines).sum::<usize>();
        }
    }

    /// Removes the plans that a caller has executed: the latest ones, as far as they fit into its time. Others remain
    /// from statements that failed or have no plan.
    fn take_within(&mut self, caller: &Caller) -> Cost {
        let mut within = Cost::default();
        let session = caller.nesting.session;
        let Some(waiting) = self.sessions.get_mut(&session) else { return within };
        let mut is_full = false;
        for index in (0..waiting.plans.len()).rev() {
            let called = &waiting.plans[index];
            let mut relation = caller.contains(&called.nesting, called.ends);
            if relation == Relation::Separate {
                continue;
            }
            let cost = called.cost;
            let rounding_ms = ROUNDING_MS * (within.plans + cost.plans + 1) as f64;
            let fits = |ms: f64| ms <= caller.ms + rounding_ms;
            is_full |= relation == Relation::Within && !fits(within.reported_ms + cost.reported_ms);
            if is_full || !fits(cost.reported_ms) {
                // A part of a sum can fit.
                let may_fit = cost.plans > 1 && fits(within.reported_ms + called.least_ms);
                let may_be_within = may_fit && !caller.nesting.is_nested();
                relation = if may_be_within { Relation::Uncertain } else { Relation::Separate };
            }
            match relation {
                Relation::Separate => {}
                // The plan of an unknown session waits for the next one.
                Relation::Uncertain if !session.is_known() => {}
                Relation::Uncertain => {
                    self.lines -= called.lines();
                    self.uncertain.add(called);
                    waiting.plans.remove(index);
                }
                Relation::Within => {
                    within.add(&cost);
                    self.lines -= called.lines();
                    waiting.plans.remove(index);
                }
            }
        }
        within
    }

    fn wait(&mut self, called: Called) {
        let session = called.nesting.session;
        // Each statement outside of a transaction block has its own transaction.
        if let Some(transaction) = called.nesting.evidence.transaction.filter(|_| session.is_known()) {
            self.retain(session, |waiting| waiting.nesting.evidence.transaction.is_none_or(|id| id == transaction));
        }
        self.lines += called.lines();
        let waiting = self.sessions.entry(session).or_default();
        waiting.latest = self.plans;
        waiting.plans.push_back(called);
        if waiting.plans.len() > MAX_WAITING
            && let (Some(oldest), Some(next)) = (waiting.plans.pop_front(), waiting.plans.pop_front())
        {
            let lines = oldest.lines() + next.lines();
            let both = oldest.merged(next);
            self.lines = self.lines + both.lines() - lines;
            waiting.plans.push_front(both);
        }
        while self.sessions.len() > MAX_SESSIONS || self.lines > MAX_LINES {
            let oldest = self.sessions.iter().min_by_key(|(_, waiting)| waiting.latest);
            let Some(oldest) = oldest.map(|(session, _)| *session) else { break };
            let plans = self.sessions.get(&oldest).into_iter().flat_map(|waiting| &waiting.plans);
            plans.filter(|called| called.may_have_caller()).for_each(|called| self.uncertain.add(called));
            self.remove(oldest);
        }
    }
}

impl Called {
    fn lines(&self) -> usize {
        self.nesting.callers.len()
    }

    fn may_have_caller(&self) -> bool {
        let Nesting { session, is_in_command, evidence, .. } = self.nesting;
        session.is_known() && !is_in_command && evidence.command != Some(Command::WithoutPlan)
    }

    /// Adds up two plans. A caller of both has a context that both of them end with.
    fn merged(self, other: Called) -> Called {
        let (ours, theirs) = (&self.nesting, &other.nesting);
        let common = ours.callers.iter().zip(&theirs.callers).take_while(|(a, b)| a == b).count();
        // One more line, so that a caller with exactly the common lines contains both plans.
        let callers = ours.callers[..common].iter().copied().chain([0]).collect();
        let is_in_command = ours.is_in_command && theirs.is_in_command;
        let function = ours.function.clone().filter(|name| Some(name) == theirs.function.as_ref());
        let evidence = ours.evidence.common(theirs.evidence);
        let mut cost = self.cost;
        cost.add(&other.cost);
        let ends = self.ends.zip(other.ends).map(|(a, b)| Ends { first: a.first, last: b.last });
        let nesting = Nesting { session: ours.session, callers, function, is_in_command, evidence };
        Called { nesting, cost, least_ms: self.least_ms.min(other.least_ms), ends, place: self.place }
    }
}

impl Uncertain {
    fn add(&mut self, called: &Called) {
        self.plans += called.cost.plans;
        self.without_command += if called.nesting.evidence.command.is_none() { called.cost.plans } else { 0 };
        self.first = Some(self.first.map_or(called.place, |first| first.min(called.place)));
    }
}
