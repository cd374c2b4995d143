//! Finds plans in a server's log. Only a record that announces a plan contains one, and only one: all other text in a record
//! is what a client wrote.

use super::csv_log::{self, as_record};
use super::root::{root_at, without_quoted_line_ends};
use super::transport::{Part, TAB, continued, sent};
use crate::plan::announcement::{announced_ms, begins_record, is_log_line};
use crate::plan::find::{MAX_NESTING, OnPlan, each_plan_in, read_text};
use crate::plan::{Explained, Source, Unreadable};
use std::borrow::Cow;

/// Passes each plan of a text to `found`, in the order of the text.
pub fn each_plan(text: &str, found: &mut OnPlan) {
    each_in(text, MAX_NESTING, found);
}

fn each_in(text: &str, nesting: usize, found: &mut OnPlan) {
    let text = csv_log::expand_records(text.trim_start_matches('\u{feff}'));
    match has_records(&text) {
        true => records(&text, nesting, found),
        false => each_plan_in(&without_senders(&text), nesting, &nested, found),
    }
}

/// Reads a string of JSON: the message of a record, or another text.
fn nested(text: &str, nesting: usize, found: &mut OnPlan) {
    match text.lines().next().is_some_and(|line| announced_ms(line).is_some()) {
        true => each_in(&as_record(text), nesting, found),
        false => each_in(text, nesting, found),
    }
}

/// Returns whether a text has records of a server's log that begin without a tab. Then no line with a tab begins one.
fn has_records(text: &str) -> bool {
    let begins =
        |line: &str| !line.starts_with(char::is_whitespace) && (is_log_line(line) || announced_ms(line).is_some());
    memchr::memmem::find(text.as_bytes(), b"  ").is_some()
        && text.lines().any(|line| begins(without_quotes(sent(line.trim_end()).text)))
}

/// Returns a line without the quotation marks of a mail.
fn without_quotes(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line
}

/// Returns the text of a line that continues a record.
fn continued_line(line: &str) -> Option<&str> {
    let sent = sent(line);
    let text = match sent.text.starts_with("  ") {
        // journalctl writes spaces instead of the prefix.
        true => sent.text.trim_start_matches(' '),
        false => sent.text,
    };
    let is_next_part = matches!(sent.part, Part::Next { .. });
    continued(text).or_else(|| is_next_part.then_some(text)).or_else(|| continued(without_quotes(text)))
}

/// Returns a line without what syslog and containers put before it.
fn without_sender(line: &str) -> &str {
    let sent = sent(line);
    if sent.process.is_some() { sent.text.strip_prefix(TAB).unwrap_or(sent.text) } else { sent.text }
}

fn without_senders(text: &str) -> Cow<'_, str> {
    match text.lines().any(|line| without_sender(line).len() < line.len()) {
        true => text.lines().flat_map(|line| [without_sender(line), "\n"]).collect::<String>().into(),
        false => text.into(),
    }
}

/// Reads the records, whose further lines have tabs, and the text between them.
fn records(text: &str, nesting: usize, found: &mut OnPlan) {
    let lines = text.lines().map(|line| match continued_line(line) {
        Some(text) => ["\t", text.trim_end(), "\n"].concat(),
        None => [without_quotes(without_sender(line)).trim_end(), "\n"].concat(),
    });
    let text: String = lines.collect();
    let (mut rest, mut other, mut in_log) = (text.as_str(), String::new(), false);
    while let Some(line) = rest.split_inclusive('\n').next() {
        let ms = announced_ms(line);
        let is_record = !line.starts_with([' ', '\t']) && (ms.is_some() || begins_record(line));
        in_log |= is_record;
        let further = rest.split_inclusive('\n').skip(1).take_while(|line| is_record && line.starts_with('\t'));
        let length = line.len() + further.map(str::len).sum::<usize>();
        if length > line.len() {
            each_plan_in(&std::mem::take(&mut other), nesting, &nested, found);
            let message =
                || rest[line.len()..length].lines().map(|line| [&line[1..], "\n"].concat()).collect::<String>();
            ms.into_iter().for_each(|ms| one_plan(&message(), ms, found));
        } else if !line.starts_with('\t') || in_log && ms.is_none() {
            other.push_str(line);
        }
        rest = &rest[length..];
    }
    each_plan_in(&other, nesting, &nested, found);
}

/// Reads the plan below its announcement.
fn one_plan(text: &str, ms: f64, found: &mut OnPlan) {
    let with = |plan: Explained, query: Option<String>| Explained {
        execution_ms: plan.execution_ms.or(Some(ms)),
        query: plan.query.or(query),
        ..plan
    };
    let is_text = !text.trim_start().starts_with(['{', '<']) && !text.starts_with("Query Text: \"");
    if let Some(root) = root_at(text).filter(|_| is_text) {
        let (query, plan) = text.split_at(root);
        let query = query.trim_end().strip_prefix("Query Text: ").map(String::from);
        let plan = without_quoted_line_ends(plan);
        let (read, lines) = read_text(&plan);
        return found(read.map(|plan| with(plan, query)).map_err(Unreadable::Text), Some(Source::Text(&lines)));
    }
    let mut has_found = false;
    each_plan_in(text, 0, &nested, &mut |plan, source| {
        if !std::mem::replace(&mut has_found, true) {
            found(plan.map(|plan| with(plan, None)), source);
        }
    });
    if !has_found {
        found(Err(Unreadable::Missing), None);
    }
}
