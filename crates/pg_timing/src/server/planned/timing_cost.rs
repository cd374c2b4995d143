//! What timing a node call costs on the server's host.

use super::node_calls::NodeCalls;
use crate::report::{CallCost, ClockReport, Range};
use crate::server::clock::Clocks;

/// The costs of a call with the lowest and the highest possible read cost.
pub struct TimingCost {
    low: CallCost,
    high: CallCost,
}

impl TimingCost {
    /// Returns `None` if the read cost is unknown.
    pub fn of(clocks: &Clocks) -> Option<TimingCost> {
        let node = &clocks.node;
        let clock = clocks.here.as_ref().and_then(|here| here.clock(&node.clock));
        let timed_call_ns = clock.and_then(ClockReport::plausible_timed_call_ns);
        // Row counting is cheaper than timing, and happens also without it.
        let cost = |read_ns: f64| CallCost::new(read_ns, timed_call_ns, clocks.system.ns, false);
        match (node.ns, node.low_ns, node.high_ns) {
            // The error of a call contains that of the read cost.
            (Some(ns), ..) => Some(TimingCost { low: cost(ns), high: cost(ns) }),
            (None, Some(low), Some(high)) => Some(TimingCost { low: cost(low), high: cost(high) }),
            _ => None,
        }
    }

    /// Returns the cost of the clock reads of one call of this plan, in ns, with its error.
    pub fn clock_ns(&self, node_calls: &NodeCalls) -> Range {
        with_error(&self.low, &self.high, |cost| node_calls.clock_ns(cost))
    }

    /// Returns the cost of the clock reads of one call of any plan, in ns.
    pub fn usual_clock_ns(&self) -> Range {
        with_error(&self.low, &self.high, CallCost::usual_clock_ns)
    }
}

fn with_error(low: &CallCost, high: &CallCost, ns: impl Fn(&CallCost) -> f64) -> Range {
    let (low_ns, high_ns) = (ns(low), ns(high));
    Range {
        low: low_ns * (1.0 - low.error()).max(0.0),
        estimate: (low_ns + high_ns) / 2.0,
        high: high_ns * (1.0 + high.error()),
    }
}
