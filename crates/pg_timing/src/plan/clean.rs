//! Undoes what web pages, word processors and string literals do to the lines of a text.

use super::text::{ARROW, FIGURES};
use std::borrow::Cow;

type Repair = fn(&str) -> String;

/// Returns the text with one line of a plan per line, in ASCII where EXPLAIN writes ASCII. It is not copied if nothing
/// changes.
pub fn plain(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\u{feff}');
    // XML has entities, too: they are decoded with the plan.
    let is_html = ["-&gt;", "&gt; ", "&nbsp;", "&#62;", "&#x3e;", "&quot;Plan&quot;", "<td", "<br", "<pre"]
        .iter()
        .any(|sign| text.contains(sign))
        && !text.contains("<explain xmlns=");
    let repairs: [(bool, Repair); 5] = [
        (is_html, without_html),
        (!text.is_ascii() && text.contains(|c| is_space(c) || is_invisible(c) || is_arrow(c)), in_ascii),
        // a cell of a CSV file
        (text.contains("\"\"Plan\"\":"), |text| text.replace("\"\"", "\"")),
        // rows as a Python program prints them
        (text.contains("{'QUERY PLAN': "), |text| text.replace("'QUERY PLAN': ", "")),
        (text.lines().any(has_several_lines), with_line_ends),
    ];
    let needed = repairs.into_iter().filter(|(is_needed, _)| *is_needed);
    needed.fold(Cow::Borrowed(text), |text, (_, repair)| Cow::Owned(repair(&text)))
}

/// Elements that begin or end a line.
const LINE_ENDS: [&str; 7] = ["br", "div", "li", "p", "td", "tr", "pre"];

/// Returns the text of an HTML page's source.
fn without_html(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The headings of psql's tables are no lines of the plan.
    for line in text.lines().filter(|line| !line.trim_start().starts_with("<th") && !line.contains("colspan=")) {
        let mut parts = line.split('<');
        plain.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let name =
                part.trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            let Some((_, rest)) = part.split_once('>').filter(|_| name.starts_with(|c: char| c.is_ascii_lowercase()))
            else {
                plain.push('<');
                plain.push_str(part);
                continue;
            };
            let is_within_line = !rest.is_empty() && !plain.is_empty() && !plain.ends_with('\n');
            if is_within_line && LINE_ENDS.contains(&name) {
                plain.push('\n');
            }
            plain.push_str(rest);
        }
        plain.push('\n');
    }
    html_escape::decode_html_entities(&plain).replace('\u{a0}', " ")
}

/// Spaces that are not ASCII. Each one is as wide as a space in a fixed-width font.
fn is_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}')
}

/// Characters without a width: zero-width spaces, soft hyphens, and marks of the writing direction.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{feff}')
}

fn is_arrow(c: char) -> bool {
    matches!(c, '→' | '⟶' | '➔' | '➜' | '⇒')
}

/// Returns the text with ASCII spaces, and with ASCII arrows before nodes.
fn in_ascii(text: &str) -> String {
    let ascii = |line: &str| {
        let visible = line.chars().filter(|c| !is_invisible(*c));
        let line: String = visible.map(|c| if is_space(c) { ' ' } else { c }).collect();
        if line.trim_start().starts_with(is_arrow) { line.replacen(is_arrow, ARROW, 1) } else { line }
    };
    text.split_inclusive('\n').map(ascii).collect()
}

/// Returns whether a line is a list of lines: rows as a program prints them, or a text with its line ends escaped. A line of
/// JSON is read as JSON.
fn has_several_lines(line: &str) -> bool {
    let is_json = || ["{\"", "[\"", "[{\"", "[["].iter().any(|begin| line.trim_start().starts_with(begin));
    memchr::memmem::find_iter(line.as_bytes(), "loops=").nth(1).is_some() && separator(line).is_some() && !is_json()
}

/// Returns what separates the lines in a line: what follows the figures of each node.
fn separator(line: &str) -> Option<&str> {
    let mut after = line.match_indices(" loops=").filter_map(|(at, _)| Some(&line[at + line[at..].find(')')? + 1..]));
    let (first, second) = (after.next()?, after.next()?);
    let equal =
        first.char_indices().zip(second.chars()).find(|((_, a), b)| a != b).map_or(second.len(), |((at, _), _)| at);
    let equal = first.get(..equal)?;
    // An escape has a letter: `\n`. Another letter or an arrow begins the next line.
    let is_escape = |at: usize| equal[..at].ends_with('\\') && equal[at..].starts_with(['n', 'r']);
    let begins =
        |(at, c): &(usize, char)| c.is_ascii_alphanumeric() && !is_escape(*at) || equal[*at..].starts_with(ARROW);
    let end = equal.char_indices().find(begins).map_or(equal.len(), |(at, _)| at);
    Some(equal[..end].trim_end()).filter(|separator| !separator.is_empty())
}

/// Returns the line from the name of its first node on: it follows a quotation mark or a bracket.
fn from_root(line: &str) -> &str {
    let head = &line[..FIGURES.iter().filter_map(|figures| line.find(figures)).min().unwrap_or_default()];
    let roots = head.rmatch_indices(['"', '\'', '(', '[']).map(|(at, _)| &line[at + 1..]);
    roots.into_iter().find(|root| root.starts_with(|c: char| c.is_ascii_uppercase())).unwrap_or(line)
}

fn with_line_ends(text: &str) -> String {
    let mut split = String::with_capacity(text.len());
    for line in text.lines() {
        match separator(line).filter(|_| has_several_lines(line)) {
            Some(separator) => {
                split += &from_root(line).replace(separator, "\n").replace("\\t", "\t").replace("\\\"", "\"")
            }
            None => split += line,
        }
        split.push('\n');
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_become_ascii() {
        for (special, ascii) in [
            ("\u{a0}\u{a0}→\u{a0} Sort\u{200b}", "  ->  Sort"),
            ("\u{feff}&gt; Sort", "> Sort\n"),
            ("&nbsp;&nbsp;->&nbsp;&nbsp;Sort", "  ->  Sort\n"),
            ("  -&#62;  Sort\n  -&#x3e;  Sort", "  ->  Sort\n  ->  Sort\n"),
            ("<td align=\"left\">&nbsp;&nbsp;-&gt;  Sort on \"a&lt;b\"</td>", "  ->  Sort on \"a<b\"\n"),
        ] {
            assert_eq!(plain(special), ascii);
        }
        // In a condition, they belong to a text.
        let condition = "Filter: (a = 'b → “c” d’'::text)";
        assert_eq!(plain(condition), condition);
        assert!(matches!(plain("a\nb"), Cow::Borrowed("a\nb")));
    }

    #[test]
    fn rows_on_one_line_become_lines() {
        let rows = "[('Sort (actual time=1.0..2.0 rows=1 loops=1)',), ('  ->  Result (actual time=1.0..2.0 rows=1 loops=1)',), ('Execution Time: 3.000 ms',)]";
        assert_eq!(
            plain(rows).lines().collect::<Vec<_>>(),
            [
                "Sort (actual time=1.0..2.0 rows=1 loops=1)",
                "  ->  Result (actual time=1.0..2.0 rows=1 loops=1)",
                "Execution Time: 3.000 ms',)]"
            ]
        );
        let named = rows.replace("('", "{'QUERY PLAN': '").replace("',)", "'}");
        assert_eq!(plain(&named).lines().nth(1), Some("  ->  Result (actual time=1.0..2.0 rows=1 loops=1)"));
        let escaped = "x: 'Sort (actual rows=1 loops=1)\\n  Key: \\\"a\\\"\\n  ->  Result (actual rows=1 loops=1)\\nExecution Time: 3.0 ms'";
        assert_eq!(plain(escaped).lines().nth(1), Some("  Key: \"a\""));
    }
}
