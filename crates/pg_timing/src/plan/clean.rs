//! Undoes what web pages, word processors, psql's wrapped tables and string literals do to the lines of a text.

use super::steps;
use super::text::{ARROW, FIGURES, last_bracket};
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
        (!text.is_ascii() && text.contains(is_special), in_ascii),
        // a cell of a CSV file
        (text.contains("\"\"Plan\"\":"), |text| text.replace("\"\"", "\"")),
        (has_wrapped_lines(text), unwrapped),
        (text.lines().any(has_several_lines), with_line_ends),
    ];
    let needed = repairs.into_iter().filter(|(is_needed, _)| *is_needed);
    needed.fold(Cow::Borrowed(text), |text, (_, repair)| Cow::Owned(repair(&text)))
}

/// HTML elements that are removed. Other text in angle brackets stays.
const ELEMENTS: &str =
    "a b blockquote body br code div em font html i kbd li mark p pre samp span strong table tbody td tr ul";
/// Elements that begin or end a line.
const LINE_ENDS: [&str; 7] = ["br", "div", "li", "p", "td", "tr", "pre"];

/// Returns the text of an HTML page's source.
fn without_html(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The headings of psql's tables are no lines of the plan.
    for line in text.lines().filter(|line| !line.trim_start().starts_with("<th") && !line.contains("colspan=")) {
        let mut rest = line;
        while let Some(at) = rest.find('<') {
            plain.push_str(&rest[..at]);
            let name = rest[at + 1..].trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric()).next();
            let end = rest[at..]
                .find('>')
                .filter(|_| name.is_some_and(|name| ELEMENTS.split(' ').any(|element| element == name)));
            let Some(end) = end else {
                plain.push('<');
                rest = &rest[at + 1..];
                continue;
            };
            rest = &rest[at + end + 1..];
            if name.is_some_and(|name| LINE_ENDS.contains(&name))
                && !rest.is_empty()
                && !plain.is_empty()
                && !plain.ends_with('\n')
            {
                plain.push('\n');
            }
        }
        plain.push_str(rest);
        plain.push('\n');
    }
    html_escape::decode_html_entities(&plain).replace('\u{a0}', " ")
}

fn is_special(c: char) -> bool {
    is_space(c) || is_invisible(c) || is_arrow(c) || "“”‘’–—".contains(c)
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

/// Returns the text with ASCII spaces, with ASCII arrows before nodes, and with ASCII quotation marks around JSON's texts and
/// the values of settings.
fn in_ascii(text: &str) -> String {
    let is_quoted = ["“Plan”", " = ‘", " = ’"].iter().any(|sign| text.contains(sign));
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let begin = line.trim_start_matches(|c: char| c == ' ' || c == '\t' || is_space(c) || is_invisible(c));
        let after_arrow = begin.strip_prefix(is_arrow).or_else(|| begin.strip_prefix(['–', '—'])?.strip_prefix('>'));
        let (before, arrow, rest) = match after_arrow {
            Some(rest) => (&line[..line.len() - begin.len()], ARROW, rest),
            None => ("", "", line),
        };
        let ascii = |c: char| match c {
            _ if is_space(c) => ' ',
            '“' | '”' if is_quoted => '"',
            '‘' | '’' if is_quoted => '\'',
            _ => c,
        };
        let visible = |text: &str| text.chars().filter(|c| !is_invisible(*c)).map(ascii).collect::<String>();
        plain += &visible(before);
        plain += arrow;
        plain += &visible(rest);
    }
    plain
}

/// psql's borders
const BARS: [char; 2] = ['|', '│'];
/// What psql's format `wrapped` puts at the end of a broken line, and at the beginning of the next one.
const WRAP_MARKS: [char; 2] = ['.', '…'];

fn ends_wrapped(line: &str) -> Option<char> {
    WRAP_MARKS.into_iter().find(|mark| line.trim_end_matches(BARS).ends_with(*mark))
}

/// Returns the rest of a line that psql has continued: after the mark, or at the line's beginning without a border.
fn wrapped_rest(line: &str, mark: char, has_border: bool) -> Option<&str> {
    match has_border {
        true => line.trim_start_matches(|c| c == ' ' || BARS.contains(&c)).strip_prefix(mark),
        false => Some(line),
    }
}

fn has_wrapped_lines(text: &str) -> bool {
    text.lines().any(|line| ends_wrapped(line).is_some()) && text.contains("QUERY PLAN")
}

/// Returns the text with the lines joined that psql's format `wrapped` has broken. Without a border, only the end of a line
/// has a mark, in the column after the table.
fn unwrapped(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    let mut width = None;
    while let Some(line) = lines.next() {
        steps::count(line.len());
        if !line.is_empty() && line.chars().all(|c| c == '-' || c == '─') {
            width = Some(line.chars().count() + 1);
        }
        let mut line = line;
        while let Some(mark) = ends_wrapped(line) {
            let next = lines.peek().copied().unwrap_or_default();
            let in_width = width == Some(line.chars().count());
            let Some(rest) = wrapped_rest(next, mark, !in_width) else { break };
            let part = line.trim_end_matches(BARS);
            joined += part.strip_suffix(mark).unwrap_or(part);
            (line, _) = (rest, lines.next());
        }
        joined += line;
        joined.push('\n');
    }
    joined
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
        let separator = separator(line).filter(|_| has_several_lines(line));
        let line = if separator.is_some() { from_root(line) } else { line };
        match separator {
            Some(separator) if separator.contains('\\') => {
                split += &line.replace(separator, "\n").replace("\\t", "\t").replace("\\\"", "\"");
            }
            Some(separator) => split += &line.replace(separator, "\n"),
            None => split += line,
        }
        split.push('\n');
    }
    split
}

/// Returns the end of the node's figures in a line, in bytes.
pub fn figures_end(line: &str) -> Option<usize> {
    let [cost, actual, never] = FIGURES.map(|figures| last_bracket(line, figures));
    let begin = actual.or(never).or(cost)?;
    Some(begin + line[begin..].find(')')? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_become_ascii() {
        for (special, ascii) in [
            ("\u{a0}\u{a0}→\u{a0} Sort\u{200b}", "  ->  Sort"),
            (" —> Sort\n  –>  Sort", " -> Sort\n  ->  Sort"),
            ("{“Plan”: {“Node Type”: “Sort”", "{\"Plan\": {\"Node Type\": \"Sort\""),
            ("Settings: jit = ‘off’", "Settings: jit = 'off'"),
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
        let escaped = "x: 'Sort (actual rows=1 loops=1)\\n  Key: \\\"a\\\"\\n  ->  Result (actual rows=1 loops=1)\\nExecution Time: 3.0 ms'";
        assert_eq!(plain(escaped).lines().nth(1), Some("  Key: \"a\""));
    }
}
