//! Properties of the nodes' times for any plan.

use super::report;
use super::runs::{BASELINE, End, REPORTED, ROWS_ONLY, Runs};
use crate::plan::attribution::attribute;
use crate::plan::tests::generated::{check_self_times, tree, with_consistent_times};
use crate::plan::unusable::check_run;
use crate::plan::{Explained, Node, Plan};
use crate::report::RunSample;
use proptest::prelude::*;

const RUNS: usize = 5;

/// Returns runs with these times: of the two baseline runs and the run with TIMING OFF in each round, and of the plans.
pub fn runs_with_times(baseline: &[f64], rows_only: &[f64], reported: Vec<Plan>) -> Runs {
    let sample = |mode: &str, ms: f64| RunSample { mode: mode.into(), ms };
    let rounds = baseline.iter().zip(rows_only).zip(&reported);
    let samples = rounds.flat_map(|((&baseline, &rows_only), plan)| {
        let (first, second) = (sample(BASELINE, baseline), sample(BASELINE, baseline));
        [first, sample(REPORTED, plan.execution_ms), second, sample(ROWS_ONLY, rows_only)]
    });
    Runs { samples: samples.collect(), reported, end: Some(End::TimeUp), ..Runs::default() }
}

/// Returns the plan with all its times multiplied.
fn scaled(node: &Node, speed: f64) -> Node {
    let children = node.children.iter().map(|below| scaled(below, speed)).collect();
    Node { total_ms: node.total_ms.map(|ms| ms * speed), children, ..node.clone() }
}

/// Returns runs of a plan. The baseline and the runs with TIMING OFF take these fractions of the reported time.
fn runs_of(root: &Node, speeds: [f64; RUNS], baseline: f64, rows_only: f64) -> Runs {
    let plan = |speed: f64| {
        let root = scaled(root, speed);
        let execution_ms = root.total_ms.unwrap_or(0.0) + 0.1;
        Plan::new(Explained { root, execution_ms: Some(execution_ms), ..Explained::default() })
    };
    let reported = speeds.map(plan);
    let [baseline, rows_only] =
        [baseline, rows_only].map(|part| reported.each_ref().map(|run| run.execution_ms * part));
    runs_with_times(&baseline, &rows_only, reported.into())
}

proptest! {
    #[test]
    fn self_times_of_any_plan_add_up(
        root in tree().prop_map(with_consistent_times),
        speeds in prop::array::uniform5(1.0..1.2f64),
        baseline in 0.02..1.0f64,
        rows_only in 0.0..1.0f64,
        bare_call_ms in prop::option::of(20e-6..20e-3f64),
    ) {
        let rows_only = baseline + (1.0 - baseline) * rows_only;
        let bare_calls_ms = bare_call_ms.into_iter().collect();
        let runs = Runs { bare_calls_ms, ..runs_of(&root, speeds, baseline, rows_only) };
        prop_assume!(runs.reported.iter().all(|run| check_run(run).is_ok()));
        let overhead = report::overhead(&runs, report::measured(&runs));
        check_self_times(&attribute(&runs.reported, &overhead), &runs.reported[0], overhead.reported, overhead.corrected)?;
    }
}
