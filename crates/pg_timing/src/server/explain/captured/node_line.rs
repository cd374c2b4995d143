//! Reads a node's line in a text plan, like
//! `  ->  Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4) (actual time=0.007..0.008 rows=1 loops=1)`.

use crate::server::explain::plan::{Node, Rows};

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
const ARROW: &str = "->";

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
    let (before, actual) = match last_bracket(text, "(actual ").or_else(|| last_bracket(text, "(never executed)")) {
        Some(at) => (text[..at].trim_end(), Some(&text[at..])),
        None => (text, None),
    };
    let costs = last_bracket(before, "(cost=").filter(|&at| before.ends_with(')') && before[at..].contains(".."));
    if actual.is_none() && costs.is_none() {
        return None;
    }
    let name = costs.map_or(before, |at| &before[..at]).trim();
    if name.contains("(cost=") {
        // MySQL prints one cost and not two.
        return None;
    }
    if !names_node(name) {
        return None;
    }
    let mut node = node_from_name(name);
    let ran = match actual {
        None => Ran::Unknown,
        Some("(never executed)") => {
            (node.loops, node.rows, node.total_ms) = (Some(0.0), Some(Rows::new(0.0, false)), Some(0.0));
            Ran::Never
        }
        Some(actual) => read_figures(&mut node, actual.strip_prefix("(actual ")?.strip_suffix(')')?)?,
    };
    Some(NodeLine { arrow, node, ran })
}

/// Returns where the last occurrence of a word begins that starts with a bracket. A search for the bracket is much faster
/// than one for the word.
fn last_bracket(text: &str, word: &str) -> Option<usize> {
    memchr::memrchr_iter(b'(', text.as_bytes()).find(|&at| text[at..].starts_with(word))
}

/// Returns whether a text can begin with a node's name. Properties have a colon after their name.
pub fn names_node(text: &str) -> bool {
    let (kind, _) = text.split_once(" on ").unwrap_or((text, ""));
    text.starts_with(|c: char| c.is_ascii_uppercase()) && !kind.contains(':')
}

/// Returns the column where a line's text begins.
pub fn column(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the startup cost and the total cost in a node's line.
pub fn costs(line: &str) -> Option<(f64, f64)> {
    let (startup, total) = line.rsplit_once("(cost=")?.1.split_once(' ')?.0.split_once("..")?;
    Some((number(startup)?, number(total)?))
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
    let mut node = Node { name: name.into(), ..Node::default() };
    let (head, target) = name.split_once(" on ").unwrap_or((name, ""));
    let (head, index) = match head.split_once(" using ") {
        Some((head, index)) => (head, Some(identifier(index).0)),
        None => (head, None),
    };
    let mut head = head.strip_suffix(" Backward").unwrap_or(head);
    for prefix in ["Parallel ", "Async ", "Partial ", "Finalize "] {
        head = head.strip_prefix(prefix).unwrap_or(head);
    }
    node.index = index;
    node.kind = read_kind(head, &mut node);
    if target.is_empty() {
        return node;
    }
    let (object, _) = identifier(target);
    match node.kind.as_str() {
        "Bitmap Index Scan" => node.index = Some(object),
        "CTE Scan" | "WorkTable Scan" => node.cte = Some(object),
        "Function Scan" | "Table Function Scan" | "Values Scan" | "Subquery Scan" | "Named Tuplestore Scan" => {}
        _ => node.relation = Some(object),
    }
    node
}

/// Returns the node type. Sets the properties that JSON shows in other keys, such as the join type.
fn read_kind(head: &str, node: &mut Node) -> String {
    for join in ["Nested Loop", "Hash", "Merge"] {
        if let Some(rest) = head.strip_prefix(join).and_then(|rest| rest.strip_suffix("Join")) {
            let join_type = rest.trim();
            node.join = Some(if join_type.is_empty() { "Inner" } else { join_type }.into());
            return if join == "Nested Loop" { join.into() } else { format!("{join} Join") };
        }
    }
    let (kind, strategy) = match head {
        "Nested Loop" => {
            node.join = Some("Inner".into());
            (head, None)
        }
        "Aggregate" => (head, Some("Plain")),
        "GroupAggregate" => ("Aggregate", Some("Sorted")),
        "HashAggregate" => ("Aggregate", Some("Hashed")),
        "MixedAggregate" => ("Aggregate", Some("Mixed")),
        "Insert" | "Update" | "Delete" | "Merge" => {
            node.operation = Some(head.into());
            ("ModifyTable", None)
        }
        "Foreign Insert" | "Foreign Update" | "Foreign Delete" => {
            node.operation = head.strip_prefix("Foreign ").map(str::to_string);
            ("Foreign Scan", None)
        }
        _ if head.starts_with("HashSetOp") => ("SetOp", Some("Hashed")),
        _ if head.starts_with("SetOp") => ("SetOp", Some("Sorted")),
        _ if head.starts_with("Custom Scan") => ("Custom Scan", None),
        _ => (head, None),
    };
    node.strategy = strategy.map(str::to_string);
    kind.into()
}

/// Parses a name that may be quoted and may have a schema. Returns the name without schema, and the rest of the text.
fn identifier(text: &str) -> (String, &str) {
    let Qualified { name, rest, .. } = qualified(text);
    (name, rest)
}

/// A name at the beginning of a text.
#[derive(Debug, PartialEq)]
pub struct Qualified<'a> {
    pub schema: Option<String>,
    pub name: String,
    /// the text after the name
    pub rest: &'a str,
}

/// Parses a name that may be quoted and may have a schema.
pub fn qualified(text: &str) -> Qualified<'_> {
    let (mut schema, mut name) = (None, String::new());
    let mut quoted = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' if quoted && characters.next_if(|(_, c)| *c == '"').is_some() => name.push('"'),
            '"' => quoted = !quoted,
            '.' if !quoted => schema = Some(std::mem::take(&mut name)),
            ' ' if !quoted => return Qualified { schema, name, rest: &text[at..] },
            _ => name.push(c),
        }
    }
    Qualified { schema, name, rest: "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_and_become_types() {
        for (name, kind, object) in [
            ("Seq Scan on public.\"we ird (x)\" \"A -> b\"", "Seq Scan", Some("we ird (x)")),
            ("Parallel Index Only Scan Backward using i on t a", "Index Only Scan", Some("t")),
            ("Parallel Seq Scan on \"a\"\"b\"", "Seq Scan", Some("a\"b")),
            ("Bitmap Index Scan on i", "Bitmap Index Scan", None),
            ("CTE Scan on c a", "CTE Scan", None),
            ("Function Scan on pg_catalog.generate_series g", "Function Scan", None),
            ("Values Scan on \"*VALUES*\"", "Values Scan", None),
            ("Async Foreign Scan on f f_1", "Foreign Scan", Some("f")),
            ("Foreign Update on f", "Foreign Scan", Some("f")),
            ("Merge on t", "ModifyTable", Some("t")),
            ("Merge Right Anti Join", "Merge Join", None),
            ("Parallel Hash Left Join", "Hash Join", None),
            ("Nested Loop Left Join", "Nested Loop", None),
            ("Finalize HashAggregate", "Aggregate", None),
            ("Custom Scan (Citus Adaptive)", "Custom Scan", None),
            ("Custom Scan (ChunkAppend) on t", "Custom Scan", Some("t")),
            ("HashSetOp Intersect All", "SetOp", None),
        ] {
            for arrow in ["", "  ->  "] {
                let figures = "(cost=0.00..1.50 rows=2 width=4) (actual time=0.007..0.008 rows=1 loops=1)";
                let node = node_line(&format!("{arrow}{name}  {figures}")).unwrap().node;
                assert_eq!((node.title().as_str(), node.kind.as_str(), node.relation.as_deref()), (name, kind, object));
            }
        }
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
