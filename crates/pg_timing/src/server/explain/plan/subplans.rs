//! Finds the node that runs each subplan. EXPLAIN prints a subplan where it is defined, not where it runs.

use super::node::{PlanNode, parent};

/// Sets the callers of CTEs and InitPlans to the nodes that run them.
pub fn assign_callers(nodes: &mut [PlanNode]) {
    for subplan in 0..nodes.len() {
        let (Some(label), Some(definer)) = (nodes[subplan].node.subplan.clone(), nodes[subplan].caller) else {
            continue;
        };
        if let Some(name) = cte_name(nodes, &label) {
            let readers = cte_readers(nodes, definer, subplan, name);
            let reader = innermost_long_enough(nodes, subplan, &readers).or_else(|| longest(nodes, &readers));
            // A data-modifying CTE without a reader runs at the end, outside of all nodes.
            if reader.is_some() || nodes[subplan].node.kind == "ModifyTable" {
                nodes[subplan].caller = reader;
            }
        } else if label.starts_with("InitPlan ") {
            let users = init_plan_users(nodes, definer, subplan, &label);
            // Some nodes use an InitPlan without a visible condition: an Append that prunes partitions.
            nodes[subplan].caller = innermost_long_enough(nodes, subplan, &users).or(Some(definer));
        }
    }
}

/// Returns the name that CTE scans use for this CTE.
///
/// PostgreSQL 19 numbers CTEs of the same name, `CTE c_1`, but not their scans.
fn cte_name<'a>(nodes: &[PlanNode], label: &'a str) -> Option<&'a str> {
    let name = label.strip_prefix("CTE ")?;
    let has_scan = |name: &str| nodes.iter().any(|reader| is_cte_scan(reader, name));
    match name.rsplit_once('_') {
        Some((base, number)) if !has_scan(name) && number.bytes().all(|digit| digit.is_ascii_digit()) => Some(base),
        _ => Some(name),
    }
}

fn is_cte_scan(node: &PlanNode, name: &str) -> bool {
    node.node.kind == "CTE Scan" && node.node.cte.as_deref() == Some(name)
}

/// Returns the scans that read a CTE. If several CTEs have the name, a scan reads the innermost one around it.
fn cte_readers(nodes: &[PlanNode], definer: usize, subplan: usize, name: &str) -> Vec<usize> {
    let has_name =
        |index: usize| nodes[index].node.subplan.as_deref().and_then(|label| cte_name(nodes, label)) == Some(name);
    let same_name = (0..nodes.len()).filter(|&other| other != subplan && has_name(other));
    let inner_definers: Vec<&PlanNode> = same_name
        .filter_map(|other| parent(nodes, other))
        .filter(|&inner| inner != definer && nodes[inner].is_within_tree_of(&nodes[definer]))
        .map(|inner| &nodes[inner])
        .collect();
    let reads_inner = |index: usize| inner_definers.iter().any(|inner| nodes[index].is_within_tree_of(inner));
    possible_callers(nodes, definer, subplan)
        .filter(|&index| is_cte_scan(&nodes[index], name) && !reads_inner(index))
        .collect()
}

/// Returns the nodes that use an InitPlan's value. A Gather above such a node replaces it, because the Gather computes the
/// value before its workers start.
fn init_plan_users(nodes: &[PlanNode], definer: usize, subplan: usize, label: &str) -> Vec<usize> {
    let parameters = init_plan_parameters(label);
    let uses_value = |index: usize| {
        let conditions = &nodes[index].node.conditions;
        conditions.iter().any(|text| parameters.iter().any(|parameter| mentions(text, parameter)))
    };
    let node_or_gather = |index: usize| {
        let is_gather_above =
            |&gather: &usize| nodes[gather].node.is_gather() && nodes[index].is_within_tree_of(&nodes[gather]);
        (definer..index).find(is_gather_above).unwrap_or(index)
    };
    possible_callers(nodes, definer, subplan).filter(|&index| uses_value(index)).map(node_or_gather).collect()
}

/// Returns the executed nodes that can see a subplan and do not belong to it.
fn possible_callers<'a>(nodes: &'a [PlanNode], definer: usize, subplan: usize) -> impl Iterator<Item = usize> + 'a {
    (definer..nodes.len()).filter(move |&index| {
        let node = &nodes[index];
        node.was_executed() && node.is_within_tree_of(&nodes[definer]) && !node.is_within_tree_of(&nodes[subplan])
    })
}

/// Returns the innermost candidate that took at least as long as the subplan.
///
/// EXPLAIN does not show which node ran the subplan first. But that node, and all nodes that called it, took at
/// least as long as the subplan.
fn innermost_long_enough(nodes: &[PlanNode], subplan: usize, candidates: &[usize]) -> Option<usize> {
    let subplan = &nodes[subplan];
    let long_enough = |&&index: &&usize| {
        let rounding = nodes[index].rounding_ms + subplan.rounding_ms;
        nodes[index].reported_or_zero_ms() + rounding >= subplan.reported_or_zero_ms()
    };
    let mut found = *candidates.iter().find(long_enough)?;
    let below = |found: usize| {
        candidates
            .iter()
            .filter(move |&&index| index != found && nodes[index].is_within_tree_of(&nodes[found]))
            .find(long_enough)
    };
    while let Some(&inner) = below(found) {
        found = inner;
    }
    Some(found)
}

/// Returns the candidate that took longest, or the first of several equal ones. Several nodes may have run parts of a CTE.
fn longest(nodes: &[PlanNode], candidates: &[usize]) -> Option<usize> {
    let by_time = |a: &usize, b: &usize| nodes[*a].reported_or_zero_ms().total_cmp(&nodes[*b].reported_or_zero_ms());
    // max_by() returns the last of equals.
    candidates.iter().copied().rev().max_by(by_time)
}

/// Returns how conditions write an InitPlan's values: `(InitPlan 1).col1`, which contains the label. Before
/// PostgreSQL 17 the label is `InitPlan 1 (returns $0,$1)`, and conditions write `$0`.
fn init_plan_parameters(label: &str) -> Vec<String> {
    match label.split_once(" (returns ") {
        Some((_, values)) => values.trim_end_matches(')').split(',').map(String::from).collect(),
        None => vec![label.to_string()],
    }
}

/// Whether a text contains the parameter. `$10` does not contain `$1`.
fn mentions(text: &str, parameter: &str) -> bool {
    text.match_indices(parameter)
        .any(|(at, _)| !text[at + parameter.len()..].starts_with(|next: char| next.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::Plan;

    fn plan(json: &str) -> Plan {
        Plan::new(serde_json::from_str(json).unwrap(), 0.0)
    }

    fn callers(json: &str) -> Vec<Option<usize>> {
        plan(json).nodes.iter().map(|node| node.caller).collect()
    }

    #[test]
    fn a_cte_without_an_executed_reader_keeps_its_caller_unless_it_modifies_data() {
        let callers = callers(
            r#"{"Plan": {"Node Type": "Append", "Actual Loops": 1, "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Loops": 1},
                {"Node Type": "ModifyTable", "Parent Relationship": "InitPlan", "Subplan Name": "CTE w", "Actual Loops": 1},
                {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 0},
                {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 1}]}}"#,
        );
        assert_eq!(callers, [None, Some(4), None, Some(0), Some(0)]);
    }

    #[test]
    fn of_two_cte_readers_the_one_that_took_as_long_is_the_caller() {
        let caller = |first: f64, second: f64| {
            callers(&format!(
                r#"{{"Plan": {{"Node Type": "Append", "Actual Loops": 1, "Plans": [
                    {{"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 9.0, "Actual Loops": 1}},
                    {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {first}, "Actual Loops": 1}},
                    {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {second}, "Actual Loops": 1}}]}}}}"#
            ))[1]
        };
        assert_eq!(caller(2.0, 10.0), Some(3));
        // Both took long enough: the plan does not show which one ran the CTE.
        assert_eq!(caller(10.0, 11.0), Some(2));
        // Equal within the rounding of the printed times.
        assert_eq!(caller(8.9995, 11.0), Some(2));
        // Each of them ran a part of the CTE.
        assert_eq!(caller(5.0, 6.0), Some(3));
        assert_eq!(caller(6.0, 6.0), Some(2));
    }

    #[test]
    fn calls_of_a_cte_count_within_its_scan() {
        let plan = plan(
            r#"{"Plan": {"Node Type": "Limit", "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Rows": 9, "Actual Loops": 1},
                {"Node Type": "Sort", "Plans": [{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Rows": 10, "Actual Loops": 1}]}]}}"#,
        );
        let nodes = plan.nodes;
        assert_eq!(nodes.iter().map(|node| node.caller).collect::<Vec<_>>(), [None, Some(3), Some(0), Some(2)]);
        assert_eq!(nodes.iter().map(|node| node.calls_below.estimate).collect::<Vec<_>>(), [21.0, 0.0, 21.0, 10.0]);
    }

    /// Returns the caller of an InitPlan in a plan with a parallel and a plain scan; both conditions are given.
    fn init_plan_caller(label: &str, parallel: &str, plain: &str) -> Option<usize> {
        callers(&format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [
                {{"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "{label}", "Actual Total Time": 9.0, "Actual Loops": 1}},
                {{"Node Type": "Gather", "Actual Total Time": 12.0, "Actual Loops": 1, "Plans": [
                    {{"Node Type": "Seq Scan", "Filter": "{parallel}", "Actual Total Time": 2.0, "Actual Loops": 3}}]}},
                {{"Node Type": "Seq Scan", "Filter": "{plain}", "Actual Total Time": 10.0, "Actual Loops": 1}}]}}}}"#
        ))[1]
    }

    #[test]
    fn an_init_plan_runs_within_the_node_that_uses_its_value() {
        assert_eq!(init_plan_caller("InitPlan 1", "", "(a > (InitPlan 1).col1)"), Some(4));
        assert_eq!(init_plan_caller("InitPlan 1 (returns $0,$1)", "", "(a > $1)"), Some(4));
        // The Gather computes the value before its workers start.
        assert_eq!(init_plan_caller("InitPlan 1", "(a > (InitPlan 1).col1)", ""), Some(2));
    }

    #[test]
    fn an_init_plan_does_not_run_within_a_node_that_took_less_time() {
        // The Append used the value to prune partitions. EXPLAIN does not show that.
        let pruned = callers(
            r#"{"Plan": {"Node Type": "Append", "Actual Total Time": 200.0, "Actual Loops": 1, "Plans": [
                {"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1", "Actual Total Time": 190.0, "Actual Loops": 1},
                {"Node Type": "Seq Scan", "Filter": "(day >= (InitPlan 1).col1)", "Actual Total Time": 5.0, "Actual Loops": 1}]}}"#,
        );
        assert_eq!(pruned[1], Some(0));
    }

    #[test]
    fn an_init_plan_runs_within_the_innermost_node_that_took_as_long() {
        let bitmap = callers(
            r#"{"Plan": {"Node Type": "Bitmap Heap Scan", "Recheck Cond": "(a = $0)", "Actual Total Time": 200.0, "Actual Loops": 1, "Plans": [
                {"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1 (returns $0)", "Actual Total Time": 190.0, "Actual Loops": 1},
                {"Node Type": "Bitmap Index Scan", "Index Cond": "(a = $0)", "Actual Total Time": 195.0, "Actual Loops": 1}]}}"#,
        );
        assert_eq!(bitmap[1], Some(2));
    }

    #[test]
    fn ctes_with_the_same_name_have_different_readers() {
        let cte = |ms: f64| {
            format!(
                r#"{{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {ms}, "Actual Loops": 1, "Plans": [
                {{"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 9.0, "Actual Loops": 1}}]}}"#
            )
        };
        // A view that is used twice.
        let twice = callers(&format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [{}, {}]}}}}"#,
            cte(11.0),
            cte(10.0)
        ));
        assert_eq!(twice, [None, Some(0), Some(1), Some(0), Some(3)]);
        // WITH c AS (WITH c AS (...) SELECT * FROM c) SELECT * FROM c
        let nested = callers(&format!(
            r#"{{"Plan": {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [{}]}}}}"#,
            cte(10.0).replacen(
                r#""CTE Name""#,
                r#""Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "CTE Name""#,
                1
            )
        ));
        assert_eq!(nested, [None, Some(0), Some(1)]);
        // PostgreSQL 19 numbers them. The plan of the outer CTE reads the inner CTE.
        let numbered = callers(
            r#"{"Plan": {"Node Type": "Append", "Actual Total Time": 40.0, "Actual Loops": 1, "Plans": [
                {"Node Type": "CTE Scan", "CTE Name": "c", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 20.0, "Actual Loops": 1, "Plans": [
                    {"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c_1", "Actual Total Time": 9.0, "Actual Loops": 1}]},
                {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": 30.0, "Actual Loops": 1}]}}"#,
        );
        assert_eq!(numbered, [None, Some(3), Some(1), Some(0)]);
    }

    #[test]
    fn an_init_plan_without_a_visible_user_keeps_its_caller() {
        assert_eq!(init_plan_caller("InitPlan 1", "", "(a > (InitPlan 12).col1)"), Some(0));
        assert_eq!(init_plan_caller("InitPlan 1 (returns $1)", "(a > $10)", "(b = 1)"), Some(0));
    }
}
