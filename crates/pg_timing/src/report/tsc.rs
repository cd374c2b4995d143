//! The CPU's counter as a clock: its rate, and whether it can be trusted.

use super::Fact;
use serde::{Deserialize, Serialize};

/// The name of this architecture's counter in reports.
pub const COUNTER: &str = if cfg!(target_arch = "aarch64") { "cntvct" } else { "rdtsc" };

/// The CPU's counter: the TSC on x86, CNTVCT on AArch64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TscReport {
    /// `rdtsc` or `cntvct`
    pub counter: String,
    /// measured rate, rounded to its uncertainty
    pub frequency_khz: Fact<f64>,
    pub uncertainty_ppm: Option<f64>,
    /// how the rate was determined
    pub source: Option<String>,
    /// reference clock of the measurement
    pub reference: Option<String>,
    /// whether the reference runs on other hardware; if not, the conversion was checked, and not the crystal
    pub independent: Option<bool>,
    /// whether it is safe to use
    pub usable: Option<bool>,
    /// reasons why it is not safe
    pub distrust: Vec<String>,
    /// whether PostgreSQL 19's `timing_clock_source = auto` uses it
    pub used_by_default: Option<bool>,
    /// source of PostgreSQL 19's rate, in the words of its pg_test_timing
    pub postgres19_source: Option<String>,
    /// rate that PostgreSQL 19 uses from CPUID; if missing, it calibrates
    pub postgres19_frequency_khz: Option<f64>,
    /// calibrated rate that pg_test_timing 19 printed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrated_khz: Option<f64>,
    /// CPUID reports an invariant counter
    pub invariant: Option<bool>,
    /// this process may read it
    pub permitted: Option<bool>,
    /// the kernel uses or offers it
    pub accepted_by_kernel: Option<bool>,
    /// rates from other sources
    pub claims: Vec<ClaimReport>,
}

/// A rate from another source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClaimReport {
    pub source: String,
    pub frequency_khz: f64,
    /// half of the source's last digit, in ppm
    pub rounding_ppm: f64,
    /// claimed rate minus measured rate, in ppm
    pub disagreement_ppm: Option<f64>,
}

impl TscReport {
    pub fn unavailable(why: &str) -> TscReport {
        TscReport { counter: COUNTER.into(), frequency_khz: Fact::unavailable(why), ..TscReport::default() }
    }
}
