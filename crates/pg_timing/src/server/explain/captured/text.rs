//! The tree out of a text plan. What hangs where is told by the columns of the arrows.

use super::node_line::{NodeLine, Ran, column, node_line, number};
use crate::server::explain::plan::{Explained, Node, Serialization, Trigger, may_ask};

/// What keeps a text from being a plan that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// EXPLAIN without ANALYZE
    NotRun,
    /// `Total runtime`: 9.3 or older
    TooOld,
    /// its root is missing
    NoBeginning,
    /// nested so deeply that it is no plan
    TooDeep,
    /// a line is not whole, or goes on in the next one
    Cut,
}

/// Plans of hundreds of joins nest like this; what nests deeper is made up.
const DEEPEST: usize = 500;

/// The plan in some lines, of which the first is its root.
pub fn plan(lines: &[&str]) -> Result<Explained, Problem> {
    let mut explained = Explained::default();
    let mut tree = Tree::default();
    if lines.iter().any(|line| is_part(line)) {
        return Err(Problem::Cut);
    }
    let root = lines.first().map_or(0, |line| column(line));
    for line in lines {
        let text = line.trim();
        if let Some(node) = node_line(line) {
            tree.add(node)?;
        } else if !tree.label(line) {
            // Citus shows the times of its tasks in the same way, further in.
            if column(line) <= root + 2 {
                total(&mut explained, text)?;
            }
            property(&mut explained, tree.newest(), text);
            // What a log says after the plan is no condition of its last node.
            if let Some(node) = tree.newest_above(column(line), root)
                && may_ask(text)
            {
                node.asks.push(text.into());
            }
        }
    }
    explained.plan = tree.root().ok_or(Problem::NoBeginning)?;
    Ok(explained)
}

/// Of a node's line: its beginning alone, or what a mail has moved to the next one. Citus has arrows of its own.
fn is_part(line: &str) -> bool {
    let text = line.trim();
    let end = ["(cost=", "(actual ", "(never executed)"].iter().any(|part| text.starts_with(part));
    end || text.starts_with("->") && text != "->  Task" && node_line(line).is_none()
}

/// Below the tree: what the whole took.
fn total(explained: &mut Explained, text: &str) -> Result<(), Problem> {
    let Some((name, value)) = text.split_once(": ") else { return Ok(()) };
    let ms = || value.trim().strip_suffix(" ms").and_then(number);
    match name {
        "Execution Time" | "Execution time" => explained.execution_ms = explained.execution_ms.or_else(ms),
        "Planning Time" | "Planning time" => explained.planning_ms = explained.planning_ms.or_else(ms),
        "Total runtime" => return Err(Problem::TooOld),
        _ => {}
    }
    Ok(())
}

/// A line between nodes, or below them, that matters here.
fn property(explained: &mut Explained, node: Option<&mut Node>, text: &str) {
    if text == "JIT:" {
        explained.jit = Some(serde_json::Value::Null);
    }
    if text.starts_with("Trigger ") {
        let calls = text.rsplit_once("calls=").and_then(|(_, calls)| number(calls));
        explained.triggers.extend(calls.map(|calls| Trigger { calls }));
    }
    let Some((name, value)) = text.split_once(": ") else { return };
    let value = value.trim();
    match name {
        "Query Text" => explained.query = Some(value.into()),
        "Fast Timing" => explained.fast_timing = Some(value.into()),
        "Settings" => explained.settings = settings(value),
        "Serialization" => {
            let time = value.split_once("time=").and_then(|(_, time)| number(time.split(' ').next()?));
            explained.serialization = Some(Serialization { time_ms: time });
        }
        _ => {
            if let Some(node) = node {
                of_node(node, name, value);
            }
        }
    }
}

fn of_node(node: &mut Node, name: &str, value: &str) {
    match name {
        "Inner Unique" => node.inner_unique = value == "true",
        "Timing" if ["exact", "estimated"].iter().any(|way| value.starts_with(way)) => node.timing = Some(value.into()),
        // How many and how long matters to nobody here.
        "Buffers" => node.buffers = Some(0.0),
        "I/O Timings" => node.io_ms = Some(0.0),
        _ => {}
    }
}

/// `jit = 'off', work_mem = '64MB'`; a quote within is written twice.
fn settings(text: &str) -> std::collections::BTreeMap<String, String> {
    text.split("', ")
        .filter_map(|setting| setting.split_once(" = '"))
        .map(|(name, value)| (name.into(), value.trim_end_matches('\'').replace("''", "'")))
        .collect()
}

/// The nodes above the next line, each with the column of its arrow or label.
#[derive(Default)]
struct Tree {
    open: Vec<(Option<usize>, Node)>,
    label: Option<(usize, String)>,
}

impl Tree {
    fn add(&mut self, line: NodeLine) -> Result<(), Problem> {
        let NodeLine { arrow, mut node, ran } = line;
        match (self.open.is_empty(), arrow) {
            (true, Some(_)) => return Err(Problem::NoBeginning),
            // A second root is another plan; whoever cut the lines has seen to that.
            (false, None) => return Ok(()),
            _ => {}
        }
        if ran == Ran::Unknown {
            return Err(Problem::NotRun);
        }
        // A label stands where an arrow would, and pushes that of its node to the right.
        let label = self.label.take();
        let column = label.as_ref().map_or(arrow, |(column, _)| Some(*column));
        while self.open.len() > 1 && self.open.last().is_some_and(|(above, _)| *above >= column) {
            self.close();
        }
        if self.open.len() >= DEEPEST {
            return Err(Problem::TooDeep);
        }
        if let Some((_, parent)) = self.open.last() {
            (node.relationship, node.subplan) = related(parent, label.map(|(_, label)| label));
        }
        self.open.push((column, node));
        Ok(())
    }

    /// `CTE c`, `InitPlan 1 (returns $0)` or `SubPlan 1`, which stand above the node that they name.
    fn label(&mut self, line: &str) -> bool {
        let text = line.trim();
        let is = ["CTE ", "InitPlan ", "SubPlan "].iter().any(|kind| text.starts_with(kind)) && !text.contains(": ");
        if is {
            self.label = Some((column(line), text.into()));
        }
        is
    }

    fn newest(&mut self) -> Option<&mut Node> {
        self.open.last_mut().map(|(_, node)| node)
    }

    /// Whose arrow is left of a column; the root has none.
    fn newest_above(&mut self, column: usize, root: usize) -> Option<&mut Node> {
        self.open.last_mut().filter(|(arrow, _)| arrow.unwrap_or(root) < column).map(|(_, node)| node)
    }

    fn close(&mut self) {
        if let (Some((_, node)), Some((_, parent))) = (self.open.pop(), self.open.last_mut()) {
            parent.plans.push(node);
        }
    }

    fn root(mut self) -> Option<Node> {
        while self.open.len() > 1 {
            self.close();
        }
        self.open.pop().map(|(_, node)| node)
    }
}

/// Which of its parent's plans a node is, as far as it matters for calls.
fn related(parent: &Node, label: Option<String>) -> (Option<String>, Option<String>) {
    let is = |relationship: &str| Some(relationship.to_string());
    if let Some(label) = label {
        let relationship = if label.starts_with("SubPlan") { is("SubPlan") } else { is("InitPlan") };
        return (relationship, Some(label));
    }
    let relationship = match parent.kind.as_str() {
        "Append" | "Merge Append" | "BitmapAnd" | "BitmapOr" => is("Member"),
        "Subquery Scan" => is("Subquery"),
        _ if parent.plans.iter().any(|plan| plan.subplan.is_none()) => is("Inner"),
        _ => is("Outer"),
    };
    (relationship, None)
}
