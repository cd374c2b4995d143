//! Which of two statements is faster? `explain --against`
//!
//! The times come from rounds of A, B, A without EXPLAIN, by the method of pairs (`statistics.rs`). Each round begins with a run of B
//! that is not counted, so that each run comes after a run of the other statement, which leaves its blocks in the caches. After each of
//! the first rounds, both statements run under EXPLAIN ANALYZE, for their nodes. These runs are at other moments, when the machine may
//! have another speed. So only a node's share of its plan is taken from them: its time is that share of the statement's time in the
//! rounds.

use super::RunOptions;
use super::report::{notable_planning, overhead};
use super::runs::{BASELINE, REPORTED, ROUND_TRIPS, ROUND_TRIPS_OF_A_ROUND};
use super::runs::{Course, End, LEAST_ROUNDS, RunMode, Runs, bare_calls_ms, run, say_how_long};
use super::script::Script;
use super::server::LiveServer;
use super::session::{RunSession, UsersSettings};
use super::subject::Subject;
use crate::error::{Error, require};
use crate::human::grouped;
use crate::plan::PlanNode;
use crate::plan::attribution::attribute;
use crate::report::{
    ComparedNode, ComparedStatement, Difference, ExplainedNode, NodePair, Range, Spread, StatementComparison,
    is_too_short,
};
use crate::server::connection::Connection;
use crate::statistics::{Round, is_decided, median, ratio};
use crate::tokens::Tokens;
use std::collections::{HashMap, VecDeque};

/// Options of the runs that show the nodes. PostgreSQL 18 and later count buffers by default.
const TIMED_WITH_BUFFERS: &str = "TIMING ON, BUFFERS";
/// Runs of a round: four without EXPLAIN, and two for the nodes.
const RUNS_OF_A_ROUND: usize = 6;
/// The time to send fewer rows does not matter.
const MANY_ROWS: u64 = 1000;

/// One of the two statements, and its runs.
struct Side<'a> {
    /// A or B
    name: &'static str,
    script: &'a Script,
    users: UsersSettings<'a>,
    hides_statements: bool,
    subject: Subject,
    runs: Runs,
}

impl<'a> Side<'a> {
    /// Prepares the statement. Runs nothing.
    fn prepare(session: &mut RunSession<'a>, name: &'static str, script: &'a Script) -> Result<Side<'a>, Error> {
        // A has the names of a single statement.
        let suffix = if name == "A" { "" } else { "_b" };
        let subject =
            session.use_settings(&script.settings).and_then(|()| Subject::prepare(session, script, suffix, false));
        let subject = subject.map_err(|error| of_side(name, error, session))?;
        let (users, hides_statements) = (session.users, session.connection.hides_statements);
        Ok(Side { name, script, users, hides_statements, subject, runs: Runs::default() })
    }

    /// Does something with this statement's settings. An error names the statement.
    fn with<T>(
        &self,
        session: &mut RunSession<'a>,
        work: impl FnOnce(&mut RunSession<'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        (session.users, session.connection.hides_statements) = (self.users, self.hides_statements);
        work(session).map_err(|error| of_side(self.name, error, session))
    }

    /// Runs the statement once, and adds the run to this round. Returns its time in ms.
    fn run(&self, session: &mut RunSession<'a>, mode: &RunMode, round: &mut Runs) -> Result<f64, Error> {
        self.with(session, |session| run(session, &self.subject, mode, round))
    }

    /// Returns the number of rows that the statement returns or writes.
    fn rows(&self) -> Option<f64> {
        let plan = self.runs.reported.first()?;
        let returned = plan.rows();
        if returned != Some(0.0) || plan.nodes[0].printed.kind != "ModifyTable" {
            return returned;
        }
        // A CTE of the statement is also below the root, but it is not the input.
        let input = plan.nodes.iter().find(|node| node.parent == Some(0) && node.printed.subplan.is_none());
        input.map(|input| input.printed.all_rows().per_loop).or(returned)
    }

    /// Returns what the user should know about the runs.
    fn notes(&self) -> Vec<String> {
        let (name, mut notes) = (self.name, Vec::new());
        let rows = self.runs.rows_sent;
        if rows >= MANY_ROWS {
            notes.push(format!("the time of {name} includes sending its rows to the client: {}", grouped(rows)));
        }
        if let Some(time) = notable_planning(&self.subject, &self.runs) {
            notes.push(format!("planning {name} takes {time}, which is not included"));
        }
        if self.runs.reported.first().is_some_and(|plan| plan.any(|node| node.kind == "ModifyTable")) {
            notes
                .push(format!("each run of {name} leaves dead rows in the table, which can slow down both statements"));
        }
        notes
    }

    /// Returns the statement with its nodes, if it takes `ms` without EXPLAIN. These times have a relative error.
    fn report(&self, ms: f64, error: Range) -> ComparedStatement {
        let samples = self.runs.ms_of(BASELINE);
        // From the calls alone.
        let overhead = overhead(&self.runs, None);
        // Sending rows is not the work of a node.
        let most = if self.runs.rows_sent >= MANY_ROWS { 1.0 } else { f64::INFINITY };
        let estimate = overhead.corrected.estimate;
        let scale = if estimate > 0.0 { (ms / estimate).min(most) } else { 0.0 };
        let flat = self.runs.reported.first().map_or(&[][..], |plan| &plan.nodes);
        let nodes = attribute(&self.runs.reported, &overhead).into_iter().zip(flat);
        let nodes: Vec<_> = nodes.map(|(node, flat)| compared(node, flat, error.times(scale))).collect();
        let of_nodes = nodes.first().map_or(Range::exactly(ms), |root| root.corrected_ms);
        ComparedStatement {
            statement: self.script.text.clone(),
            settings: self.script.settings.iter().map(|setting| setting.sql.clone()).collect(),
            ms,
            outside_ms: of_nodes.subtracted_from(ms),
            plain_ms: median(&samples),
            fastest_plain_ms: samples.iter().copied().fold(f64::INFINITY, f64::min),
            spread_ms: Spread::of(&samples),
            reported_ms: overhead.reported,
            rows: self.rows(),
            plan_mode: self.subject.plan_mode.map(Into::into),
            nodes,
            samples,
        }
    }
}

/// Returns the error with the name of the statement that it is about.
fn of_side(name: &str, error: Error, session: &RunSession) -> Error {
    let what = format!("statement {name}: {}", error.what);
    if session.connection.is_stopped() { error } else { Error { what, ..error } }
}

/// Returns a node with its times multiplied by a factor.
fn compared(node: ExplainedNode, flat: &PlanNode, Range { low, estimate, high }: Range) -> ComparedNode {
    let scaled = |ms: Range| Range { low: ms.low * low, estimate: ms.estimate * estimate, high: ms.high * high };
    let rows = flat.printed.all_rows();
    let is_exact = flat.printed.loops.is_none_or(|loops| loops <= 1.0);
    ComparedNode {
        rows: rows.per_loop.round(),
        rows_error: if is_exact { 0.0 } else { rows.rounding },
        blocks: flat.printed.shared_blocks,
        corrected_ms: scaled(node.corrected_ms),
        self_ms: scaled(node.self_ms),
        path: node.path,
        kind: node.kind,
        title: node.title,
        calls: node.calls,
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
    let no_settings = session.users;
    let mut server = LiveServer::read(&mut session)?;
    let set = [script_a, script_b].into_iter().flat_map(|script| &script.settings);
    set.for_each(|setting| _ = server.settings.remove(&setting.name));
    session.prepare_own()?;
    let round_trip_ms = session.round_trip_ms(ROUND_TRIPS)?;
    let mut sides = prepare_sides(&mut session, [script_a, script_b], round_trip_ms)?;
    let (rounds, end) = run_rounds(&mut session, &mut sides, no_settings, same_rows, progress)?;
    let ratio = (rounds.len() >= LEAST_ROUNDS).then(|| ratio(&rounds, end.is_some()));
    let mut notes = server.notes;
    if end == Some(End::Stopped) {
        notes.push(format!("the runs were stopped; complete rounds: {}", rounds.len()));
    } else {
        for side in &sides {
            let plan = side.with(&mut session, |session| session.plan_of(&side.subject.explained))?;
            side.subject.check_shape(&plan.root)?;
        }
    }
    notes.extend(sides.iter().flat_map(Side::notes));
    // A's time is the geometric mean of its two runs per round, as in the ratio. So ratio x A is close to B's own median.
    let a_ms = median(&rounds.iter().map(|round| (round.before_ms * round.after_ms).sqrt()).collect::<Vec<_>>());
    let plain_ms = sides.each_ref().map(|side| median(&side.runs.ms_of(BASELINE)));
    let is_too_short = plain_ms.iter().any(|ms| is_too_short(*ms, round_trip_ms.estimate));
    let (difference, ratio) = decide(ratio, [a_ms, plain_ms[1]], is_too_short, round_trip_ms);
    let exact = Range::exactly(1.0);
    let error_of_b = ratio.map_or(exact, |ratio| ratio.times(1.0 / ratio.estimate));
    let b_ms = ratio.map_or(plain_ms[1], |ratio| a_ms * ratio.estimate);
    let [a, b] = sides;
    let (a, b) = (a.report(a_ms, exact), b.report(b_ms, error_of_b));
    // Without an answer, no node is faster.
    let is_determined = difference != Difference::NotDetermined;
    Ok(StatementComparison {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        server_version: server.version,
        server: server.name,
        settings: server.settings,
        difference,
        ratio,
        rounds: rounds.len(),
        round_trip_ms: round_trip_ms.estimate,
        is_too_short,
        nodes: if is_determined { pairs(&a.nodes, &b.nodes) } else { Vec::new() },
        a,
        b,
        notes,
    })
}

/// Prepares both statements, and fills the caches by a run of each.
fn prepare_sides<'a>(
    session: &mut RunSession<'a>,
    [script_a, script_b]: [&'a Script; 2],
    round_trip_ms: Range,
) -> Result<[Side<'a>; 2], Error> {
    let mut a = Side::prepare(session, "A", script_a)?;
    let mut b = Side::prepare(session, "B", script_b)?;
    let mut warm_up_ms = 0.0;
    for side in [&mut a, &mut b] {
        let bare_calls = |session: &mut _| bare_calls_ms(session, round_trip_ms, TIMED_WITH_BUFFERS);
        side.runs = Runs { bare_calls_ms: side.with(session, bare_calls)?, round_trip_ms, ..Runs::default() };
        warm_up_ms += side.run(session, &RunMode::new(BASELINE, None), &mut Runs::default())? / 2.0;
    }
    say_how_long(session, warm_up_ms, RUNS_OF_A_ROUND);
    Ok([a, b])
}

/// Runs rounds until the interval of the ratio is narrow enough. Returns the rounds, and why none follows. Only the runs of complete
/// rounds are added to the statements.
fn run_rounds<'a>(
    session: &mut RunSession<'a>,
    [a, b]: &mut [Side<'a>; 2],
    no_settings: UsersSettings<'a>,
    same_rows: bool,
    progress: &mut dyn FnMut(f64),
) -> Result<(Vec<Round>, Option<End>), Error> {
    let course = Course::new(session.options.time);
    let (mut rounds, mut end) = (Vec::new(), None);
    let (baseline, timed) = (RunMode::new(BASELINE, None), RunMode::new(REPORTED, Some(TIMED_WITH_BUFFERS)));
    while end.is_none() && !is_decided(rounds.len(), ratio(&rounds, false)) {
        let is_first = rounds.len() < LEAST_ROUNDS;
        let one_round = |session: &mut RunSession<'a>| {
            session.users = no_settings;
            let round_trip_ms = session.round_trip_ms(ROUND_TRIPS_OF_A_ROUND)?;
            let mut round = [(); 2].map(|()| Runs { round_trip_ms, ..Runs::default() });
            let [of_a, of_b] = &mut round;
            b.run(session, &baseline, &mut Runs::default())?;
            a.run(session, &baseline, of_a)?;
            b.run(session, &baseline, of_b)?;
            a.run(session, &baseline, of_a)?;
            if is_first {
                a.run(session, &timed, of_a)?;
                b.run(session, &timed, of_b)?;
            }
            Ok(round)
        };
        let round;
        (round, end) = course.round(rounds.len(), session, progress, one_round)?;
        if let Some([of_a, of_b]) = round {
            let [before_ms, run_ms, after_ms] =
                [&of_a.samples[0], &of_b.samples[0], &of_a.samples[1]].map(|run| run.ms);
            rounds.push(Round { before_ms, run_ms, after_ms });
            a.runs.add(of_a);
            b.runs.add(of_b);
        }
        let [rows_of_a, rows_of_b] = [&*a, b].map(|side| side.rows().unwrap_or(0.0));
        require(
            !same_rows || rows_of_a == rows_of_b,
            format!("the statements have different numbers of rows: A {rows_of_a}, and B {rows_of_b}"),
            "they do not have the same result; without --same-rows they are compared",
        )?;
    }
    Ok((rounds, end))
}

/// Returns the difference, and the ratio if both statements are long enough to measure it.
fn decide(
    ratio: Option<Range>,
    [a_ms, b_ms]: [f64; 2],
    is_too_short: bool,
    round_trip_ms: Range,
) -> (Difference, Option<Range>) {
    match ratio {
        Some(ratio) if !is_too_short => {
            // The same round trip was subtracted from both times. Its error changes the ratio only if the times differ.
            let margin = 1.0 + round_trip_ms.margin() * (1.0 / a_ms - 1.0 / b_ms).abs();
            let ratio = Range { low: ratio.low / margin, high: ratio.high * margin, ..ratio };
            (Difference::of(ratio), Some(ratio))
        }
        Some(_) if a_ms.min(b_ms) < a_ms.max(b_ms) - SHORT * round_trip_ms.estimate => {
            (if a_ms < b_ms { Difference::Slower } else { Difference::Faster }, None)
        }
        _ => (Difference::NotDetermined, None),
    }
}

/// If one of the statements is lost in the round trip, the other one must take longer by this many round trips.
const SHORT: f64 = 6.0;

/// Returns each node of both plans once. Those whose numbers of rows differ come first, and then those whose times differ most.
fn pairs(a: &[ComparedNode], b: &[ComparedNode]) -> Vec<NodePair> {
    const JOINS: [&str; 3] = ["Nested Loop", "Hash Join", "Merge Join"];
    let mut partner_of_a = vec![None; a.len()];
    let mut is_taken = vec![false; b.len()];
    // The first key describes a node best: its place and its name. The others are for another way to read the same table, and for
    // another join or another table at the same place.
    let keys: [fn(&ComparedNode) -> Option<String>; 4] = [
        |node| Some(format!("{} {}", node.path, node.title)),
        |node| Some(node.title.clone()),
        |node| relation(&node.title).map(String::from),
        |node| Some(format!("{} {}", node.path, if JOINS.contains(&&*node.kind) { "Join" } else { &node.kind })),
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
            let difference_ms = self_ms(b, in_b).minus(self_ms(a, in_a));
            let has_other_rows = in_a.zip(in_b).is_some_and(|(in_a, in_b)| {
                (a[in_a].rows - b[in_b].rows).abs() > a[in_a].rows_error + b[in_b].rows_error
            });
            NodePair { a: in_a, b: in_b, difference_ms, has_other_rows }
        })
        .collect();
    pairs.sort_by(|x, y| {
        let size = |pair: &NodePair| pair.difference_ms.estimate.abs();
        y.has_other_rows.cmp(&x.has_other_rows).then(size(y).total_cmp(&size(x)))
    });
    pairs
}

/// Returns the table in a node's name, without its alias: `t` of `Index Scan using i on t x`.
fn relation(title: &str) -> Option<&str> {
    Some(Tokens::of(title.rsplit_once(" on ")?.1).next()?.text)
}

#[cfg(test)]
mod tests {
    use super::super::runs::MOST_ROUNDS;
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
            node("0.1", "Index Scan using i on t x", 5.0, 3.0),
        ];
        let expected = [(Some(0), Some(0)), (Some(2), None), (Some(1), Some(2)), (Some(3), Some(1))];
        assert_eq!(found(&a, &b), expected);
        // Two scans of one table stay at their places.
        let twice =
            |rows: [f64; 2]| [node("0.0", "Seq Scan on t", rows[0], 1.0), node("0.1", "Seq Scan on t", rows[1], 1.0)];
        assert_eq!(found(&twice([1.0, 2.0]), &twice([1.0, 3.0])), [(Some(1), Some(1)), (Some(0), Some(0))]);
        assert_eq!(found(&[], &b).len(), 3);
        let names = ["Seq Scan on t x", "Scan on \"We ird\" w", "CTE c: Seq Scan on t", "Sort"].map(relation);
        assert_eq!(names, [Some("t"), Some("\"We ird\""), Some("t"), None]);
    }

    #[test]
    fn rounded_rows_are_the_same() {
        let rounded = |rows: f64, rows_error: f64| ComparedNode { rows_error, ..node("0", "Sort", rows, 1.0) };
        let differ = |a: ComparedNode, b: ComparedNode| pairs(&[a], &[b])[0].has_other_rows;
        assert!(!differ(rounded(50_000.0, 0.0), rounded(50_001.0, 1.5)));
        assert!(!differ(rounded(0.0, 5000.0), rounded(2000.0, 0.0)));
        assert!(differ(rounded(50_000.0, 0.0), rounded(50_002.0, 1.5)));
    }

    /// In a round, each statement runs twice without EXPLAIN. The warm-up is one more run.
    #[test]
    fn the_documented_number_of_runs_is_correct() {
        let runs = 1 + 2 * MOST_ROUNDS as usize + LEAST_ROUNDS;
        let sentence = format!("each of the two statements runs up to {runs} times");
        let help = include_str!("../../command/help/explain.txt");
        for text in [help, include_str!("../../../../../docs/touches.md")] {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&sentence), "{sentence}");
        }
    }

    #[test]
    fn a_difference_contains_the_errors_of_both_nodes() {
        let [pair] = pairs(&[node("0", "Sort", 1.0, 5.0)], &[node("0", "Sort", 1.0, 5.5)]).try_into().unwrap();
        assert_eq!(pair.difference_ms, Range { low: -1.5, estimate: 0.5, high: 2.5 });
    }
}
