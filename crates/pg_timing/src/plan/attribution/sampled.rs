//! Node times from pg_fast_timing's sampling.
//!
//! Sampling costs almost nothing per call. So each node's share of the time is correct, without an estimate of the
//! overhead per call.

use crate::plan::Plan;
use crate::plan::node::callees;
use crate::report::{ExplainedNode, Range};
use crate::statistics::{median, median_error, weighted_mean};

/// The mean time between pg_fast_timing's samples with its default sample rate.
const PERIOD_MS: f64 = 1.0;

/// Sets each node's sampled time: the node's share of `baseline`. The corrected time becomes the mean of both
/// estimates, weighted by their variances. The baseline's error is a part of both estimates, so the mean does not
/// reduce it.
pub fn refine(nodes: &mut [ExplainedNode], runs: &[Plan], baseline: Range) {
    let Some(first) = runs.first() else { return };
    let shares: Vec<Vec<f64>> = runs.iter().map(shares).collect();
    // In sampled plans, too, the time of a loop is rounded to three decimals.
    let rounding = |index: usize| match first.execution_ms > 0.0 {
        true => first.nodes[index].rounding_ms / first.execution_ms * baseline.estimate,
        false => 0.0,
    };
    let baseline_error =
        if baseline.estimate > 0.0 { (baseline.high - baseline.estimate) / baseline.estimate } else { 0.0 };
    for (index, node) in nodes.iter_mut().enumerate() {
        let shares: Vec<f64> = shares.iter().filter_map(|run| run.get(index).copied()).collect();
        if shares.is_empty() {
            continue;
        }
        let (sampled, margin) = sampled_time(&shares, rounding(index), baseline);
        node.sampled_ms = Some(sampled);
        node.corrected_ms = combined(node.corrected_ms, sampled, margin, baseline_error);
    }
    for (index, children) in callees(&first.nodes).iter().enumerate().take(nodes.len()) {
        let node_and_children = || children.iter().map(|(child, _)| *child).chain([index]);
        let self_share = |run: &Vec<f64>| {
            let of_children = children.iter().map(|&(child, part)| Some(part * run.get(child)?));
            Some(run.get(index)? - of_children.sum::<Option<f64>>()?)
        };
        let self_shares: Vec<f64> = shares.iter().filter_map(self_share).collect();
        let margin = margin_ms(&self_shares, baseline.estimate) + node_and_children().map(rounding).sum::<f64>();
        let known = &mut nodes[index].corrected_self_off_ms;
        *known = weighted_mean((0.0, *known), (0.0, margin)).1;
    }
}

/// Returns the weighted mean of a node's corrected and sampled time. `baseline_error` is relative. `sampled_margin` can
/// be larger than the interval `sampled`, which ends at 0 and at the baseline.
fn combined(corrected: Range, sampled: Range, sampled_margin: f64, baseline_error: f64) -> Range {
    let without_common = |estimate: f64, margin: f64| {
        let common = baseline_error * estimate;
        (estimate, (margin * margin - common * common).max(0.0).sqrt())
    };
    let (estimate, margin) = weighted_mean(
        without_common(corrected.estimate, corrected.half_width()),
        without_common(sampled.estimate, sampled_margin),
    );
    let margin = margin.hypot(baseline_error * estimate);
    let most = corrected.high.max(sampled.high);
    Range { low: (estimate - margin).max(0.0), estimate, high: (estimate + margin).min(most).max(estimate) }
}

/// Returns each node's share of the statement's time in one run.
fn shares(run: &Plan) -> Vec<f64> {
    let share = |ms: f64| if run.execution_ms > 0.0 { (ms / run.execution_ms).min(1.0) } else { 0.0 };
    run.nodes.iter().map(|node| share(node.reported_or_zero_ms())).collect()
}

/// Returns the 95% margin of the median of these shares, in ms.
///
/// The number of samples that hit a node varies like a Poisson variable. A node without a sample may have been missed
/// by chance, so the margin is computed for at least one period.
fn margin_ms(shares: &[f64], baseline_ms: f64) -> f64 {
    let sampled_ms = (median(shares) * baseline_ms).max(PERIOD_MS);
    let sampling_error = (sampled_ms * PERIOD_MS / shares.len().max(1) as f64).sqrt() * 2.0;
    sampling_error.hypot(median_error(shares) * baseline_ms)
}

/// Returns the sampled time, and its margin.
fn sampled_time(shares: &[f64], rounding: f64, baseline: Range) -> (Range, f64) {
    let share = median(shares);
    let estimate = share * baseline.estimate;
    let margin = margin_ms(shares, baseline.estimate).hypot((baseline.high - baseline.estimate) * share) + rounding;
    let high = (estimate + margin).min(baseline.high.max(estimate));
    (Range { low: (estimate - margin).max(0.0), estimate, high }, margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASELINE: Range = Range { low: 990.0, estimate: 1000.0, high: 1010.0 };

    #[test]
    fn a_sampled_time_is_a_share_of_the_baseline() {
        let (half, margin) = sampled_time(&[0.5, 0.51, 0.49, 0.5], 0.0, BASELINE);
        assert!((margin - half.half_width()).abs() < 1e-9, "{half:?}");
        assert!(half.estimate == 500.0 && half.low < 478.0 && half.high > 522.0, "{half:?}");
        assert!(half.low > 450.0 && half.high < 550.0, "{half:?}");
    }

    #[test]
    fn a_node_without_samples_may_have_taken_a_period() {
        let (none, _) = sampled_time(&[0.0; 4], 0.0, BASELINE);
        assert_eq!(none, Range { low: 0.0, estimate: 0.0, high: 1.0 });
        // A million loops of less than half a microsecond each.
        assert_eq!(sampled_time(&[0.0; 4], 500.0, BASELINE).0.high, 501.0);
        // The interval of the whole statement ends at the baseline, but the margin does not.
        let (whole, margin) = sampled_time(&[1.0; 4], 0.0, BASELINE);
        assert!(whole.high == 1010.0 && margin > 30.0, "{whole:?} {margin}");
    }

    /// Returns `runs` sampled runs of a plan with two nodes. It takes 1000 ms, and 600 ms of them in the inner node.
    fn sampled_runs(runs: usize) -> Vec<Plan> {
        let json = r#"{"Plan": {"Node Type": "Aggregate", "Actual Total Time": 1000.0, "Actual Rows": 1, "Actual Loops": 1, "Plans": [
            {"Node Type": "Seq Scan", "Actual Total Time": 600.0, "Actual Rows": 9, "Actual Loops": 1}]}}"#;
        vec![Plan::new(serde_json::from_str(json).unwrap(), 1000.0); runs]
    }

    fn node(estimate: f64, margin: f64) -> ExplainedNode {
        let corrected_ms = Range { low: estimate - margin, estimate, high: estimate + margin };
        ExplainedNode { corrected_ms, corrected_self_off_ms: margin, ..Default::default() }
    }

    #[test]
    fn both_estimates_are_combined_by_their_variances() {
        let mut nodes = [node(950.0, 1.0), node(500.0, 300.0)];
        refine(&mut nodes, &sampled_runs(4), BASELINE);
        assert!((nodes[0].corrected_ms.estimate - 950.0).abs() < 0.1, "{:?}", nodes[0]);
        assert_eq!(nodes[0].sampled_ms.unwrap().estimate, 1000.0);
        // The sampled time has a margin of 2 x sqrt(600 ms x 1 ms / 4) without the baseline's 6 ms, and rounding.
        let sampling = 2.0 * 150f64.sqrt();
        let sampled = (((sampling.hypot(6.0) + 0.0005).powi(2) - 36.0).sqrt(), 600.0);
        let corrected = ((300.0f64.powi(2) - 25.0).sqrt(), 500.0);
        let weight = corrected.0.powi(2) / (corrected.0.powi(2) + sampled.0.powi(2));
        let expected = weight * sampled.1 + (1.0 - weight) * corrected.1;
        assert!((nodes[1].corrected_ms.estimate - expected).abs() < 1e-9, "{:?} {expected}", nodes[1]);
        let margin = (corrected.0 * sampled.0 / corrected.0.hypot(sampled.0)).hypot(0.01 * expected);
        assert!((nodes[1].corrected_ms.half_width() - margin).abs() < 1e-9, "{:?} {margin}", nodes[1]);
        // Self times: 2 x sqrt(400 ms x 1 ms / 4) and rounding for the root.
        let both = |known: f64, sampled: f64| known * sampled / known.hypot(sampled);
        let root = both(1.0, 20.0 + 2.0 * 0.0005);
        assert!((nodes[0].corrected_self_off_ms - root).abs() < 1e-9, "{}", nodes[0].corrected_self_off_ms);
        let scan = both(300.0, sampling + 0.0005);
        assert!((nodes[1].corrected_self_off_ms - scan).abs() < 1e-9, "{}", nodes[1].corrected_self_off_ms);
    }

    /// If two estimates contradict each other, the result is less certain.
    #[test]
    fn contradicting_estimates_have_a_wide_interval() {
        let close = combined(node(500.0, 10.0).corrected_ms, node(505.0, 10.0).corrected_ms, 10.0, 0.0);
        let far = combined(node(500.0, 10.0).corrected_ms, node(600.0, 10.0).corrected_ms, 10.0, 0.0);
        assert!((close.half_width() - 50f64.sqrt()).abs() < 1e-9, "{close:?}");
        assert!(far.low <= 501.0 && far.high >= 599.0, "{far:?}");
    }

    #[test]
    fn the_margin_contains_the_variation_of_the_shares() {
        // Samples: 2 * sqrt(500 ms * 1 ms / 4). Shares: 1.2533 * 3.18 * 0.02 * sqrt(2 / 3) / sqrt(4) of 1000 ms.
        // Baseline: 10 ms * 0.5.
        let (sampled, _) = sampled_time(&[0.5, 0.52, 0.48, 0.5], 0.25, BASELINE);
        let shares: f64 = 1.2533 * 3.18 * 0.02 * (2.0f64 / 3.0).sqrt() / 2.0 * 1000.0;
        let margin = (500.0 + shares * shares + 25.0).sqrt() + 0.25;
        assert!((sampled.low - (500.0 - margin)).abs() < 1e-9, "{sampled:?} {margin}");
        assert!((sampled.high - (500.0 + margin)).abs() < 1e-9, "{sampled:?} {margin}");
    }

    #[test]
    fn runs_without_time_give_no_shares() {
        let mut run = sampled_runs(1).remove(0);
        run.execution_ms = 0.0;
        let mut nodes = [node(950.0, 1.0), node(500.0, 300.0)];
        refine(&mut nodes, &[run], BASELINE);
        assert_eq!(nodes[1].sampled_ms.unwrap(), Range { low: 0.0, estimate: 0.0, high: 2.0 });
    }

    #[test]
    fn a_statement_without_time_has_no_relative_error() {
        let mut nodes = [node(950.0, 1.0), node(500.0, 300.0)];
        refine(&mut nodes, &sampled_runs(4), Range::default());
        // The sampled time is 0, and much more certain than the corrected time of the second node.
        assert!(nodes[1].corrected_ms.estimate < 0.01 && nodes[1].corrected_ms.high < 2.0, "{:?}", nodes[1]);
    }

    #[test]
    fn without_sampled_runs_nothing_changes() {
        let mut nodes = [node(950.0, 1.0), node(500.0, 300.0)];
        refine(&mut nodes, &[], BASELINE);
        assert_eq!(nodes.each_ref().map(|node| node.corrected_ms.estimate), [950.0, 500.0]);
        assert!(nodes.iter().all(|node| node.sampled_ms.is_none()));
    }
}
