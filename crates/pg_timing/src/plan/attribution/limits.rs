//! Limits for the corrected times of nodes. The times of the nodes and of the statement are separate estimates. Programs that
//! read plans subtract the times of inputs from that of their caller.

use super::charge::Charge;
use crate::plan::node::{PlanNode, callers_first};
use crate::report::{ExplainedNode, Range};

/// Limits all nodes to the corrected time of the statement. The topmost node takes almost as long: only the start and the end
/// of the execution do not belong to any node.
pub fn limit_to_statement(nodes: &mut [ExplainedNode], charge: &Charge) {
    for node in nodes.iter_mut() {
        node.corrected_ms = limited(node.corrected_ms, charge.whole);
    }
    let Some(root) = nodes.first_mut() else { return };
    let outside = (charge.reported - root.reported_ms).max(0.0);
    let Range { low, estimate, .. } = root.corrected_ms;
    root.corrected_ms.low = low.max((charge.whole.low - outside).min(estimate));
}

/// Limits every corrected time to that of the node's only caller. Other nodes may have run a part of some subplans, and nodes
/// of extensions may run their inputs in parallel.
pub fn limit_to_callers(nodes: &mut [ExplainedNode], plan: &[PlanNode]) {
    for index in callers_first(plan) {
        if let Some(caller) = plan[index].callers.only().filter(|_| plan[index].rows_are_calls) {
            nodes[index].corrected_ms = limited(nodes[index].corrected_ms, nodes[caller].corrected_ms);
        }
    }
}

/// Returns a time that is at most another one. Its bounds stay in order.
fn limited(Range { low, estimate, high }: Range, most: Range) -> Range {
    // Either estimate can be wrong, so the interval then begins where the other one does.
    let low = if estimate > most.estimate { low.min(most.low) } else { low };
    Range { low, estimate: estimate.min(most.estimate), high: high.min(most.high) }
}
