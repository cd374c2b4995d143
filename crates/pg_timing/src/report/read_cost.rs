//! The read cost of a server's clock. The serde names are the JSON contract.

use serde::{Deserialize, Serialize};

/// The cost of one read of the server's clock. If `ns` is missing, only the bounds are known. If the bounds are missing, too,
/// nothing is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadCost {
    pub ns: Option<f64>,
    pub low_ns: Option<f64>,
    pub high_ns: Option<f64>,
    /// `system`, `rdtscp`, `rdtsc` or `tsc`
    pub clock: String,
    /// how it was measured, or why it was not
    pub how: String,
}
