//! A node without its place in the tree, and what can be below it.

use super::figures::{Figures, Sums};
use super::label::Label;
use crate::server::explain::plan::Node;
use crate::server::explain::plan::validate::{least_inputs, most_inputs};

/// Nodes of bitmap scans have no other inputs, and no other node has them as inputs.
const BITMAPS: [&str; 3] = ["Bitmap Index Scan", "BitmapAnd", "BitmapOr"];

pub struct Place {
    kind: String,
    is_parallel: bool,
    figures: Figures,
    pub label: Option<Label>,
    pub scanned_cte: Option<String>,
    /// the node whose condition contains this subplan
    pub owner: Option<usize>,
}

/// What a node has already.
#[derive(Clone, Copy, Default)]
pub struct Taken {
    inputs: usize,
    /// it has a subplan that stands after the inputs
    has_last_subplan: bool,
    sums: Sums,
}

impl Place {
    pub fn new(node: &Node, label: Option<Label>, figures: Figures) -> Place {
        Place {
            kind: node.kind.clone(),
            is_parallel: node.name.starts_with("Parallel "),
            figures,
            label,
            scanned_cte: node.cte.clone().filter(|_| node.kind == "CTE Scan"),
            owner: None,
        }
    }

    /// Returns whether the node has no inputs. Then each subplan in its conditions is its own.
    pub fn is_leaf(&self) -> bool {
        most_inputs(&self.kind) == 0
    }

    /// Returns whether a node can be the next one below this node.
    pub fn can_take(&self, taken: &Taken, below: &Place) -> bool {
        match &below.label {
            Some(label) if label.is_first => taken.inputs == 0 && !taken.has_last_subplan,
            Some(_) => self.is_complete(taken),
            None => {
                !taken.has_last_subplan
                    && taken.inputs < most_inputs(&self.kind)
                    && self.takes_kind(taken.inputs, &below.kind)
                    && self.figures.allow_input(&self.kind, &taken.sums, &below.figures)
            }
        }
    }

    fn takes_kind(&self, inputs: usize, kind: &str) -> bool {
        let reads_bitmap = self.kind == "Bitmap Heap Scan" || BITMAPS.contains(&self.kind.as_str());
        // A hash is only on the inner side of a hash join.
        let reads_hash = self.kind == "Hash Join" && inputs == 1;
        BITMAPS.contains(&kind) == reads_bitmap && (kind == "Hash") == reads_hash
    }

    /// Returns what the node has with one more node below it.
    pub fn with(&self, taken: Taken, below: &Place) -> Taken {
        match &below.label {
            Some(label) => Taken { has_last_subplan: taken.has_last_subplan || !label.is_first, ..taken },
            None => Taken { inputs: taken.inputs + 1, sums: taken.sums.with(&below.figures), ..taken },
        }
    }

    /// Returns whether the node can have these inputs and no others.
    pub fn is_complete(&self, taken: &Taken) -> bool {
        taken.inputs >= least_inputs(&self.kind)
            && self.figures.allow_inputs(&self.kind, self.is_parallel, &taken.sums, taken.inputs)
    }
}
