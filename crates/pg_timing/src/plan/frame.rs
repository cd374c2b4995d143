//! What is around each line of a plan, and what has changed the lines.
//!
//! The frame: the bars of a table, quotation marks, line numbers, the marks of a quoted mail. The line of the topmost node
//! shows it, because it is known where a node's line begins and ends. [`plain`] undoes what web pages, word processors and
//! string literals do to lines.

use super::structured::Structured;
use super::text::{ARROW, FIGURES, figures_end, names_node, node_line};
use std::borrow::Cow;

/// What is before and after each line.
#[derive(Debug, Default, PartialEq)]
pub struct Frame<'a> {
    pub before: &'a str,
    /// The last character of `before` except spaces, unless it is a letter, and how often it occurs, for example ('>', 2) in a
    /// quoted mail. Any digit is stored as '0'.
    mark: Option<(char, usize)>,
    /// number of spaces after it
    spaces: usize,
    after: &'a str,
}

/// What begins with a line.
#[derive(Debug, PartialEq)]
pub enum Begin<'a> {
    Text(Frame<'a>),
    Json(Frame<'a>),
    Structured(Structured, Frame<'a>),
    /// a node with an arrow
    Below,
}

/// The name of EXPLAIN's column, which psql's expanded display shows in each line.
const COLUMN: &str = "QUERY PLAN";

fn is_frame(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_digit() || ">|│\"'#*`;:,.()[]{}↵".contains(c)
}

/// Returns what begins with the first line of `rest`.
pub fn begins(rest: &str) -> Option<Begin<'_>> {
    let line = first_line(rest).trim_end_matches('\n');
    if let Some(frame) = json(line) {
        return Some(Begin::Json(frame));
    }
    let at = lead(line);
    let text = line[at..].trim_end();
    if text.starts_with(ARROW) {
        return node_line(&text[..figures_end(text)?]).map(|_| Begin::Below);
    }
    if let Some(format) = Structured::begins(text, || second_line(rest, at)) {
        let token = text.len().min(format.first_token(text));
        return Some(Begin::Structured(format, Frame::of(&line[..at], &text[token..])));
    }
    root(rest, at).map(|(at, after)| Begin::Text(Frame::of(&line[..at], after)))
}

/// Returns the first line with its line end.
pub fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

fn second_line(rest: &str, lead: usize) -> &str {
    let second = rest.split('\n').nth(1).unwrap_or_default();
    second.get(lead..).unwrap_or(second).trim()
}

/// Returns the length of the frame at the beginning of a line, as far as it has no letters.
fn lead(line: &str) -> usize {
    let end = |text: &str| text.find(|c| !is_frame(c)).unwrap_or(text.len());
    let at = end(line);
    match line[at..].strip_prefix(COLUMN) {
        Some(rest) if rest.trim().len() > 1 => at + COLUMN.len() + end(rest),
        _ => at,
    }
}

/// Returns the frame of a line that begins a JSON value.
fn json(line: &str) -> Option<Frame<'_>> {
    let at = line.find(['[', '{'])?;
    let before = &line[..at];
    let is_lead = lead(line) >= at && !before.contains(['(', '\'']);
    let text = line[at..].trim_end();
    let rest = text[1..].trim_start();
    let is_json = rest.is_empty() || rest.starts_with(['"', '{', '[', '}', ']']) || is_after(rest);
    // A Python program prints rows as `[{'`.
    (is_lead && is_json && !rest.starts_with("{'")).then(|| Frame::of(before, if is_after(rest) { rest } else { "" }))
}

/// Returns whether a text can be the end of a frame.
fn is_after(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '+' || is_frame(c) && !"[]{}".contains(c) && !c.is_ascii_digit())
}

/// Returns where the name of a topmost node begins in the first line of `rest`, and what follows its figures. A mail program
/// may have broken the line.
fn root(rest: &str, lead: usize) -> Option<(usize, &str)> {
    let line = first_line(rest).trim_end_matches('\n');
    let begins_figures = |text: &str| FIGURES.iter().any(|figures| text.starts_with(figures));
    let is_root = |at: usize| {
        // A name in quotation marks can have an arrow, too.
        let kind = line[at..].split(" on ").next().and_then(|kind| kind.split('(').next());
        names_node(&line[at..]) && kind.is_some_and(|kind| !kind.contains(ARROW))
    };
    match memchr::memchr(b'(', line.as_bytes()).is_some() && FIGURES.iter().any(|figures| line.contains(figures)) {
        true => {
            let at =
                [Some(lead), shared_lead(rest), after_colon(line)].into_iter().flatten().find(|at| is_root(*at))?;
            Some((at, figures_end(line).map_or("", |end| &line[end..])))
        }
        false => (is_root(lead) && begins_figures(second_line(rest, lead))).then_some((lead, "")),
    }
}

/// Returns the length of what the first line and the line of the next node or of a time have in common: a frame with letters.
fn shared_lead(rest: &str) -> Option<usize> {
    /// A node's line has at most this many lines of properties after it, mostly.
    const NEAR: usize = 30;
    const WORDS: [&str; 3] = [ARROW, "Planning Time: ", "Execution Time: "];
    let mut lines = rest.lines();
    let first = lines.next()?;
    let is_known = |line: &&str| {
        line.contains(ARROW) && figures_end(line).is_some() || WORDS[1..].iter().any(|word| line.contains(word))
    };
    let next = lines.take(NEAR).find(is_known)?;
    let at = first_difference(first, next)?;
    // The lines can have numbers.
    let (line, other) = (&first[at..], next.get(at..)?);
    let (end, other_end) = match (digits(line), digits(other)) {
        (0, _) | (_, 0) => (0, 0),
        (end, other_end) => {
            let same = first_difference(&line[end..], &other[other_end..])?;
            (end + same, other_end + same)
        }
    };
    let after = other[other_end..].trim_start();
    (at + end > 0 && WORDS.iter().any(|word| after.starts_with(word))).then_some(at + end)
}

/// Returns where two texts begin to differ, if neither begins with the other one.
fn first_difference(a: &str, b: &str) -> Option<usize> {
    a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at)
}

/// Returns where the node's name begins in a line of a program's log: after the last colon before the figures.
fn after_colon(line: &str) -> Option<usize> {
    let figures = FIGURES.iter().filter_map(|figures| line.find(figures)).min()?;
    line[..figures].rfind(": ").map(|at| at + 2)
}

impl<'a> Frame<'a> {
    fn of(before: &'a str, after: &'a str) -> Frame<'a> {
        let kind = |c: char| if c.is_ascii_digit() { '0' } else { c };
        let text = before.trim_end();
        let mark = text.chars().last().map(kind);
        let can_end = |c: char| c == '+' || is_frame(c) && !c.is_ascii_digit();
        let after = if after.chars().all(can_end) { after.trim() } else { "" };
        // A quotation mark at the beginning of a cell with several lines.
        let is_cell = after.is_empty() && mark.is_some_and(|mark| ['"', '\''].contains(&mark));
        Frame {
            before,
            mark: mark.filter(|mark| !is_cell && !mark.is_alphabetic()).map(|mark| (mark, count_marks(text, mark))),
            spaces: before[text.len()..].chars().count(),
            after,
        }
    }

    /// Returns whether only spaces are before the other lines, and nothing after them.
    pub fn is_empty(&self) -> bool {
        self.mark.is_none() && self.after.is_empty() && !self.before.contains(char::is_alphabetic)
    }

    /// Returns a line as the server printed it.
    pub fn inner<'l>(&self, line: &'l str) -> Cow<'l, str> {
        let line = line.trim_end();
        // psql's expanded display has a heading above each line.
        if line.contains("[ RECORD ") {
            return "".into();
        }
        let text = after_similar(line, self.before).or_else(|| self.after_mark(line)).unwrap_or(line);
        let text = figures_end(text).filter(|_| text.contains(" loops=")).map_or(text, |end| &text[..end]);
        let text = text.strip_suffix(self.after).unwrap_or_else(|| self.without_last_quote(text)).trim_end();
        let is_quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"') && !text.contains("\": ");
        if is_quoted {
            text[1..text.len() - 1].replace("\"\"", "\"").into()
        } else if self.after.starts_with('"') {
            text.replace("\"\"", "\"").replace("\\\"", "\"").into()
        } else {
            text.into()
        }
    }

    /// Returns the line after as many marks as the first line has.
    fn after_mark<'l>(&self, line: &'l str) -> Option<&'l str> {
        let (mark, count) = self.mark?;
        let (mut found, mut end) = (0, 0);
        for (at, c) in line.char_indices() {
            let is_mark = if mark == '0' { c.is_ascii_digit() } else { c == mark };
            let is_next_of_number = mark == '0' && end == at && end > 0;
            if is_mark {
                found += usize::from(!is_next_of_number);
                end = at + c.len_utf8();
            }
            if found == count && !is_mark || !is_frame(c) {
                break;
            }
        }
        let rest = &line[end..];
        let spaces: usize = rest.chars().take(self.spaces).take_while(|c| c.is_whitespace()).map(char::len_utf8).sum();
        (found == count).then(|| &rest[spaces..])
    }

    /// Returns the last line of a quoted list: it has no comma after it, or the list's bracket.
    fn without_last_quote<'l>(&self, text: &'l str) -> &'l str {
        match self.after.chars().next().filter(|c| ['"', '\''].contains(c)).and_then(|quote| text.rsplit_once(quote)) {
            Some((text, after)) if after.chars().all(|c| ",;)]}".contains(c)) => text,
            _ => text,
        }
    }
}

/// Returns the number of digits at the beginning of a text.
fn digits(text: &str) -> usize {
    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len()
}

/// Returns what follows a prefix in which only the numbers differ.
fn after_similar<'l>(line: &'l str, before: &str) -> Option<&'l str> {
    let (mut line, mut before) = (line, before);
    while let Some(next) = before.chars().next() {
        (line, before) = match (digits(line), digits(before)) {
            (0, 0) => (line.strip_prefix(next)?, &before[next.len_utf8()..]),
            (0, _) | (_, 0) => return None,
            (of_line, of_before) => (&line[of_line..], &before[of_before..]),
        };
    }
    Some(line)
}

/// Returns how often a mark is in a text. The digits of a number count as one.
fn count_marks(text: &str, mark: char) -> usize {
    match mark {
        '0' => text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).count(),
        mark => text.matches(mark).count(),
    }
}

type Repair = fn(&str) -> String;

/// The beginning of a row as a Ruby program prints it, and in JSON.
const RUBY: [&str; 2] = ["{\"QUERY PLAN\"=>", "{\"QUERY PLAN\" => "];
const JSON: &str = "{\"QUERY PLAN\": ";

/// Returns the text with one line of a plan per line, in ASCII where EXPLAIN writes ASCII. It is not copied if nothing
/// changes.
pub fn plain(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\u{feff}');
    // XML has entities, too: they are decoded with the plan.
    let is_html = ["-&gt;", "&gt; ", "&nbsp;", "&#62;", "&#x3e;", "&quot;Plan&quot;", "<td", "<br", "<pre"]
        .iter()
        .any(|sign| text.contains(sign))
        && !text.contains("<explain xmlns=");
    let repairs: [(bool, Repair); 7] = [
        (is_html, without_html),
        (!text.is_ascii() && text.contains(|c| is_space(c) || is_invisible(c) || is_arrow(c)), in_ascii),
        (text.contains('\r'), |text| text.replace('\r', "\n")),
        // a cell of a CSV file
        (text.contains("\"\"Plan\"\":"), |text| text.replace("\"\"", "\"")),
        // rows as a Python or a Ruby program prints them
        (text.contains("{'QUERY PLAN': "), |text| text.replace("'QUERY PLAN': ", "")),
        (text.contains(RUBY[0]) || text.contains(RUBY[1]), |text| text.replace(RUBY[0], JSON).replace(RUBY[1], JSON)),
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
    memchr::memmem::find_iter(line.as_bytes(), "loops=").nth(1).is_some() && !is_json()
}

/// Returns what separates the lines in a line: what follows the figures of each node.
fn separator(line: &str) -> Option<&str> {
    let mut after = line.match_indices(" loops=").filter_map(|(at, _)| Some(&line[at + line[at..].find(')')? + 1..]));
    let (first, second) = (after.next()?, after.next()?);
    let equal = first.get(..first_difference(first, second).unwrap_or(second.len()))?;
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
        if !has_several_lines(line) {
            split += line;
        } else if let Some(separator) = separator(line) {
            split += &from_root(line).replace(separator, "\n").replace("\\t", "\t").replace("\\\"", "\"");
        } else {
            split += &at_nodes(line);
        }
        split.push('\n');
    }
    split
}

/// Returns a line with a line end before and after each node and before the times: a browser shows line ends as spaces.
fn at_nodes(line: &str) -> String {
    let mut split = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(end) = rest.find(" loops=").and_then(|at| Some(at + rest[at..].find(')')? + 1)) {
        split += &rest[..end];
        split.push('\n');
        rest = &rest[end..];
    }
    split += rest;
    let words = [" Planning Time: ", " Execution Time: "].into_iter().flat_map(|word| split.match_indices(word));
    let begins_node =
        |at: &usize| split[at + ARROW.len() + 1..].trim_start().starts_with(|c: char| c.is_ascii_uppercase());
    let arrows = split.match_indices(" -> ").map(|(at, _)| at).filter(begins_node);
    let mut lines = split.clone().into_bytes();
    arrows.chain(words.map(|(at, _)| at)).for_each(|at| lines[at] = b'\n');
    String::from_utf8(lines).unwrap_or(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "Sort  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)";

    #[track_caller]
    fn inner(root: &str, line: &str) -> String {
        match begins(root) {
            Some(Begin::Text(frame) | Begin::Json(frame) | Begin::Structured(_, frame)) => {
                frame.inner(line).into_owned()
            }
            other => panic!("{other:?}: {root}"),
        }
    }

    #[test]
    fn only_numbers_may_differ_in_a_prefix() {
        for (line, before, after) in [
            ("a:12: x", "a:9: ", Some("x")),
            ("> 5 rows", "> ", Some("5 rows")),
            ("5", "", Some("5")),
            ("a:b", "a:1", None),
        ] {
            assert_eq!(after_similar(line, before), after, "{line}");
        }
    }

    #[test]
    fn the_first_line_shows_the_frame_of_all_lines() {
        for (before, after, line, expected) in [
            ("", "", "  Sort Key: a", "  Sort Key: a"),
            ("> ", "", ">   Sort Key: a", "  Sort Key: a"),
            ("> > ", "", ">>", ""),
            ("     9\t", "", "    10\t  Sort Key: a", "  Sort Key: a"),
            ("9: ", "", "10:   Sort Key: a", "  Sort Key: a"),
            ("| ", "   |", "|   Sort Key: a    |", "  Sort Key: a"),
            ("", "   |", "  Sort Key: a    |", "  Sort Key: a"),
            ("\"", "\",", "\"  Sort Key: \"\"a\"\"\",", "  Sort Key: \"a\""),
            ("\"", "\"", "\"  Sort Key: a\"", "  Sort Key: a"),
            ("[('", "',),", " ('  Sort Key: a',),", "  Sort Key: a"),
            ("[('", "',),", " ('  Sort Key: a',)]", "  Sort Key: a"),
            ("QUERY PLAN | ", "", "QUERY PLAN |   Sort Key: a", "  Sort Key: a"),
            ("QUERY PLAN | ", "", "-[ RECORD 2 ]---", ""),
            ("QUERY PLAN,", "", "QUERY PLAN,\"  Sort Key: a, \"\"b\"\"\"", "  Sort Key: a, \"b\""),
        ] {
            assert_eq!(inner(&format!("{before}{NODE}{after}"), line), expected, "{before} {line}");
        }
        let mail = format!("db_1 | {NODE}\ndb_1 |   ->  {NODE}");
        assert_eq!(inner(&mail, "db_1 |   Sort Key: a"), "  Sort Key: a");
        assert_eq!(inner(" [        +", "   {      +"), "  {");
        assert_eq!(inner("QUERY PLAN | [    +", "           |   {    +"), "  {");
    }

    #[test]
    fn other_lines_begin_nothing() {
        for line in
            ["", "  Filter: (a > 1)", "(4 rows)", "[unknown]", "{a, b}", "2026-11-24 LOG:  x", "Plan: x", "a (cost=1)"]
        {
            assert_eq!(begins(line), None, "{line}");
        }
        assert_eq!(begins(&format!("  ->  {NODE}")), Some(Begin::Below));
        assert!(matches!(begins("Sort\n(cost=1.00..2.00 rows=1"), Some(Begin::Text(_))));
    }

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
