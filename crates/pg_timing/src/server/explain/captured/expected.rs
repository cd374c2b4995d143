//! The overhead that timing is expected to add to a plan, computed from the read cost of the clock.

use crate::report::{CallCost, MS_PER_NS, Range, is_measured};
use crate::server::explain::plan::{Plan, PlanNode, callees, is_inner};

/// The expected overhead of a plan, in ms.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// clock reads
    pub clock: Range,
    /// clock reads, row counting and buffer counting
    pub overhead: Range,
    /// shortest possible time of the clock reads
    pub least_clock: f64,
    /// overhead of one call in ns
    pub per_call_ns: Range,
}

impl Expected {
    /// Returns the overhead that the costs of calls predict, within the limits that the plan sets.
    pub fn of(plan: &Plan, cost: &CallCost) -> Expected {
        let other = plan.other_calls * cost.usual_clock_ns();
        let mut clock = Range { low: other, estimate: other, high: other };
        for (index, node) in plan.nodes.iter().enumerate() {
            clock = clock + clock_ns(plan, index, node, cost);
        }
        let calls = plan.total_calls();
        let counting = Range { high: plan.max_calls_of_all_processes(), ..calls }.times(cost.counting_ns());
        let (clock, counting) = (clock.times(MS_PER_NS), counting.times(MS_PER_NS));
        let per_call = (clock.estimate + counting.estimate) / calls.estimate.max(1.0) / MS_PER_NS;
        let with_error = |range: Range| Range {
            low: range.low * (1.0 - cost.error()).max(0.0),
            high: range.high * (1.0 + cost.error()),
            ..range
        };
        let (clock, overhead) = (with_error(clock), with_error(clock + counting));
        let most = longest_overhead_ms(plan, cost);
        // If the plan allows less overhead than the estimate, its calls were cheaper than usual.
        let least = most * (1.0 - cost.error()).max(0.0);
        let limited = |range: Range| {
            let low = range.low.min(least);
            // A normal distribution that ends at its mean has its median a third of the 95% margin below the mean.
            Range { low, estimate: range.estimate.min(most - (most - low) / 3.0), high: range.high.min(most) }
        };
        let least_clock = calls.low * cost.bounds_ns().low * MS_PER_NS;
        let per_call_ns = with_error(Range { low: per_call, estimate: per_call, high: per_call });
        let overhead_in_plan = limited(overhead);
        // If the plan limits the overhead, the clock reads keep their share of it.
        let share = |clock: f64, overhead: f64| if overhead > 0.0 { clock / overhead } else { 0.0 };
        let clock = Range {
            low: overhead_in_plan.low * share(clock.low, overhead.low),
            estimate: overhead_in_plan.estimate * share(clock.estimate, overhead.estimate),
            high: overhead_in_plan.high.min(clock.high),
        };
        Expected { clock, overhead: overhead_in_plan, least_clock, per_call_ns }
    }
}

/// Returns the time of the clock reads in all calls of a node, in ns.
///
/// A call of a kind that was never measured can cost as little or as much as a call of any measured kind. The upper
/// bound contains the calls of all processes, because parallel workers that share a CPU wait for each other's timing.
fn clock_ns(plan: &Plan, index: usize, node: &PlanNode, cost: &CallCost) -> Range {
    let each = cost.clock_ns(&node.node.kind, is_inner(&plan.nodes, index));
    let each = match is_measured(&node.node.kind) {
        true => Range { low: each, estimate: each, high: each },
        false => Range { estimate: each, ..cost.bounds_ns() },
    };
    Range {
        low: node.calls.low * each.low,
        estimate: node.calls.estimate * each.estimate,
        high: node.max_calls_of_all_processes() * each.high,
    }
}

/// Returns the longest overhead for which no node's self time is below zero. Parallel plans have no such limit, because
/// only the average over the processes is known.
///
/// Between a quarter and three quarters of a call's overhead may fall into the node's own time. The rest falls into its
/// caller's time.
fn longest_overhead_ms(plan: &Plan, cost: &CallCost) -> f64 {
    if plan.nodes.iter().any(|node| node.processes > 1.0) {
        return plan.execution_ms;
    }
    const LARGEST_PART: f64 = 0.75;
    let most_ms = |index: usize| {
        let node = &plan.nodes[index];
        let ns = clock_ns(plan, index, node, cost).high + node.calls.high * cost.counting_ns();
        ns * (1.0 + cost.error()) * LARGEST_PART * MS_PER_NS
    };
    let mut longest = plan.other_calls * (cost.usual_clock_ns() + cost.counting_ns()) * MS_PER_NS;
    for (index, children) in callees(&plan.nodes).iter().enumerate() {
        let node = &plan.nodes[index];
        let children_ms: f64 = children.iter().map(|&child| plan.nodes[child].reported_or_zero_ms()).sum();
        let rounding: f64 = children.iter().chain([&index]).map(|&each| plan.nodes[each].rounding_ms).sum();
        let self_ms = (node.reported_or_zero_ms() - children_ms).max(0.0) + rounding;
        let calls_ms: f64 = children.iter().chain([&index]).map(|&each| most_ms(each)).sum();
        longest += self_ms.min(calls_ms);
    }
    // The start and the end of the execution do not belong to any node.
    let outside = plan.execution_ms - plan.nodes.first().map_or(0.0, PlanNode::reported_or_zero_ms);
    (longest + outside.max(0.0)).min(plan.execution_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str, ms: f64) -> Plan {
        Plan::new(serde_json::from_str(&format!(r#"{{"Plan": {json}}}"#)).unwrap(), ms)
    }

    const COUNT: &str = r#"{"Node Type": "Aggregate", "Actual Total Time": 100.0, "Actual Rows": 1, "Actual Loops": 1,
        "Plans": [{"Node Type": "Seq Scan", "Actual Total Time": 70.0, "Actual Rows": 1000000, "Actual Loops": 1}]}"#;

    fn cost(read_ns: f64) -> CallCost {
        CallCost::new(read_ns, Some(read_ns), false)
    }

    #[test]
    fn each_kind_of_node_has_its_own_cost() {
        let expected = Expected::of(&plan(COUNT, 1000.0), &cost(20.0));
        let scan = cost(20.0).clock_ns("Seq Scan", false);
        assert!((expected.clock.estimate / (scan * 1000003.0 * 1e-6) - 1.0).abs() < 0.001, "{expected:?}");
        let counting = expected.overhead.estimate - expected.clock.estimate;
        assert!((counting - 6.6).abs() < 0.01, "{expected:?}");
    }

    #[test]
    fn a_kind_that_was_never_measured_has_a_wider_interval() {
        let width = |json: &str| Expected::of(&plan(json, 1000.0), &cost(20.0)).clock;
        let (known, unknown) = (width(COUNT), width(&COUNT.replace("Seq Scan", "Quantum Scan")));
        assert!(unknown.low < known.low / 4.0 && unknown.high > known.high, "{known:?} {unknown:?}");
    }

    #[test]
    fn no_self_time_is_below_zero() {
        // The scan makes a million calls, but its own time is 10 ms, and its caller's is 5 ms.
        let short = COUNT.replace("100.0", "15.0").replace("70.0", "10.0");
        let expected = Expected::of(&plan(&short, 15.1), &cost(20.0));
        assert!((expected.overhead.high - 15.1).abs() < 0.01, "{expected:?}");
        let caller = COUNT.replace("100.0", "70.5");
        let (limited, free) =
            (Expected::of(&plan(&caller, 70.6), &cost(20.0)), Expected::of(&plan(COUNT, 100.1), &cost(20.0)));
        assert!(limited.overhead.high < free.overhead.high, "{limited:?} {free:?}");
    }
}
