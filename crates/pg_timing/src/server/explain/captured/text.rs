//! Reads a plan in text format. The columns of the arrows show the tree.

use super::node_line::{NodeLine, Ran, column, node_line, number};
use crate::plan_format::keys::CORRECTION;
use crate::server::explain::plan::{Explained, MAX_NODES, Node, Serialization, Trigger, parameters};
use serde::de::IgnoredAny;

/// Why a text plan cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextError {
    /// EXPLAIN without ANALYZE
    NotRun,
    /// the root is missing
    NoBeginning,
    /// nested deeper than any real plan
    TooDeep,
    /// more nodes than any real plan
    TooManyNodes,
    /// a line is truncated or wrapped
    Cut,
    /// an arrow is not to the right of the root, so the columns do not show the tree
    LostIndentation,
    /// without the columns: no tree fits
    NoTree,
    /// without the columns: a node can have two parents
    TwoTrees { node: String, parents: [String; 2] },
    /// without the columns: too many trees to try all
    ManyTrees,
}

/// A plan with hundreds of joins can be nested this deeply. No real plan is nested more deeply.
const MAX_DEPTH: usize = 500;

/// A line of a plan. Most lines are no nodes, so the nodes are stored elsewhere.
struct Line<'a> {
    text: &'a str,
    is_node: bool,
}

impl<'a> Line<'a> {
    fn of(text: &'a str, nodes: &mut Vec<NodeLine>) -> Line<'a> {
        let node = node_line(text);
        let is_node = node.is_some();
        nodes.extend(node);
        Line { text, is_node }
    }
}

/// Reads the plan in these lines. The first line is the root.
pub fn plan<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Explained, TextError> {
    let mut nodes = Vec::new();
    let lines: Vec<Line> = lines.map(|text| Line::of(text, &mut nodes)).collect();
    let root = lines.first().map_or(0, |line| column(line.text));
    if has_lost_indentation(&nodes, &lines, root) {
        return Err(TextError::LostIndentation);
    }
    if lines.iter().any(is_broken_node_line) {
        return Err(TextError::Cut);
    }
    let mut explained = Explained::default();
    let mut tree = Tree::default();
    let mut nodes = nodes.into_iter();
    for Line { text: line, is_node } in lines {
        let text = line.trim();
        if is_node {
            nodes.next().map_or(Ok(()), |node| tree.add(node))?;
        } else if !tree.take_label(line) {
            // Citus prints the times of its tasks in the same way, but indented.
            if column(line) <= root + 2 {
                read_total(&mut explained, text);
            }
            read_property(&mut explained, tree.last_node(), text);
            // A log line after the plan is not a condition of the plan's last node.
            if let Some(node) = tree.last_node_left_of(column(line), root) {
                node.parameters.extend(parameters::in_text(text).map(String::from));
            }
        }
    }
    if tree.label.is_some() {
        // The node of the last label is missing.
        return Err(TextError::Cut);
    }
    explained.plan = tree.root().ok_or(TextError::NoBeginning)?;
    Ok(explained)
}

/// Returns whether an arrow is not to the right of the root: a chat or a web page has removed the spaces before the
/// lines.
///
/// If several spaces became one, all arrows are in one column.
///
/// The width of a tab is not known, so it must be the same before all arrows.
fn has_lost_indentation(nodes: &[NodeLine], lines: &[Line], root: usize) -> bool {
    let node_lines = lines.iter().filter(|line| line.is_node);
    let arrows = nodes.iter().zip(node_lines).filter_map(|(node, line)| {
        let arrow = node.arrow?;
        Some((arrow, line.text[..arrow].rfind('\t').map_or("", |tab| &line.text[..=tab])))
    });
    let Some((_, first_tabs)) = arrows.clone().next() else { return false };
    arrows.clone().any(|(arrow, tabs)| arrow <= root || tabs != first_tabs)
        || arrows.clone().count() > 1 && arrows.clone().all(|(arrow, _)| arrow == root + 1)
}

/// Returns whether this is only a part of a node's line: the line was truncated, or wrapped in a mail. An arrow before
/// a task of Citus does not count.
fn is_broken_node_line(line: &Line) -> bool {
    let text = line.text.trim_start();
    match text.as_bytes().first() {
        Some(b'(') => ["(cost=", "(actual ", "(never executed)"].iter().any(|part| text.starts_with(part)),
        Some(b'-') => {
            let after_arrow = text.trim_end().strip_prefix("->").map(str::trim_start);
            !line.is_node && after_arrow.is_some_and(|name| name != "Task")
        }
        _ => false,
    }
}

/// Reads a line below the tree: the execution or planning time.
fn read_total(explained: &mut Explained, text: &str) {
    let Some((name, value)) = text.split_once(": ") else { return };
    let ms = || value.trim().strip_suffix(" ms").and_then(number);
    match name {
        // PostgreSQL 9.3 and older print the total runtime, which is the same time.
        "Execution Time" | "Execution time" | "Total runtime" => {
            explained.execution_ms = explained.execution_ms.or_else(ms)
        }
        "Planning Time" | "Planning time" => explained.planning_ms = explained.planning_ms.or_else(ms),
        _ => {}
    }
}

/// Reads a property of a node or of the whole plan, if it is needed.
fn read_property(explained: &mut Explained, node: Option<&mut Node>, text: &str) {
    if text == "JIT:" {
        explained.jit = Some(IgnoredAny);
    }
    if text.starts_with("Trigger ") {
        let calls = text.rsplit_once("calls=").and_then(|(_, calls)| number(calls));
        explained.triggers.extend(calls.map(|calls| Trigger { calls }));
    }
    let Some((name, value)) = text.split_once(": ") else { return };
    let value = value.trim();
    match name {
        "Query Text" => explained.query = Some(value.into()),
        "Query Identifier" => explained.query_id = value.parse().ok(),
        "Fast Timing" => explained.fast_timing = Some(value.into()),
        CORRECTION => explained.time_correction = Some(value.into()),
        "Settings" => explained.settings = settings(value),
        "Serialization" => {
            let time = value.split_once("time=").and_then(|(_, time)| number(time.split(' ').next()?));
            explained.serialization = Some(Serialization { time_ms: time });
        }
        _ => {
            if let Some(node) = node {
                read_node_property(node, name, value);
            }
        }
    }
}

fn read_node_property(node: &mut Node, name: &str, value: &str) {
    match name {
        "Inner Unique" => node.inner_unique = value == "true",
        "Timing" if ["exact", "estimated"].iter().any(|method| value.starts_with(method)) => {
            node.timing = Some(value.into())
        }
        // Only the presence of these lines matters.
        "Buffers" => node.buffers = Some(0.0),
        "I/O Timings" => node.io_ms = Some(0.0),
        _ => {}
    }
}

/// Parses `jit = 'off', work_mem = '64MB'`. A quote inside a value is doubled.
fn settings(text: &str) -> std::collections::BTreeMap<String, String> {
    text.split("', ")
        .filter_map(|setting| setting.split_once(" = '"))
        .map(|(name, value)| (name.into(), value.trim_end_matches('\'').replace("''", "'")))
        .collect()
}

/// Returns whether a line is the label of a subplan. PostgreSQL 8.3 and older do not number the subplans.
pub fn is_label(text: &str) -> bool {
    ["CTE ", "InitPlan ", "SubPlan "].iter().any(|kind| text.starts_with(kind)) && !text.contains(": ")
        || ["InitPlan", "SubPlan"].contains(&text)
}

/// A node whose inputs may follow.
struct Open {
    /// column of its arrow; the root has none
    arrow: Option<usize>,
    node: Node,
    /// a node below it is an input, not a subplan
    has_input: bool,
}

/// The branch of the tree that is being read: the nodes above the next line, with the columns of their arrows.
#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    nodes: usize,
    label: Option<(usize, String)>,
}

impl Tree {
    fn add(&mut self, line: NodeLine) -> Result<(), TextError> {
        let NodeLine { arrow, mut node, ran } = line;
        match (self.open.is_empty(), arrow) {
            (true, Some(_)) => return Err(TextError::NoBeginning),
            // The caller has split the lines at each root, so this is a node whose arrow is on the line above.
            (false, None) => return Err(TextError::Cut),
            _ => {}
        }
        if ran == Ran::Unknown {
            return Err(TextError::NotRun);
        }
        // A label takes the arrow's column and moves its node's arrow to the right.
        let label = self.label.take();
        let column = label.as_ref().map_or(arrow, |(column, _)| Some(*column));
        while self.open.len() > 1 && self.open.last().is_some_and(|above| above.arrow >= column) {
            self.close_last();
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(TextError::TooDeep);
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(TextError::TooManyNodes);
        }
        if let Some(parent) = self.open.last_mut() {
            (node.relationship, node.subplan) = relationship(parent, label.map(|(_, label)| label));
        }
        self.open.push(Open { arrow: column, node, has_input: false });
        Ok(())
    }

    /// Stores a label such as `CTE c`, `InitPlan 1 (returns $0)` or `SubPlan 1`. It belongs to the next node.
    fn take_label(&mut self, line: &str) -> bool {
        let text = line.trim();
        let is_label = is_label(text);
        if is_label {
            self.label = Some((column(line), text.into()));
        }
        is_label
    }

    fn last_node(&mut self) -> Option<&mut Node> {
        self.open.last_mut().map(|last| &mut last.node)
    }

    /// Returns the last node if its arrow is left of a column. The root has no arrow.
    fn last_node_left_of(&mut self, column: usize, root: usize) -> Option<&mut Node> {
        self.open.last_mut().filter(|last| last.arrow.unwrap_or(root) < column).map(|last| &mut last.node)
    }

    fn close_last(&mut self) {
        if let (Some(last), Some(parent)) = (self.open.pop(), self.open.last_mut()) {
            parent.node.plans.push(last.node);
        }
    }

    fn root(mut self) -> Option<Node> {
        while self.open.len() > 1 {
            self.close_last();
        }
        self.open.pop().map(|root| root.node)
    }
}

/// Returns a node's relationship to its parent and its subplan name, as JSON would show them.
fn relationship(parent: &mut Open, label: Option<String>) -> (Option<String>, Option<String>) {
    let some = |relationship: &str| Some(relationship.to_string());
    if let Some(label) = label {
        let relationship = if label.starts_with("SubPlan") { some("SubPlan") } else { some("InitPlan") };
        return (relationship, Some(label));
    }
    let has_input = std::mem::replace(&mut parent.has_input, true);
    let relationship = match parent.node.kind.as_str() {
        "Append" | "Merge Append" | "BitmapAnd" | "BitmapOr" => some("Member"),
        "Subquery Scan" => some("Subquery"),
        _ if has_input => some("Inner"),
        _ => some("Outer"),
    };
    (relationship, None)
}
