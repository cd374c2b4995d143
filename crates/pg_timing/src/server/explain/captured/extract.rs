//! Extracts the plans from a text. It removes the text that psql, a log or a ticket adds around the plan's lines.

#[cfg(test)]
mod tests;

use super::frame::without_frame;
use super::json_values::{self, Content};
use super::node_line::node_line;
use super::repair;
use super::structured::Structured;
use super::text::TextError;
use super::unreadable::{Found, Source, Unreadable};
use crate::server::explain::plan::{Explained, steps};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Levels of JSON around a plan: a JSON log whose message contains a plan.
const MAX_NESTING: usize = 2;

/// Receives a plan and the text that it was read from. A plan that is missing has none.
pub type OnPlan<'a> = dyn FnMut(Found, Option<Source<&str>>) + 'a;

/// Passes each plan of a text to `found`, in the order of the text. The caller keeps only the plans that it needs: a
/// log can have many thousands.
pub fn each_plan(text: &str, found: &mut OnPlan) {
    each_plan_in(&repair::plain_lines(text), MAX_NESTING, found);
}

fn each_plan_in(text: &str, nesting: usize, found: &mut OnPlan) {
    let clean = without_frames(text.trim_start_matches('\u{feff}'));
    let mut search = Search { nesting, found, query: None, reported_damage: false };
    let mut rest = &*clean;
    while !rest.is_empty() {
        let done = search.next(rest);
        steps::count(done);
        rest = &rest[done..];
    }
}

/// Returns the text with each line as the server printed it. It is not copied before the first line with a frame.
fn without_frames(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut done = 0;
    for line in text.split_inclusive('\n') {
        let whole = line.strip_suffix('\n').unwrap_or(line);
        let inner = without_frame(whole);
        if clean.is_empty() && inner.len() == whole.len() {
            done += line.len();
            continue;
        }
        if clean.is_empty() {
            clean.reserve(text.len());
            clean.push_str(&text[..done]);
        }
        clean.push_str(inner);
        clean.push('\n');
    }
    if clean.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(clean) }
}

/// The search for plans from the beginning of a text to its end.
struct Search<'a> {
    nesting: usize,
    found: &'a mut OnPlan<'a>,
    /// auto_explain's `Query Text` precedes the plan
    query: Option<String>,
    /// report a damaged plan once, not for each of its lines
    reported_damage: bool,
}

impl Search<'_> {
    /// Reads the plan that begins with the first line of `rest`, or else only this line. Returns the length in bytes.
    fn next(&mut self, rest: &str) -> usize {
        let line = first_line(rest);
        let trimmed = line.trim();
        if trimmed.is_empty() {
            return line.len();
        }
        if let Some(query) = trimmed.strip_prefix("Query Text: ") {
            // YAML writes it as a constant. No statement begins with a quotation mark.
            self.query = Some(serde_json::from_str(query).unwrap_or_else(|_| query.into()));
        } else if trimmed.starts_with(['{', '[']) {
            return self.json(rest);
        } else if let Some(format) = Structured::begins(rest) {
            return self.structured(format, rest);
        } else if let Some(arrow) = first_arrow(rest) {
            let end = text_plan_length(rest);
            if arrow.is_none() {
                let plan = repair::text_plan(&rest[..end]).map_err(Unreadable::Text);
                self.push(plan, Some(Source::Text(&rest[..end])));
            } else if trimmed.starts_with("->  ") {
                self.push(Err(Unreadable::Text(TextError::NoBeginning)), None);
            }
            return end;
        }
        line.len()
    }

    /// Reports a plan, with the query that auto_explain prints above it.
    fn push(&mut self, plan: Found, source: Option<Source<&str>>) {
        let query = self.query.take();
        let plan = plan.map(|plan| Explained { query: plan.query.or(query), ..plan });
        (self.found)(plan, source);
    }

    /// Reads the YAML or XML at the beginning of `rest`. Returns its length.
    fn structured(&mut self, format: Structured, rest: &str) -> usize {
        let length = format.length(rest);
        steps::count(length);
        let mut is_empty = true;
        let json = format.as_json(&rest[..length]).map(|json| {
            json_values::each(&json, &mut |content| {
                if let Content::Plan(plan, json) = content {
                    is_empty = false;
                    self.push(plan.map_err(|why| format.named(why)), Some(Source::Json(json)));
                }
            });
        });
        match json {
            Ok(()) if is_empty => self.push(Err(format.named(Unreadable::Json("missing field `Plan`".into()))), None),
            Ok(()) => {}
            Err(unreadable) => self.push(Err(unreadable), None),
        }
        length
    }

    /// Reads the JSON values that begin on the first line of `rest`. Returns the length up to the next line to read.
    fn json(&mut self, rest: &str) -> usize {
        let mut done = 0;
        loop {
            let mut values = serde_json::Deserializer::from_str(&rest[done..]).into_iter::<&RawValue>();
            match values.next() {
                Some(Ok(value)) => self.json_value(value.get()),
                Some(Err(error)) => return done + self.damaged_json(&rest[done..], &error),
                None => return rest.len(),
            }
            done += values.byte_offset();
            // Another value may follow on the same line.
            let after = rest[done..].trim_start_matches([' ', '\t', ',']);
            if !after.starts_with(['{', '[']) {
                return done + first_line(&rest[done..]).len();
            }
            done = rest.len() - after.len();
        }
    }

    fn json_value(&mut self, value: &str) {
        json_values::each(value, &mut |content| {
            self.reported_damage = false;
            match content {
                Content::Plan(plan, json) => self.push(*plan, Some(Source::Json(json))),
                Content::Text(text) => {
                    if let Some(nesting) = self.nesting.checked_sub(1) {
                        each_plan_in(&text, nesting, &mut |plan, source| self.push(plan, source));
                    }
                }
            }
        });
    }

    /// Reports a damaged value at the beginning of `rest`. Returns the length up to the line with the error: the lines
    /// before it belong to the damaged value, and reading each of them again could take hours.
    fn damaged_json(&mut self, rest: &str, error: &serde_json::Error) -> usize {
        if !self.reported_damage && looks_like_json(rest) {
            self.reported_damage = true;
            self.push(Err(json_values::unreadable(error)), None);
        }
        let before_error: usize = rest.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        steps::count(before_error);
        before_error.max(first_line(rest).len())
    }
}

/// Returns the first line with its line end.
fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

/// Returns the length of the text plan at the beginning of `rest`, in bytes.
fn text_plan_length(rest: &str) -> usize {
    let mut last = first_line(rest);
    let mut end = last.len();
    while end < rest.len() && !ends_text_plan(&rest[end..], last) {
        last = first_line(&rest[end..]);
        end += last.len();
    }
    end
}

/// Returns the column of the arrow, or `None` for a root, if a text begins with a node's line. A root's line may be broken.
fn first_arrow(rest: &str) -> Option<Option<usize>> {
    node_line(first_line(rest)).map(|node| node.arrow).or_else(|| repair::folded::begins(rest).then_some(None))
}

/// Returns whether the first line of `rest` cannot belong to the text plan before it. `last` is the line above.
fn ends_text_plan(rest: &str, last: &str) -> bool {
    let line = first_line(rest);
    if line.trim().is_empty() {
        return false;
    }
    Structured::begins(rest).is_some()
        || line.trim() == "QUERY PLAN"
        || first_arrow(rest) == Some(None) && !repair::folded::is_open(last)
        || looks_like_json(rest)
}

/// Returns whether a JSON plan begins here. Log lines may begin with a bracket, too.
fn looks_like_json(rest: &str) -> bool {
    const NEAR: usize = 10;
    let opens = first_line(rest).trim().strip_prefix(['{', '[']);
    opens.is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with(['{', '[', '"']))
        && rest.lines().take(NEAR).any(|line| line.contains("\"Plan\""))
}
