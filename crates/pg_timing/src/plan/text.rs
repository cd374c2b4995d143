//! Reads a plan in text format. The columns of the arrows show the tree.

use super::MAX_NODES;
use super::node_line::{ARROW, FIGURES, NodeLine, Ran, column, node_line, number};
use super::parameters;
use super::tree::{Explained, Node, Serialization, Trigger};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// pg_timing's own line in a plan: its times are corrected.
pub const CORRECTION: &str = "Time Correction";

/// Why a text plan cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextError {
    /// EXPLAIN without ANALYZE
    NotRun,
    /// the root is missing
    NoBeginning,
    /// nested deeper than any real plan
    TooDeep,
    TooManyNodes,
    /// a node's line is truncated, or folded in an unknown way
    Cut,
    /// the arrows do not show the tree
    LostIndentation,
    /// and neither do the kinds of nodes: with the reason
    NoTree(String),
}

/// A plan with more levels is damaged, and the tree's functions call themselves for each level.
const MAX_DEPTH: usize = 500;

/// Reads the lines of one plan. Lines that it does not know are skipped.
pub fn plan<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Explained, TextError> {
    let mut reader = Reader::default();
    lines.into_iter().try_for_each(|line| reader.line(line))?;
    reader.end()
}

/// Returns the label of the subplan whose node is in the next line. PostgreSQL 8.3 and older do not number them. Citus
/// prints its own subplans with an arrow.
pub fn label(text: &str) -> Option<&str> {
    let is_label = ["CTE ", "InitPlan ", "SubPlan "].iter().any(|kind| text.starts_with(kind)) && !text.contains(": ")
        || ["InitPlan", "SubPlan"].contains(&text);
    let of_citus =
        || text.strip_prefix(ARROW).map(str::trim_start).filter(|name| name.starts_with("Distributed Subplan "));
    if is_label { Some(text) } else { of_citus() }
}

/// Returns whether a line is Citus's heading of a task, whose plan is in the next lines.
pub fn is_task(text: &str) -> bool {
    text.strip_prefix(ARROW).is_some_and(|name| name.trim() == "Task")
}

/// A node whose inputs may follow.
struct Open {
    /// column of its arrow, or of its label
    column: Option<usize>,
    node: Node,
}

#[derive(Default)]
struct Reader<'a> {
    explained: Explained,
    /// column of the first line
    root: Option<usize>,
    open: Vec<Open>,
    nodes: usize,
    label: Option<(usize, &'a str)>,
    /// what is before the first arrow up to its last tab
    tabs: Option<&'a str>,
    /// number of arrows, and of those that are one column to the right of the root
    arrows: (usize, usize),
    has_cut_line: bool,
    not_run: bool,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), TextError> {
        let text = line.trim();
        if text.is_empty() {
            return Ok(());
        }
        let root = *self.root.get_or_insert(column(line));
        if let Some(node) = node_line(line) {
            return self.node(node, line, root);
        }
        let column = column(line);
        if let Some(label) = label(text) {
            self.label = Some((column, label));
        } else if is_task(text) {
            self.close_from(column);
        } else if text.starts_with(ARROW) || FIGURES.iter().any(|part| text.starts_with(part)) {
            self.has_cut_line = true;
        } else {
            self.property(text, column, root);
        }
        Ok(())
    }

    fn node(&mut self, line: NodeLine, text: &'a str, root: usize) -> Result<(), TextError> {
        let NodeLine { arrow, mut node, ran } = line;
        self.not_run |= ran == Ran::Unknown;
        match (self.open.is_empty(), arrow) {
            (true, Some(_)) => return Err(TextError::NoBeginning),
            // The caller has split the lines at each root, so this is a node whose arrow is on the line above.
            (false, None) => self.has_cut_line = true,
            _ => {}
        }
        if let Some(arrow) = arrow {
            let tabs = text[..arrow].rfind('\t').map_or("", |tab| &text[..=tab]);
            if arrow <= root || *self.tabs.get_or_insert(tabs) != tabs {
                return Err(TextError::LostIndentation);
            }
            self.arrows = (self.arrows.0 + 1, self.arrows.1 + usize::from(arrow == root + 1));
        }
        // A label takes the arrow's column and moves its node's arrow to the right.
        let label = self.label.take();
        let column = label.map_or(arrow, |(column, _)| Some(column));
        node.subplan = label.map(|(_, label)| label.into());
        self.close_from(column.unwrap_or_default());
        self.nodes += 1;
        if self.open.len() >= MAX_DEPTH {
            return Err(TextError::TooDeep);
        }
        if self.nodes > MAX_NODES {
            return Err(TextError::TooManyNodes);
        }
        self.open.push(Open { column, node });
        Ok(())
    }

    /// Closes the nodes whose arrow is at this column or to the right of it.
    fn close_from(&mut self, column: usize) {
        while self.open.len() > 1 && self.open.last().is_some_and(|last| last.column >= Some(column)) {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        if let (Some(last), Some(parent)) = (self.open.pop(), self.open.last_mut()) {
            parent.node.plans.push(last.node);
        }
    }

    fn property(&mut self, text: &str, column: usize, root: usize) {
        // Citus prints the times of its tasks in the same way, but indented.
        if column <= root + 2 {
            read_total(&mut self.explained, text);
        }
        read_property(&mut self.explained, text);
        let Some(last) = self.open.last_mut() else { return };
        if let Some((name, value)) = text.split_once(": ") {
            read_node_property(&mut last.node, name, value.trim());
        }
        // A log line after the plan is not a condition of the plan's last node.
        if last.column.unwrap_or(root) < column {
            last.node.parameters.extend(parameters::in_text(text).map(String::from));
        }
    }

    fn end(mut self) -> Result<Explained, TextError> {
        let (arrows, next_to_root) = self.arrows;
        if arrows > 1 && arrows == next_to_root {
            return Err(TextError::LostIndentation);
        }
        // Without its node, a label is at the end of what is left.
        if self.has_cut_line || self.label.is_some() {
            return Err(TextError::Cut);
        }
        if self.not_run {
            return Err(TextError::NotRun);
        }
        self.close_from(0);
        self.explained.plan = self.open.pop().ok_or(TextError::NoBeginning)?.node;
        Ok(self.explained)
    }
}

/// Reads the lines below the tree.
fn read_total(explained: &mut Explained, text: &str) {
    let Some((name, value)) = text.split_once(": ") else { return };
    let ms = || number(value.trim().split_once(" ms")?.0);
    match name {
        // PostgreSQL 9.3 and older print the total runtime, which is the same time.
        "Execution Time" | "Execution time" | "Total runtime" => {
            explained.execution_ms = explained.execution_ms.or_else(ms)
        }
        "Planning Time" | "Planning time" => explained.planning_ms = explained.planning_ms.or_else(ms),
        _ => {}
    }
}

/// Reads a property of the whole plan.
fn read_property(explained: &mut Explained, text: &str) {
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
        _ => {}
    }
}

fn read_node_property(node: &mut Node, name: &str, value: &str) {
    match name {
        "Inner Unique" => node.inner_unique = value == "true",
        "Timing" => node.is_fast_timed |= ["exact", "estimated"].iter().any(|method| value.starts_with(method)),
        "Buffers" => node.has_buffers = true,
        "I/O Timings" => node.has_io_times = true,
        "Tasks Shown" => node.set_tasks_shown(value),
        _ => {}
    }
}

/// Reads `jit = 'off', work_mem = '64kB'`.
fn settings(text: &str) -> BTreeMap<String, String> {
    text.split("', ")
        .filter_map(|setting| setting.split_once(" = '"))
        .map(|(name, value)| (name.into(), value.trim_end_matches('\'').replace("''", "'")))
        .collect()
}
