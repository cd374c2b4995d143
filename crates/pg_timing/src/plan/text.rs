//! Reads a plan in text format. The columns of the arrows show the tree. A node's line is like
//! `  ->  Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4) (actual time=0.007..0.008 rows=1 loops=1)`.

use super::tree::{Explained, Node, Rows, Serialization, Trigger, parameters_in};
use super::unusable::Unusable;
use super::{Found, MAX_DEPTH, MAX_NODES};
use crate::tokens::Tokens;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// A node from its line, without its inputs.
#[derive(Debug, PartialEq)]
pub struct NodeLine {
    /// column of the arrow; the root has none
    pub arrow: Option<usize>,
    /// it has no loops after EXPLAIN without ANALYZE
    pub node: Node,
}

/// Two spaces follow, but a web page may show them as one.
pub const ARROW: &str = "->";
pub const NEVER_EXECUTED: &str = "(never executed)";
/// What a node's figures begin with.
pub const FIGURES: [&str; 3] = ["(cost=", "(actual ", NEVER_EXECUTED];

/// Returns the node of a line, or `None` for other lines. Lines of workers and properties have no figures in
/// parentheses at the end, or they have a colon in the place of the node's name.
pub fn node_line(line: &str) -> Option<NodeLine> {
    let text = line.trim();
    if !text.ends_with(')') {
        return None;
    }
    let (arrow, text) = match text.strip_prefix(ARROW) {
        Some(text) => (Some(column(line)), text.trim_start()),
        None => (None, text),
    };
    let (before, actual) = match last_bracket(text, "(actual ").or_else(|| last_bracket(text, NEVER_EXECUTED)) {
        Some(at) => (text[..at].trim_end(), Some(&text[at..])),
        None => (text, None),
    };
    let costs = last_bracket(before, "(cost=").filter(|&at| before.ends_with(')') && before[at..].contains(".."));
    if actual.is_none() && costs.is_none() {
        return None;
    }
    let name = costs.map_or(before, |at| &before[..at]).trim();
    // MySQL prints one cost and not two.
    if name.contains("(cost=") || !names_node(name) {
        return None;
    }
    let mut node = node_from_name(name);
    match actual {
        None => {}
        Some(NEVER_EXECUTED) => {
            (node.loops, node.rows, node.total_ms) = (Some(0.0), Some(Rows::new(0.0, false)), Some(0.0));
        }
        Some(actual) => read_figures(&mut node, actual.strip_prefix("(actual ")?.strip_suffix(')')?)?,
    }
    Some(NodeLine { arrow, node })
}

/// Returns where the last occurrence of a word begins that starts with a bracket. A search for the bracket is much faster
/// than one for the word.
pub fn last_bracket(text: &str, word: &str) -> Option<usize> {
    memchr::memrchr_iter(b'(', text.as_bytes()).find(|&at| text[at..].starts_with(word))
}

/// Returns the end of the node's figures in a line, in bytes.
pub fn figures_end(line: &str) -> Option<usize> {
    let [cost, actual, never] = FIGURES.map(|figures| last_bracket(line, figures));
    let begin = actual.or(never).or(cost)?;
    Some(begin + line[begin..].find(')')? + 1)
}

/// Returns whether a text can begin with a node's name. Properties have a colon and a space after their name. Greenplum's
/// `Gather Motion 3:1  (slice1; segments: 3)` has them only in its parentheses.
pub fn names_node(text: &str) -> bool {
    let kind = text.split_once(" on ").map_or(text, |(kind, _)| kind);
    let kind = kind.split('(').next().unwrap_or_default();
    text.starts_with(|c: char| c.is_ascii_uppercase()) && !kind.contains(": ") && !kind.trim_end().ends_with(':')
}

/// Returns the column where a line's text begins.
pub fn column(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Reads `time=0.007..0.008 rows=1 loops=1` into the node. The time is missing with TIMING OFF.
fn read_figures(node: &mut Node, actual: &str) -> Option<()> {
    let mut parts = actual.split(' ').peekable();
    if let Some(time) = parts.next_if(|part| part.starts_with("time=")) {
        let (startup, total) = time.strip_prefix("time=")?.split_once("..")?;
        number(startup)?;
        node.total_ms = Some(number(total)?);
    }
    let rows = parts.next()?.strip_prefix("rows=")?;
    node.rows = Some(Rows::new(number(rows)?, rows.contains('.')));
    node.loops = Some(number(parts.next()?.strip_prefix("loops=")?)?);
    parts.next().is_none().then_some(())
}

/// Parses a number as EXPLAIN prints it: digits and a point, without exponent or sign.
pub fn number(text: &str) -> Option<f64> {
    let digits =
        text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.starts_with(|c: char| c.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Returns the node that the JSON format would show for a name in the text format.
fn node_from_name(name: &str) -> Node {
    let (head, target) = name.split_once(" on ").unwrap_or((name, ""));
    let head = head.split_once(" using ").map_or(head, |(head, _)| head);
    let mut head = head.strip_suffix(" Backward").unwrap_or(head);
    for prefix in ["Parallel ", "Async ", "Partial ", "Finalize "] {
        head = head.strip_prefix(prefix).unwrap_or(head);
    }
    let kind = kind(head).to_string();
    let is_cte = kind == "CTE Scan" || kind == "WorkTable Scan";
    // A CTE has no schema.
    let cte = Tokens::of(target).next().filter(|_| is_cte).and_then(|cte| cte.name());
    Node { name: name.into(), cte, kind, ..Node::default() }
}

/// Returns the node type of JSON. The text format adds the type of a join and the strategy of an aggregate to it.
fn kind(head: &str) -> &str {
    for (method, kind) in [("Nested Loop", "Nested Loop"), ("Hash", "Hash Join"), ("Merge", "Merge Join")] {
        if head.strip_prefix(method).is_some_and(|rest| rest.ends_with(" Join")) {
            return kind;
        }
    }
    match head {
        "GroupAggregate" | "HashAggregate" | "MixedAggregate" => "Aggregate",
        "Insert" | "Update" | "Delete" | "Merge" => "ModifyTable",
        "Foreign Insert" | "Foreign Update" | "Foreign Delete" => "Foreign Scan",
        _ if head.starts_with("HashSetOp") || head.starts_with("SetOp") => "SetOp",
        _ if head.starts_with("Custom Scan") => "Custom Scan",
        // Greenplum's `Gather Motion 3:1  (slice1; segments: 3)`
        _ => match head.split("  (").next().unwrap_or(head).rsplit_once(' ') {
            Some((kind, numbers)) if numbers.contains(':') => kind,
            _ => head,
        },
    }
}

/// pg_timing's own line in a plan: its times are corrected.
pub const CORRECTION: &str = "Time Correction";

/// Reads the lines of one plan. Lines that it does not know are skipped.
pub fn plan<'a>(lines: impl Iterator<Item = &'a str>) -> Found {
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

/// Returns whether a line is Citus's heading of a task or of a job. The plan of a task is in the next lines.
pub fn is_task(text: &str) -> bool {
    text.strip_prefix(ARROW).is_some_and(|name| ["Task", "MapMergeJob"].contains(&name.trim()))
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
    fn line(&mut self, line: &'a str) -> Result<(), Unusable> {
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

    fn node(&mut self, line: NodeLine, text: &'a str, root: usize) -> Result<(), Unusable> {
        let NodeLine { arrow, mut node } = line;
        self.not_run |= node.loops.is_none();
        match (self.open.is_empty(), arrow) {
            (true, Some(_)) => return Err(Unusable::RootMissing),
            // The caller has split the lines at each root, so this is a node whose arrow is on the line above.
            (false, None) => self.has_cut_line = true,
            _ => {}
        }
        if let Some(arrow) = arrow {
            let tabs = text[..arrow].rfind('\t').map_or("", |tab| &text[..=tab]);
            if arrow <= root || *self.tabs.get_or_insert(tabs) != tabs {
                return Err(Unusable::LostIndentation("its arrows have too few columns".into()));
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
            return Err(Unusable::TooDeep);
        }
        if self.nodes > MAX_NODES {
            return Err(Unusable::TooManyNodes);
        }
        self.open.push(Open { column, node });
        Ok(())
    }

    /// Closes the nodes whose arrow is at this column or to the right of it.
    fn close_from(&mut self, column: usize) {
        while let [.., parent, last] = &mut self.open[..]
            && last.column >= Some(column)
        {
            parent.node.children.push(std::mem::take(&mut last.node));
            self.open.pop();
        }
    }

    fn property(&mut self, text: &str, column: usize, root: usize) {
        let explained = &mut self.explained;
        if text == "JIT:" {
            explained.jit = Some(IgnoredAny);
        }
        if text.starts_with("Trigger ") {
            let calls = text.rsplit_once("calls=").and_then(|(_, calls)| number(calls));
            explained.triggers.extend(calls.map(|calls| Trigger { calls }));
        }
        if let Some((name, value)) = text.split_once(": ") {
            // Citus prints the times of its tasks in the same way as those of the plan, but indented.
            read_property(explained, name, value.trim(), column <= root + 2);
        }
        let Some(last) = self.open.last_mut() else { return };
        if let Some((name, value)) = text.split_once(": ") {
            read_node_property(&mut last.node, name, value.trim());
        }
        // A log line after the plan is not a condition of the plan's last node.
        if last.column.unwrap_or(root) < column {
            last.node.parameters.extend(parameters_in(text).map(String::from));
        }
    }

    fn end(mut self) -> Found {
        let (arrows, next_to_root) = self.arrows;
        if arrows > 1 && arrows == next_to_root {
            return Err(Unusable::LostIndentation("its arrows have too few columns".into()));
        }
        // Without its node, a label is at the end of what is left.
        if self.has_cut_line || self.label.is_some() {
            return Err(Unusable::NodeLineIncomplete);
        }
        if self.not_run {
            return Err(Unusable::NotExecuted);
        }
        self.close_from(0);
        self.explained.root = self.open.pop().ok_or(Unusable::RootMissing)?.node;
        Ok(self.explained)
    }
}

/// Reads a property of the whole plan. `is_total`: it can be a time of the whole plan.
fn read_property(explained: &mut Explained, name: &str, value: &str, is_total: bool) {
    let ms = || number(value.split_once(" ms")?.0);
    match name {
        // PostgreSQL 9.3 and older print the total runtime, which is the same time.
        "Execution Time" | "Execution time" | "Total runtime" if is_total => {
            explained.execution_ms = explained.execution_ms.or_else(ms)
        }
        "Planning Time" | "Planning time" if is_total => explained.planning_ms = explained.planning_ms.or_else(ms),
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
        "Timing" => node.is_fast_timed |= ["exact", "estimated", "none"].iter().any(|method| value.starts_with(method)),
        "Buffers" => node.has_buffers = true,
        "I/O Timings" => node.has_io_times = true,
        "Task Count" => node.hidden_tasks = value.parse().ok(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_and_become_types() {
        for (name, kind) in [
            ("Seq Scan on public.\"we ird (x)\" \"A -> b\"", "Seq Scan"),
            ("Parallel Index Only Scan Backward using i on t a", "Index Only Scan"),
            ("Parallel Seq Scan on \"a\"\"b\"", "Seq Scan"),
            ("Bitmap Index Scan on i", "Bitmap Index Scan"),
            ("Function Scan on pg_catalog.generate_series g", "Function Scan"),
            ("Async Foreign Scan on f f_1", "Foreign Scan"),
            ("Foreign Update on f", "Foreign Scan"),
            ("Merge on t", "ModifyTable"),
            ("Merge Append", "Merge Append"),
            ("Merge Right Anti Join", "Merge Join"),
            ("Parallel Hash Left Join", "Hash Join"),
            ("Parallel Hash", "Hash"),
            ("Nested Loop Left Join", "Nested Loop"),
            ("Nested Loop", "Nested Loop"),
            ("Finalize HashAggregate", "Aggregate"),
            ("Custom Scan (Citus Adaptive)", "Custom Scan"),
            ("Custom Scan (ChunkAppend) on t", "Custom Scan"),
            ("HashSetOp Intersect All", "SetOp"),
            ("Gather Motion 3:1  (slice1; segments: 3)", "Gather Motion"),
            ("YB Batched Nested Loop Join", "YB Batched Nested Loop Join"),
        ] {
            for arrow in ["", "  ->  "] {
                let figures = "(cost=0.00..1.50 rows=2 width=4) (actual time=0.007..0.008 rows=1 loops=1)";
                let node = node_line(&format!("{arrow}{name}  {figures}")).unwrap().node;
                assert_eq!((node.title().as_str(), node.kind.as_str()), (name, kind));
            }
        }
        let cte = |name: &str| node_line(&format!("{name} (never executed)")).unwrap().node.cte;
        assert_eq!(cte("CTE Scan on \"a \"\"b\" x").as_deref(), Some("a \"b"));
        assert_eq!((cte("WorkTable Scan on r").as_deref(), cte("Seq Scan on t")), (Some("r"), None));
    }

    #[test]
    fn figures_of_every_version_are_read() {
        let line = |text: &str| node_line(text).unwrap();
        let timed = line("Sort (actual time=1.000..2.500 rows=7 loops=3)");
        assert_eq!((timed.node.total_ms, timed.node.loops), (Some(2.5), Some(3.0)));
        assert_eq!(timed.node.rows, Some(Rows { per_loop: 7.0, rounding: 0.5 }));
        let untimed = line("  ->  Sort  (cost=1.00..2.00 rows=1 width=1) (actual rows=7.33 loops=3)");
        assert_eq!((untimed.node.total_ms, untimed.arrow), (None, Some(2)));
        assert_eq!(untimed.node.rows, Some(Rows { per_loop: 7.33, rounding: 0.005 }));
        assert_eq!(line("->  Sort  (cost=1.00..2.00 rows=1 width=1) (never executed)").node.loops, Some(0.0));
        assert_eq!(line("Sort  (cost=1.00..2.00 rows=1 width=1)").node.loops, None);
    }

    #[test]
    fn other_lines_are_no_nodes() {
        for line in [
            "Worker 0:  actual time=0.010..5.000 rows=3 loops=1",
            "  Filter: (x = '(actual time=1.000..2.000 rows=1 loops=1)'::text)",
            "  Filter: (x = 'Seq Scan on t (actual rows=1 loops=1)",
            "Buffers: shared hit=448",
            "Planning Time: 0.316 ms",
            "Sort  (actual time=nan..inf rows=1 loops=1)",
            "Sort  (actual time=1..2 rows=-1 loops=1)",
            "-> Limit: 10 row(s)  (cost=1.00..2.00 rows=10) (actual time=0.1..0.2 rows=10 loops=1)",
            "-> Table scan on t  (cost=0.35 rows=1) (actual time=0.1..0.2 rows=10 loops=1)",
            "select 1",
            "",
        ] {
            assert_eq!(node_line(line), None, "{line}");
        }
    }
}
