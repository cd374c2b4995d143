//! Waiting that a signal ends at once.

use crate::host::measure::Budget;

/// So long at a time, in ms: the longest that a signal goes unnoticed which arrives just before.
const AT_A_TIME: f64 = 20.0;

/// Waits until the budget is spent or its flag is set.
pub fn wait(budget: &Budget) {
    while budget.go_on() {
        let ms = (budget.left().0 / 1e6).ceil().clamp(1.0, AT_A_TIME) as libc::c_int;
        // Unlike a sleep of the standard library, poll ends when a signal comes: on a clock source
        // that stands still, timers do as well.
        // SAFETY: no descriptors, so the null pointer is not looked at.
        unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use timing_clock::Nanos;

    #[test]
    fn until_the_time_is_up() {
        let stop = AtomicBool::new(false);
        let budget = Budget::new(Nanos::from_millis(5.0), &stop);
        wait(&budget);
        assert!(!budget.go_on());
    }

    #[test]
    fn or_the_flag_is_set() {
        let stop = AtomicBool::new(true);
        let budget = Budget::new(Nanos::from_secs(1e6), &stop);
        wait(&budget);
        assert!(budget.interrupted());
    }
}
