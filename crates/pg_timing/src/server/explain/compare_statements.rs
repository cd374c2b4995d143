//! Which of two statements is faster? `explain --against`
//!
//! The times come from rounds of A, B, A without EXPLAIN, by the method of pairs (`statistics.rs`). After each of the first rounds,
//! both statements run under EXPLAIN ANALYZE, for their nodes. These runs are at other moments, when the machine may have another
//! speed. So only a node's share of its plan is taken from them: its time is that share of the statement's time in the rounds.

use super::RunOptions;
use super::report::overhead_of_calls;
use super::runs::{Course, LEAST_ROUNDS, Runs, bare_calls_ms, checked, round_trip_ms, round_trip_now_ms, say_how_long};
use super::script::{Script, explain_analyze};
use super::server::LiveServer;
use super::session::{Baseline, RunSession, UsersSettings};
use super::subject::{NAMES, NAMES_OF_B, Names, Subject};
use crate::error::{Error, require};
use crate::human::count;
use crate::plan::attribution::attribute;
use crate::plan::{Plan, PlanNode};
use crate::report::run_mode::{BASELINE, REPORTED};
use crate::report::{
    ComparedNode, ComparedStatement, Difference, ExplainedNode, LiveRuns, NodePair, Range, RunSample, Spread,
    StatementComparison,
};
use crate::server::connection::Connection;
use crate::statistics::{Round, is_decided, median, ratio};
use std::collections::{HashMap, VecDeque};

/// Of the runs that show the nodes. PostgreSQL 18 and later count buffers by default.
const TIMED: &str = "TIMING ON, BUFFERS";
/// Runs of a round: three without EXPLAIN, and two for the nodes.
const RUNS_OF_A_ROUND: usize = 5;
/// A shorter time is below the resolution of the round trip.
const SHORTEST_MS: f64 = 0.001;

/// One of the two statements, and its runs.
struct Side<'a> {
    /// A or B
    name: &'static str,
    script: &'a Script,
    users: UsersSettings<'a>,
    subject: Subject,
    baseline_ms: Vec<f64>,
    rows_sent: u64,
    plans: Vec<Plan>,
}

impl<'a> Side<'a> {
    fn prepare(
        session: &mut RunSession<'a>,
        name: &'static str,
        script: &'a Script,
        names: Names,
    ) -> Result<Side<'a>, Error> {
        let subject = session.use_settings(&script.settings).and_then(|()| Subject::prepare(session, script, names));
        let subject = subject.map_err(|error| of_side(name, error))?;
        let (users, baseline_ms, plans) = (session.users, Vec::new(), Vec::new());
        Ok(Side { name, script, users, subject, baseline_ms, rows_sent: 0, plans })
    }

    /// Runs the statement without EXPLAIN. Returns its time in ms.
    fn run(&mut self, session: &mut RunSession<'a>, round_trip_ms: f64) -> Result<f64, Error> {
        session.users = self.users;
        let run = self.subject.run(session, round_trip_ms).map_err(|error| of_side(self.name, error))?;
        let Baseline { ms, rows, .. } = run;
        self.rows_sent = rows;
        self.baseline_ms.push(ms);
        Ok(ms)
    }

    /// Runs the statement under EXPLAIN ANALYZE.
    fn explain(&mut self, session: &mut RunSession<'a>) -> Result<(), Error> {
        session.users = self.users;
        let plan = session.explain_analyze(&explain_analyze(TIMED, &self.subject.explained), &[], None);
        let plan = plan.and_then(|plan| checked(&self.plans, plan)).map_err(|error| of_side(self.name, error))?;
        self.plans.push(plan);
        Ok(())
    }

    fn is_too_short(&self, round_trip_ms: Range) -> bool {
        let (plain_ms, round_trip_ms) = (median(&self.baseline_ms), round_trip_ms.estimate);
        LiveRuns { plain_ms, round_trip_ms, ..LiveRuns::default() }.is_too_short()
    }

    /// Returns the statement with its nodes, if it takes `ms` without EXPLAIN.
    fn report(&self, ms: f64, round_trip_ms: Range, bare_calls_ms: &[f64]) -> ComparedStatement {
        let sample = |mode: &str, ms| RunSample { mode: mode.into(), ms };
        let baseline = self.baseline_ms.iter().map(|ms| sample(BASELINE, *ms));
        let timed = self.plans.iter().map(|plan| sample(REPORTED, plan.execution_ms));
        let runs = Runs {
            samples: baseline.chain(timed).collect(),
            reported: self.plans.clone(),
            bare_calls_ms: bare_calls_ms.into(),
            round_trip_ms,
            ..Runs::default()
        };
        let overhead = overhead_of_calls(&runs);
        let scale = if overhead.corrected.estimate > 0.0 { ms / overhead.corrected.estimate } else { 0.0 };
        let flat = self.plans.first().map_or(&[][..], |plan| &plan.nodes);
        let nodes = attribute(&self.plans, &overhead);
        ComparedStatement {
            statement: self.script.text.clone(),
            ms,
            plain_ms: median(&self.baseline_ms),
            fastest_plain_ms: self.baseline_ms.iter().copied().fold(f64::INFINITY, f64::min),
            spread_ms: Spread::of(&self.baseline_ms),
            reported_ms: overhead.reported,
            rows: self.plans.first().and_then(Plan::rows),
            plan_mode: self.subject.plan_mode.map(Into::into),
            nodes: nodes.into_iter().zip(flat).map(|(node, flat)| compared(node, flat, scale)).collect(),
            samples: self.baseline_ms.clone(),
        }
    }
}

/// Returns the error with the name of the statement that it is about.
fn of_side(name: &str, error: Error) -> Error {
    Error { what: format!("statement {name}: {}", error.what), ..error }
}

fn compared(node: ExplainedNode, flat: &PlanNode, scale: f64) -> ComparedNode {
    ComparedNode {
        rows: flat.node.all_rows().per_loop.round(),
        blocks: flat.node.shared_blocks,
        path: node.path,
        kind: node.kind,
        title: node.title,
        calls: node.calls,
        corrected_ms: node.corrected_ms.times(scale),
        self_ms: node.self_ms.times(scale),
    }
}

/// Runs both scripts' statements in turns, and compares them. With `same_rows`, a different number of rows is an error.
/// `progress` receives the completed fraction, 0 to 1.
pub fn compare_statements<'a>(
    connection: &'a mut Connection,
    [script_a, script_b]: [&'a Script; 2],
    options: RunOptions,
    same_rows: bool,
    progress: &mut dyn FnMut(f64),
) -> Result<StatementComparison, Error> {
    progress(0.0);
    let mut session = RunSession::new(connection, options)?;
    let server = LiveServer::read(&mut session)?;
    session.prepare_own()?;
    let mut a = Side::prepare(&mut session, "A", script_a, NAMES)?;
    let mut b = Side::prepare(&mut session, "B", script_b, NAMES_OF_B)?;
    // These runs fill the caches.
    let warm_up_ms = (a.run(&mut session, 0.0)? + b.run(&mut session, 0.0)?) / 2.0;
    a.baseline_ms.clear();
    b.baseline_ms.clear();
    say_how_long(&session, warm_up_ms, RUNS_OF_A_ROUND);
    let round_trip_ms = round_trip_ms(&mut session)?;
    let bare_calls_ms = bare_calls_ms(&mut session, round_trip_ms, TIMED)?;
    let mut course = Course::new(options.time);
    let mut rounds = Vec::new();
    let ratio = loop {
        let ratio = (rounds.len() >= LEAST_ROUNDS).then(|| ratio(&rounds, course.is_last));
        if course.is_last || ratio.is_some_and(|ratio| is_decided(rounds.len(), ratio)) {
            break ratio;
        }
        let is_first = rounds.len() < LEAST_ROUNDS;
        let round = course.round(&mut session, progress, |session: &mut RunSession<'a>| {
            let round_trip_ms = round_trip_now_ms(session)?;
            let [before_ms, run_ms, after_ms] =
                [a.run(session, round_trip_ms)?, b.run(session, round_trip_ms)?, a.run(session, round_trip_ms)?];
            if is_first {
                a.explain(session)?;
                b.explain(session)?;
            }
            Ok(Round { before_ms, run_ms, after_ms })
        })?;
        rounds.extend(round);
    };
    let [a_ms, b_ms] = [&a, &b].map(|side| median(&side.baseline_ms));
    let short = [&a, &b].map(|side| side.is_too_short(round_trip_ms));
    let is_too_short = short == [true, true];
    // Both times lack the same round trip, so its error has an effect only if they differ. A short statement may differ from an
    // empty one by as much as a round trip.
    let error_ms = if short.contains(&true) { round_trip_ms.estimate } else { round_trip_ms.half_width() };
    let margin = 1.0 + error_ms * (1.0 / a_ms.max(SHORTEST_MS) - 1.0 / b_ms.max(SHORTEST_MS)).abs();
    let ratio = ratio.filter(|_| !is_too_short);
    let ratio = ratio.map(|ratio| Range { low: ratio.low / margin, high: ratio.high * margin, ..ratio });
    let mut notes = server.notes;
    if course.is_stopped {
        notes.push(format!("the runs were stopped; complete rounds: {}", course.rounds));
    }
    let same_speed_ms = ratio.map_or(b_ms, |ratio| a_ms * ratio.estimate);
    let [a, b] = [(&a, a_ms), (&b, same_speed_ms)].map(|(side, ms)| {
        let sent = (side.rows_sent > 0).then(|| {
            let (name, rows) = (side.name, count(side.rows_sent));
            format!("the time of {name} includes sending its rows to the client: {rows}")
        });
        notes.extend(sent);
        side.report(ms, round_trip_ms, &bare_calls_ms)
    });
    let [rows_of_a, rows_of_b] = [&a, &b].map(|side| side.rows.unwrap_or(0.0));
    require(
        !same_rows || rows_of_a == rows_of_b,
        format!("statement A returns {rows_of_a} rows, and B returns {rows_of_b}"),
        "they do not have the same result; without --same-rows they are compared",
    )?;
    Ok(StatementComparison {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        server_version: server.version,
        server: server.name,
        settings: server.settings,
        difference: Difference::of(ratio),
        ratio,
        rounds: rounds.len(),
        round_trip_ms: round_trip_ms.estimate,
        is_too_short,
        nodes: pairs(&a.nodes, &b.nodes),
        a,
        b,
        notes,
    })
}

/// Returns each node of both plans once. Those whose numbers of rows differ come first, and then those whose times differ most.
fn pairs(a: &[ComparedNode], b: &[ComparedNode]) -> Vec<NodePair> {
    let mut partner_of_a = vec![None; a.len()];
    let mut is_taken = vec![false; b.len()];
    // The first key describes a node best: its place and its name. The last one is for another way to read the same table.
    let keys: [fn(&ComparedNode) -> Option<String>; 4] = [
        |node| Some(format!("{} {}", node.path, node.title)),
        |node| Some(node.title.clone()),
        |node| node.title.split_once(" on ").map(|(_, relation)| relation.to_string()),
        |node| node.is_join().then(|| node.path.clone()),
    ];
    for key in keys {
        let mut free: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (nth, node) in b.iter().enumerate().filter(|(nth, _)| !is_taken[*nth]) {
            if let Some(key) = key(node) {
                free.entry(key).or_default().push_back(nth);
            }
        }
        for (nth, node) in a.iter().enumerate() {
            if partner_of_a[nth].is_none() {
                partner_of_a[nth] = key(node).and_then(|key| free.get_mut(&key)?.pop_front());
                partner_of_a[nth].into_iter().for_each(|partner: usize| is_taken[partner] = true);
            }
        }
    }
    let both = partner_of_a.iter().enumerate().map(|(nth, partner)| (Some(nth), *partner));
    let only_b = (0..b.len()).filter(|nth| !is_taken[*nth]).map(|nth| (None, Some(nth)));
    let self_ms = |nodes: &[ComparedNode], nth: Option<usize>| nth.map_or(Range::default(), |nth| nodes[nth].self_ms);
    let mut pairs: Vec<NodePair> = both
        .chain(only_b)
        .map(|(in_a, in_b)| {
            let (before, after) = (self_ms(a, in_a), self_ms(b, in_b));
            let difference_ms = Range {
                low: after.low - before.high,
                estimate: after.estimate - before.estimate,
                high: after.high - before.low,
            };
            let has_other_rows = in_a.zip(in_b).is_some_and(|(in_a, in_b)| a[in_a].rows != b[in_b].rows);
            NodePair { a: in_a, b: in_b, difference_ms, has_other_rows }
        })
        .collect();
    pairs.sort_by(|x, y| {
        let size = |pair: &NodePair| pair.difference_ms.estimate.abs();
        y.has_other_rows.cmp(&x.has_other_rows).then(size(y).total_cmp(&size(x)))
    });
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(path: &str, title: &str, rows: f64, ms: f64) -> ComparedNode {
        let kind = title.split(" on ").next().unwrap_or_default().into();
        let self_ms = Range { low: ms - 1.0, estimate: ms, high: ms + 1.0 };
        ComparedNode { path: path.into(), title: title.into(), kind, rows, self_ms, ..ComparedNode::default() }
    }

    fn found(a: &[ComparedNode], b: &[ComparedNode]) -> Vec<(Option<usize>, Option<usize>)> {
        pairs(a, b).iter().map(|pair| (pair.a, pair.b)).collect()
    }

    #[test]
    fn nodes_are_matched_by_place_name_and_relation() {
        let a = [
            node("0", "Hash Join", 5.0, 9.0),
            node("0.0", "Seq Scan on t", 5.0, 8.0),
            node("0.1", "Hash", 5.0, 7.0),
            node("0.1.0", "Seq Scan on u", 5.0, 6.0),
        ];
        let b = [
            node("0", "Nested Loop", 5.0, 1.0),
            node("0.0", "Seq Scan on u", 5.0, 2.0),
            node("0.1", "Index Scan using i on t", 5.0, 3.0),
        ];
        let expected = [(Some(0), Some(0)), (Some(2), None), (Some(1), Some(2)), (Some(3), Some(1))];
        assert_eq!(found(&a, &b), expected);
        // Two scans of one table stay at their places.
        let twice =
            |rows: [f64; 2]| [node("0.0", "Seq Scan on t", rows[0], 1.0), node("0.1", "Seq Scan on t", rows[1], 1.0)];
        assert_eq!(found(&twice([1.0, 2.0]), &twice([1.0, 3.0])), [(Some(1), Some(1)), (Some(0), Some(0))]);
        assert_eq!(found(&[], &b).len(), 3);
    }

    #[test]
    fn a_difference_contains_the_errors_of_both_nodes() {
        let [pair] = pairs(&[node("0", "Sort", 1.0, 5.0)], &[node("0", "Sort", 1.0, 5.5)]).try_into().unwrap();
        assert_eq!(pair.difference_ms, Range { low: -1.5, estimate: 0.5, high: 2.5 });
    }
}
