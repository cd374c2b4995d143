//! Adds up the plans of a log by statement, in limited memory.

use super::entry::Place;
use super::input::Sources;
use super::normalize::{beginning, normalized};
use super::parse::LoggedPlan;
use crate::error::Error;
use crate::human::grouped;
use crate::plan::{Analysis, Inputs, Selected};
use crate::report::{LogPlace, LogReport, LogTotal, LoggedStatement, Range, RankChange, SelfTime};
use crate::statistics::root_sum_squares;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Statements with rows of their own: the first ones of the log. A log with more has statements that differ in more than
/// their constants, for example in the names of temporary tables. The others are added up in one row.
const MAX_STATEMENTS: usize = 5_000;

/// Nodes per statement whose change of rank is listed, so that the memory is limited. A reader needs fewer.
const MAX_RANK_CHANGES: usize = 20;

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
    nodes: usize,
    /// in the order of their corrected rank
    rank_changes: Vec<RankChange>,
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
    pub fn of(logged: LoggedPlan, inputs: &Inputs) -> Result<AnalyzedPlan, Error> {
        let LoggedPlan { place, is_nested, query_id, selected } = logged;
        let Selected { explained, execution_ms, .. } = selected;
        let analysis = Analysis::of(explained, execution_ms, inputs)?;
        let text = analysis.plan.query.as_deref().map(normalized);
        Ok(AnalyzedPlan {
            place,
            key: Key { query_id, text: text.as_deref().map(hash_of_words), is_nested },
            text,
            reported_ms: execution_ms,
            corrected_ms: analysis.corrected_ms,
            clock_ms: analysis.clock_ms,
            nodes: analysis.plan.nodes.len(),
            rank_changes: rank_changes(&analysis),
            note: analysis.clock_note().map(String::from),
            common_error: analysis.common_error(),
        })
    }
}

/// Returns a hash that does not depend on the case of letters, except in quotation marks.
fn hash_of_words(text: &str) -> u64 {
    let mut is_quoted = false;
    let folded = text.bytes().map(|byte| {
        is_quoted ^= byte == b'"';
        if is_quoted { byte } else { byte.to_ascii_lowercase() }
    });
    let mut hasher = DefaultHasher::new();
    folded.collect::<Vec<u8>>().hash(&mut hasher);
    hasher.finish()
}

/// Returns the nodes whose rank the overhead changed by more than the errors. A single node has no other rank.
fn rank_changes(analysis: &Analysis) -> Vec<RankChange> {
    if analysis.plan.nodes.len() < 2 {
        return Vec::new();
    }
    let nodes = analysis.nodes();
    let (reported_ms, corrected_ms) = (analysis.plan.execution_ms, analysis.corrected_ms.estimate);
    let all = || nodes.iter().map(SelfTime::of);
    let changed = nodes.iter().zip(all()).filter(|(_, time)| time.has_other_rank(all(), reported_ms, corrected_ms));
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
    changes.truncate(MAX_RANK_CHANGES);
    changes
}

/// The sums over all plans.
#[derive(Default)]
pub struct Totals {
    statements: HashMap<Key, Statement>,
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
    /// of the slowest plan
    nodes: usize,
    rank_changes: Vec<RankChange>,
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
            // The plans in the row of many statements have no common ranks.
            if has_row {
                (statement.nodes, statement.rank_changes) = (plan.nodes, plan.rank_changes);
            }
        }
        statement.runs += 1;
        statement.reported_ms += plan.reported_ms;
        statement.corrected_ms = statement.corrected_ms + plan.corrected_ms;
        statement.clock_ms = statement.clock_ms + plan.clock_ms;
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
        if self.plans_without_row > 0 {
            notes.push(format!(
                "only the first {} statements of the log have their own rows; the other {} plans are one row",
                grouped(MAX_STATEMENTS as u64),
                grouped(self.plans_without_row)
            ));
        }
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
        let nested_runs = if self.key.is_nested { self.runs } else { 0 };
        LoggedStatement {
            statement: self.text.clone(),
            query_id: self.key.query_id,
            total: LogTotal { nested_runs, ..total(self.runs, self.reported_ms, self.corrected_ms, self.clock_ms) },
            slowest: LogPlace { file: sources.file(self.slowest.file), line: self.slowest.line },
            nodes: self.nodes,
            rank_changes: self.rank_changes.clone(),
        }
    }
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
