//! Finds entries with the lines of two plans. Without logging_collector, several processes can write to the log at the same
//! time.

use crate::server::explain::captured::root::{can_be_root, possible_roots, unindented_lines};
use crate::server::explain::live::Tokens;
use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

/// An entry has the lines of two plans. Their figures would be those of a plan that nothing executed.
#[derive(Debug, PartialEq)]
pub struct Mixed;

/// Returns where the only line begins that can be the topmost node of a text plan. `None`: there is none, or there are several.
pub fn only_root(text: &str) -> Result<Option<usize>, Mixed> {
    let start = text.trim_start();
    let is_twice = |query: &Finder| match query.find_iter(text.as_bytes()).nth(1) {
        Some(_) => Err(Mixed),
        None => Ok(None),
    };
    static IN_JSON: LazyLock<Finder> = LazyLock::new(|| Finder::new("\n  \"Query Text\": "));
    static IN_XML: LazyLock<Finder> = LazyLock::new(|| Finder::new("<Query-Text>"));
    match start.as_bytes().first() {
        // In these formats, the statement has no line ends, or no `<`.
        Some(b'{') => is_twice(&IN_JSON),
        Some(b'<') => is_twice(&IN_XML),
        _ => only_root_of_text(text),
    }
}

fn only_root_of_text(text: &str) -> Result<Option<usize>, Mixed> {
    const QUERY: &str = "Query Text: ";
    let (mut root, mut has_several_roots, mut has_query) = (None, false, false);
    for at in unindented_lines(text) {
        let rest = &text[at..];
        has_query |= at > 0 && rest.starts_with(QUERY);
        if can_be_root(rest.split('\n').next().unwrap_or_default()) {
            has_several_roots |= root.is_some();
            root = root.or(Some(at));
        }
    }
    let has_two_queries = has_query && {
        let queries = memmem::find_iter(text.as_bytes(), QUERY).filter(|at| text[..*at].ends_with('\n'));
        are_words(text, queries).next().is_some()
    };
    let has_two_roots = has_several_roots && are_words(text, possible_roots(text)).nth(1).is_some();
    let is_mixed = has_two_queries || has_two_roots || has_node_above(&text[..root.unwrap_or(0)]);
    if is_mixed { Err(Mixed) } else { Ok(root.filter(|_| !has_several_roots)) }
}

/// Returns whether a node below the topmost one is above it, in the statement.
fn has_node_above(statement: &str) -> bool {
    let begins_node = |at: &usize| {
        let line = statement[*at..].lines().next().unwrap_or_default();
        begins_line(&statement[..*at]) && (line.contains("(cost=") || line.contains("(actual "))
    };
    static ARROW: LazyLock<Finder> = LazyLock::new(|| Finder::new("->  "));
    let mut nodes = ARROW.find_iter(statement.as_bytes()).filter(begins_node).peekable();
    nodes.peek().is_some() && are_words(statement, nodes).next().is_some()
}

/// Returns whether only spaces precede this place in its line.
fn begins_line(before: &str) -> bool {
    before.trim_end_matches(' ').ends_with('\n')
}

/// Keeps the places where a word of the text begins. A word of a comment or of a quoted text is not a word of the text.
fn are_words(text: &str, places: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
    let mut words = Tokens::of(text).map(|word| word.start).peekable();
    places.filter(move |at| {
        while words.next_if(|start| start < at).is_some() {}
        words.peek() == Some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::super::entry::Entry;
    use super::super::lines::Lines;
    use super::super::parse;
    use super::super::splitter::Splitter;
    use super::*;

    fn is_mixed(text: &str) -> bool {
        only_root(text) == Err(Mixed)
    }

    /// Returns the time, the statement, and the number of nodes of each plan that can be read.
    fn plans(log: &str) -> Vec<(String, String, usize)> {
        let mut plans = Vec::new();
        let mut found = |entry: Entry| {
            parse::each(entry.content, false, &mut |parsed| {
                if let Ok(plan) = parsed.found {
                    let query = plan.query.unwrap_or_default();
                    plans.push((format!("{:?}", plan.execution_ms), query, 1 + plan.plan.plans.len()));
                }
            });
        };
        let mut splitter = Splitter::default();
        let mut lines = Lines::new(log.as_bytes());
        splitter.begin_file(0, &mut found);
        while let Some(line) = lines.next().unwrap() {
            splitter.line(&line, &mut found);
        }
        splitter.end_file(false, &mut found);
        splitter.end(&mut found);
        plans
    }

    /// Returns all orders in which two processes can write these lines.
    fn merged(one: &[&str], other: &[&str]) -> Vec<String> {
        let (Some((first, rest)), Some((others_first, others_rest))) = (one.split_first(), other.split_first()) else {
            return vec![[one, other].concat().concat()];
        };
        let with =
            |first: &str, rest: Vec<String>| rest.into_iter().map(|text| [first, &text].concat()).collect::<Vec<_>>();
        [with(first, merged(rest, other)), with(others_first, merged(one, others_rest))].concat()
    }

    fn plan(table: &str, ms: &str, scans: usize) -> String {
        let node =
            |name: &str| format!("{name}  (cost=0.00..1.00 rows=1 width=4) (actual time=0.010..{ms} rows=9 loops=1)\n");
        let scans = node(&format!("\t  ->  Seq Scan on {table}")).repeat(scans);
        format!("[{ms}] LOG:  duration: {ms} ms  plan:\n\tQuery Text: select {table}\n{}{scans}", node("\tNested Loop"))
    }

    #[test]
    fn mixed_lines_of_two_processes_are_no_plan() {
        let [one, other] = [plan("a", "7.5", 2), plan("b", "9.5", 3)];
        let expected = [&one, &other].map(|log| plans(log).pop().unwrap());
        let [one, other] = [&one, &other].map(|log| log.split_inclusive('\n').collect::<Vec<_>>());
        let mut whole = 0;
        for log in merged(&one, &other) {
            let found = plans(&log);
            let at = |line: &str| log.find(line).unwrap();
            let later_entry = at(one[0]).max(at(other[0]));
            // Only the later entry has lines.
            if [one[1], other[1]].iter().all(|query| at(query) > later_entry) {
                assert_eq!(found, [], "{log}");
            }
            // Nothing shows a single node that is in the wrong plan.
            let is_known = |(ms, query, _): &(String, String, usize)| {
                expected.iter().any(|(own_ms, own_query, _)| (ms, query) == (own_ms, own_query))
            };
            assert!(found.iter().all(is_known), "{found:?}\n{log}");
            whole += found.iter().filter(|plan| expected.contains(plan)).count();
        }
        // One after the other, for example.
        assert!(whole >= 4, "{whole}");
    }

    #[test]
    fn each_format_shows_a_second_statement() {
        let json = "{\n  \"Query Text\": \"select \\n  \\\"Query Text\\\": \",\n  \"Plan\": {}\n}\n";
        let xml = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query-Text>select</Query-Text>\n</explain>\n";
        let yaml = "Query Text: \"select\\nQuery Text: \"\nPlan: \n  Node Type: \"Sort\"\n";
        for text in [json, xml, yaml] {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let other = [&lines[..2], &lines, &lines[2..]].concat().concat();
            assert_eq!((is_mixed(text), is_mixed(&other)), (false, true), "{other}");
        }
    }

    #[test]
    fn a_plan_within_a_statement_is_not_a_second_plan() {
        let plan =
            "Query Text: select 1\nSort  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)\n";
        for text in [plan.into(), format!("Query Text: select '\n{plan}'\n{}", &plan[21..])] {
            assert!(!is_mixed(&text), "{text}");
        }
        let node = "  ->  Sort  (cost=1.00..2.00 rows=1 width=1)";
        assert!(!is_mixed(&plan.replace("1\n", &format!("1 /*\n{node}\n*/\n"))));
        assert!(is_mixed(&plan.replace("1\n", &format!("1\n{node}\n"))));
        assert!(!is_mixed(&format!("{plan}  Filter: (a = '\n{plan}'::text)\n")));
    }
}
