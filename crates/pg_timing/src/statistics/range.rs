//! An estimate with its interval. It is a part of the JSON contract, too.

use serde::{Deserialize, Serialize};
use std::ops::Add;

/// An estimate with its 95% interval: in 95 of 100 cases, the true value is between `low` and `high`. The ranges in
/// `capture` are bounds.
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
