//! The method of pairs: how many times longer a statement takes in one mode than in another.
//!
//! A shared machine changes its speed, so times of different moments are never compared. Each round has a run between two
//! baseline runs. The ratio of neighbors hardly depends on the machine's speed: if it changed within a round, that round is an
//! outlier, and the median ignores it. So the method needs no model of the machine. A statement that waits has a ratio of 1
//! without a special rule.
//!
//! # Looks
//! The runs end as soon as the interval is narrow enough. A rule that checks it after each round would stop too early: some
//! interval is narrow and wrong by chance. So there are at most five looks, and they share the error of 5% (Bonferroni's
//! inequality): each early look has 1%, and the last one has the rest. The printed interval contains this. The first look, after
//! three rounds, is for statements whose rounds agree nearly exactly, like one that sleeps.

use super::{ERROR, Range, median_interval};

/// Numbers of rounds after which the interval is checked. The runs may go on after the last one, until the time is up.
pub const LOOKS: [usize; 4] = [3, 8, 16, 24];
/// The error of each early look.
const EARLY: f64 = 0.01;
/// The ratio itself depends a little on what else the machine does, and a short session sees only one state of it. With this
/// margin, at least 92% of the intervals contain the truth in each recording in `bench/recordings`, and without it 60% in the
/// worst one (`make tournament`).
const STATE_OF_MACHINE: f64 = 0.01;
/// Relative half-widths at which the runs end. Three rounds are a weak base, so they have to agree better.
const ENOUGH: f64 = 0.03;
const ENOUGH_FOR_THREE: f64 = 0.02;

/// A run and its two neighbors in another mode, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    pub before_ms: f64,
    pub run_ms: f64,
    pub after_ms: f64,
}

impl Round {
    /// Returns ln of the run's time minus the mean ln of its neighbors' times.
    fn ln_ratio(&self) -> f64 {
        // A time of 0 is below the resolution of the clock.
        let ln = |ms: f64| ms.max(1e-6).ln();
        ln(self.run_ms) - (ln(self.before_ms) + ln(self.after_ms)) / 2.0
    }
}

/// How many times longer the runs take than their neighbors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Ratio {
    /// Returns the median ratio of these rounds with its interval. `is_last`: no look follows.
    pub fn of(rounds: &[Round], is_last: bool) -> Ratio {
        let logarithms: Vec<f64> = rounds.iter().map(Round::ln_ratio).collect();
        let earlier = LOOKS.iter().filter(|look| **look < rounds.len()).count();
        let error = if is_last { ERROR - EARLY * earlier as f64 } else { EARLY };
        let Range { low, estimate, high } = median_interval(&logarithms, error);
        let (low, high) = ((low - STATE_OF_MACHINE).exp(), (high + STATE_OF_MACHINE).exp());
        Ratio { low, estimate: estimate.exp(), high, rounds: rounds.len() }
    }
}

/// Returns whether an early look ends the runs: this number of rounds has a look, and the interval is narrow enough. Its half-width
/// is relative.
pub fn is_enough(rounds: usize, half_width: f64) -> bool {
    LOOKS.contains(&rounds) && half_width <= if rounds == LOOKS[0] { ENOUGH_FOR_THREE } else { ENOUGH }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(ratios: &[f64]) -> Vec<Round> {
        ratios.iter().map(|ratio| Round { before_ms: 8.0, run_ms: 4.0 * ratio, after_ms: 2.0 }).collect()
    }

    #[test]
    fn a_ratio_is_the_median_over_the_rounds() {
        let Ratio { low, estimate, high, rounds } = Ratio::of(&rounds(&[1.5, 9.0, 1.5, 1.4, 1.6]), true);
        assert!((estimate - 1.5).abs() < 1e-9 && low < 1.4 && high > 9.0 && rounds == 5, "{low} {estimate} {high}");
    }

    /// Four early looks have 1% each, and the last one has the rest. For 8 rounds and 1%: I = (0.01 - 0.0078) / 0.0625, and the weight
    /// is 7 I / (1 + 6 I) = 0.2025.
    #[test]
    fn the_looks_share_the_error() {
        let half_width = |n: usize, is_last| {
            let ratios: Vec<f64> = (0..n).map(|nth| (nth as f64).exp()).collect();
            let Ratio { low, high, .. } = Ratio::of(&rounds(&ratios), is_last);
            (high / low).ln() / 2.0 - STATE_OF_MACHINE
        };
        assert!((half_width(8, false) - (3.5 - 0.2025)).abs() < 1e-4, "{}", half_width(8, false));
        assert!(half_width(8, true) < half_width(8, false));
        assert!((half_width(3, true) - 2.7).abs() < 1e-9 && (half_width(3, false) - 6.0).abs() < 1e-9);
        assert!(
            (half_width(24, true) - median_interval(&(0..24).map(f64::from).collect::<Vec<_>>(), 0.02).half_width())
                .abs()
                < 1e-9
        );
    }

    #[test]
    fn rounds_that_agree_end_the_runs_at_a_look() {
        assert!(is_enough(3, 0.015) && !is_enough(3, 0.025) && is_enough(8, 0.025));
        assert!(!is_enough(4, 0.0) && !is_enough(2, 0.0) && !is_enough(8, 0.04));
    }
}
