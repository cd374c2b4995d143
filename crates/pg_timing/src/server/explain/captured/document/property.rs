//! The properties in the lines below a node's line.

use crate::plan_format::counters::COUNTERS;
use crate::plan_format::keys::{
    GROUPING_SETS, LISTS, LOOPS, ONLY_IF_TRUE, ROWS, SORT_GROUPS, SORT_SPACES, STARTUP_TIME, TOTAL_TIME,
};
use crate::plan_format::lines::GROUPS;
use crate::plan_format::{Properties, scalar};
use serde_json::{Value, json};

/// Reads a line into the properties of its node or worker.
pub fn read(text: &str, into: &mut Properties) {
    let shared = GROUPS.iter().find_map(|group| group.read(text));
    if let Some(found) = shared.or_else(|| COUNTERS.iter().find_map(|counters| counters.read(text))) {
        return into.extend(found);
    }
    if text.starts_with("actual ") {
        return read_figures(text, into);
    }
    match text.split_once(": ") {
        Some((key, value)) if SORT_GROUPS.contains(&key) => {
            into.insert(key.into(), sort_group(value).into());
        }
        Some((key @ ("Hash Key" | "Group Key" | "Sort Key"), value))
            if into.get("Node Type") == Some(&json!("Aggregate")) =>
        {
            add_grouping_set(key, value, into);
        }
        Some((key, value)) if is_key(key) => {
            into.insert(key.into(), typed(key, value));
        }
        _ => continue_last(text, into),
    }
}

/// A condition can contain a colon, too, but it begins with a parenthesis or a quotation mark.
fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_uppercase()) && !key.contains(['(', '\'', '"', '='])
}

fn typed(key: &str, value: &str) -> Value {
    match value {
        _ if LISTS.contains(&key) => list(value),
        "true" | "false" if ONLY_IF_TRUE.contains(&key) => (value == "true").into(),
        value => scalar(value),
    }
}

/// Appends the line to the last property if that is a text: a constant in a condition can contain line breaks.
fn continue_last(text: &str, into: &mut Properties) {
    if let Some((_, Value::String(last))) = into.iter_mut().next_back() {
        last.push('\n');
        last.push_str(text);
    }
}

/// Reads `actual time=0.007..0.008 rows=1 loops=1`.
pub fn read_figures(text: &str, into: &mut Properties) {
    for (name, value) in text.split(' ').filter_map(|figure| figure.split_once('=')) {
        let keys: &[&str] = match name {
            "time" => &[STARTUP_TIME, TOTAL_TIME],
            "rows" => &[ROWS],
            "loops" => &[LOOPS],
            _ => &[],
        };
        for (key, value) in keys.iter().zip(value.split("..")) {
            into.insert((*key).into(), scalar(value));
        }
    }
}

/// Splits a list at its commas, but not within parentheses or quotation marks.
fn list(text: &str) -> Value {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0, None);
    for (at, c) in text.char_indices() {
        match c {
            '\'' | '"' if quote.is_none() => quote = Some(c),
            c if quote == Some(c) => quote = None,
            '(' | '[' if quote.is_none() => depth += 1,
            ')' | ']' if quote.is_none() => depth -= 1,
            ',' if quote.is_none() && depth == 0 && text[at..].starts_with(", ") => {
                parts.push(&text[start..at]);
                start = at + 2;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into()
}

/// Adds a set of GROUPING SETS. In JSON, each hash table has its own list, and each sort has one for all sets that it
/// makes.
fn add_grouping_set(key: &str, value: &str, into: &mut Properties) {
    let Some(sets) = into.entry(GROUPING_SETS).or_insert_with(|| json!([])).as_array_mut() else { return };
    let columns = if value == "()" { json!([]) } else { list(value) };
    let last = sets.last_mut().and_then(Value::as_object_mut);
    match (key, last) {
        ("Sort Key", _) => sets.push(json!({ key: columns })),
        ("Group Key", Some(last)) if !last.contains_key("Hash Keys") => {
            let keys = last.entry("Group Keys").or_insert_with(|| json!([]));
            keys.as_array_mut().into_iter().for_each(|keys| keys.push(columns.clone()));
        }
        _ => sets.push(json!({ format!("{key}s"): [columns] })),
    }
}

/// Replaces a single set by what a server prints without GROUPING SETS: `"Group Key": ["a", "b"]`.
pub fn finish_grouping_sets(node: &mut Properties) {
    let Some(at) = node.keys().position(|key| key == GROUPING_SETS) else { return };
    let columns = match node[GROUPING_SETS].as_array().map(Vec::as_slice) {
        Some([set]) if set.as_object().is_some_and(|set| set.len() == 1) => set["Group Keys"].as_array().cloned(),
        _ => None,
    };
    if let Some([columns]) = columns.as_deref()
        && columns != &json!([])
    {
        node.shift_remove(GROUPING_SETS);
        node.shift_insert(at, "Group Key".into(), columns.clone());
    }
}

/// Reads `5  Sort Method: quicksort  Average Memory: 26kB  Peak Memory: 27kB`.
fn sort_group(text: &str) -> Properties {
    let mut parts = text.split("  ");
    let mut group = Properties::new();
    group.insert("Group Count".into(), scalar(parts.next().unwrap_or_default()));
    for (name, value) in parts.filter_map(|part| part.split_once(": ")) {
        if name.starts_with("Sort Method") {
            group.insert("Sort Methods Used".into(), list(value));
        } else if let Some((which, space)) = name.split_once(' ').filter(|(_, space)| SORT_SPACES.contains(space)) {
            let used = group.entry(format!("Sort Space {space}")).or_insert_with(|| json!({}));
            let kilobytes = scalar(value.trim_end_matches("kB"));
            used.as_object_mut().and_then(|used| used.insert(format!("{which} Sort Space Used"), kilobytes));
        }
    }
    group
}
