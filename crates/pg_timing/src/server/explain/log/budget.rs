//! A limit for what several threads have in memory.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How many bytes may be in use at the same time.
pub struct Budget {
    limit: usize,
    used: Arc<(Mutex<usize>, Condvar)>,
}

/// A part of the budget, until it is dropped.
pub struct Share {
    bytes: usize,
    used: Arc<(Mutex<usize>, Condvar)>,
}

impl Budget {
    pub fn new(limit: usize) -> Budget {
        Budget { limit, used: Arc::default() }
    }

    /// Waits until these bytes fit into the budget. More than the whole budget waits until nothing is in use.
    pub fn take(&self, bytes: usize) -> Share {
        let (used, less) = &*self.used;
        let is_full = |used: &mut usize| *used > 0 && *used + bytes > self.limit;
        let locked = used.lock().unwrap_or_else(PoisonError::into_inner);
        *less.wait_while(locked, is_full).unwrap_or_else(PoisonError::into_inner) += bytes;
        Share { bytes, used: Arc::clone(&self.used) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let (used, less) = &*self.used;
        *used.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        less.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{TryRecvError, channel};

    #[test]
    fn what_does_not_fit_waits() {
        let budget = Budget::new(10);
        let (first, second) = (budget.take(6), budget.take(4));
        let (sender, taken) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sender.send(1).unwrap();
                // It waits for the second share.
                let _third = budget.take(7);
                sender.send(2).unwrap();
            });
            assert_eq!(taken.recv(), Ok(1));
            drop(first);
            assert_eq!(taken.try_recv(), Err(TryRecvError::Empty));
            drop(second);
            assert_eq!(taken.recv(), Ok(2));
        });
    }

    #[test]
    fn more_than_the_budget_is_possible_alone() {
        let budget = Budget::new(10);
        drop(budget.take(4));
        let _share = budget.take(99);
    }
}
