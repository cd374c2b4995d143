//! The calls of each node, weighted by what a call of its kind costs.

use crate::report::{CallCost, is_measured};
use crate::server::explain::plan::{Plan, PlanNode, callees_first, is_inner};
use std::collections::BTreeSet;

/// Calls in units of the plan's average call.
#[derive(Clone, Debug, PartialEq)]
pub struct ChargedCalls {
    /// calls of each node
    pub own: Vec<f64>,
    /// calls of all nodes that run within the calls of a node
    pub below: Vec<f64>,
    /// calls of each node if the cost of its kind was never measured, otherwise 0
    pub unmeasured_own: Vec<f64>,
    /// such calls of all nodes that run within the calls of a node
    pub unmeasured_below: Vec<f64>,
}

/// Returns a note about the kinds of nodes whose cost was never measured, if they have many calls.
pub fn unmeasured_kinds(plan: &Plan) -> Option<String> {
    const MANY: f64 = 0.05;
    let many = MANY * plan.total_calls().estimate;
    let is_unknown = |node: &&PlanNode| !is_measured(&node.node.kind) && node.calls.estimate > many;
    let kinds: BTreeSet<&str> = plan.nodes.iter().filter(is_unknown).map(|node| node.node.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    (!kinds.is_empty()).then(|| {
        format!("the cost of a timed call of {} was never measured, so the interval is wider", kinds.join(", "))
    })
}

impl ChargedCalls {
    /// Returns the calls, weighted by the kinds of their nodes. Their sum stays the same. Without a cost, all calls are
    /// equal.
    pub fn of(plan: &Plan, cost: Option<&CallCost>) -> ChargedCalls {
        let calls = |index: usize| plan.nodes[index].calls.estimate;
        let weight = |index: usize| {
            let node = &plan.nodes[index].node;
            cost.map_or(1.0, |cost| cost.clock_ns(&node.kind, is_inner(&plan.nodes, index)) + cost.counting_ns())
        };
        let usual = cost.map_or(1.0, |cost| cost.usual_clock_ns() + cost.counting_ns());
        let mut own: Vec<f64> = (0..plan.nodes.len()).map(|index| calls(index) * weight(index)).collect();
        let weighted: f64 = own.iter().sum::<f64>() + plan.other_calls * usual;
        if weighted > 0.0 {
            let unit = plan.total_calls().estimate / weighted;
            own.iter_mut().for_each(|calls| *calls *= unit);
        }
        let is_unmeasured = |node: &PlanNode| cost.is_some() && !is_measured(&node.node.kind);
        let calls_and_nodes = own.iter().zip(&plan.nodes);
        let unmeasured_own: Vec<f64> =
            calls_and_nodes.map(|(calls, node)| if is_unmeasured(node) { *calls } else { 0.0 }).collect();
        let (below, unmeasured_below) = (all_below(&own, plan), all_below(&unmeasured_own, plan));
        ChargedCalls { own, below, unmeasured_own, unmeasured_below }
    }
}

/// Returns the sum of the calls of all nodes that run within the calls of each node.
fn all_below(own: &[f64], plan: &Plan) -> Vec<f64> {
    let mut below = vec![0.0; own.len()];
    for index in callees_first(&plan.nodes) {
        if let Some(caller) = plan.nodes[index].caller {
            below[caller] += below[index] + own[index];
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let json = r#"{"Plan": {"Node Type": "Nested Loop", "Actual Rows": 9, "Actual Loops": 1, "Plans": [
            {"Node Type": "Seq Scan", "Actual Rows": 99, "Actual Loops": 1},
            {"Node Type": "Materialize", "Actual Rows": 9, "Actual Loops": 99}]}}"#;
        Plan::new(serde_json::from_str(json).unwrap(), 7.0)
    }

    #[test]
    fn all_calls_are_equal_without_a_cost() {
        let charged = ChargedCalls::of(&plan(), None);
        assert_eq!((charged.own, charged.below), (vec![10.0, 100.0, 990.0], vec![1090.0, 0.0, 0.0]));
    }

    #[test]
    fn calls_of_a_cte_count_within_its_scan() {
        let json = r#"{"Plan": {"Node Type": "Limit", "Plans": [
            {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Rows": 9, "Actual Loops": 1},
            {"Node Type": "Sort", "Plans": [{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Rows": 10, "Actual Loops": 1}]}]}}"#;
        let plan = Plan::new(serde_json::from_str(json).unwrap(), 7.0);
        assert_eq!(ChargedCalls::of(&plan, None).below, [21.0, 0.0, 21.0, 10.0]);
    }

    #[test]
    fn weights_shift_calls_between_nodes_and_keep_their_sum() {
        let cost = CallCost::new(20.0, None, Some(20.0), false);
        let charged = ChargedCalls::of(&plan(), Some(&cost));
        assert!((charged.own.iter().sum::<f64>() - 1100.0).abs() < 1e-9, "{charged:?}");
        let expected = |kind, inner, calls| calls * (cost.clock_ns(kind, inner) + cost.counting_ns());
        let ratio = expected("Materialize", true, 990.0) / expected("Seq Scan", false, 100.0);
        assert!((charged.own[2] / charged.own[1] - ratio).abs() < 1e-9, "{charged:?} {ratio}");
        assert!((charged.below[0] - charged.own[1] - charged.own[2]).abs() < 1e-9, "{charged:?}");
    }

    #[test]
    fn calls_of_an_unmeasured_kind_count_in_all_nodes_above() {
        let json = r#"{"Plan": {"Node Type": "Limit", "Actual Rows": 9, "Actual Loops": 1, "Plans": [
            {"Node Type": "Quantum Scan", "Actual Rows": 99, "Actual Loops": 1, "Plans": [
                {"Node Type": "Seq Scan", "Actual Rows": 9, "Actual Loops": 1}]}]}}"#;
        let plan = Plan::new(serde_json::from_str(json).unwrap(), 7.0);
        let charged = ChargedCalls::of(&plan, Some(&CallCost::new(20.0, None, Some(20.0), false)));
        assert_eq!(charged.unmeasured_own, [0.0, charged.own[1], 0.0]);
        assert_eq!(charged.unmeasured_below, [charged.own[1], 0.0, 0.0]);
        assert_eq!(ChargedCalls::of(&plan, None).unmeasured_own, [0.0; 3]);
        assert!(unmeasured_kinds(&plan).is_some_and(|note| note.contains("Quantum Scan was never measured")));
    }

    #[test]
    fn calls_outside_the_nodes_cost_as_much_as_a_usual_kind() {
        // 3 calls of a trigger, and 6 calls of the node.
        let json =
            r#"{"Plan": {"Node Type": "Result", "Actual Rows": 5, "Actual Loops": 1}, "Triggers": [{"Calls": 3}]}"#;
        let plan = Plan::new(serde_json::from_str(json).unwrap(), 7.0);
        let cost = CallCost::new(20.0, None, Some(20.0), true);
        let node = 6.0 * (cost.clock_ns("Result", false) + cost.counting_ns());
        let trigger = 3.0 * (cost.usual_clock_ns() + cost.counting_ns());
        let charged = ChargedCalls::of(&plan, Some(&cost));
        assert!((charged.own[0] - 9.0 * node / (node + trigger)).abs() < 1e-9, "{charged:?}");
    }

    #[test]
    fn a_node_that_never_ran_has_no_calls() {
        let json = r#"{"Plan": {"Node Type": "Result", "Actual Rows": 0, "Actual Loops": 0}}"#;
        let plan = Plan::new(serde_json::from_str(json).unwrap(), 7.0);
        assert_eq!(ChargedCalls::of(&plan, None).own, [0.0]);
    }
}
