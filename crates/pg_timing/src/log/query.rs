//! Separates the statement from the plan in a message of the server.

use crate::plan::node_line::names_node;
use crate::server::explain::Tokens;
use std::borrow::Cow;

/// Returns where the line of the topmost node begins. The query is above it, and can have several lines. Another plan can be
/// in a comment or in a text of the query.
pub fn root_at(text: &str) -> Option<usize> {
    let mut roots = possible_roots(text);
    let first = roots.next()?;
    let Some(second) = roots.next() else { return Some(first) };
    let others = [first, second].into_iter().chain(roots);
    let mut words = Tokens::of(text).map(|word| word.start).peekable();
    // A word of a comment or of a text is not a word of the statement.
    let mut is_word = |at: usize| {
        while words.next_if(|start| *start < at).is_some() {}
        words.peek() == Some(&at)
    };
    Some(others.into_iter().find(|root| is_word(*root)).unwrap_or(first))
}

/// Returns whether the lines of another message are within a plan: another statement, or another topmost node. The plan's
/// constants have no line ends.
pub fn is_mixed(plan: &str) -> bool {
    plan.contains("\nQuery Text: ") || possible_roots(plan).nth(1).is_some()
}

/// Returns where the lines begin that look like a topmost node.
fn possible_roots(text: &str) -> impl Iterator<Item = usize> {
    unindented_lines(text).filter(|at| can_be_root(text[*at..].split('\n').next().unwrap_or_default()))
}

/// Returns where the lines begin that do not begin with a space. Most lines of a plan do.
fn unindented_lines(text: &str) -> impl Iterator<Item = usize> {
    let begins = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
    std::iter::once(0).chain(begins).filter(|at| text.as_bytes().get(*at).is_some_and(|byte| *byte != b' '))
}

/// Returns whether a line without indentation looks like a topmost node. auto_explain does not indent it.
fn can_be_root(line: &str) -> bool {
    line.trim_end().ends_with(')') && (line.contains("(cost=") || line.contains("(actual ")) && names_node(line)
}

/// Returns a text plan with spaces instead of the line ends in constants and names. A client wrote these: a line of a constant
/// can look like a node, or announce another plan. A quotation mark that is never closed quotes nothing.
pub fn without_quoted_line_ends(plan: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut copied, mut at, mut first, mut open) = (0, 0, 0, None);
    for line in plan.split_inclusive('\n') {
        let was_open = open.is_some();
        if was_open || !has_raw_text(line.trim_start()) {
            for quote in memchr::memchr2_iter(b'\'', b'"', line.as_bytes()).map(|at| line.as_bytes()[at]) {
                open = match open {
                    None => Some(quote),
                    Some(opening) if opening == quote => None,
                    other => other,
                };
            }
        }
        if was_open && open.is_none() {
            out.push_str(&plan[copied..first]);
            out.push_str(&plan[first..at].replace('\n', " "));
            copied = at;
        } else if !was_open {
            first = at;
        }
        at += line.len();
    }
    if copied == 0 { Cow::Borrowed(plan) } else { Cow::Owned(out + &plan[copied..]) }
}

/// Returns whether a line contains text that the server does not quote: the name of a file, a trigger or a setting.
fn has_raw_text(line: &str) -> bool {
    ["Foreign File: ", "Foreign Program: ", "Trigger ", "Settings: "].iter().any(|name| line.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "Sort  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)\n";

    #[test]
    fn a_plan_within_a_statement_is_not_the_plan() {
        for query in ["Query Text: select 1\n", "Query Text: select '\nNODE'\n", "Query Text: select /*\nNODE*/ 1\n"] {
            let text = query.replace("NODE", NODE) + NODE;
            assert_eq!(root_at(&text), Some(text.len() - NODE.len()), "{text}");
        }
        assert_eq!(root_at("Query Text: select 1\n"), None);
    }

    #[test]
    fn constants_lose_their_line_ends() {
        let constant = format!("{NODE}  Filter: (a = 'x\n{NODE}'::text)\n");
        let joined = without_quoted_line_ends(&constant);
        assert_eq!((joined.lines().count(), is_mixed(&joined)), (2, false), "{joined}");
        let open = format!("{NODE}  Foreign File: /it's\n{NODE}");
        assert_eq!((without_quoted_line_ends(&open).as_ref(), is_mixed(&open)), (open.as_str(), true));
        assert!(is_mixed(&format!("{NODE}Query Text: select 1\n")));
    }
}
