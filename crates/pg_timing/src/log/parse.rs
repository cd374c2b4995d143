//! Gives the text of an entry to the readers in plan/.

use super::entry::{Entry, Format, Message, sign_of_plan};
use super::input::Place;
use crate::plan::structured::Structured;
use crate::plan::text::{self, names_node};
use crate::plan::{Explained, Found, Unusable, each_plan, executed, from_json};
use crate::report::PlanSource;
use crate::tokens::Tokens;
use std::borrow::Cow;
use std::sync::Arc;

/// What the log shows about a plan.
#[derive(Clone)]
pub struct Logged {
    pub place: Place,
    pub host: Option<Arc<str>>,
    /// the format of the log, if it is known
    pub format: Option<Format>,
    /// the server logged it; otherwise somebody pasted it
    pub is_message: bool,
    /// a function or a trigger executed the statement
    pub is_nested: bool,
}

/// Passes the plans of an entry to `found`. `needs_source`: each plan contains its own text.
pub fn each(entry: Entry, needs_source: bool, found: &mut dyn FnMut(Logged, Found)) {
    let Entry { place, host, text, mut message, damage } = entry;
    let is_message = message.is_some() || damage.is_some();
    let format = message.as_ref().map(|message| message.format);
    // The place is that of the text's first sign of a plan.
    let before_sign = text[..sign_of_plan(&text).unwrap_or(0)].matches('\n').count() as u64;
    let mut add = |message: Option<Message>, plan: Found| {
        let before = plan.as_ref().map_or(0, |plan| plan.line).saturating_sub(before_sign);
        let line = place.line + if is_message { 0 } else { before };
        let place = Place { line, ..place };
        let is_nested = message.as_ref().is_some_and(|message| message.is_nested);
        let with_time = |plan: Explained| match &message {
            Some(message) => Explained {
                // auto_explain prints no Execution Time. Such a line comes from a name or a setting with a line end.
                execution_ms: Some(message.ms),
                // The log's identifier is that of the client's command.
                query_id: plan.query_id.or(message.query_id.filter(|_| !is_nested)),
                ..plan
            },
            None => plan,
        };
        let logged = Logged { place, host: host.clone(), format, is_message, is_nested };
        found(logged, plan.map(with_time).and_then(executed));
    };
    if let Some(damage) = damage {
        return add(None, Err(damage));
    }
    if let Some(message) = message.take_if(|message| message.has_end) {
        let plan = announced(&text, needs_source);
        return add(Some(message), plan);
    }
    let mut has_plan = false;
    each_plan(&text, needs_source, &mut |plan| {
        has_plan = true;
        // The announced time is that of the first plan.
        add(message.take(), plan);
    });
    if message.is_some() {
        add(message, Err(Unusable::NoPlanAfterAnnouncement));
    } else if let Some(line) = figures(&text).filter(|_| !has_plan) {
        add(None, Err(Unusable::NotANodeLine(line)));
    }
}

/// Returns the first line with figures of a node.
fn figures(text: &str) -> Option<String> {
    const MAX_CHARS: usize = 100;
    let has_figures = |line: &&str| ["(actual time=", "(actual rows="].iter().any(|figures| line.contains(figures));
    Some(text.lines().find(has_figures)?.trim().chars().take(MAX_CHARS).collect())
}

/// Reads the plan below its announcement, as auto_explain writes it.
fn announced(text: &str, needs_source: bool) -> Found {
    let start = text.trim_start();
    // In YAML, the query is in quotation marks. No statement begins with one.
    let is_yaml = start.starts_with("Query Text: \"") || start.starts_with("Plan:");
    let (json, format) = if start.starts_with('{') {
        (start.to_string(), "JSON")
    } else if is_yaml {
        (Structured::Yaml.as_json(start)?, "YAML")
    } else if start.starts_with("<explain") {
        (Structured::Xml.as_json(start)?, "XML")
    } else if let Some(root) = root_at(text) {
        return text_plan(text, root, needs_source);
    } else {
        return repaired(text, needs_source).ok_or(Unusable::NoPlanAfterAnnouncement);
    };
    let plan = from_json(&json, format)?;
    Ok(Explained { source: needs_source.then_some(PlanSource::Json(json)), ..plan })
}

/// Reads a plan in text format, whose topmost node begins at `root`.
fn text_plan(text: &str, root: usize, needs_source: bool) -> Found {
    let (query, plan) = text.split_at(root);
    let plan = without_quoted_line_ends(plan);
    if is_mixed(&plan) {
        return Err(Unusable::LinesMixed);
    }
    let query = query.trim_end().strip_prefix("Query Text: ");
    let query = query.and_then(|query| query.split("\nQuery Parameters: ").next()).map(String::from);
    let source = needs_source.then(|| PlanSource::Text(plan.to_string()));
    let explained = match text::plan(plan.lines()) {
        Ok(explained) => Explained { source, ..explained },
        Err(why) => repaired(&plan, needs_source).ok_or(why)?,
    };
    Ok(Explained { query: explained.query.or(query), ..explained })
}

/// Reads a plan that something has changed after the server wrote it.
fn repaired(text: &str, needs_source: bool) -> Option<Explained> {
    let mut last = None;
    each_plan(text, needs_source, &mut |plan| last = Some(plan));
    last?.ok()
}

/// Returns where the line of the topmost node begins. The query is above it, and can have several lines. Another plan can be
/// in a comment or in a text of the query.
fn root_at(text: &str) -> Option<usize> {
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
fn is_mixed(plan: &str) -> bool {
    plan.contains("\nQuery Text: ") || possible_roots(plan).nth(1).is_some()
}

/// Returns where the lines begin that look like a topmost node.
fn possible_roots(text: &str) -> impl Iterator<Item = usize> {
    let begins = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
    // Most lines of a plan begin with a space.
    let unindented = std::iter::once(0).chain(begins).filter(|at| !text[*at..].starts_with(' '));
    unindented.filter(|at| can_be_root(text[*at..].split('\n').next().unwrap_or_default()))
}

/// Returns whether a line without indentation looks like a topmost node. auto_explain does not indent it.
fn can_be_root(line: &str) -> bool {
    line.trim_end().ends_with(')') && (line.contains("(cost=") || line.contains("(actual ")) && names_node(line)
}

/// Returns a text plan with spaces instead of the line ends in constants and names. A client wrote these: a line of a constant
/// can look like a node, or announce another plan. A quotation mark that is never closed quotes nothing.
fn without_quoted_line_ends(plan: &str) -> Cow<'_, str> {
    // Text that the server does not quote: the name of a file, a trigger or a setting.
    const RAW: [&str; 4] = ["Foreign File: ", "Foreign Program: ", "Trigger ", "Settings: "];
    let bytes = plan.as_bytes();
    let (mut out, mut copied, mut at, mut line) = (String::new(), 0, 0, 0);
    while let Some(open) = memchr::memchr2(b'\'', b'"', &bytes[at..]).map(|next| at + next) {
        line = memchr::memrchr(b'\n', &bytes[at..open]).map_or(line, |end| at + end + 1);
        let end_of_line = || memchr::memchr(b'\n', &bytes[open..]).map_or(plan.len(), |end| open + end);
        let is_raw = RAW.iter().any(|name| plan[line..].trim_start().starts_with(name));
        let close = memchr::memchr(bytes[open], &bytes[open + 1..]).filter(|_| !is_raw);
        at = close.map_or_else(|| if is_raw { end_of_line() } else { open + 1 }, |close| open + close + 2);
        let quoted = &plan[open..at];
        if close.is_some() && quoted.contains('\n') {
            out = out + &plan[copied..open] + &quoted.replace('\n', " ");
            copied = at;
        }
    }
    if copied == 0 { Cow::Borrowed(plan) } else { Cow::Owned(out + &plan[copied..]) }
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
