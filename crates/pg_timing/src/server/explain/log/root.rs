//! Finds the topmost node below the text of the query.

use crate::server::explain::captured::node_line::names_node;
use crate::server::explain::live::Tokens;

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

/// Returns where the lines begin that look like a topmost node.
pub fn possible_roots(text: &str) -> impl Iterator<Item = usize> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let begin = at;
        at += line.len();
        can_be_root(line).then_some(begin)
    })
}

/// Returns whether a line looks like a topmost node. auto_explain does not indent it.
pub fn can_be_root(line: &str) -> bool {
    !line.starts_with(' ')
        && line.trim_end().ends_with(')')
        && (line.contains("(cost=") || line.contains("(actual "))
        && names_node(line)
}
