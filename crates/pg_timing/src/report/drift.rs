//! How the clocks ran against each other over the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One clock against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// the clock that was looked at
    pub clock: String,
    /// the clock that it was held against
    pub reference: String,
    /// how much faster it ran, in ppm, steps left out
    pub rate_ppm: f64,
    /// `rate_ppm` is off by at most this
    pub uncertainty_ppm: f64,
    /// how far the rates of the two halves of the run are apart, beyond what both may be off
    pub bend_ppm: f64,
    pub steps: Vec<DriftStep>,
    pub over_seconds: f64,
}

/// A sudden change that no slewing explains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriftStep {
    /// since the first look
    pub at_seconds: f64,
    /// ahead, or behind if negative
    pub by_ns: f64,
    pub error_ns: f64,
}
