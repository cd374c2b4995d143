//! Searches the trees that a list of nodes can have. The nodes are in the order of the printed tree: each node is followed
//! by its InitPlans and CTEs, its inputs, and its other subplans.

use super::place::{Place, Taken};
use crate::server::explain::plan::steps;

/// The trees that fit.
#[derive(Debug, PartialEq)]
pub enum Trees {
    None,
    /// the parent of each node; the root's is 0
    One(Vec<usize>),
    /// a node with two possible parents
    Several {
        node: usize,
        parents: [usize; 2],
    },
    /// the search was given up
    TooMany,
}

/// Tested parents per node. If only one tree fits, each node needs about two. Real plans with 50 nodes needed up to 10.
const TESTS_PER_NODE: usize = 50;

/// A larger plan comes from a file and not from a chat.
const MAX_NODES: usize = 1000;

/// Returns the trees that fit. It tries the possible parents of each node, and stops at the second tree.
pub fn trees(places: &[Place]) -> Trees {
    if places.len() > MAX_NODES {
        return Trees::TooMany;
    }
    let mut search = Search {
        places,
        taken: vec![Taken::default(); places.len()],
        parents: vec![0; places.len()],
        subplans: vec![None; places.len()],
    };
    let mut undo: Vec<Taken> = vec![Taken::default(); places.len()];
    let mut found: Option<Vec<usize>> = None;
    let mut tests = TESTS_PER_NODE * (places.len() + TESTS_PER_NODE);
    // The node that is placed, and its next possible parent.
    let (mut node, mut candidate) = (1, Some(0));
    loop {
        let Some(left) = tests.checked_sub(1) else { return Trees::TooMany };
        tests = left;
        steps::count(1);
        if node == places.len() {
            let depth = search.above(node - 1).count();
            tests = tests.saturating_sub(depth);
            if search.is_complete() {
                match &found {
                    None => found = Some(search.parents.clone()),
                    Some(first) => return several(first, &search.parents),
                }
            }
        } else {
            match candidate {
                Some(parent) if search.fits(parent, node) => {
                    undo[node] = search.taken[parent];
                    search.taken[parent] = places[parent].with(search.taken[parent], &places[node]);
                    search.parents[node] = parent;
                    search.subplans[node] =
                        if places[node].label.is_some() { Some(node) } else { search.subplans[parent] };
                    search.taken[node] = Taken::default();
                    candidate = Some(node);
                    node += 1;
                    continue;
                }
                Some(parent) if parent > 0 && search.can_close(parent) => {
                    candidate = Some(search.parents[parent]);
                    continue;
                }
                _ => {}
            }
        }
        // No other parent is possible: the node before it needs another one.
        node -= 1;
        if node == 0 {
            return found.map_or(Trees::None, Trees::One);
        }
        let parent = search.parents[node];
        search.taken[parent] = undo[node];
        candidate = (parent > 0 && search.can_close(parent)).then(|| search.parents[parent]);
    }
}

fn several(first: &[usize], second: &[usize]) -> Trees {
    let node = first.iter().zip(second).position(|(first, second)| first != second).unwrap_or_default();
    Trees::Several { node, parents: [first[node], second[node]] }
}

struct Search<'a> {
    places: &'a [Place],
    /// what each node has already
    taken: Vec<Taken>,
    parents: Vec<usize>,
    /// the subplan that each node is a part of
    subplans: Vec<Option<usize>>,
}

impl Search<'_> {
    /// Returns whether `node` can be the next one below `parent`.
    fn fits(&self, parent: usize, node: usize) -> bool {
        let place = &self.places[node];
        if place.owner.is_some_and(|owner| owner != parent) {
            return false;
        }
        self.places[parent].can_take(&self.taken[parent], place)
            && place.label.as_ref().is_none_or(|label| {
                let outer = self.subplans[parent].and_then(|outer| self.places[outer].label.as_ref());
                outer.is_none_or(|outer| label.can_be_within(outer))
            })
    }

    /// Returns the nodes above, from the parent to the root.
    fn above(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |&node| (node > 0).then(|| self.parents[node])).skip(1)
    }

    fn can_close(&self, node: usize) -> bool {
        self.places[node].is_complete(&self.taken[node])
    }

    /// Returns whether all nodes have their inputs, and each scan of a CTE is below the node that defines it.
    fn is_complete(&self) -> bool {
        let last = self.places.len() - 1;
        std::iter::once(last).chain(self.above(last)).all(|node| self.can_close(node)) && self.ctes_are_defined()
    }

    fn ctes_are_defined(&self) -> bool {
        let defined: Vec<(&str, usize)> = self
            .places
            .iter()
            .zip(&self.parents)
            .filter_map(|(place, &parent)| Some((place.label.as_ref()?.cte.as_deref()?, parent)))
            .collect();
        self.places.iter().enumerate().all(|(node, place)| {
            let Some(name) = &place.scanned_cte else { return true };
            let mut definers = defined.iter().filter(|(cte, _)| cte == name).peekable();
            definers.peek().is_none()
                || definers.any(|&(_, definer)| node == definer || self.above(node).any(|above| above == definer))
        })
    }
}
