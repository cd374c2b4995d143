//! Counts the steps of a computation, so that tests can compare inputs of two sizes without measuring time.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Adds steps of work. Does nothing outside of tests.
pub fn count(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps);
    _ = steps;
}

/// Returns the steps that `work` makes.
#[cfg(test)]
pub fn of(work: impl FnOnce()) -> usize {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}
