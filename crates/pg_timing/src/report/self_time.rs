//! Which ranks of nodes the overhead changed by more than the errors.

use super::explain::ExplainedNode;

/// The self time of a node with and without timing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfTime {
    pub reported_ms: f64,
    pub reported_margin_ms: f64,
    pub corrected_ms: f64,
    pub corrected_margin_ms: f64,
    /// from 1; 0 if the plan does not show the self time
    pub rank: usize,
    pub corrected_rank: usize,
}

/// Nodes below this share of the time do not matter to the user.
const MATTERS: f64 = 0.05;

impl SelfTime {
    pub fn of(node: &ExplainedNode) -> SelfTime {
        SelfTime {
            reported_ms: node.reported_self_ms,
            reported_margin_ms: node.reported_self_off_ms,
            corrected_ms: node.corrected_self_ms,
            corrected_margin_ms: node.corrected_self_off_ms,
            rank: node.rank.unwrap_or_default(),
            corrected_rank: node.corrected_rank.unwrap_or_default(),
        }
    }

    /// Adds another execution of the same node. Its errors have the same sign, so they are added up.
    pub fn add(&mut self, other: &SelfTime) {
        self.reported_ms += other.reported_ms;
        self.reported_margin_ms += other.reported_margin_ms;
        self.corrected_ms += other.corrected_ms;
        self.corrected_margin_ms += other.corrected_margin_ms;
    }

    /// Returns whether the overhead changed the node's rank by more than the errors. `all` are the nodes of the plan, and
    /// the plan took `reported_ms` and `corrected_ms`.
    pub fn has_other_rank(&self, mut all: impl Iterator<Item = SelfTime>, reported_ms: f64, corrected_ms: f64) -> bool {
        let matters = self.reported_ms > MATTERS * reported_ms || self.corrected_ms > MATTERS * corrected_ms;
        matters && all.any(|other| self.has_swapped_ranks_with(&other))
    }

    /// Returns whether two nodes swapped ranks, and differ by more than their errors both before and after.
    ///
    /// The errors are added: both nodes are parts of the same whole, so they are not independent.
    fn has_swapped_ranks_with(&self, other: &SelfTime) -> bool {
        let reported_margin_ms = self.reported_margin_ms + other.reported_margin_ms;
        let corrected_margin_ms = self.corrected_margin_ms + other.corrected_margin_ms;
        let ranks = [self.rank, other.rank, self.corrected_rank, other.corrected_rank];
        ranks.iter().all(|rank| *rank > 0)
            && (self.rank < other.rank) != (self.corrected_rank < other.corrected_rank)
            && (self.reported_ms - other.reported_ms).abs() > reported_margin_ms
            && (self.corrected_ms - other.corrected_ms).abs() > corrected_margin_ms
    }
}
