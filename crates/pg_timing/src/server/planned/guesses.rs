//! Nodes for which the planner guesses the number of rows, and the most rows that they can return.
//!
//! Without values for the parameters, the planner uses default selectivities: a third of the rows for `a > $1`, 0.5% for a
//! range with two ends, for a pattern, and for an expression. Statistics help only for `a = $1`.

use super::planner_node::PlannerNode;
use crate::server::explain::{Token, Tokens};
use std::collections::BTreeMap;

/// Number of rows of each table, by schema and name.
pub type TableRows = BTreeMap<(String, String), f64>;

/// The smallest default selectivity of one condition is 1 in 200 (DEFAULT_RANGE_INEQ_SEL, DEFAULT_EQ_SEL and
/// DEFAULT_MATCH_SEL in selfuncs.h).
const MOST_GROWTH_OF_A_LOOP: f64 = 200.0;
/// The rows of a function, of a recursion or of a LIMIT can differ from a guess by any factor. The execution time limits it.
const ANY_GROWTH: f64 = 1e6;

/// Returns whether the planner guessed the rows of any node.
pub fn has_guesses(node: &PlannerNode) -> bool {
    is_guess(node) || node.plans.iter().any(has_guesses)
}

/// Returns whether the planner guessed the rows of any node, although it knew the values of the parameters. Then the number of a
/// LIMIT is known, too.
pub fn has_guesses_with_values(node: &PlannerNode) -> bool {
    node.kind != "Limit" && is_unknown_source(node) || node.plans.iter().any(has_guesses_with_values)
}

/// Returns the plan with the most rows that each node can return if the guesses are too low. `is_loop` means that the node
/// runs once per row of another node.
pub fn with_most_rows(mut node: PlannerNode, tables: &TableRows, is_loop: bool) -> PlannerNode {
    let growth = growth(&mut node, tables, is_loop);
    node.rows *= growth;
    node
}

/// Returns the plan with the fewest rows that the hidden number of a LIMIT allows.
pub fn with_fewest_rows(mut node: PlannerNode) -> PlannerNode {
    if is_hidden_limit(&node) {
        node.rows = 1.0;
        node.total_cost = node.startup_cost;
    }
    node.plans = node.plans.into_iter().map(with_fewest_rows).collect();
    node
}

/// Replaces the inputs by those with the most rows. Returns the growth of the node itself.
fn growth(node: &mut PlannerNode, tables: &TableRows, is_loop: bool) -> f64 {
    let is_nested_loop = node.kind == "Nested Loop";
    let mut of_inputs: f64 = 1.0;
    let mut is_first = true;
    for child in &mut node.plans {
        let is_subplan = child.subplan.is_some();
        let child_loops = is_loop || is_subplan || is_nested_loop && !is_first;
        let growth = growth(child, tables, child_loops);
        child.rows *= growth;
        if !is_subplan {
            // Most joins return a row per row of their largest input.
            of_inputs = of_inputs.max(growth);
            is_first = false;
        }
    }
    let own = if is_guess(node) { own_growth(node, tables, is_loop) } else { 1.0 };
    match node.kind.as_str() {
        // The number of groups does not grow beyond one.
        "Aggregate" if node.rows <= 1.0 => 1.0,
        _ => (of_inputs * own).min(ANY_GROWTH),
    }
}

fn own_growth(node: &PlannerNode, tables: &TableRows, is_loop: bool) -> f64 {
    let table = node.schema.clone().zip(node.relation.clone());
    let rows = table.and_then(|table| tables.get(&table)).copied();
    let growth = match rows {
        Some(rows) => rows / node.rows.max(1.0),
        None if node.relation.is_none() && is_unknown_source(node) => ANY_GROWTH,
        None => MOST_GROWTH_OF_A_LOOP,
    };
    let most = if is_loop && rows.is_some() { MOST_GROWTH_OF_A_LOOP } else { ANY_GROWTH };
    growth.clamp(1.0, most)
}

/// Returns whether the planner guessed the rows of this node.
fn is_guess(node: &PlannerNode) -> bool {
    let conditions =
        [&node.filter, &node.join_filter, &node.index_condition, &node.tid_condition, &node.hash_condition];
    is_unknown_source(node)
        || node.removed > 0.0
        || conditions.into_iter().flatten().any(|condition| is_guessed(condition))
}

/// Returns whether no statistics exist for the rows of this kind of node.
fn is_unknown_source(node: &PlannerNode) -> bool {
    match node.kind.as_str() {
        "Function Scan"
        | "Table Function Scan"
        | "ProjectSet"
        | "Recursive Union"
        | "WorkTable Scan"
        | "Sample Scan"
        | "Foreign Scan"
        | "Custom Scan" => true,
        _ => is_hidden_limit(node),
    }
}

/// pg_stat_statements hides the number of a LIMIT. The planner assumes a tenth of the input.
fn is_hidden_limit(node: &PlannerNode) -> bool {
    node.kind == "Limit" && node.rows > 1.0
}

/// Returns whether a condition has a parameter in another place than `(column = $1)`, or an expression.
fn is_guessed(condition: &str) -> bool {
    let tokens: Vec<Token> = Tokens::of(condition).collect();
    let is_symbol = |at: usize, symbol: &str| tokens.get(at).is_some_and(|token| token.is_symbol(symbol));
    let is_name = |at: usize| tokens.get(at).is_some_and(|token| token.name().is_some());
    tokens.iter().enumerate().filter(|(_, token)| token.parameter().is_some()).any(|(at, _)| {
        // `(a = $1)`, `(t.a = $1)`, `((a)::text = $1)`; a cast can follow the parameter.
        let is_equality =
            at >= 2 && is_symbol(at - 1, "=") && !["<", ">", "!"].iter().any(|sign| is_symbol(at - 2, sign));
        let is_column = at >= 3
            && (is_name(at - 2) && (is_symbol(at - 3, "(") || is_symbol(at - 3, ".") || is_symbol(at - 3, ":")));
        !(is_equality && is_column)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equality_with_a_column_is_no_guess() {
        for condition in
            ["(aid = $1)", "(t.aid = $1)", "((a)::text = $1)", "(a = $1::numeric)", "(a = b)", "(lower(a) = b)"]
        {
            assert!(!is_guessed(condition), "{condition}");
        }
        for condition in [
            "(a > $1)",
            "(a >= $1)",
            "(a <> $1)",
            "((a % 2) = $1)",
            "(a ~~ $1)",
            "(a = ANY ($1))",
            "((a = $1) AND (b < $2))",
            "(a = (b + $1))",
        ] {
            assert!(is_guessed(condition), "{condition}");
        }
    }

    fn scan(rows: f64, filter: &str) -> PlannerNode {
        PlannerNode {
            kind: "Seq Scan".into(),
            rows,
            filter: Some(filter.into()),
            schema: Some("public".into()),
            relation: Some("t".into()),
            ..PlannerNode::default()
        }
    }

    fn above(kind: &str, rows: f64, plans: Vec<PlannerNode>) -> PlannerNode {
        PlannerNode { kind: kind.into(), rows, plans, ..PlannerNode::default() }
    }

    #[test]
    fn a_guessed_scan_can_return_the_whole_table_and_so_can_the_nodes_above() {
        let tables = [(("public".to_string(), "t".to_string()), 1000.0)].into();
        let rows = |filter: &str| {
            let sort = above("Sort", 5.0, vec![scan(5.0, filter)]);
            let node = with_most_rows(above("Aggregate", 1.0, vec![sort]), &tables, false);
            [node.rows, node.plans[0].rows, node.plans[0].plans[0].rows]
        };
        assert_eq!(rows("(a > $1)"), [1.0, 1000.0, 1000.0]);
        assert_eq!(rows("(a = $1)"), [1.0, 5.0, 5.0]);
    }

    #[test]
    fn a_loop_returns_a_limited_number_of_rows() {
        let tables = [(("public".to_string(), "t".to_string()), 1e9)].into();
        let inner = scan(1.0, "(a > $1)");
        let join = with_most_rows(above("Nested Loop", 10.0, vec![scan(10.0, "(a = $1)"), inner]), &tables, false);
        assert_eq!([join.plans[0].rows, join.plans[1].rows], [10.0, MOST_GROWTH_OF_A_LOOP]);
    }

    #[test]
    fn the_number_of_a_limit_is_hidden() {
        let limit = |rows| above("Limit", rows, vec![scan(1000.0, "(a = $1)")]);
        assert!(has_guesses(&limit(100.0)) && !has_guesses(&limit(1.0)));
        assert_eq!(with_fewest_rows(limit(100.0)).rows, 1.0);
    }
}
