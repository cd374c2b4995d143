//! A figure with its noise, and the difference between two of them.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A figure and the bounds within which noise can move it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measure {
    /// missing if only the bounds are known
    pub estimate: Option<f64>,
    pub low: f64,
    pub high: f64,
}

/// A century in ns. Larger figures are damaged.
const MAX: f64 = 3.2e18;

impl Measure {
    /// Returns a figure with a symmetric noise. `None` for an impossible figure.
    pub fn new(estimate: f64, noise: f64) -> Option<Measure> {
        Measure::within(Some(estimate), estimate - noise, estimate + noise)
    }

    /// Returns a figure with these bounds. `None` if they are impossible.
    pub fn within(estimate: Option<f64>, low: f64, high: f64) -> Option<Measure> {
        let possible = |figure: f64| (-MAX..=MAX).contains(&figure);
        let ordered = low <= high && estimate.is_none_or(|estimate| (low..=high).contains(&estimate));
        (possible(low) && possible(high) && ordered).then_some(Measure { estimate, low, high })
    }

    /// Returns whether noise cannot explain the difference: the bounds do not overlap.
    pub fn differs_from(&self, other: &Measure) -> bool {
        self.low > other.high || other.low > self.high
    }

    /// Returns the difference that noise can explain: the parts of both noises between the two figures. The order of the two
    /// makes no difference.
    pub fn noise_against(&self, other: &Measure) -> Option<f64> {
        let (a, b) = self.estimate.zip(other.estimate)?;
        let (up, down) = ((self.high - a) + (b - other.low), (a - self.low) + (other.high - b));
        Some(match a.total_cmp(&b) {
            Ordering::Less => up,
            Ordering::Equal => up.max(down),
            Ordering::Greater => down,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_difference_counts_if_it_exceeds_both_noises() {
        let at = |estimate, noise| Measure::new(estimate, noise).unwrap();
        assert!(!at(20.0, 1.0).differs_from(&at(22.0, 1.0)));
        assert!(at(20.0, 1.0).differs_from(&at(22.1, 1.0)));
        let bounds = Measure::within(None, 0.0, 2000.0).unwrap();
        assert!(!bounds.differs_from(&at(10.0, 0.0)) && bounds.differs_from(&at(3000.0, 1.0)));
        assert_eq!(bounds.noise_against(&at(10.0, 0.0)), None);
    }

    #[test]
    fn impossible_figures_are_missing() {
        for (estimate, noise) in [(f64::NAN, 1.0), (1e308, 1e308), (1.0, -1.0), (1.0, f64::INFINITY)] {
            assert_eq!(Measure::new(estimate, noise), None, "{estimate} {noise}");
        }
    }

    proptest! {
        /// `differs_from` and `noise_against` are the same decision, and the order does not matter.
        #[test]
        fn the_noise_decides(a in 0.0..1e6, b in 0.0..1e6, noise in 0.0..1e5, other in 0.0..1e5) {
            let (x, y) = (Measure::new(a, noise).unwrap(), Measure::new(b, other).unwrap());
            let limit = x.noise_against(&y).unwrap();
            prop_assert!((limit - noise - other).abs() < 1e-6);
            prop_assert_eq!(x.differs_from(&y), y.differs_from(&x));
            if ((a - b).abs() - limit).abs() > 1e-6 {
                prop_assert_eq!(x.differs_from(&y), (a - b).abs() > limit);
            }
        }
    }
}
