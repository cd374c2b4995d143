//! Reads a node's line in a text plan, like
//! `  ->  Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4) (actual time=0.007..0.008 rows=1 loops=1)`.

use super::tree::{Node, Rows};

/// A node from its line, without its inputs.
#[derive(Debug, PartialEq)]
pub struct NodeLine {
    /// column of the arrow; the root has none
    pub arrow: Option<usize>,
    pub node: Node,
    pub ran: Ran,
}

/// What the line shows about the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// EXPLAIN without ANALYZE
    Unknown,
    Never,
    Untimed,
    Timed,
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
    let ran = match actual {
        None => Ran::Unknown,
        Some(NEVER_EXECUTED) => {
            (node.loops, node.rows, node.total_ms) = (Some(0.0), Some(Rows::new(0.0, false)), Some(0.0));
            Ran::Never
        }
        Some(actual) => read_figures(&mut node, actual.strip_prefix("(actual ")?.strip_suffix(')')?)?,
    };
    Some(NodeLine { arrow, node, ran })
}

/// Returns where the last occurrence of a word begins that starts with a bracket. A search for the bracket is much faster
/// than one for the word.
pub fn last_bracket(text: &str, word: &str) -> Option<usize> {
    memchr::memrchr_iter(b'(', text.as_bytes()).find(|&at| text[at..].starts_with(word))
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
fn read_figures(node: &mut Node, actual: &str) -> Option<Ran> {
    let mut parts = actual.split(' ').peekable();
    let time = parts.next_if(|part| part.starts_with("time="));
    if let Some(time) = time {
        let (startup, total) = time.strip_prefix("time=")?.split_once("..")?;
        number(startup)?;
        node.total_ms = Some(number(total)?);
    }
    let rows = parts.next()?.strip_prefix("rows=")?;
    node.rows = Some(Rows::new(number(rows)?, rows.contains('.')));
    node.loops = Some(number(parts.next()?.strip_prefix("loops=")?)?);
    if parts.next().is_some() {
        return None;
    }
    Some(if time.is_some() { Ran::Timed } else { Ran::Untimed })
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
    let cte = kind == "CTE Scan" || kind == "WorkTable Scan";
    Node { name: name.into(), cte: cte.then(|| identifier(target)), kind, ..Node::default() }
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

/// Returns the name at the beginning of a text, without its schema and its quotation marks.
fn identifier(text: &str) -> String {
    let (mut name, mut quoted) = (String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => name.push('"'),
            '"' => quoted = !quoted,
            '.' if !quoted => name.clear(),
            ' ' if !quoted => break,
            _ => name.push(c),
        }
    }
    name
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
        assert_eq!((timed.ran, timed.node.total_ms, timed.node.loops), (Ran::Timed, Some(2.5), Some(3.0)));
        assert_eq!(timed.node.rows, Some(Rows { per_loop: 7.0, rounding: 0.5 }));
        let untimed = line("  ->  Sort  (cost=1.00..2.00 rows=1 width=1) (actual rows=7.33 loops=3)");
        assert_eq!((untimed.ran, untimed.node.total_ms, untimed.arrow), (Ran::Untimed, None, Some(2)));
        assert_eq!(untimed.node.rows, Some(Rows { per_loop: 7.33, rounding: 0.005 }));
        assert_eq!(line("->  Sort  (cost=1.00..2.00 rows=1 width=1) (never executed)").ran, Ran::Never);
        assert_eq!(line("Sort  (cost=1.00..2.00 rows=1 width=1)").ran, Ran::Unknown);
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
