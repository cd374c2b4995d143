//! Elements of a node's lists that have lines of their own: its workers, and the tables that it changes.

use crate::plan_format::keys::{TARGET_TABLES, WORKER_NUMBER, WORKERS};
use crate::plan_format::{Properties, scalar};
use crate::server::explain::captured::node_line::{Qualified, qualified};
use serde_json::{Value, json};

/// Returns the key of the list, its new element, and the text after the element's name. `None` for other lines.
pub fn read(text: &str) -> Option<(&'static str, Properties, &str)> {
    worker(text)
        .map(|(worker, rest)| (WORKERS, worker, rest))
        .or_else(|| Some((TARGET_TABLES, target_table(text)?, "")))
}

/// Appends an element to a list of the node.
pub fn add(node: &mut Properties, key: &str, element: Properties) {
    if let Some(list) = node.entry(key).or_insert_with(|| json!([])).as_array_mut() {
        list.push(element.into());
    }
}

/// Returns the last element of a list of the node.
pub fn last<'a>(node: &'a mut Properties, key: &str) -> Option<&'a mut Properties> {
    node.get_mut(key).and_then(Value::as_array_mut)?.last_mut()?.as_object_mut()
}

/// Reads the name in `Worker 0:  Sort Method: quicksort  Memory: 25kB`.
fn worker(text: &str) -> Option<(Properties, &str)> {
    let (number, rest) = text.strip_prefix("Worker ")?.split_once(":  ")?;
    let is_number = number.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| (Properties::from_iter([(WORKER_NUMBER.into(), scalar(number))]), rest))
}

/// Reads `Update on public.p1 p_1`.
fn target_table(text: &str) -> Option<Properties> {
    let (operation, target) = text.split_once(" on ")?;
    let operation = operation.strip_prefix("Foreign ").unwrap_or(operation);
    if !["Insert", "Update", "Delete", "Merge"].contains(&operation) {
        return None;
    }
    Some(names(target, Some("Relation Name")))
}

/// Returns the properties for `schema.name alias`. The alias is missing if it is the same. `key` is the name's property.
pub fn names(target: &str, key: Option<&str>) -> Properties {
    let Qualified { schema, name, rest } = qualified(target);
    let alias = Some(qualified(rest.trim_start()).name).filter(|alias| !alias.is_empty());
    let alias = alias.unwrap_or_else(|| name.clone());
    let properties = [(key, Some(name)), (Some("Schema"), schema), (Some("Alias"), Some(alias))];
    properties.into_iter().filter_map(|(key, value)| Some((key?.into(), value?.into()))).collect()
}
