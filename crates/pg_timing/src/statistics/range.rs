//! An estimate with its interval. It is a part of the JSON contract, too.

use serde::{Deserialize, Serialize};
use std::ops::Add;

/// An estimate with its interval. In a live run it is a 95% interval: in 95 of 100 cases, the true value is between
/// `low` and `high`. For a captured plan, the interval contained the true value for 92 of 100 test statements. Only
/// `calls` and `clock_share` of a captured plan are bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Range {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
}

impl Range {
    /// Returns two bounds, with the middle as the estimate.
    pub fn between(low: f64, high: f64) -> Range {
        Range { low, estimate: (low + high) / 2.0, high }
    }

    /// Returns a value without an error.
    pub fn exactly(value: f64) -> Range {
        Range { low: value, estimate: value, high: value }
    }

    /// Returns the distance between the estimate and the farther bound.
    pub fn half_width(self) -> f64 {
        (self.high - self.estimate).max(self.estimate - self.low)
    }

    /// Returns the range in another unit.
    pub fn times(self, factor: f64) -> Range {
        Range { low: self.low * factor, estimate: self.estimate * factor, high: self.high * factor }
    }
}

impl Add for Range {
    type Output = Range;

    fn add(self, other: Range) -> Range {
        Range { low: self.low + other.low, estimate: self.estimate + other.estimate, high: self.high + other.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range { low: 1.0, estimate: 4.0, high: 6.0 };

    #[test]
    fn the_estimate_between_two_bounds_is_their_middle() {
        assert_eq!(Range::between(2.0, 8.0), Range { low: 2.0, estimate: 5.0, high: 8.0 });
    }

    #[test]
    fn the_half_width_is_the_distance_to_the_farther_bound() {
        assert_eq!([RANGE.half_width(), Range { high: 9.0, ..RANGE }.half_width()], [3.0, 5.0]);
    }

    #[test]
    fn a_range_is_converted_and_added_bound_by_bound() {
        assert_eq!(RANGE.times(0.5), Range { low: 0.5, estimate: 2.0, high: 3.0 });
        assert_eq!(
            RANGE + Range { low: 10.0, estimate: 20.0, high: 30.0 },
            Range { low: 11.0, estimate: 24.0, high: 36.0 }
        );
    }
}
