//! A plan in text format as the JSON that the server would print, as far as the text shows it.

use super::element;
use super::name;
use super::property;
use super::totals::Totals;
use crate::plan_format::keys::PLANS;
use crate::plan_format::{LineTimes, Properties, TextLine};
use crate::server::explain::captured::node_line::column;
use crate::server::explain::plan::{Explained, Node};
use serde_json::Value;

/// Returns the plan's JSON. `explained` has its tree.
pub fn json(lines: &[TextLine], explained: &Explained) -> Properties {
    let mut nodes = in_order(&explained.plan).into_iter();
    let mut read: Vec<Properties> = Vec::new();
    let mut totals = Totals::default();
    // the property whose last element has the indented lines, and the column of that element
    let mut list: Option<(&str, usize)> = None;
    for line in lines {
        let (text, column) = (line.text.trim(), column(&line.text));
        list = list.filter(|(_, element)| column > *element);
        if let LineTimes::Node(_) = line.times {
            list = None;
            read.extend(nodes.next().map(|node| name::properties(node, text)));
        } else if column == 0 || totals.have_begun() {
            totals.read(text, column);
        } else if let Some(node) = read.last_mut().filter(|_| !is_label(text)) {
            let (element, text) = match element::read(text) {
                Some((key, element, rest)) => (Some((key, element)), rest),
                None => (None, text),
            };
            if let Some((key, element)) = element {
                element::add(node, key, element);
                list = Some((key, column));
            }
            let into = match list {
                Some((key, _)) => element::last(node, key),
                None => Some(node),
            };
            if let Some(into) = into.filter(|_| !text.is_empty()) {
                property::read(text, into);
            }
        }
    }
    let mut plan = Properties::new();
    plan.insert("Plan".into(), tree(&explained.plan, &mut read.into_iter()));
    totals.add_to(&mut plan, explained);
    plan
}

/// Returns the nodes in the order in which they are printed.
fn in_order(root: &Node) -> Vec<&Node> {
    let mut nodes = vec![root];
    root.plans.iter().for_each(|below| nodes.extend(in_order(below)));
    nodes
}

/// Returns the properties of a node with the nodes below it.
fn tree(node: &Node, properties: &mut impl Iterator<Item = Properties>) -> Value {
    let mut own = properties.next().unwrap_or_default();
    property::finish_grouping_sets(&mut own);
    let below: Vec<Value> = node.plans.iter().map(|below| tree(below, properties)).collect();
    if !below.is_empty() {
        own.insert(PLANS.into(), below.into());
    }
    own.into()
}

/// Returns whether a line is the name of the subplan in the next line.
fn is_label(text: &str) -> bool {
    ["CTE ", "InitPlan ", "SubPlan "].iter().any(|kind| text.starts_with(kind)) && !text.contains(": ")
}
