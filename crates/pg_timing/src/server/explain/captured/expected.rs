//! The overhead that timing is expected to add to a plan, computed from the cost of a timed call.

use crate::report::{CallCost, MS_PER_NS, Range, is_measured};
use crate::server::explain::plan::{Plan, PlanNode, callees, is_inner, workers};

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
    /// Returns the overhead that the costs of calls predict, within the limits that the plan sets. `cpus` is the number of
    /// CPUs of the server's host, if known.
    pub fn of(plan: &Plan, cost: &CallCost, cpus: Option<f64>) -> Expected {
        let other = |ns: f64| exactly(plan.other_calls * ns);
        let (mut clock, mut counting) = (other(cost.usual_clock_ns()), other(cost.counting_ns()));
        let mut serial_ns = clock.estimate + counting.estimate;
        for (index, node) in plan.nodes.iter().enumerate() {
            let each = each_call_ns(plan, index, node, cost);
            let calls = calls_on_a_cpu(node, cpus);
            clock = clock + product(calls, each);
            counting = counting + calls.times(cost.counting_ns());
            serial_ns += node.calls.estimate * (each.estimate + cost.counting_ns());
        }
        let (clock, counting) = (clock.times(MS_PER_NS), counting.times(MS_PER_NS));
        let calls = plan.total_calls();
        let in_plan = |range: Range| with_margin(range, cost.error_ms(range.estimate, plan.execution_ms));
        let (clock, overhead) = (in_plan(clock), in_plan(clock + counting));
        let most = longest_overhead_ms(plan, cost);
        // If the plan allows less overhead than the estimate, its calls were cheaper than usual.
        let least = most * (1.0 - cost.error()).max(0.0);
        let limited = |range: Range| {
            let low = range.low.min(least);
            // A normal distribution that ends at its mean has its median a third of the 95% margin below the mean.
            Range { low, estimate: range.estimate.min(most - (most - low) / 3.0), high: range.high.min(most) }
        };
        let least_clock = calls.low * cost.bounds_ns().low * MS_PER_NS;
        let per_call = serial_ns / calls.estimate.max(1.0);
        let per_call_ns = with_margin(exactly(per_call), cost.error() * per_call);
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

fn exactly(value: f64) -> Range {
    Range { low: value, estimate: value, high: value }
}

fn product(calls: Range, ns: Range) -> Range {
    Range { low: calls.low * ns.low, estimate: calls.estimate * ns.estimate, high: calls.high * ns.high }
}

/// Returns the range, wider by the margin of an independent error.
fn with_margin(range: Range, margin: f64) -> Range {
    Range {
        low: (range.estimate - (range.estimate - range.low).hypot(margin)).max(0.0),
        high: range.estimate + (range.high - range.estimate).hypot(margin),
        ..range
    }
}

/// Returns the clock reads of one call of a node, in ns. A call of a kind that was never measured can cost as little or
/// as much as a call of any measured kind.
fn each_call_ns(plan: &Plan, index: usize, node: &PlanNode, cost: &CallCost) -> Range {
    let each = cost.clock_ns(&node.node.kind, is_inner(&plan.nodes, index));
    match is_measured(&node.node.kind) {
        true => exactly(each),
        false => Range { estimate: each, ..cost.bounds_ns() },
    }
}

/// Some processes make more calls than the average, because workers start late. The estimate assumes half of this, and the
/// upper bound all of it. Measured with two processes on two CPUs: the overhead was up to 30% larger than with equal parts,
/// and 6% in the median of 12 statements. The rest of the 30% is the error of a call.
const UNEVEN: f64 = 0.2;

/// Returns how many calls of a node one CPU makes while the plan runs.
///
/// Parallel processes share the calls. If there are more processes than CPUs, they also wait for each other's calls. If the
/// number of CPUs is not known, all processes may share one.
fn calls_on_a_cpu(node: &PlanNode, cpus: Option<f64>) -> Range {
    let Range { low, estimate, high } = node.calls;
    let (processes, workers) = (node.processes, workers(node.processes));
    if processes <= 1.0 {
        return node.calls;
    }
    let waiting = cpus.map_or(1.0, |cpus| (processes / cpus).max(1.0));
    // `calls.high` allows for a leader that only collects the workers' rows. The leader took part in all measured plans.
    let all = high * workers;
    let most = all / processes * waiting * (1.0 + UNEVEN);
    Range {
        low,
        estimate: estimate * (waiting * (1.0 + UNEVEN / 2.0)).min(processes),
        high: if cpus.is_some() { most.min(all) } else { all },
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
        let ns = node.calls.high * (each_call_ns(plan, index, node, cost).high + cost.counting_ns());
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
        CallCost::new(read_ns, None, Some(read_ns), false)
    }

    #[test]
    fn each_kind_of_node_has_its_own_cost() {
        let expected = Expected::of(&plan(COUNT, 1000.0), &cost(20.0), None);
        let scan = cost(20.0).clock_ns("Seq Scan", false);
        assert!((expected.clock.estimate / (scan * 1000003.0 * 1e-6) - 1.0).abs() < 0.001, "{expected:?}");
        let counting = expected.overhead.estimate - expected.clock.estimate;
        assert!((counting - 5.6).abs() < 0.01, "{expected:?}");
    }

    #[test]
    fn a_kind_that_was_never_measured_has_a_wider_interval() {
        let width = |json: &str| Expected::of(&plan(json, 100.1), &cost(20.0), None).clock;
        let (known, unknown) = (width(COUNT), width(&COUNT.replace("Seq Scan", "Quantum Scan")));
        assert!(unknown.low < known.low / 4.0 && unknown.high > known.high, "{known:?} {unknown:?}");
    }

    #[test]
    fn parallel_processes_wait_for_each_other_if_they_share_cpus() {
        let json = r#"{"Node Type": "Gather", "Actual Total Time": 1000.0, "Actual Rows": 1, "Actual Loops": 1, "Plans": [
            {"Node Type": "Seq Scan", "Actual Total Time": 900.0, "Actual Rows": 1000000, "Actual Loops": 3}]}"#;
        let overhead = |cpus| Expected::of(&plan(json, 1000.0), &cost(20.0), cpus).overhead;
        let [enough, two, one, unknown] = [Some(8.0), Some(2.0), Some(1.0), None].map(overhead);
        // A process makes a million calls, and some processes make more.
        let call_ms = cost(20.0).clock_ns("Seq Scan", false) + cost(20.0).counting_ns();
        assert!((enough.estimate / call_ms - 1.1).abs() < 0.01, "{enough:?} {call_ms}");
        assert!((two.estimate / enough.estimate - 1.5).abs() < 0.01, "{two:?}");
        // One CPU makes all calls.
        assert!((one.estimate / enough.estimate - 3.0 / 1.1).abs() < 0.01, "{one:?}");
        assert!((unknown.estimate / enough.estimate - 1.0).abs() < 0.01, "{unknown:?}");
        assert!(enough.high < two.high && two.high < one.high && two.high < unknown.high, "{two:?} {unknown:?}");
    }

    #[test]
    fn no_self_time_is_below_zero() {
        // The scan makes a million calls, but its own time is 10 ms, and its caller's is 5 ms.
        let short = COUNT.replace("100.0", "15.0").replace("70.0", "10.0");
        let expected = Expected::of(&plan(&short, 15.1), &cost(20.0), None);
        assert!((expected.overhead.high - 15.1).abs() < 0.01, "{expected:?}");
        let caller = COUNT.replace("100.0", "70.5");
        let (limited, free) = (
            Expected::of(&plan(&caller, 70.6), &cost(20.0), None),
            Expected::of(&plan(COUNT, 100.1), &cost(20.0), None),
        );
        assert!(limited.overhead.high < free.overhead.high, "{limited:?} {free:?}");
    }
}
