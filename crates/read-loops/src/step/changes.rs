//! Finds the step of a coarse clock from its changes, some of which fell into interruptions.

use timing_clock::Granularity;

/// A change of the value is a single step if the time between the two readings is at most this share of the change: k
/// steps need more than k - 1 steps of time.
const MAX_TIME_SHARE: f64 = 0.25;

/// NTP adjusts a clock by at most 500 ppm, so its steps differ by at most that.
const SAME_STEP: f64 = 1.001;

/// The changes of a coarse clock between neighboring readings.
pub struct Changes {
    /// ticks of the change, and ticks of the outside clock between the readings
    pub changes: Vec<(u64, i64)>,
    /// ticks of the coarse clock per tick of the outside clock, during the same time
    pub scale: f64,
}

impl Changes {
    /// Returns the changes that are a single step.
    fn steps(&self) -> impl Iterator<Item = f64> {
        let is_one_step = |ticks: u64, between: i64| between as f64 * self.scale <= MAX_TIME_SHARE * ticks as f64;
        let valid = self.scale > 0.0 && self.scale.is_finite();
        let single = self.changes.iter().filter(move |(ticks, between)| valid && is_one_step(*ticks, *between));
        single.map(|(ticks, _)| *ticks as f64)
    }

    /// Returns the step: the mean of the smallest steps.
    pub fn step(&self) -> Granularity {
        if self.changes.is_empty() {
            return Granularity::NeverMoved;
        }
        let Some(smallest) = self.steps().reduce(f64::min) else { return Granularity::Unknown };
        let same: Vec<f64> = self.steps().filter(|step| *step <= SAME_STEP * smallest).collect();
        Granularity::Step(same.iter().sum::<f64>() / same.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_as_a_step_if_little_time_passed() {
        let step = |changes: &[(u64, i64)], scale| Changes { changes: changes.into(), scale }.step();
        // 125 ticks of the outside clock are 250 ticks of this clock: a quarter of the change.
        assert_eq!(step(&[(1000, 125)], 2.0), Granularity::Step(1000.0));
        assert_eq!(step(&[(1000, 126)], 2.0), Granularity::Unknown);
        // The outside clock says nothing.
        assert_eq!(step(&[(1000, 0)], 0.0), Granularity::Unknown);
        assert_eq!(step(&[(1000, 1)], f64::INFINITY), Granularity::Unknown);
    }

    #[test]
    fn steps_that_ntp_adjusts_are_averaged() {
        let changes = [(1_000_000, 0), (1_000_900, 0), (1_001_100, 0), (2_000_000, 0)].into();
        assert_eq!(Changes { changes, scale: 1.0 }.step(), Granularity::Step(1_000_450.0));
    }
}
