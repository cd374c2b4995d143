//! What limits the time that clock reads can take.

use crate::report::Range;

/// The CPUs and the processes that execute statements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// CPUs of the server's host, if they are known
    pub cpus: Option<f64>,
    /// processes that can execute statements at a time, if they are known
    pub processes: Option<f64>,
    /// time in statements, in s per s
    pub busy: f64,
    /// the statements are timed already, so their rate contains the cost
    pub is_timed: bool,
}

impl Limits {
    /// Returns the share of a core that clock reads take. `needed` is what they would take if the statements were executed as
    /// often as in the period.
    ///
    /// A process cannot spend more than its own time on them, and all processes together not more than all CPUs: then
    /// statements are executed less often than before. The lower bound assumes that each process begins its next
    /// statement only after the last one, so its rate falls as soon as its statements take longer.
    pub fn share(self, needed: Range) -> Range {
        let most = [self.cpus, self.processes].into_iter().flatten().fold(f64::INFINITY, f64::min);
        let low = if self.is_timed { needed.low } else { self.slowed(needed.low) };
        let low = low.min(most);
        let high = needed.high.min(most).max(low);
        Range { low, estimate: needed.estimate.clamp(low, high), high }
    }

    /// Returns the time of clock reads after the statements have become slower by it.
    fn slowed(self, needed: f64) -> f64 {
        // What took a second takes 1 + needed / processes seconds, and clock reads have their part of it.
        let by_processes = self.processes.map_or(needed, |processes| needed * processes / (processes + needed));
        // Waiting is a part of the time in statements, so the CPUs can be less busy.
        let by_cpus = self.cpus.map_or(needed, |cpus| match self.busy.min(cpus) + needed {
            work if work > cpus => needed * cpus / work,
            _ => needed,
        });
        by_processes.min(by_cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE_SESSION: Limits = Limits { cpus: Some(2.0), processes: Some(1.0), busy: 0.9, is_timed: false };

    #[test]
    fn a_small_cost_is_not_limited() {
        let needed = Range { low: 0.001, estimate: 0.002, high: 0.004 };
        let share = ONE_SESSION.share(needed);
        assert_eq!((share.estimate, share.high), (0.002, 0.004));
        assert!((share.low - 0.001).abs() < 2e-6, "{share:?}");
        assert_eq!(Limits::default().share(needed), needed);
    }

    #[test]
    fn a_session_spends_at_most_its_own_time() {
        // A second of work needs 1 to 3 s of clock reads: they are a half to three quarters of the session's time.
        let share = ONE_SESSION.share(Range { low: 1.0, estimate: 2.0, high: 3.0 });
        assert_eq!(share, Range { low: 0.5, estimate: 1.0, high: 1.0 });
        // They are timed already.
        let timed = Limits { is_timed: true, ..ONE_SESSION };
        assert_eq!(timed.share(Range { low: 0.4, estimate: 0.5, high: 0.6 }).low, 0.4);
    }

    #[test]
    fn all_sessions_spend_at_most_all_cpus() {
        let many = Limits { processes: Some(100.0), busy: 2.0, ..ONE_SESSION };
        let share = many.share(Range { low: 2.0, estimate: 3.0, high: 9.0 });
        assert_eq!(share, Range { low: 1.0, estimate: 2.0, high: 2.0 });
    }

    proptest! {
        #[test]
        fn a_share_is_within_the_limits(low in 0.0..1e6, more in 0.0..1e6, cpus in 1.0..999.0, processes in 1.0..999.0, busy in 0.0..1e3, is_timed: bool) {
            let limits = Limits { cpus: Some(cpus), processes: Some(processes), busy, is_timed };
            let share = limits.share(Range::between(low, low + more));
            prop_assert!(0.0 <= share.low && share.low <= share.estimate && share.estimate <= share.high, "{share:?}");
            prop_assert!(share.high <= cpus.min(processes) && share.low <= low, "{share:?}");
        }
    }
}
