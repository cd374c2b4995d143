//! Puts the batches of several threads into the order of the log.

use super::budget::Share;
use std::collections::BTreeMap;

/// Batches that are finished before an earlier one.
pub struct InOrder<T> {
    /// number of the next batch
    next: usize,
    /// Each holds its share of the memory for unfinished text, so that the reader waits if a batch takes long.
    waiting: BTreeMap<usize, (T, Share)>,
}

impl<T> Default for InOrder<T> {
    fn default() -> InOrder<T> {
        InOrder { next: 0, waiting: BTreeMap::new() }
    }
}

impl<T> InOrder<T> {
    /// Receives a batch. Passes each batch to `use_next` when all before it were passed on.
    pub fn add(&mut self, number: usize, batch: T, share: Share, mut use_next: impl FnMut(T)) {
        self.waiting.insert(number, (batch, share));
        while let Some((batch, _share)) = self.waiting.remove(&self.next) {
            use_next(batch);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budget;
    use super::*;

    #[test]
    fn batches_are_passed_on_in_their_order() {
        let budget = Budget::new(100);
        let (mut in_order, mut used) = (InOrder::default(), Vec::new());
        for number in [1, 3, 0, 2, 4] {
            in_order.add(number, number, budget.take(1), |batch| used.push(batch));
            used.push(100 + number);
        }
        assert_eq!(used, [101, 103, 0, 1, 100, 2, 3, 102, 4, 104]);
    }
}
