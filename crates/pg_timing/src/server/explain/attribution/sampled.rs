//! Nodes' times by pg_fast_timing's sampling. It adds the same next to nothing to every call, so that
//! it tells how the time is shared, where each timed call is a guess.

use crate::report::{ExplainedNode, Range};
use crate::server::explain::plan::Explained;
use crate::server::explain::plan::calls::{below, flat};
use crate::statistics::{median, spread};

/// The mean time between its ticks, unless it is told otherwise.
const PERIOD_MS: f64 = 1.0;

/// Gives nodes their shares of `plain`, and believes those where they are surer.
pub fn refine(nodes: &mut [ExplainedNode], plans: &[Explained], plain: Range) {
    let runs: Vec<Vec<f64>> = plans.iter().map(shares).collect();
    let Some((first, whole)) = plans.first().map(|run| (flat(&run.plan), run.execution_ms.unwrap_or(0.0))) else {
        return;
    };
    // One loop's time is printed with three decimals here, too.
    let rounded = |at: usize| if whole > 0.0 { first[at].rounded_ms / whole * plain.estimate } else { 0.0 };
    let mut believed = vec![false; nodes.len()];
    for (at, node) in nodes.iter_mut().enumerate() {
        let shares: Vec<f64> = runs.iter().filter_map(|run| run.get(at).copied()).collect();
        if shares.is_empty() {
            continue;
        }
        let sampled = sampled(&shares, rounded(at), plain);
        node.sampled_ms = Some(sampled);
        believed[at] = sampled.high - sampled.low < node.corrected_ms.high - node.corrected_ms.low;
        if believed[at] {
            node.corrected_ms = sampled;
        }
    }
    for (at, below) in below(&first).iter().enumerate().filter(|(at, _)| believed.get(*at).is_some()) {
        let of_both: Vec<bool> = below.iter().chain([&at]).filter_map(|&at| believed.get(at).copied()).collect();
        if !of_both.contains(&true) {
            continue;
        }
        let own = |run: &Vec<f64>| Some(run.get(at)? - below.iter().map(|&at| run.get(at)).sum::<Option<f64>>()?);
        let off = by_chance(&runs.iter().filter_map(own).collect::<Vec<f64>>(), plain.estimate)
            + below.iter().chain([&at]).map(|&at| rounded(at)).sum::<f64>();
        let known = &mut nodes[at].corrected_self_off_ms;
        // What it takes by itself is as unsure as the less sure of the two ways, if it comes of both.
        *known = if of_both.contains(&false) { known.max(off) } else { off };
    }
}

/// Each node's part of the statement's time.
fn shares(run: &Explained) -> Vec<f64> {
    let whole = run.execution_ms.unwrap_or(0.0);
    let share = |ms: f64| if whole > 0.0 { (ms / whole).min(1.0) } else { 0.0 };
    flat(&run.plan).iter().map(|node| share(node.reported_ms.unwrap_or(0.0))).collect()
}

/// How far some shares' median may be off. In ms.
fn by_chance(shares: &[f64], plain: f64) -> f64 {
    // Ticks that meet it come by chance. That none has come may be chance, too.
    let ticks = ((median(shares) * plain).max(PERIOD_MS) * PERIOD_MS / shares.len().max(1) as f64).sqrt() * 2.0;
    ticks.hypot(spread(shares) * plain)
}

fn sampled(shares: &[f64], rounded: f64, plain: Range) -> Range {
    let share = median(shares);
    let estimate = share * plain.estimate;
    let off = by_chance(shares, plain.estimate).hypot((plain.high - plain.estimate) * share) + rounded;
    Range { low: (estimate - off).max(0.0), estimate, high: (estimate + off).min(plain.high.max(estimate)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_plain_time() {
        let plain = Range { low: 990.0, estimate: 1000.0, high: 1010.0 };
        let half = sampled(&[0.5, 0.51, 0.49, 0.5], 0.0, plain);
        assert!(half.estimate == 500.0 && half.low < 478.0 && half.high > 522.0, "{half:?}");
        let none = sampled(&[0.0; 4], 0.0, plain);
        assert_eq!(none, Range { low: 0.0, estimate: 0.0, high: 1.0 });
        // A million loops of less than half a microsecond.
        assert_eq!(sampled(&[0.0; 4], 500.0, plain).high, 501.0);
    }
}
