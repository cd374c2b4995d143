//! Drift between clocks during a run.

use serde::{Deserialize, Serialize};

/// A quartz crystal that warms up changes its rate by about 1 ppm in minutes. A counter whose rate changes by more than
/// this, beyond the errors of the samples, has no constant rate.
pub const QUARTZ_PPM: f64 = 5.0;

/// The drift of one clock against a reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Drift {
    /// name of the clock
    pub clock: String,
    /// name of the reference clock
    pub reference: String,
    /// relative rate in ppm, without steps
    pub rate_ppm: f64,
    /// maximum error of `rate_ppm`
    pub uncertainty_ppm: f64,
    /// difference between the rates of the two halves of the run, minus their errors
    pub bend_ppm: f64,
    pub steps: Vec<DriftStep>,
    pub over_seconds: f64,
}

/// A sudden change, faster than NTP can adjust a clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriftStep {
    /// seconds since the first sample
    pub at_seconds: f64,
    /// positive: the clock moved ahead
    pub by_ns: f64,
    pub error_ns: f64,
}

impl Drift {
    /// Returns whether the clock ran at one rate, without jumps.
    pub fn has_constant_rate(&self) -> bool {
        self.steps.is_empty() && self.bend_ppm <= QUARTZ_PPM
    }
}
