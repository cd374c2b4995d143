//! Node calls per second of all statements, in the window and since pg_stat_statements was reset.

use super::activity::Activity;
use super::entries::{Entries, Figures, Key};
use super::limits::Limits;
use super::skipped::{Reason, Skipped};
use super::statements::{Outcome, plan_all};
use super::sums::{Executions, Sum};
use super::timing_cost::TimingCost;
use crate::error::Error;
use crate::report::{CallsAre, NS_PER_MS, PeriodCalls, Range, SkippedStatements};
use crate::server::session::Session;
use crate::server::settings::Server;
use std::collections::BTreeMap;

/// Statements that are planned. On most servers they take nearly all of the execution time.
const STATEMENTS: usize = 100;
/// A call of a statement that was not planned takes at least this time, in ns. That was so for 9 of 10 statements of
/// `tests/advise/bench calls`.
const UNPLANNED_CALL_NS: f64 = 20.0;

const SECONDS_PER_NS: f64 = 1e-9;

/// In a shorter time since the reset, rare statements like a bulk load dominate.
const LEAST_AGE_S: f64 = 600.0;

/// The statements of the server, and what is known about their plans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    before: Entries,
    after: Entries,
    window_s: f64,
    /// the server times statements inside of functions, too
    times_nested: bool,
    /// auto_explain times the statements
    is_timed: bool,
    cpus: Option<f64>,
    activity: Activity,
    outcomes: BTreeMap<Key, Outcome>,
}

/// What advise observed in its window.
#[derive(Debug, Default)]
pub struct Window {
    pub before: Entries,
    pub after: Entries,
    pub seconds: f64,
    pub activity: Activity,
    /// auto_explain times the statements
    pub is_timed: bool,
    /// CPUs of the server's host, if they are known
    pub cpus: Option<f64>,
}

impl Workload {
    /// Plans the statements that took most execution time, in the window or since the reset.
    pub fn plan(session: &mut Session, server: &Server, window: Window) -> Result<Workload, Error> {
        let Window { before, after, seconds, activity, is_timed, cpus } = window;
        let times_nested = server.is("auto_explain.log_nested_statements", "on");
        let workload = Workload {
            before,
            after,
            window_s: seconds,
            times_nested,
            is_timed,
            cpus,
            activity,
            outcomes: BTreeMap::new(),
        };
        let order = workload.busiest_first();
        let order = &order[..order.len().min(STATEMENTS)];
        let outcomes = plan_all(session, server, &workload.after, order, STATEMENTS, &workload.activity, &mut |_| ())?;
        Ok(Workload { outcomes, ..workload })
    }

    /// Returns the timed statements. Their place depends on the larger one of two shares: of the execution time in the
    /// window, and of the time since the reset.
    fn busiest_first(&self) -> Vec<(Key, Figures)> {
        let part = |figures: Figures, all: Figures| if all.exec_ms > 0.0 { figures.exec_ms / all.exec_ms } else { 0.0 };
        let all = sum(self.since_reset());
        let all_in_window = sum(self.in_window());
        let mut order: Vec<(f64, Key, Figures)> = self
            .since_reset()
            .map(|(key, figures)| {
                let in_window = figures.since(self.before.figures.get(&key).copied().unwrap_or_default());
                (part(figures, all).max(part(in_window, all_in_window)), key, figures)
            })
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        order.into_iter().map(|(_, key, figures)| (key, figures)).collect()
    }

    fn since_reset(&self) -> impl Iterator<Item = (Key, Figures)> {
        let is_timed = |key: &Key| self.times_nested || key.is_top_level();
        self.after.figures.iter().filter(move |(key, _)| is_timed(key)).map(|(key, figures)| (*key, *figures))
    }

    fn in_window(&self) -> impl Iterator<Item = (Key, Figures)> {
        self.since_reset()
            .map(|(key, figures)| (key, figures.since(self.before.figures.get(&key).copied().unwrap_or_default())))
    }

    /// Returns the number of planned statements.
    pub fn planned(&self) -> u64 {
        self.outcomes.values().filter(|outcome| outcome.is_ok()).count() as u64
    }

    /// Returns the calls in the window. `None` if the statistics were reset, or if the server removed statements meanwhile.
    pub fn window(&self, cost: Option<&TimingCost>) -> Option<PeriodCalls> {
        let is_complete = self.after.removals == self.before.removals && self.after.age_s >= self.before.age_s;
        (self.window_s > 0.0 && is_complete).then(|| {
            let entries: Vec<Executions> =
                self.in_window().map(|(key, figures)| Executions::in_window(key, figures, self.window_s)).collect();
            self.period(&entries, self.window_s, self.window_limits(), cost)
        })
    }

    /// Returns the calls since the reset. `None` if it was too recently, or if the server has removed statements since then.
    pub fn since_last_reset(&self, cost: Option<&TimingCost>) -> Option<PeriodCalls> {
        let age_s = self.after.age_s;
        (age_s >= LEAST_AGE_S && self.after.removals == 0.0).then(|| {
            let entries: Vec<Executions> =
                self.since_reset().map(|(key, figures)| Executions::of(key, figures)).collect();
            self.period(&entries, age_s, self.limits_since_reset(), cost)
        })
    }

    /// Returns what limits the time of clock reads in the window.
    pub fn window_limits(&self) -> Limits {
        let busy = self.in_window().map(|(_, figures)| figures.exec_ms).sum::<f64>() / 1e3 / self.window_s.max(1e-3);
        let processes = self.outcomes.values().flatten().map(|planned| planned.node_calls.processes());
        let processes = processes.fold(1.0, f64::max);
        // Sessions can have ended between two looks.
        let sessions = (self.activity.sessions as f64).max(busy).max(1.0);
        Limits { processes: Some(sessions * processes), ..self.limits(busy) }
    }

    /// Returns what limits the time of clock reads since the reset. The sessions of that time are unknown.
    pub fn limits_since_reset(&self) -> Limits {
        self.limits(sum(self.since_reset()).exec_ms / 1e3 / self.after.age_s.max(1.0))
    }

    fn limits(&self, busy: f64) -> Limits {
        Limits { cpus: self.cpus, processes: None, busy, is_timed: self.is_timed }
    }

    fn period(&self, entries: &[Executions], seconds: f64, limits: Limits, cost: Option<&TimingCost>) -> PeriodCalls {
        let (mut calls, mut clock_s) = (Sum::default(), Sum::default());
        let mut executions_per_s = 0.0;
        for Executions { key, figures, number } in entries {
            let (per_call, ns) = match self.outcomes.get(key) {
                Some(Ok(planned)) => (planned.node_calls.calls, cost.map(|cost| cost.clock_ns(&planned.node_calls))),
                Some(Err(reason)) if reason.has_no_nodes() => continue,
                _ => (unplanned(*figures), cost.map(TimingCost::usual_clock_ns)),
            };
            executions_per_s += figures.calls / seconds;
            let per_s = per_call.by(*number).times(1.0 / seconds);
            calls.add(per_s);
            if let Some(ns) = ns {
                clock_s.add(per_s.by(ns).times(SECONDS_PER_NS));
            }
        }
        let needed = cost.map(|_| clock_s.range());
        PeriodCalls {
            calls_are: CallsAre::Estimated,
            seconds,
            executions_per_s: Some(executions_per_s),
            per_s: calls.range(),
            core_share: needed.map(|needed| limits.share(needed)),
            needed_cores: needed,
        }
    }

    /// Returns the share of the execution time in statements whose calls are unknown.
    pub fn unknown_time_share(&self) -> f64 {
        let is_known = |key: &Key| match self.outcomes.get(key) {
            Some(Ok(_)) => true,
            Some(Err(reason)) => reason.has_no_nodes(),
            None => false,
        };
        let all_ms = sum(self.since_reset()).exec_ms;
        let unknown_ms = sum(self.since_reset().filter(|(key, _)| !is_known(key))).exec_ms;
        if all_ms > 0.0 { unknown_ms / all_ms } else { 0.0 }
    }

    /// Returns the statements that were not planned.
    pub fn skipped(&self) -> Vec<SkippedStatements> {
        let all_ms = sum(self.since_reset()).exec_ms;
        let mut skipped = Skipped::default();
        for (key, figures) in self.since_reset() {
            let share = if all_ms > 0.0 { figures.exec_ms / all_ms } else { 0.0 };
            match self.outcomes.get(&key) {
                Some(Ok(_)) => {}
                Some(Err(reason)) => skipped.add(reason, share),
                None => skipped.add(&Reason::NotSelected, share),
            }
        }
        skipped.into_list()
    }
}

fn sum(entries: impl Iterator<Item = (Key, Figures)>) -> Figures {
    entries.fold(Figures::default(), |sum, (_, figures)| sum.plus(figures))
}

/// Returns the calls per execution of a statement without a plan: it may have no nodes, or its time limits them.
fn unplanned(figures: Figures) -> Range {
    let high = figures.mean_ms() * NS_PER_MS / UNPLANNED_CALL_NS;
    Range { low: 0.0, estimate: 0.0, high }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::server::planned::node_calls::NodeCalls;
    use crate::server::planned::planner_node::PlannerNode;
    use crate::server::planned::statements::Planned;

    fn figures(calls: f64, mean_ms: f64) -> Figures {
        Figures { calls, rows: calls, exec_ms: calls * mean_ms }
    }

    /// Returns the outcome for a lookup of one row, which has one to two calls.
    fn lookup() -> Outcome {
        let root = PlannerNode { kind: "Index Scan".into(), rows: 1.0, ..PlannerNode::default() };
        let node_calls = NodeCalls::of(root, figures(1.0, 1.0), &Default::default());
        Ok(Planned { text: "SELECT".into(), node_calls })
    }

    fn entries(figures: &[(Key, Figures)], age_s: f64) -> Entries {
        Entries { figures: figures.iter().copied().collect(), age_s, ..Entries::default() }
    }

    /// Returns a workload of lookups, in a window of ten seconds, on a server that was reset an hour before.
    pub fn lookups(per_s: f64) -> Workload {
        let key = Key::of(1);
        Workload {
            before: entries(&[(key, figures(0.0, 0.01))], 3600.0),
            after: entries(&[(key, figures(10.0 * per_s, 0.01))], 3610.0),
            window_s: 10.0,
            cpus: Some(2.0),
            outcomes: [(key, lookup())].into(),
            ..Workload::default()
        }
    }

    #[test]
    fn calls_per_second_are_executions_times_calls() {
        let workload = lookups(500.0);
        let window = workload.window(None).unwrap();
        assert_eq!(
            (window.executions_per_s, window.per_s),
            (Some(500.0), Range { low: 500.0, estimate: 1000.0, high: 1000.0 })
        );
        let since_reset = workload.since_last_reset(None).unwrap();
        assert!((since_reset.per_s.estimate - 10_000.0 / 3610.0).abs() < 1e-9, "{since_reset:?}");
        assert_eq!(window.core_share, None);
    }

    #[test]
    fn incomplete_statistics_have_no_figures() {
        let mut workload = lookups(500.0);
        workload.after.removals = 1.0;
        assert!(workload.window(None).is_none() && workload.since_last_reset(None).is_none());
        let mut workload = lookups(500.0);
        workload.after.age_s = 5.0;
        assert!(workload.window(None).is_none() && workload.since_last_reset(None).is_none());
    }

    #[test]
    fn statements_without_a_plan_only_raise_the_upper_bound() {
        let with = |reason: Reason| {
            let mut workload = lookups(500.0);
            workload.after.figures.insert(Key::of(2), figures(10.0, 2.0));
            workload.outcomes.insert(Key::of(2), Err(reason));
            (workload.window(None).unwrap().per_s, workload.skipped(), workload.unknown_time_share())
        };
        let (hidden, skipped, unknown) = with(Reason::Hidden);
        assert_eq!((unknown, with(Reason::NoPlanNodes).2), (skipped[0].time_share, 0.0));
        // 2 ms per second, 20 ns per call.
        assert_eq!((hidden.low, hidden.high), (500.0, 1000.0 + 1e5));
        assert_eq!(skipped[0].statements, 1);
        assert!((skipped[0].time_share - 20.0 / 70.0).abs() < 1e-9, "{skipped:?}");
        assert_eq!(with(Reason::NoPlanNodes).0.high, 1000.0);
    }
}
