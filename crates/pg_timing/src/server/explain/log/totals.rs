//! Adds up the plans of each statement.

use super::entry::Place;
use super::normalize::{beginning, normalized};
use super::pipeline::{Collector, LoggedPlan};
use crate::error::Error;
use crate::report::{ExplainedNode, Range};
use crate::server::explain::captured::{Analysis, Inputs};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Statements with names of their own. A log with more has statements that differ in more than their constants, for example
/// in the names of temporary tables. The rest is added up in one row.
const MAX_STATEMENTS: usize = 5_000;

/// Plans per statement whose nodes are added up. A generated statement can have many.
const MAX_SHAPES: usize = 8;

/// Nodes of all statements together whose times are added up. Each takes about 150 bytes.
const MAX_NODES: usize = 50_000;

/// Bytes of a statement's text that are kept.
const MAX_TEXT_BYTES: usize = 1000;

/// The sums of one thread.
pub struct Totals<'a> {
    inputs: &'a Inputs<'a>,
    pub sums: Sums,
}

/// Which executions are counted together. The text is that without constants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    query_id: Option<i64>,
    /// hash of the text; letters outside of quotation marks are lower case. `None`: the rest
    text: Option<u64>,
}

#[derive(Default)]
pub struct Sums {
    statements: HashMap<Key, Statement>,
    nodes: usize,
    /// what the user should know about the clocks of the plans
    pub notes: BTreeSet<String>,
    /// relative error that the overhead of all plans has in common
    pub common_error: f64,
}

/// The sums of one statement.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// `None`: all statements beyond [`MAX_STATEMENTS`], or a log without queries
    pub text: Option<String>,
    pub query_id: Option<i64>,
    pub sum: Sum,
    pub slowest: Place,
    slowest_ms: f64,
    /// at most [`MAX_SHAPES`]
    pub shapes: HashMap<u64, Shape>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub runs: u64,
    pub reported_ms: f64,
    pub corrected_ms: Range,
    pub clock_ms: Range,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.runs += other.runs;
        self.reported_ms += other.reported_ms;
        // The executions of a statement have the same nodes, so their errors have the same sign.
        self.corrected_ms = self.corrected_ms + other.corrected_ms;
        self.clock_ms = self.clock_ms + other.clock_ms;
    }
}

/// All executions with the same plan.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub reported_ms: f64,
    /// empty if the plan has a single node
    pub nodes: Vec<NodeSum>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSum {
    pub path: String,
    pub title: String,
    pub reported_self_ms: f64,
    pub corrected_self_ms: f64,
}

impl<'a> Totals<'a> {
    pub fn new(inputs: &'a Inputs<'a>) -> Totals<'a> {
        Totals { inputs, sums: Sums::default() }
    }
}

impl Collector for Totals<'_> {
    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        let LoggedPlan { place, query_id, selected, .. } = plan;
        let reported_ms = selected.execution_ms;
        let analysis = Analysis::of(selected.explained, reported_ms, self.inputs)?;
        let text = analysis.plan.query.as_deref().map(normalized);
        let sum = Sum { runs: 1, reported_ms, corrected_ms: analysis.corrected_ms, clock_ms: analysis.clock_ms };
        let key = Key { query_id, text: text.as_deref().map(hash_of_words) };
        self.sums.add_note(analysis.clock_note());
        self.sums.common_error = self.sums.common_error.max(analysis.common_error());
        let room = MAX_NODES.saturating_sub(self.sums.nodes);
        let statement = self.sums.statement(key, text.as_deref());
        statement.add(&Statement { sum, slowest: place, slowest_ms: reported_ms, ..Statement::default() });
        self.sums.nodes += statement.add_nodes(&analysis, room);
        Ok(())
    }
}

impl Sums {
    /// Returns the sums of a statement, or those of the rest if there are too many statements.
    fn statement(&mut self, key: Key, text: Option<&str>) -> &mut Statement {
        let is_known = self.statements.contains_key(&key);
        let (key, text) = match is_known || self.statements.len() < MAX_STATEMENTS {
            true => (key, text),
            false => (REST, None),
        };
        self.statements.entry(key).or_insert_with_key(|key| Statement {
            text: text.map(|text| beginning(text, MAX_TEXT_BYTES).into()),
            query_id: key.query_id,
            ..Statement::default()
        })
    }

    fn add_note(&mut self, note: Option<&str>) {
        if let Some(note) = note.filter(|note| !self.notes.contains(*note)) {
            self.notes.insert(note.into());
        }
    }

    /// Adds the sums of another thread.
    pub fn merge(mut self, other: Sums) -> Sums {
        for (key, theirs) in other.statements {
            let ours = self.statement(key, theirs.text.as_deref());
            ours.add(&theirs);
            theirs.shapes.into_iter().for_each(|(hash, shape)| ours.merge_shape(hash, shape));
        }
        self.notes.extend(other.notes);
        self.common_error = self.common_error.max(other.common_error);
        self
    }

    pub fn into_statements(self) -> impl Iterator<Item = Statement> {
        self.statements.into_values()
    }
}

/// The key of all statements for which there is no room.
const REST: Key = Key { query_id: None, text: None };

impl Statement {
    /// Adds the figures of other executions, without their nodes.
    fn add(&mut self, other: &Statement) {
        let is_first = self.sum.runs == 0;
        self.sum.add(&other.sum);
        let is_slower = other.slowest_ms > self.slowest_ms;
        let is_earlier = other.slowest_ms == self.slowest_ms && other.slowest < self.slowest;
        if is_first || is_slower || is_earlier {
            (self.slowest_ms, self.slowest) = (other.slowest_ms, other.slowest);
        }
    }

    /// Adds the nodes of a plan. Returns how many nodes this stores; it stores at most `room`.
    fn add_nodes(&mut self, analysis: &Analysis, room: usize) -> usize {
        let nodes = analysis.plan.nodes.len();
        let hash = hash(&analysis.plan.shape);
        let has_room = self.shapes.len() < MAX_SHAPES && nodes <= room;
        let shape = match self.shapes.get_mut(&hash) {
            Some(shape) => shape,
            None if has_room => self.shapes.entry(hash).or_default(),
            None => return 0,
        };
        shape.reported_ms += analysis.plan.execution_ms;
        // A single node has no other rank.
        if nodes == 1 {
            return 0;
        }
        let explained = analysis.nodes();
        if shape.nodes.is_empty() {
            shape.nodes = explained.iter().map(NodeSum::named).collect();
        }
        for (sum, node) in shape.nodes.iter_mut().zip(&explained) {
            sum.reported_self_ms += node.reported_self_ms;
            sum.corrected_self_ms += node.corrected_self_ms;
        }
        if has_room { nodes } else { 0 }
    }

    fn merge_shape(&mut self, hash: u64, theirs: Shape) {
        if self.shapes.len() >= MAX_SHAPES && !self.shapes.contains_key(&hash) {
            return;
        }
        let ours = self.shapes.entry(hash).or_default();
        ours.reported_ms += theirs.reported_ms;
        if ours.nodes.is_empty() {
            ours.nodes = theirs.nodes;
            return;
        }
        for (sum, node) in ours.nodes.iter_mut().zip(theirs.nodes) {
            sum.reported_self_ms += node.reported_self_ms;
            sum.corrected_self_ms += node.corrected_self_ms;
        }
    }
}

impl NodeSum {
    /// Returns the sum of no executions.
    fn named(node: &ExplainedNode) -> NodeSum {
        NodeSum { path: node.path.clone(), title: node.title.clone(), ..NodeSum::default() }
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns a hash that does not depend on the case of letters, except in quotation marks.
fn hash_of_words(text: &str) -> u64 {
    let mut is_quoted = false;
    let folded: Vec<u8> = text
        .bytes()
        .map(|byte| {
            is_quoted ^= byte == b'"';
            if is_quoted { byte } else { byte.to_ascii_lowercase() }
        })
        .collect();
    hash(&folded)
}
