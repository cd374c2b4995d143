//! Finds the node that runs each subplan. EXPLAIN prints a subplan where it is defined, not where it runs.

#[cfg(test)]
mod tests;

use super::tree::{is_append, parameters_of_init_plan};
use super::{Callers, PlanNode, callees, callers_first};
use std::collections::{HashMap, HashSet};

/// Maximum number of subplans with one name at one place. No real plan has more. If there are more, all of them keep
/// the caller that EXPLAIN shows. Without the limit, a file in which all subplans and all conditions have one name
/// would take hours.
const MAX_NAMESAKES: usize = 10;

/// Sets the callers of CTEs and InitPlans to the nodes that run them.
///
/// The time of a CTE that several nodes read is divided among them in proportion to their own times: the plan does not show
/// which rows were computed for which reader. The same applies to an InitPlan with several users.
pub fn assign_callers(nodes: &mut [PlanNode]) {
    let callers = callers_of_ctes(nodes).into_iter().chain(callers_of_init_plans(nodes));
    for (subplan, callers) in callers.collect::<Vec<_>>() {
        nodes[subplan].callers = callers;
    }
    // In a damaged file, CTEs may call each other in a circle.
    let mut in_circle = vec![true; nodes.len()];
    callers_first(nodes).into_iter().for_each(|node| in_circle[node] = false);
    for (node, _) in nodes.iter_mut().zip(in_circle).filter(|(_, in_circle)| *in_circle) {
        node.callers = node.parent.map_or_else(Callers::default, |parent| Callers::one(parent, false));
    }
    divide_shared_subplans(nodes);
}

/// Divides each subplan with several callers in proportion to the time that each caller has without the nodes that only it
/// has called.
fn divide_shared_subplans(nodes: &mut [PlanNode]) {
    let own_ms: Vec<f64> = callees(nodes)
        .iter()
        .zip(nodes.iter())
        .map(|(callees, node)| {
            let called = callees.iter().filter(|(callee, _)| !nodes[*callee].callers.are_several());
            let called_ms: f64 = called.map(|(callee, _)| nodes[*callee].reported_or_zero_ms()).sum();
            (node.reported_or_zero_ms() - called_ms).max(0.0)
        })
        .collect();
    for node in nodes.iter_mut().filter(|node| node.callers.are_several()) {
        let equal = 1.0 / node.callers.parts.len() as f64;
        let sum: f64 = node.callers.parts.iter().map(|(caller, _)| own_ms[*caller]).sum();
        node.callers
            .parts
            .iter_mut()
            .for_each(|(caller, part)| *part = if sum > 0.0 { own_ms[*caller] / sum } else { equal });
    }
}

/// Returns the callers of all CTEs whose caller is not the node above.
fn callers_of_ctes(nodes: &[PlanNode]) -> Vec<(usize, Callers)> {
    let all_scans = nodes.iter().enumerate().filter(|(_, node)| node.printed.kind == "CTE Scan");
    let scans: Vec<(usize, &str)> =
        all_scans.filter_map(|(index, node)| Some((index, node.printed.cte.as_deref()?))).collect();
    let names: HashSet<&str> = scans.iter().map(|(_, name)| *name).collect();
    // The node that defines a CTE, and the CTE's name. Only a damaged file or an old server repeats a name.
    let mut defined: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let name = node.printed.subplan.as_deref().and_then(|label| cte_name(label, |name| names.contains(name)));
        if let Some(place) = node.parent.zip(name) {
            defined.entry(place).or_default().push(index);
        }
    }
    // If several CTEs have one name, a scan reads the innermost one around it.
    let mut readers: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
    for &(index, name) in scans.iter().filter(|(index, _)| nodes[*index].was_executed()) {
        let mut around = std::iter::successors(Some(index), |node| nodes[*node].parent);
        if let Some(definer) = around.find(|node| defined.contains_key(&(*node, name))) {
            readers.entry((definer, name)).or_default().push(index);
        }
    }
    let mut callers = Vec::new();
    for (place, subplans) in defined {
        let readers = readers.get(&place).map_or(&[][..], Vec::as_slice);
        for &subplan in subplans.iter().filter(|_| subplans.len() <= MAX_NAMESAKES) {
            let readers = outside_of(nodes, subplan, readers);
            // A data-modifying CTE without a reader runs at the end, outside of all nodes. So does the rest of such a CTE
            // that its reader did not read to the end.
            let modifies = nodes[subplan].printed.kind == "ModifyTable";
            let are_certain = subplans.len() == 1 && !modifies;
            if !readers.is_empty() || modifies {
                callers.push((subplan, several(readers, are_certain)));
            }
        }
    }
    callers
}

/// Returns callers whose parts are not known yet.
fn several(callers: Vec<usize>, are_certain: bool) -> Callers {
    Callers { parts: callers.into_iter().map(|caller| (caller, 1.0)).collect(), are_certain }
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
fn callers_of_init_plans(nodes: &[PlanNode]) -> Vec<(usize, Callers)> {
    let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut init_plans: Vec<(usize, usize, Vec<&str>)> = Vec::new();
    let mut namesakes: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for parameter in node.printed.parameters.iter().filter(|_| node.was_executed()) {
            users.entry(parameter).or_default().push(index);
        }
        let label = node.printed.subplan.as_deref().filter(|label| label.starts_with("InitPlan "));
        if let (Some(label), Some(definer)) = (label, node.parent) {
            let sets = parameters_of_init_plan(label);
            sets.iter().for_each(|parameter| *namesakes.entry(parameter).or_default() += 1);
            init_plans.push((index, definer, sets));
        }
    }
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
                let above = std::iter::successors(nodes[user].parent, |&node| nodes[node].parent);
                let within = above.take_while(|&node| node >= definer);
                within.filter(|&node| nodes[node].printed.is_gather()).last().unwrap_or(user)
            }));
        }
        callers_of_this.sort_unstable();
        callers_of_this.dedup();
        // Some nodes use an InitPlan without a visible condition, for example an Append that prunes partitions.
        let long_enough = innermost_long_enough(nodes, subplan, &callers_of_this);
        if !long_enough.is_empty() {
            let has_append = nodes[definer..nodes[definer].end].iter().any(|node| is_append(&node.printed.kind));
            let are_certain = callers_of_this.len() == 1 && !has_append;
            callers.push((subplan, several(long_enough, are_certain)));
        }
    }
    callers
}

/// Returns the nodes that do not belong to a subplan.
fn outside_of(nodes: &[PlanNode], subplan: usize, candidates: &[usize]) -> Vec<usize> {
    let own = subplan..nodes[subplan].end;
    candidates.iter().copied().filter(|node| !own.contains(node)).collect()
}

/// Returns the candidates that took at least as long as the subplan, without those that contain another one of them. The
/// candidates are in the order of the tree.
///
/// EXPLAIN does not show which node ran an InitPlan first. But that node, and all nodes that called it, took at least as
/// long as the InitPlan.
fn innermost_long_enough(nodes: &[PlanNode], subplan: usize, candidates: &[usize]) -> Vec<usize> {
    let subplan = &nodes[subplan];
    let mut found: Vec<usize> = Vec::new();
    for &index in candidates {
        let rounding = nodes[index].rounding_ms + subplan.rounding_ms;
        if nodes[index].reported_or_zero_ms() + rounding < subplan.reported_or_zero_ms() {
            continue;
        }
        if found.last().is_some_and(|last| index < nodes[*last].end) {
            found.pop();
        }
        found.push(index);
    }
    found
}
