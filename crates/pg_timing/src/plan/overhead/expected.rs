//! The overhead that timing is expected to add to a plan, computed from the cost of a timed call.

use crate::plan::Plan;
use crate::plan::node::{PlanNode, callees, workers};
use crate::plan::server_clock::ServerClock;
use crate::report::{CallCost, MS_PER_NS, Range};

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

/// The processor overlaps the reads of the TSC with other work. A published plan of PostgreSQL 19 shows 3.3 ns per call, where
/// two reads alone take 23: 0.14 of it. With the counting of rows it was 0.22.
const LEAST_TSC_READS: f64 = 0.2 * 2.0;

impl Expected {
    /// Returns the overhead that the calls of all processes predict, within the limits that the plan sets.
    pub fn of(plan: &Plan, cost: &CallCost, clock: &ServerClock) -> Expected {
        let cpus = clock.cpus.map(|cpus| cpus as f64);
        let on_a_cpu = plan.nodes.iter().map(|node| calls_on_a_cpu(node, cpus));
        let calls = on_a_cpu.fold(Range::exactly(plan.other_calls), |sum, calls| sum + calls);
        let ms = |ns: f64| calls.times(ns * MS_PER_NS);
        let (clock_ms, both_ms) = (ms(cost.clock_ns()), ms(cost.clock_ns() + cost.counting_ns()));
        let in_plan = |range: Range| with_margin(range, cost.error_ms(range.estimate, plan.execution_ms));
        let (clock_ms, overhead) = (in_plan(clock_ms), in_plan(both_ms));
        let most = longest_overhead_ms(plan, cost);
        let per_process = plan.calls_per_process();
        let least_tsc = match clock.is_tsc() {
            true => per_process.low * LEAST_TSC_READS * clock.read_ns * MS_PER_NS,
            false => f64::INFINITY,
        };
        // If the plan allows less overhead than the estimate, its calls were cheaper than usual.
        let low = overhead.low.min(most * (1.0 - cost.error()).max(0.0)).min(least_tsc);
        // A normal distribution that ends at its mean has its median a third of the 95% margin below the mean.
        let estimate = overhead.estimate.min(most - (most - low) / 3.0);
        let overhead_in_plan = Range { low, estimate, high: overhead.high.min(most) };
        let per_call = cost.clock_ns() + cost.counting_ns();
        let per_call_ns = with_margin(Range::exactly(per_call), cost.error() * per_call);
        let least_call_ns = if clock.is_tsc() { LEAST_TSC_READS * clock.read_ns } else { f64::INFINITY };
        // If the plan limits the overhead, the clock reads keep their share of it.
        let share = |clock: f64, overhead: f64| if overhead > 0.0 { clock / overhead } else { 0.0 };
        let clock = Range {
            low: low * share(clock_ms.low, overhead.low),
            estimate: estimate * share(clock_ms.estimate, overhead.estimate),
            high: overhead_in_plan.high.min(clock_ms.high),
        };
        Expected {
            clock,
            overhead: overhead_in_plan,
            least_clock: per_process.low * cost.least_clock_ns() * MS_PER_NS,
            per_call_ns: Range { low: per_call_ns.low.min(least_call_ns), ..per_call_ns },
        }
    }
}

/// Returns the range, wider by the margin of an independent error.
fn with_margin(range: Range, margin: f64) -> Range {
    Range {
        low: (range.estimate - (range.estimate - range.low).hypot(margin)).max(0.0),
        high: range.estimate + (range.high - range.estimate).hypot(margin),
        ..range
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

/// Returns the longest overhead for which no node's self time is below zero. A plan in which several processes run has no
/// such limit, because only the average over the processes is known.
///
/// Between a quarter and three quarters of a call's overhead may fall into the node's own time. The rest falls into its
/// caller's time.
fn longest_overhead_ms(plan: &Plan, cost: &CallCost) -> f64 {
    if plan.nodes.iter().any(|node| node.processes > 1.0 || !node.rows_are_calls) {
        return plan.execution_ms;
    }
    const LARGEST_PART: f64 = 0.75;
    let call_ms = (cost.clock_ns() + cost.counting_ns()) * (1.0 + cost.error()) * MS_PER_NS;
    let most_ms = |index: usize| plan.nodes[index].calls.high * call_ms * LARGEST_PART;
    let mut longest = plan.other_calls * call_ms;
    for (index, children) in callees(&plan.nodes).iter().enumerate() {
        let children_ms: f64 =
            children.iter().map(|&(child, part)| part * plan.nodes[child].reported_or_zero_ms()).sum();
        let all = || children.iter().map(|(child, _)| *child).chain([index]);
        let rounding: f64 = all().map(|each| plan.nodes[each].rounding_ms).sum();
        let self_ms = (plan.nodes[index].reported_or_zero_ms() - children_ms).max(0.0) + rounding;
        longest += self_ms.min(all().map(most_ms).sum());
    }
    // The start and the end of the execution do not belong to any node.
    let outside = plan.execution_ms - plan.nodes.first().map_or(0.0, PlanNode::reported_or_zero_ms);
    (longest + outside.max(0.0)).min(plan.execution_ms)
}
