//! Waits until a signal arrives or time is up.

use crate::host::measure::Budget;

/// The longest single wait in ms. A signal that arrives just before it starts goes unnoticed for this long.
const MAX_WAIT_MS: f64 = 20.0;

/// Waits until the budget is spent or its flag is set.
pub fn wait(budget: &Budget) {
    while budget.go_on() {
        let ms = (budget.left().0 / 1e6).ceil().clamp(1.0, MAX_WAIT_MS) as libc::c_int;
        // A signal ends poll(), but not the standard library's sleep. This matters on a clock source that stands still,
        // where timers stand still, too.
        // SAFETY: there are no descriptors, so poll() does not use the null pointer.
        unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use timing_clock::Nanos;

    #[test]
    fn it_ends_when_time_is_up() {
        let stop = AtomicBool::new(false);
        let budget = Budget::new(Nanos::from_millis(5.0), &stop);
        wait(&budget);
        assert!(!budget.go_on());
    }

    #[test]
    fn it_ends_when_the_flag_is_set() {
        let stop = AtomicBool::new(true);
        let budget = Budget::new(Nanos::from_secs(1e6), &stop);
        wait(&budget);
        assert!(budget.interrupted());
    }
}
