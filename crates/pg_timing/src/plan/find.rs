//! Finds the plans in a text that somebody pasted: a file, a ticket, psql's output. Also reads a plan in text format that is
//! wrapped or has lost its indentation.

use super::frame::{Begin, Frame, begins, first_line, plain};
use super::structured::Structured;
use super::text::{self, ARROW};
use super::tree::Explained;
use super::unusable::Unusable;
use super::{Found, MAX_NODES, layout};
use crate::json::is_quote;
use crate::report::PlanSource;
use memchr::memmem;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Levels of JSON around a plan: a JSON log whose message contains a plan.
const MAX_NESTING: usize = 2;

/// Passes each plan of a text to `found`, in the order of the text. The caller keeps only the plans that it needs: a
/// text can have many thousands. `needs_source`: each plan contains its own text.
pub fn each_plan(text: &str, needs_source: bool, found: &mut dyn FnMut(Found)) {
    each_plan_in(text, MAX_NESTING, needs_source, found);
}

/// The same for a text that can contain this number of levels of JSON.
fn each_plan_in(text: &str, nesting: usize, needs_source: bool, found: &mut dyn FnMut(Found)) {
    let text = plain(text);
    let mut search = Search { nesting, needs_source, found, line: 0, query: None, reported_damage: false };
    let mut rest = &*text;
    while !rest.is_empty() {
        let (read, after) = rest.split_at(search.next(rest));
        // A repaired text can have other lines.
        let is_exact = matches!(text, Cow::Borrowed(_));
        search.line += u64::from(is_exact) * read.matches('\n').count() as u64;
        rest = after;
    }
}

/// The search for plans from the beginning of a text to its end.
struct Search<'a> {
    nesting: usize,
    needs_source: bool,
    found: &'a mut dyn FnMut(Found),
    /// lines before the plan
    line: u64,
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
        if let Some((_, query)) = trimmed.split_once("Query Text: ").filter(|(frame, _)| frame.len() < 3) {
            // YAML writes it as a constant. No statement begins with a quotation mark.
            self.query = Some(serde_json::from_str(query).unwrap_or_else(|_| query.into()));
            return line.len();
        }
        match begins(rest) {
            Some(Begin::Text(frame)) => self.text(rest, &frame),
            Some(Begin::Json(frame)) => self.json(rest, &frame),
            Some(Begin::Structured(format, frame)) => self.structured(format, rest, &frame),
            Some(Begin::Below) => {
                self.push(Err(Unusable::RootMissing), None);
                text_plan_length(rest)
            }
            None => line.len(),
        }
    }

    /// Reports a plan, with the query that auto_explain prints above it. `source` is its text, if it was read from one.
    fn push(&mut self, plan: Found, source: Option<PlanSource>) {
        let query = self.query.take();
        (self.found)(plan.map(|plan| Explained {
            query: plan.query.or(query),
            source: plan.source.or(source),
            line: self.line,
            ..plan
        }));
    }

    fn source(&self, source: fn(String) -> PlanSource, text: &str) -> Option<PlanSource> {
        self.needs_source.then(|| source(text.into()))
    }

    /// Reads the text plan at the beginning of `rest`. Returns its length.
    fn text(&mut self, rest: &str, frame: &Frame) -> usize {
        let length = text_plan_length(rest);
        let whole = &rest[..length];
        let is_plain = frame.is_empty() && frame.before.is_empty() && !whole.contains("\n\"");
        let plan = match is_plain {
            true => Cow::Borrowed(whole),
            false => whole.lines().flat_map(|line| [frame.inner(line), "\n".into()]).collect::<String>().into(),
        };
        let (read, plan) = read_text(&plan);
        let source = self.source(PlanSource::Text, &plan);
        self.push(read, source);
        length
    }

    /// Reads the YAML or XML at the beginning of `rest`. Returns its length.
    fn structured(&mut self, format: Structured, rest: &str, frame: &Frame) -> usize {
        let (plan, length) = match frame.is_empty() {
            true => (Cow::Borrowed(rest), None),
            false => {
                let is_end =
                    |line: &str| line.starts_with("</explain>") || line.is_empty() || line.starts_with("(1 row)");
                let (plan, length) = unframed(rest, frame, is_end);
                (plan.into(), Some(length))
            }
        };
        let end = format.length(&plan);
        let mut is_empty = true;
        let read = format.as_json(&plan[..end]).map(|json| {
            json_plans(&json, format.name(), &mut |plan, json| {
                is_empty = false;
                self.push(plan, self.source(PlanSource::Json, json));
            })
        });
        match read {
            Ok(_) if is_empty => {
                self.push(Err(Unusable::InvalidSyntax(format.name(), "missing field `Plan`".into())), None);
            }
            Ok(_) => {}
            Err(why) => self.push(Err(why), None),
        }
        length.unwrap_or(end)
    }

    /// Reads the JSON values that begin on the first line of `rest`. Returns the length up to the next line to read.
    fn json(&mut self, rest: &str, frame: &Frame) -> usize {
        if frame.is_empty() {
            let lead = frame.before.len();
            return lead + self.json_values(&rest[lead..]);
        }
        let (json, length) = unframed(rest, frame, |line| line.starts_with([']', '}']));
        self.json_values(&json);
        length
    }

    fn json_values(&mut self, rest: &str) -> usize {
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
        let texts = json_plans(value, "JSON", &mut |plan, json| {
            self.reported_damage = false;
            self.push(plan, self.source(PlanSource::Json, json));
        });
        if let Some((texts, nesting)) = texts.zip(self.nesting.checked_sub(1)) {
            self.reported_damage = false;
            each_plan_in(&texts, nesting, self.needs_source, &mut |plan| self.push(plan, None));
        }
    }

    /// Reports a damaged value at the beginning of `rest`. Returns the length up to the line with the error: the lines
    /// before it belong to the damaged value, and reading each of them again could take hours.
    fn damaged_json(&mut self, rest: &str, error: &serde_json::Error) -> usize {
        if !self.reported_damage && looks_like_json(rest) {
            self.reported_damage = true;
            self.push(Err(unreadable("JSON", error)), None);
        }
        let before_error: usize = rest.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        before_error.max(first_line(rest).len())
    }
}

/// Reads the lines of one plan, also if they were wrapped or have lost their indentation. Returns the lines that were read.
pub fn read_text(plan: &str) -> (Found, Cow<'_, str>) {
    let read = text::plan(plan.lines());
    // If a condition was wrapped, its second line can hide that the node uses an InitPlan.
    let is_wrapped = matches!(read, Err(Unusable::NodeLineIncomplete | Unusable::RootMissing))
        || read.is_ok() && plan.contains("InitPlan") && layout::has_broken_condition(plan);
    let (read, plan) = match is_wrapped {
        true => {
            let joined = layout::joined(plan);
            (text::plan(joined.lines()), Cow::Owned(joined))
        }
        false => (read, Cow::Borrowed(plan)),
    };
    if !matches!(read, Err(Unusable::LostIndentation(_))) {
        return (read, plan);
    }
    match layout::restored(&plan) {
        Ok(restored) => {
            let note = "the plan had lost its indentation. Its tree was reconstructed from the kinds of its nodes";
            let read = text::plan(restored.lines()).map(|plan| Explained { notes: vec![note.into()], ..plan });
            (read, restored.into())
        }
        Err(error) => (Err(error), plan),
    }
}

/// Returns the lines at the beginning of `rest` without their frame, up to the one with the end, and their length in bytes.
fn unframed(rest: &str, frame: &Frame, is_end: impl Fn(&str) -> bool) -> (String, usize) {
    let (mut plain, mut length) = (String::new(), 0);
    for line in rest.split_inclusive('\n') {
        let inner = frame.inner(line);
        length += line.len();
        plain += &inner;
        plain.push('\n');
        if length > line.len() && is_end(&inner) {
            break;
        }
    }
    (plain, length)
}

/// Returns the length of the text plan at the beginning of `rest`, in bytes.
fn text_plan_length(rest: &str) -> usize {
    let mut last = first_line(rest);
    let mut end = last.len();
    while end < rest.len() && !ends_text_plan(&rest[end..], last, end == last.len()) {
        last = first_line(&rest[end..]);
        end += last.len();
    }
    end
}

/// Returns whether the first line of `rest` cannot belong to the text plan before it. `last` is the line above, which may be the
/// root's. A line below the root has an arrow, if it is a node's.
fn ends_text_plan(rest: &str, last: &str, is_below_root: bool) -> bool {
    let line = first_line(rest).trim();
    if line.is_empty() {
        return false;
    }
    line == "QUERY PLAN"
        || match begins(rest) {
            Some(Begin::Text(_)) => !(layout::is_open(last) && (is_below_root || last.contains(ARROW))),
            Some(Begin::Structured(..)) => true,
            Some(Begin::Json(_)) => looks_like_json(rest),
            Some(Begin::Below) | None => false,
        }
}

/// Returns whether a JSON plan begins here. Log lines may begin with a bracket, too.
fn looks_like_json(rest: &str) -> bool {
    const NEAR: usize = 10;
    rest.lines().take(NEAR).any(|line| line.contains("\"Plan\""))
}

/// Levels around a plan or a text. Each level is read once more.
const MAX_LEVELS: usize = 10;

/// Passes the plans of a value to `found`, each with its JSON. Values without a plan take no memory. `format` is that of the
/// original. Returns its strings, one per line, if they contain a plan in text format or in another format.
fn json_plans(value: &str, format: &'static str, found: &mut dyn FnMut(Found, &str)) -> Option<String> {
    let mut texts = String::new();
    json_plans_in(value, format, MAX_LEVELS, &mut texts, found);
    text::FIGURES.iter().chain(&["Node Type", "Node-Type"]).any(|sign| texts.contains(sign)).then_some(texts)
}

fn json_plans_in(
    value: &str,
    format: &'static str,
    levels: usize,
    texts: &mut String,
    found: &mut dyn FnMut(Found, &str),
) {
    let Some(levels) = levels.checked_sub(1) else { return };
    match value.as_bytes().first() {
        // The value is valid JSON, so there is no error.
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
            elements.into_iter().for_each(|element| json_plans_in(element.get(), format, levels, texts, found));
        }
        Some(b'{') => {
            let entries: BTreeMap<Cow<str>, &RawValue> = match serde_json::from_str(value) {
                Ok(entries) => entries,
                Err(error) => return found(Err(unreadable(format, &error)), value),
            };
            if entries.contains_key("Plan") {
                return found(from_json(value, format), value);
            }
            let others = entries.into_iter().filter(|(key, _)| !is_quote(key));
            others.for_each(|(_, entry)| json_plans_in(entry.get(), format, levels, texts, found));
        }
        // Rows of a plan are one text.
        Some(b'"') => {
            *texts += &serde_json::from_str::<Cow<str>>(value).unwrap_or_default();
            texts.push('\n');
        }
        _ => {}
    }
}

/// Reads one statement of EXPLAIN's JSON. `format` is that of the original.
pub fn from_json(json: &str, format: &'static str) -> Found {
    // Each node has this key, so its number limits the memory.
    if memmem::find_iter(json.as_bytes(), "\"Node Type\"").nth(MAX_NODES).is_some() {
        return Err(Unusable::TooManyNodes);
    }
    serde_json::from_str::<Explained>(json).map_err(|error| unreadable(format, &error))
}

/// Returns why the parser refused a value.
fn unreadable(format: &'static str, error: &serde_json::Error) -> Unusable {
    let text = error.to_string();
    match text.contains("recursion limit") {
        true => Unusable::TooDeep,
        // The position does not refer to the original file.
        false => Unusable::InvalidSyntax(format, text.split(" at line ").next().unwrap_or_default().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of plans and the texts.
    fn contents(value: &str) -> (usize, Vec<String>) {
        let mut plans = 0;
        let texts = json_plans(value, "JSON", &mut |plan, _| plans += usize::from(plan.is_ok()));
        (plans, texts.into_iter().collect())
    }

    #[test]
    fn plans_are_found_in_lists_and_rows() {
        const PLAN: &str = r#"{"Plan": {"Node Type": "Result"}}"#;
        for value in [
            PLAN.to_string(),
            format!("[{PLAN}]"),
            format!(r#"[{{"QUERY PLAN": [{PLAN}]}}]"#),
            format!("[[[{PLAN}]]]"),
            format!(r#"{{"message": {PLAN}}}"#),
        ] {
            assert_eq!(contents(&value), (1, vec![]), "{value}");
        }
        let rows = r#"[{"QUERY PLAN": "A (actual rows=1 loops=1)"}, {"QUERY PLAN": "  ->  B"}, {"statement": "C"}]"#;
        assert_eq!(contents(rows), (0, vec!["A (actual rows=1 loops=1)\n  ->  B\n".into()]));
        assert_eq!(contents(r#"[0, "Plan", null, {"Plans": 1}]"#), (0, vec![]));
        assert_eq!(contents(&format!("[{PLAN}, {PLAN}]")).0, 2);
    }
}
