//! The sums of each statement, in limited memory.

use super::analyzed::{AnalyzedPlan, Key};
use super::calls::Cost;
use super::entry::Place;
use super::normalize::beginning;
use super::shapes::Shapes;
use crate::report::Range;
use std::collections::HashMap;

/// Statements with rows of their own: the first ones of the log. A log with more has statements that differ in more than
/// their constants, for example in the names of temporary tables. The others are added up in one row.
pub const MAX_STATEMENTS: usize = 5_000;

/// Nodes of all statements together whose times are added up. Each takes about 150 bytes.
pub const MAX_NODES: usize = 50_000;

/// Bytes of a statement's text that are kept.
const MAX_TEXT_BYTES: usize = 1000;

#[derive(Default)]
pub struct Statements {
    statements: HashMap<Key, Statement>,
    nodes: usize,
    /// plans of statements beyond [`MAX_STATEMENTS`]
    pub plans_without_row: u64,
}

/// The sums of one statement.
#[derive(Debug, Default)]
pub struct Statement {
    /// `None`: plans without a statement, and all statements beyond [`MAX_STATEMENTS`]
    pub text: Option<String>,
    pub query_id: Option<i64>,
    pub runs: u64,
    pub nested_runs: u64,
    pub reported_ms: f64,
    /// without the overhead of these plans; the executions of a statement have the same nodes, so their errors have the same
    /// sign and are added up
    pub own_corrected_ms: Range,
    /// clock reads of these plans
    pub own_clock_ms: Range,
    /// the nested plans within these plans
    pub called: Cost,
    pub slowest: Place,
    slowest_ms: f64,
    pub shapes: Shapes,
}

impl Statements {
    /// Adds a plan. `called` are the plans within its time.
    pub fn add(&mut self, plan: AnalyzedPlan, is_nested: bool, called: &Cost) {
        let has_row = self.statements.len() < MAX_STATEMENTS || self.statements.contains_key(&plan.key);
        self.plans_without_row += u64::from(!has_row);
        let (key, text) = if has_row { (plan.key, plan.text) } else { (Key::default(), None) };
        let statement = self.statements.entry(key).or_insert_with(|| Statement {
            text: text.map(|text| beginning(&text, MAX_TEXT_BYTES).into()),
            query_id: key.query_id(),
            ..Statement::default()
        });
        let is_first = statement.runs == 0;
        statement.runs += 1;
        statement.nested_runs += u64::from(is_nested);
        statement.reported_ms += plan.reported_ms;
        statement.own_corrected_ms = statement.own_corrected_ms + plan.corrected_ms;
        statement.own_clock_ms = statement.own_clock_ms + plan.clock_ms;
        statement.called.add(called);
        if is_first || plan.reported_ms > statement.slowest_ms {
            (statement.slowest_ms, statement.slowest) = (plan.reported_ms, plan.place);
        }
        // Plans of different statements have no sum.
        if has_row {
            let room = MAX_NODES.saturating_sub(self.nodes);
            self.nodes += statement.shapes.add(plan.nodes, plan.reported_ms, called.overhead_ms.high, room);
        }
    }

    pub fn into_statements(self) -> impl Iterator<Item = Statement> {
        self.statements.into_values()
    }
}
