//! Reads a plan as auto_explain writes it.

use crate::server::explain::captured::root::{root_at, without_quoted_line_ends};
use crate::server::explain::captured::structured::Structured;
use crate::server::explain::captured::{Found, Source, Unreadable, each_plan, text};
use crate::server::explain::plan::Explained;

/// A plan, and its own text if that is needed.
type WithSource = (Found, Option<Source<String>>);

/// Reads the plan below a line that announces it. `root`: where the topmost node of a text plan begins, if that is known.
pub fn announced(text: &str, root: Option<usize>, needs_source: bool) -> WithSource {
    let start = text.trim_start();
    let read = if start.starts_with('{') {
        let plan = serde_json::from_str(start).map_err(|error| Unreadable::Json(error.to_string()));
        (plan, needs_source.then(|| Source::Json(start.to_string())))
    } else if let Some(format) = structured(start) {
        match format.as_json(start) {
            Ok(json) => {
                let plan = serde_json::from_str(&json).map_err(|error| format.unreadable(&error));
                (plan, needs_source.then_some(Source::Json(json)))
            }
            Err(unreadable) => (Err(unreadable), None),
        }
    } else if let Some(root) = root.or_else(|| root_at(text)) {
        return text_plan(text, root, needs_source);
    } else {
        (Err(Unreadable::Missing), None)
    };
    if read.0.is_ok() { read } else { repaired(text, needs_source).unwrap_or(read) }
}

/// Reads a plan in text format, whose topmost node begins at `root`.
fn text_plan(text: &str, root: usize, needs_source: bool) -> WithSource {
    let (query, plan) = text.split_at(root);
    let plan = without_quoted_line_ends(plan);
    let query = query.trim_end().strip_prefix("Query Text: ").map(without_parameters).map(str::to_string);
    let (explained, source) = match text::plan(plan.lines()) {
        Ok(explained) => (Ok(explained), needs_source.then(|| Source::Text(plan.to_string()))),
        Err(error) => repaired(&plan, needs_source).unwrap_or((Err(Unreadable::Text(error)), None)),
    };
    let with_query = |explained: Explained| Explained { query: explained.query.or(query), ..explained };
    (explained.map(with_query), source)
}

/// Returns the format of a plan that auto_explain wrote in YAML or XML.
fn structured(start: &str) -> Option<Structured> {
    // In YAML, the query is in quotation marks. No statement begins with one.
    if start.starts_with("Query Text: \"") || start.starts_with("Plan:") {
        return Some(Structured::Yaml);
    }
    start.starts_with("<explain").then_some(Structured::Xml)
}

/// Removes the line with the values of the query's parameters.
fn without_parameters(query: &str) -> &str {
    query.split_once("\nQuery Parameters: ").map_or(query, |(query, _)| query)
}

/// Reads a plan that something has changed after the server wrote it.
fn repaired(text: &str, needs_source: bool) -> Option<WithSource> {
    let mut last = None;
    each_plan(text, &mut |plan, source| last = Some((plan, source.filter(|_| needs_source).map(Source::to_owned))));
    last.filter(|(plan, _)| plan.is_ok())
}
