//! What surrounds each line of a plan: the bars of a table, quotation marks, line numbers, the marks of a quoted mail. The
//! line of the topmost node shows it, because it is known where a node's line begins and ends.

use super::structured::Structured;
use super::text::{ARROW, FIGURES, figures_end, names_node, node_line};
use std::borrow::Cow;

/// What is before and after each line.
#[derive(Debug, Default, PartialEq)]
pub struct Frame<'a> {
    before: &'a str,
    /// the last character of `before`, if it is neither a space nor a letter (a digit counts as `0`), and how often it is there
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
    let line = first_line(rest);
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

fn first_line(text: &str) -> &str {
    text.split('\n').next().unwrap_or_default()
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
    (is_lead && is_json).then(|| Frame::of(before, if is_after(rest) { rest } else { "" }))
}

/// Returns whether a text can be the end of a frame.
fn is_after(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '+' || is_frame(c) && !"[]{}".contains(c) && !c.is_ascii_digit())
}

/// Returns where the name of a topmost node begins in the first line of `rest`, and what follows its figures. A mail program
/// may have broken the line.
fn root(rest: &str, lead: usize) -> Option<(usize, &str)> {
    let line = first_line(rest);
    let begins_figures = |text: &str| FIGURES.iter().any(|figures| text.starts_with(figures));
    let is_root = |at: usize| {
        // A name in quotation marks can have an arrow, too.
        let kind = line[at..].split(" on ").next().and_then(|kind| kind.split('(').next());
        names_node(&line[at..]) && kind.is_some_and(|kind| !kind.contains(ARROW))
    };
    let end = figures_end(line);
    match line.rfind('(').map(|at| &line[at..]) {
        Some(_) if FIGURES.iter().any(|figures| line.contains(figures)) => {
            let at = Some(lead).filter(|at| is_root(*at)).or_else(|| shared_lead(rest).filter(|at| is_root(*at)))?;
            Some((at, end.map_or("", |end| &line[end..])))
        }
        _ => (is_root(lead) && begins_figures(second_line(rest, lead))).then_some((lead, "")),
    }
}

/// Returns the length of what the first line and the line of the next node have in common: a frame with letters.
fn shared_lead(rest: &str) -> Option<usize> {
    /// A node's line has at most this many lines of properties after it, mostly.
    const NEAR: usize = 30;
    let mut lines = rest.lines();
    let first = lines.next()?;
    let next = lines.take(NEAR).find(|line| line.contains(ARROW) && figures_end(line).is_some())?;
    let differs = first.char_indices().zip(next.chars()).find(|((_, a), b)| a != b);
    let at = differs.map(|((at, _), _)| at)?;
    (at > 0 && next.get(at..)?.trim_start().starts_with(ARROW)).then_some(at)
}

impl<'a> Frame<'a> {
    fn of(before: &'a str, after: &'a str) -> Frame<'a> {
        let kind = |c: char| if c.is_ascii_digit() { '0' } else { c };
        let text = before.trim_end();
        let mark = text.chars().last().map(kind);
        let marks = |mark: char| count_marks(text, mark);
        let after = if is_after(after.trim()) { after.trim() } else { "" };
        // A quotation mark at the beginning of a cell with several lines.
        let is_cell = after.is_empty() && mark.is_some_and(|mark| ['"', '\''].contains(&mark));
        Frame {
            before,
            mark: mark.filter(|mark| !is_cell && !mark.is_alphabetic()).map(|mark| (mark, marks(mark))),
            spaces: before[text.len()..].chars().count(),
            after,
        }
    }

    /// Returns the length of what is before the first line.
    pub fn lead(&self) -> usize {
        self.before.len()
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
        let text = match line.strip_prefix(self.before) {
            Some(text) => text,
            None => self.after_mark(line).unwrap_or(line),
        };
        let text = figures_end(text).filter(|_| text.contains(" loops=")).map_or(text, |end| &text[..end]);
        let text = text.strip_suffix(self.after).unwrap_or_else(|| self.without_last_quote(text)).trim_end();
        let is_quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"') && !text.contains("\": ");
        match () {
            () if is_quoted => text[1..text.len() - 1].replace("\"\"", "\"").into(),
            () if self.after.starts_with('"') && text.contains('"') => {
                text.replace("\"\"", "\"").replace("\\\"", "\"").into()
            }
            () => text.into(),
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

/// Returns how often a mark is in a text. The digits of a number count as one.
fn count_marks(text: &str, mark: char) -> usize {
    match mark {
        '0' => text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).count(),
        mark => text.matches(mark).count(),
    }
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
}
