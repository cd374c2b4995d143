//! The self times of a statement's nodes, for each of its different plans.

use crate::plan::Analysis;
use crate::report::{ExplainedNode, RankChange, SelfTime};
use crate::statistics::ranks;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The nodes of one plan.
pub struct AnalyzedNodes {
    /// hash of what executions with the same plan have in common
    shape: u64,
    count: usize,
    /// empty if the plan has a single node, which has no other rank
    nodes: Vec<NodeSum>,
}

impl AnalyzedNodes {
    pub fn of(analysis: &Analysis) -> AnalyzedNodes {
        let mut hasher = DefaultHasher::new();
        analysis.plan.shape.hash(&mut hasher);
        let count = analysis.plan.nodes.len();
        let nodes = if count > 1 { analysis.nodes() } else { Vec::new() };
        AnalyzedNodes { shape: hasher.finish(), count, nodes: nodes.into_iter().map(NodeSum::of).collect() }
    }
}

/// The different plans of a statement.
#[derive(Debug, Default)]
pub struct Shapes {
    /// at most [`Shapes::MAX`], in the order of the log
    shapes: Vec<Shape>,
    /// some executions had another plan
    pub has_more: bool,
    /// some executions had a plan for whose nodes there was no memory
    pub has_unranked: bool,
}

/// All executions with the same plan.
#[derive(Debug, Default)]
pub struct Shape {
    hash: u64,
    reported_ms: f64,
    /// empty if the plan has a single node
    pub nodes: Vec<NodeSum>,
}

#[derive(Debug, PartialEq)]
pub struct NodeSum {
    pub path: String,
    pub title: String,
    /// without ranks
    pub time: SelfTime,
}

impl Shapes {
    /// Plans per statement whose nodes are added up: the first ones of the log. A generated statement can have many.
    pub const MAX: usize = 8;

    /// Adds an execution. Returns how many nodes this stores; it stores at most `room`.
    pub fn add(&mut self, nodes: AnalyzedNodes, reported_ms: f64, room: usize) -> usize {
        let AnalyzedNodes { shape: hash, count, nodes } = nodes;
        let known = self.shapes.iter().position(|shape| shape.hash == hash);
        self.has_more |= known.is_none() && self.shapes.len() >= Shapes::MAX;
        self.has_unranked |= known.is_none() && count > room;
        if known.is_none() && (self.shapes.len() >= Shapes::MAX || count > room) {
            return 0;
        }
        let Some(known) = known else {
            self.shapes.push(Shape { hash, reported_ms, nodes });
            return count;
        };
        let shape = &mut self.shapes[known];
        shape.reported_ms += reported_ms;
        for (sum, node) in shape.nodes.iter_mut().zip(&nodes) {
            sum.time.add(&node.time);
        }
        0
    }

    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Returns the plan that took the most time; of several, the first one in the log.
    pub fn most(&self) -> Option<&Shape> {
        self.shapes.iter().rev().max_by(|a, b| a.reported_ms.total_cmp(&b.reported_ms))
    }
}

impl Shape {
    /// Returns the nodes whose rank the overhead changed by more than the errors, in the order of their corrected rank.
    pub fn rank_changes(&self) -> Vec<RankChange> {
        let ranks_by =
            |ms: &dyn Fn(&SelfTime) -> f64| ranks(&self.nodes.iter().map(|node| ms(&node.time)).collect::<Vec<_>>());
        let (reported, corrected) = (ranks_by(&|time| time.reported_ms), ranks_by(&|time| time.corrected_ms));
        let ranked = self.nodes.iter().zip(reported.into_iter().zip(corrected));
        let times: Vec<SelfTime> =
            ranked.map(|(node, (rank, corrected_rank))| SelfTime { rank, corrected_rank, ..node.time }).collect();
        let sum = |ms: &dyn Fn(&SelfTime) -> f64| times.iter().map(ms).sum::<f64>();
        let (reported_ms, corrected_ms) = (sum(&|time| time.reported_ms), sum(&|time| time.corrected_ms));
        let has_changed = |time: &SelfTime| time.has_other_rank(times.iter().copied(), reported_ms, corrected_ms);
        let changed = self.nodes.iter().zip(&times).filter(|(_, time)| has_changed(time));
        let mut changes: Vec<RankChange> = changed
            .map(|(node, time)| RankChange {
                path: node.path.clone(),
                title: node.title.clone(),
                rank: time.rank,
                corrected_rank: time.corrected_rank,
                reported_self_ms: time.reported_ms,
                corrected_self_ms: time.corrected_ms,
            })
            .collect();
        changes.sort_by_key(|change| change.corrected_rank);
        changes
    }
}

impl NodeSum {
    /// Returns the sum of one execution.
    fn of(node: ExplainedNode) -> NodeSum {
        let time = SelfTime::of(&node);
        NodeSum { path: node.path, title: node.title, time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(shape: u64, count: usize) -> AnalyzedNodes {
        AnalyzedNodes { shape, count, nodes: (1..count).map(|_| NodeSum::of(ExplainedNode::default())).collect() }
    }

    #[test]
    fn the_first_plans_of_the_log_are_added_up() {
        let mut shapes = Shapes::default();
        for shape in 0..Shapes::MAX as u64 {
            assert_eq!(shapes.add(nodes(shape, 3), 1.0, 3), 3);
        }
        assert!(!shapes.has_more);
        // All took the same time.
        assert_eq!(shapes.most().map(|shape| shape.hash), Some(0));
        assert_eq!((shapes.add(nodes(99, 3), 9.0, 3), shapes.add(nodes(5, 3), 1.0, 0)), (0, 0));
        assert_eq!((shapes.has_more, shapes.has_unranked, shapes.len()), (true, false, Shapes::MAX));
        assert_eq!(shapes.most().map(|shape| (shape.hash, shape.reported_ms)), Some((5, 2.0)));
    }

    #[test]
    fn a_plan_without_room_is_not_ranked() {
        let mut shapes = Shapes::default();
        assert_eq!(shapes.add(nodes(1, 3), 1.0, 2), 0);
        assert_eq!((shapes.has_more, shapes.has_unranked, shapes.len()), (false, true, 0));
    }
}
