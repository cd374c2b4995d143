//! The work of reading a plan grows with its size, and not faster.

mod conservation;
mod folded;
mod formats;
mod found;
pub mod generated;
mod old_versions;
mod preorder;
pub mod proptests;
mod psql;
pub mod published;
mod relatives;
mod selected;

use super::validate::check_run;
use super::*;
use crate::error::Error;

/// Returns the last plan of a text that can be analyzed, or else the last error.
pub fn last_usable_plan(text: &str) -> Result<Selected, Error> {
    let mut last = Err(errors::no_plan());
    each_plan(text, &mut |plan, _| {
        let plan = plan.and_then(executed);
        if plan.is_ok() || last.is_err() {
            last = plan;
        }
    });
    last
}

/// Returns the steps of building and checking a plan with this many nodes below the root.
fn steps_of(count: usize, below: impl Fn(usize) -> String) -> usize {
    let plans: Vec<String> = (0..count).map(below).collect();
    let json = format!(
        r#"{{"Plan": {{"Node Type": "Append", "Actual Rows": 1, "Actual Loops": 1, "Plans": [{}]}}}}"#,
        plans.join(",")
    );
    let explained: Explained = serde_json::from_str(&json).unwrap();
    steps::of(|| {
        let plan = Plan::new(explained, 1e9);
        assert_eq!(plan.nodes.len(), count + 1);
        check_run(&plan).unwrap();
    })
}

#[test]
fn the_work_is_linear_in_the_number_of_nodes() {
    let node = |rest: String| format!(r#"{{"Node Type": "Result", "Actual Rows": 1, "Actual Loops": 1{rest}}}"#);
    let scan = |rest: String| node(rest).replace("Result", "CTE Scan");
    let siblings = |_: usize| node(String::new());
    // Each CTE reads the next one.
    let chain = |n: usize| scan(format!(r#", "CTE Name": "c{}", "Subplan Name": "CTE c{n}""#, n + 1));
    let same_cte = |_: usize| scan(r#", "CTE Name": "c", "Subplan Name": "CTE c""#.into());
    let readers = |n: usize| match n {
        0 => node(r#", "Subplan Name": "CTE c""#.into()),
        _ => scan(r#", "CTE Name": "c""#.into()),
    };
    let users = |n: usize| match n {
        0 => node(r#", "Subplan Name": "InitPlan 1""#.into()),
        _ => node(r#", "Filter": "(a > (InitPlan 1).col1)""#.into()),
    };
    let same_init_plan =
        |_: usize| node(r#", "Subplan Name": "InitPlan 1", "Filter": "(a > (InitPlan 1).col1)""#.into());
    let shapes: [(&str, &dyn Fn(usize) -> String); 6] = [
        ("siblings", &siblings),
        ("chain of CTEs", &chain),
        ("CTEs of one name", &same_cte),
        ("readers of one CTE", &readers),
        ("users of one InitPlan", &users),
        ("InitPlans of one name", &same_init_plan),
    ];
    for (name, below) in shapes {
        let (small, large) = (steps_of(500, below), steps_of(2000, below));
        assert!(small >= 500, "{name}: {small}");
        assert!(large <= 5 * small, "{name}: {small} steps for 500 nodes, {large} for 2000");
    }
}
