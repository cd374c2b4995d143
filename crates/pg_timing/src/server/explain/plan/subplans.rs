//! Finds the node that runs each subplan. EXPLAIN prints a subplan where it is defined, not where it runs.

#[cfg(test)]
mod tests;

use super::explained::Node;
use super::node::{PlanNode, callees_first};
use super::{parameters, steps};
use std::collections::HashMap;

/// Maximum number of subplans with one name at one place. No real plan has more. If there are more, all of them keep
/// the caller that EXPLAIN shows. Without the limit, a file in which all subplans and all conditions have one name
/// would take hours.
const MAX_NAMESAKES: usize = 10;

/// The node that runs a subplan.
struct Caller {
    subplan: usize,
    /// `None` if no node runs it
    node: Option<usize>,
    /// no other node can have run it
    is_only: bool,
}

/// Returns whether only the node above can run this node. EXPLAIN prints a subplan once, even if several nodes run it:
/// the scans of several partitions, or a bitmap index scan and the bitmap heap scan that checks its rows again.
pub fn has_one_caller(node: &Node) -> bool {
    node.subplan.is_none()
}

/// Sets the callers of CTEs and InitPlans to the nodes that run them.
pub fn assign_callers(nodes: &mut [PlanNode]) {
    let callers = callers_of_ctes(nodes).into_iter().chain(callers_of_init_plans(nodes));
    for Caller { subplan, node, is_only } in callers.collect::<Vec<_>>() {
        nodes[subplan].caller = node;
        nodes[subplan].has_one_caller = is_only;
    }
    // In a damaged file, CTEs may call each other in a circle.
    let mut in_circle = vec![true; nodes.len()];
    callees_first(nodes).into_iter().for_each(|node| in_circle[node] = false);
    for (node, _) in nodes.iter_mut().zip(in_circle).filter(|(_, in_circle)| *in_circle) {
        node.caller = node.parent;
        node.has_one_caller = has_one_caller(&node.node);
    }
}

/// Returns the callers of all CTEs whose caller is not the node above.
fn callers_of_ctes(nodes: &[PlanNode]) -> Vec<Caller> {
    let ctes = Ctes::new(nodes);
    let mut callers = Vec::new();
    for (place, subplans) in &ctes.defined {
        let readers = ctes.readers.get(place).map_or(&[][..], Vec::as_slice);
        for &subplan in subplans.iter().filter(|_| subplans.len() <= MAX_NAMESAKES) {
            let readers = outside_of(nodes, subplan, readers);
            let reader = innermost_long_enough(nodes, subplan, &readers).or_else(|| longest(nodes, &readers));
            // A data-modifying CTE without a reader runs at the end, outside of all nodes. So does the rest of such a CTE
            // that its reader did not read to the end.
            let modifies = nodes[subplan].node.kind == "ModifyTable";
            let is_only = readers.len() == 1 && subplans.len() == 1 && !modifies;
            if reader.is_some() || modifies {
                callers.push(Caller { subplan, node: reader, is_only });
            }
        }
    }
    callers
}

/// The node that defines a CTE, and the name of the CTE.
type CtePlace<'a> = (usize, &'a str);

struct Ctes<'a> {
    /// several only if a damaged file or an old server repeats a name
    defined: HashMap<CtePlace<'a>, Vec<usize>>,
    /// executed scans, in the order of the tree
    readers: HashMap<CtePlace<'a>, Vec<usize>>,
}

impl<'a> Ctes<'a> {
    fn new(nodes: &'a [PlanNode]) -> Ctes<'a> {
        let scanned = |node: &'a PlanNode| node.node.cte.as_deref().filter(|_| node.node.kind == "CTE Scan");
        let scans: HashMap<&str, ()> = nodes.iter().filter_map(|node| Some((scanned(node)?, ()))).collect();
        let mut defined: HashMap<CtePlace, Vec<usize>> = HashMap::new();
        let mut definitions: Vec<CtePlace> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let name = node.node.subplan.as_deref().and_then(|label| cte_name(label, |name| scans.contains_key(name)));
            if let (Some(name), Some(definer)) = (name, node.parent) {
                defined.entry((definer, name)).or_default().push(index);
                definitions.push((definer, name));
            }
        }
        // If several CTEs have one name, a scan reads the innermost one around it.
        definitions.sort_unstable();
        let mut definitions = definitions.into_iter().peekable();
        let mut around: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut readers: HashMap<CtePlace, Vec<usize>> = HashMap::new();
        for (index, node) in nodes.iter().enumerate() {
            while let Some((definer, name)) = definitions.next_if(|(definer, _)| *definer == index) {
                around.entry(name).or_default().push(definer);
            }
            let Some(name) = scanned(node).filter(|_| node.was_executed()) else { continue };
            let Some(around) = around.get_mut(name) else { continue };
            while around.pop_if(|definer| nodes[*definer].end <= index).is_some() {}
            if let Some(&definer) = around.last() {
                readers.entry((definer, name)).or_default().push(index);
            }
        }
        Ctes { defined, readers }
    }
}

/// Returns the name that CTE scans use for this CTE.
///
/// PostgreSQL 19 numbers CTEs of the same name, `CTE c_1`, but not their scans.
fn cte_name(label: &str, has_scan: impl Fn(&str) -> bool) -> Option<&str> {
    let name = label.strip_prefix("CTE ")?;
    match name.rsplit_once('_') {
        Some((base, number)) if !has_scan(name) && number.bytes().all(|digit| digit.is_ascii_digit()) => Some(base),
        _ => Some(name),
    }
}

/// Returns the callers of all InitPlans whose caller is not the node above.
fn callers_of_init_plans(nodes: &[PlanNode]) -> Vec<Caller> {
    let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut init_plans: Vec<(usize, usize, Vec<&str>)> = Vec::new();
    let mut namesakes: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for parameter in node.node.parameters.iter().filter(|_| node.was_executed()) {
            users.entry(parameter).or_default().push(index);
        }
        let label = node.node.subplan.as_deref().filter(|label| label.starts_with("InitPlan "));
        if let (Some(label), Some(definer)) = (label, node.parent) {
            let sets = parameters::of_init_plan(label);
            sets.iter().for_each(|parameter| *namesakes.entry(parameter).or_default() += 1);
            init_plans.push((index, definer, sets));
        }
    }
    let gathers = gathers_above(nodes);
    let mut callers = Vec::new();
    for (subplan, definer, sets) in init_plans {
        let mut callers_of_this = Vec::new();
        for parameter in sets.into_iter().filter(|parameter| namesakes[parameter] <= MAX_NAMESAKES) {
            let users = users.get(parameter).map_or(&[][..], Vec::as_slice);
            let begin = users.partition_point(|&user| user < definer);
            let end = users.partition_point(|&user| user < nodes[definer].end);
            let users = outside_of(nodes, subplan, &users[begin..end]);
            // If a node that uses the value is below a Gather, the Gather counts as the user: it computes the value
            // before its workers start.
            callers_of_this.extend(users.into_iter().map(|user| {
                let gathers = std::iter::successors(gathers[user], |&gather| gathers[gather]);
                gathers.take_while(|&gather| gather >= definer).last().unwrap_or(user)
            }));
        }
        callers_of_this.sort_unstable();
        callers_of_this.dedup();
        // Some nodes use an InitPlan without a visible condition, for example an Append that prunes partitions.
        if let Some(caller) = innermost_long_enough(nodes, subplan, &callers_of_this) {
            // An Append can run it, too, without a visible condition.
            let has_append = nodes[definer..nodes[definer].end]
                .iter()
                .any(|node| ["Append", "Merge Append"].contains(&&*node.node.kind));
            let is_only = callers_of_this.len() == 1 && !has_append;
            callers.push(Caller { subplan, node: Some(caller), is_only });
        }
    }
    callers
}

/// Returns the next Gather above each node.
fn gathers_above(nodes: &[PlanNode]) -> Vec<Option<usize>> {
    let mut gathers = vec![None; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            gathers[index] = if nodes[parent].node.is_gather() { Some(parent) } else { gathers[parent] };
        }
    }
    gathers
}

/// Returns the nodes that do not belong to a subplan.
fn outside_of(nodes: &[PlanNode], subplan: usize, candidates: &[usize]) -> Vec<usize> {
    steps::count(candidates.len());
    let own = subplan..nodes[subplan].end;
    candidates.iter().copied().filter(|node| !own.contains(node)).collect()
}

/// Returns the innermost candidate that took at least as long as the subplan. The candidates are in the order of the
/// tree.
///
/// EXPLAIN does not show which node ran the subplan first. But that node, and all nodes that called it, took at
/// least as long as the subplan.
fn innermost_long_enough(nodes: &[PlanNode], subplan: usize, candidates: &[usize]) -> Option<usize> {
    steps::count(candidates.len());
    let subplan = &nodes[subplan];
    let long_enough = |index: usize| {
        let rounding = nodes[index].rounding_ms + subplan.rounding_ms;
        nodes[index].reported_or_zero_ms() + rounding >= subplan.reported_or_zero_ms()
    };
    let is_below = |index: usize, found: Option<usize>| found.is_none_or(|found| index < nodes[found].end);
    candidates.iter().fold(None, |found, &index| match is_below(index, found) && long_enough(index) {
        true => Some(index),
        false => found,
    })
}

/// Returns the candidate that took longest, or the first of several equal ones. Several nodes may have run parts of a
/// CTE.
fn longest(nodes: &[PlanNode], candidates: &[usize]) -> Option<usize> {
    let by_time = |a: &usize, b: &usize| nodes[*a].reported_or_zero_ms().total_cmp(&nodes[*b].reported_or_zero_ms());
    // max_by() returns the last of equals.
    candidates.iter().copied().rev().max_by(by_time)
}
