//! The CPU's counter as a clock: its rate, and whether to use it.

use super::Fact;
use schemars::JsonSchema;
use serde::Serialize;

/// The name of this architecture's counter.
pub const COUNTER: &str = if cfg!(target_arch = "aarch64") { "cntvct" } else { "rdtsc" };

/// The counter: the TSC on x86, CNTVCT on AArch64.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TscReport {
    /// `rdtsc` or `cntvct`
    pub counter: &'static str,
    /// the measured rate, with no digit beyond its uncertainty
    pub frequency_khz: Fact<f64>,
    pub uncertainty_ppm: Option<f64>,
    /// how the rate was had
    pub source: Option<String>,
    /// the clock that it was measured against
    pub reference: Option<String>,
    /// whether that clock stands on other hardware; if not, the conversion was checked and not the crystal
    pub independent: Option<bool>,
    /// whether we would time with it
    pub usable: Option<bool>,
    /// why not
    pub distrust: Vec<String>,
    /// whether PostgreSQL 19's `timing_clock_source = auto` takes it
    pub used_by_default: Option<bool>,
    /// how PostgreSQL 19 comes by its rate, as its pg_test_timing words it
    pub postgres19_source: Option<String>,
    /// the rate that PostgreSQL 19 takes over from CPUID; without, it calibrates
    pub postgres19_frequency_khz: Option<f64>,
    /// a second figure that pg_test_timing 19 printed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrated_khz: Option<f64>,
    /// CPUID calls the counter invariant
    pub invariant: Option<bool>,
    /// the kernel lets this process read it
    pub permitted: Option<bool>,
    /// the kernel uses it or offers to
    pub accepted_by_kernel: Option<bool>,
    /// what others say the rate is
    pub claims: Vec<ClaimReport>,
}

/// One such claim.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClaimReport {
    pub source: String,
    pub frequency_khz: f64,
    /// half of the last digit that the source gives, in ppm
    pub rounding_ppm: f64,
    /// how far the claim is above the measured rate
    pub disagreement_ppm: Option<f64>,
}

impl TscReport {
    pub fn unavailable(why: &str) -> TscReport {
        TscReport {
            counter: COUNTER,
            frequency_khz: Fact::unavailable(why),
            uncertainty_ppm: None,
            source: None,
            reference: None,
            independent: None,
            usable: None,
            distrust: Vec::new(),
            used_by_default: None,
            postgres19_source: None,
            postgres19_frequency_khz: None,
            calibrated_khz: None,
            invariant: None,
            permitted: None,
            accepted_by_kernel: None,
            claims: Vec::new(),
        }
    }
}
