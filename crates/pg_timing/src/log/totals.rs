//! Adds up the plans of a log by statement, in limited memory.

use super::entry::Place;
use super::input::Sources;
use super::normalize::{beginning, normalized};
use super::parse::Logged;
use crate::error::Error;
use crate::human::grouped;
use crate::plan::{Analysis, Inputs, Selected};
use crate::report::{ExplainedNode, LogPlace, LogReport, LogTotal, LoggedStatement, Range, RankChange, SelfTime};
use crate::statistics::{ranks, root_sum_squares};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Statements with rows of their own: the first ones of the log. A log with more has statements that differ in more than
/// their constants, for example in the names of temporary tables. The others are added up in one row.
const MAX_STATEMENTS: usize = 5_000;

/// Nodes of all statements together whose times are added up. Each takes about 150 bytes.
const MAX_NODES: usize = 50_000;

/// Bytes of a statement's text that are kept.
const MAX_TEXT_BYTES: usize = 1000;

/// A plan whose overhead is estimated. Only its sums remain.
pub struct AnalyzedPlan {
    place: Place,
    key: Key,
    /// without constants
    text: Option<String>,
    reported_ms: f64,
    corrected_ms: Range,
    clock_ms: Range,
    nodes: AnalyzedNodes,
    /// what the user should know about the clock
    note: Option<String>,
    /// relative error that the overhead of all plans has in common
    common_error: f64,
}

/// Which executions are counted together. The default is the key of plans without a statement, and of all statements for
/// which there is no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    query_id: Option<i64>,
    /// hash of the text without constants; letters outside of quotation marks are lower case
    text: Option<u64>,
    is_nested: bool,
}

impl AnalyzedPlan {
    /// Returns the overhead of a plan, or why it cannot be estimated.
    pub fn of(logged: Logged, inputs: &Inputs) -> Result<AnalyzedPlan, Error> {
        let Logged { place, is_nested, query_id, selected, .. } = logged;
        let Selected { explained, execution_ms, .. } = selected?;
        let analysis = Analysis::of(explained, execution_ms, inputs)?;
        let text = analysis.plan.query.as_deref().map(normalized);
        Ok(AnalyzedPlan {
            place,
            key: Key { query_id, text: text.as_deref().map(hash_of_words), is_nested },
            text,
            reported_ms: execution_ms,
            corrected_ms: analysis.corrected_ms,
            clock_ms: analysis.clock_ms,
            nodes: AnalyzedNodes::of(&analysis),
            note: analysis.clock_note().map(String::from),
            common_error: analysis.common_error(),
        })
    }
}

/// Returns a hash that does not depend on the case of letters, except in quotation marks.
fn hash_of_words(text: &str) -> u64 {
    let mut is_quoted = false;
    let mut hasher = DefaultHasher::new();
    let folded = text.bytes().map(|byte| {
        is_quoted ^= byte == b'"';
        if is_quoted { byte } else { byte.to_ascii_lowercase() }
    });
    folded.collect::<Vec<u8>>().hash(&mut hasher);
    hasher.finish()
}

/// The sums over all plans.
#[derive(Default)]
pub struct Totals {
    statements: HashMap<Key, Statement>,
    nodes: usize,
    /// plans of statements beyond [`MAX_STATEMENTS`]
    plans_without_row: u64,
    notes: BTreeSet<String>,
    common_error: f64,
}

/// The sums of one statement.
#[derive(Default)]
struct Statement {
    /// `None`: plans without a statement, and all statements beyond [`MAX_STATEMENTS`]
    text: Option<String>,
    key: Key,
    runs: u64,
    reported_ms: f64,
    /// the executions of a statement have the same nodes, so their errors have the same sign and are added up
    corrected_ms: Range,
    clock_ms: Range,
    slowest: Place,
    slowest_ms: f64,
    shapes: Shapes,
}

impl Totals {
    /// Adds a plan. The plans must have the order of the log, so that the limits affect the same statements in each run.
    pub fn add(&mut self, plan: AnalyzedPlan) {
        self.notes.extend(plan.note);
        self.common_error = self.common_error.max(plan.common_error);
        let has_row = self.statements.len() < MAX_STATEMENTS || self.statements.contains_key(&plan.key);
        self.plans_without_row += u64::from(!has_row);
        let (key, text) = match has_row {
            true => (plan.key, plan.text),
            false => (Key { is_nested: plan.key.is_nested, ..Key::default() }, None),
        };
        let statement = self.statements.entry(key).or_insert_with(|| Statement {
            text: text.map(|text| beginning(&text, MAX_TEXT_BYTES).into()),
            key,
            ..Statement::default()
        });
        if statement.runs == 0 || plan.reported_ms > statement.slowest_ms {
            (statement.slowest_ms, statement.slowest) = (plan.reported_ms, plan.place);
        }
        statement.runs += 1;
        statement.reported_ms += plan.reported_ms;
        statement.corrected_ms = statement.corrected_ms + plan.corrected_ms;
        statement.clock_ms = statement.clock_ms + plan.clock_ms;
        // Plans of different statements have no sum.
        if has_row {
            let room = MAX_NODES.saturating_sub(self.nodes);
            self.nodes += statement.shapes.add(plan.nodes, plan.reported_ms, room);
        }
    }

    /// Returns a report with the sum without nested statements, whose time is within that of their callers, the reported time of
    /// nested statements, the rows, the one with the largest overhead first, and notes.
    pub fn into_report(self, sources: &Sources) -> LogReport {
        let mut statements: Vec<Statement> = self.statements.into_values().collect();
        // Equal statements have the order of the log.
        let overhead_ms = |statement: &Statement| statement.reported_ms - statement.corrected_ms.estimate;
        statements.sort_by(|a, b| overhead_ms(b).total_cmp(&overhead_ms(a)).then(a.slowest.cmp(&b.slowest)));
        let (nested, of_clients): (Vec<&Statement>, Vec<&Statement>) =
            statements.iter().partition(|statement| statement.key.is_nested);
        let nested_runs = nested.iter().map(|statement| statement.runs).sum();
        let mut notes: Vec<String> = self.notes.into_iter().collect();
        notes.extend(on_limits(self.plans_without_row, &statements));
        LogReport {
            total: LogTotal { nested_runs, ..total_of_all(&of_clients, self.common_error) },
            nested_ms: nested.iter().fold(0.0, |sum, statement| sum + statement.reported_ms),
            notes,
            statements: statements.iter().map(|statement| statement.logged(sources)).collect(),
            ..LogReport::default()
        }
    }
}

impl Statement {
    fn logged(&self, sources: &Sources) -> LoggedStatement {
        let most = self.shapes.most();
        let nested_runs = if self.key.is_nested { self.runs } else { 0 };
        LoggedStatement {
            statement: self.text.clone(),
            query_id: self.key.query_id,
            total: LogTotal { nested_runs, ..total(self.runs, self.reported_ms, self.corrected_ms, self.clock_ms) },
            plan_shapes: self.shapes.len(),
            slowest: LogPlace { file: sources.file(self.slowest.file), line: self.slowest.line },
            nodes: most.map_or(0, |shape| shape.nodes.len().max(1)),
            rank_changes: most.map_or_else(Vec::new, Shape::rank_changes),
        }
    }
}

/// Returns what the limits of the memory affect.
fn on_limits(plans_without_row: u64, statements: &[Statement]) -> Vec<String> {
    let mut notes = Vec::new();
    if plans_without_row > 0 {
        notes.push(format!(
            "only the first {} statements of the log have their own rows; the other {} plans are one row",
            grouped(MAX_STATEMENTS as u64),
            grouped(plans_without_row)
        ));
    }
    let number = |has: &dyn Fn(&Shapes) -> bool| statements.iter().filter(|statement| has(&statement.shapes)).count();
    let more = number(&|shapes| shapes.has_more);
    if more > 0 {
        notes.push(format!(
            "statements with more than {0} different plans: {more}; their ranks are from the first {0}",
            Shapes::MAX
        ));
    }
    let unranked = number(&|shapes| shapes.has_unranked);
    if unranked > 0 {
        notes.push(format!(
            "statements with plans without ranks: {unranked}; the ranks are limited to the first {} nodes of different plans",
            grouped(MAX_NODES as u64)
        ));
    }
    notes
}

/// Returns the sum over statements. Their errors are independent, except for the relative error of the overhead that all
/// statements of a host have in common.
fn total_of_all(statements: &[&Statement], common_error: f64) -> LogTotal {
    let sum = |value: &dyn Fn(&Statement) -> f64| statements.iter().map(|statement| value(statement)).sum::<f64>();
    let range = |range: &dyn Fn(&Statement) -> Range, common: f64| {
        let estimate = sum(&|statement| range(statement).estimate);
        let ranges = || statements.iter().map(|statement| range(statement));
        let below = root_sum_squares(ranges().map(|range| range.estimate - range.low)).hypot(common);
        let above = root_sum_squares(ranges().map(|range| range.high - range.estimate)).hypot(common);
        Range { low: (estimate - below).max(0.0), estimate, high: estimate + above }
    };
    let reported_ms = sum(&|statement| statement.reported_ms);
    let corrected_ms = sum(&|statement| statement.corrected_ms.estimate);
    let clock_ms = sum(&|statement| statement.clock_ms.estimate);
    let corrected = range(&|statement| statement.corrected_ms, common_error * (reported_ms - corrected_ms));
    let clock = range(&|statement| statement.clock_ms, common_error * clock_ms);
    total(statements.iter().map(|statement| statement.runs).sum(), reported_ms, corrected, clock)
}

fn total(runs: u64, reported_ms: f64, corrected_ms: Range, clock_ms: Range) -> LogTotal {
    let limited = |ms: f64| ms.clamp(0.0, reported_ms);
    let limit =
        |range: Range| Range { low: limited(range.low), estimate: limited(range.estimate), high: limited(range.high) };
    let (corrected_ms, clock_ms) = (limit(corrected_ms), limit(clock_ms));
    let in_shares = if reported_ms > 0.0 { 1.0 / reported_ms } else { 0.0 };
    let mut total = LogTotal { runs, reported_ms, corrected_ms, clock_ms, ..LogTotal::default() };
    total.overhead_share = total.overhead_ms().times(in_shares);
    total.clock_share = clock_ms.times(in_shares);
    total
}

/// The nodes of one plan.
struct AnalyzedNodes {
    /// hash of what executions with the same plan have in common
    shape: u64,
    count: usize,
    /// empty if the plan has a single node, which has no other rank
    nodes: Vec<NodeSum>,
}

impl AnalyzedNodes {
    fn of(analysis: &Analysis) -> AnalyzedNodes {
        let mut hasher = DefaultHasher::new();
        analysis.plan.shape.hash(&mut hasher);
        let count = analysis.plan.nodes.len();
        let nodes = if count > 1 { analysis.nodes() } else { Vec::new() };
        AnalyzedNodes { shape: hasher.finish(), count, nodes: nodes.into_iter().map(NodeSum::of).collect() }
    }
}

/// The different plans of a statement.
#[derive(Debug, Default)]
struct Shapes {
    /// at most [`Shapes::MAX`], in the order of the log
    shapes: Vec<Shape>,
    /// some executions had another plan
    has_more: bool,
    /// some executions had a plan for whose nodes there was no memory
    has_unranked: bool,
}

/// All executions with the same plan.
#[derive(Debug, Default)]
struct Shape {
    hash: u64,
    reported_ms: f64,
    /// empty if the plan has a single node
    nodes: Vec<NodeSum>,
}

#[derive(Debug, PartialEq)]
struct NodeSum {
    path: String,
    title: String,
    /// without ranks
    time: SelfTime,
}

impl Shapes {
    /// Plans per statement whose nodes are added up: the first ones of the log. A generated statement can have many.
    const MAX: usize = 8;

    /// Adds an execution. Returns how many nodes this stores; it stores at most `room`.
    fn add(&mut self, nodes: AnalyzedNodes, reported_ms: f64, room: usize) -> usize {
        let AnalyzedNodes { shape: hash, count, nodes } = nodes;
        let known = self.shapes.iter().position(|shape| shape.hash == hash);
        self.has_more |= known.is_none() && self.shapes.len() >= Shapes::MAX;
        self.has_unranked |= known.is_none() && count > room;
        if known.is_none() && (self.shapes.len() >= Shapes::MAX || count > room) {
            return 0;
        }
        let Some(known) = known else {
            self.shapes.push(Shape { hash, reported_ms, nodes });
            return count;
        };
        let shape = &mut self.shapes[known];
        shape.reported_ms += reported_ms;
        for (sum, node) in shape.nodes.iter_mut().zip(&nodes) {
            sum.time.add(&node.time);
        }
        0
    }

    fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Returns the plan that took the most time; of several, the first one in the log.
    fn most(&self) -> Option<&Shape> {
        self.shapes.iter().rev().max_by(|a, b| a.reported_ms.total_cmp(&b.reported_ms))
    }
}

impl Shape {
    /// Returns the nodes whose rank the overhead changed by more than the errors, in the order of their corrected rank.
    fn rank_changes(&self) -> Vec<RankChange> {
        let ranks_by =
            |ms: &dyn Fn(&SelfTime) -> f64| ranks(&self.nodes.iter().map(|node| ms(&node.time)).collect::<Vec<_>>());
        let (reported, corrected) = (ranks_by(&|time| time.reported_ms), ranks_by(&|time| time.corrected_ms));
        let ranked = self.nodes.iter().zip(reported.into_iter().zip(corrected));
        let times: Vec<SelfTime> =
            ranked.map(|(node, (rank, corrected_rank))| SelfTime { rank, corrected_rank, ..node.time }).collect();
        let sum = |ms: &dyn Fn(&SelfTime) -> f64| times.iter().map(ms).sum::<f64>();
        let (reported_ms, corrected_ms) = (sum(&|time| time.reported_ms), sum(&|time| time.corrected_ms));
        let has_changed = |time: &SelfTime| time.has_other_rank(times.iter().copied(), reported_ms, corrected_ms);
        let changed = self.nodes.iter().zip(&times).filter(|(_, time)| has_changed(time));
        let mut changes: Vec<RankChange> = changed
            .map(|(node, time)| RankChange {
                path: node.path.clone(),
                title: node.title.clone(),
                rank: time.rank,
                corrected_rank: time.corrected_rank,
                reported_self_ms: time.reported_ms,
                corrected_self_ms: time.corrected_ms,
            })
            .collect();
        changes.sort_by_key(|change| change.corrected_rank);
        changes
    }
}

impl NodeSum {
    /// Returns the sum of one execution.
    fn of(node: ExplainedNode) -> NodeSum {
        let time = SelfTime::of(&node);
        NodeSum { path: node.path, title: node.title, time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(shape: u64, count: usize) -> AnalyzedNodes {
        AnalyzedNodes { shape, count, nodes: (1..count).map(|_| NodeSum::of(ExplainedNode::default())).collect() }
    }

    #[test]
    fn the_first_plans_of_the_log_are_added_up() {
        let mut shapes = Shapes::default();
        for shape in 0..Shapes::MAX as u64 {
            assert_eq!(shapes.add(nodes(shape, 3), 1.0, 3), 3);
        }
        assert!(!shapes.has_more);
        // All took the same time.
        assert_eq!(shapes.most().map(|shape| shape.hash), Some(0));
        assert_eq!((shapes.add(nodes(99, 3), 9.0, 3), shapes.add(nodes(5, 3), 1.0, 0)), (0, 0));
        assert_eq!((shapes.has_more, shapes.has_unranked, shapes.len()), (true, false, Shapes::MAX));
        assert_eq!(shapes.most().map(|shape| (shape.hash, shape.reported_ms)), Some((5, 2.0)));
    }

    #[test]
    fn a_plan_without_room_is_not_ranked() {
        let mut shapes = Shapes::default();
        assert_eq!(shapes.add(nodes(1, 3), 1.0, 2), 0);
        assert_eq!((shapes.has_more, shapes.has_unranked, shapes.len()), (false, true, 0));
    }
}
