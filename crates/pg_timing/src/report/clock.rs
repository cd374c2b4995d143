//! The figures of one clock, the drift between two, and the CPU's counter as a clock.

use super::Fact;
use super::call_cost::overhead_per_node_ns;
use serde::{Deserialize, Serialize};

/// The name of PostgreSQL's clock, on every platform.
pub const SYSTEM: &str = read_loops::SYSTEM;

/// The only clock that may go back, because administrators and NTP set it.
pub const SETTABLE_CLOCK: &str = "realtime";

/// How a program reads a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AccessPath {
    /// a CPU instruction
    Instruction,
    /// the vDSO: kernel code inside the program
    Vdso,
    /// a system call
    Syscall,
    /// slower than a system call: something intercepts it
    Interposed,
}

/// One clock. It may have no figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ClockReport {
    pub name: String,
    /// why there are no figures
    pub unavailable: Option<String>,
    #[serde(rename = "through")]
    pub access_path: Option<AccessPath>,
    /// read cost: median over buffers of (last - first) / (n - 1)
    pub read_ns: Option<f64>,
    /// half the interquartile range of the buffers' read costs
    pub read_spread_ns: Option<f64>,
    /// what timing adds to a short function call: two reads, with work before, between and after them; median over
    /// blocks of calls
    pub timed_call_ns: Option<f64>,
    /// loop cost as in pg_test_timing: elapsed time of a loop that reads and counts, divided by the reads
    pub loop_ns: Option<f64>,
    /// Read cost without disturbance by other work on the machine: the 5th percentile of the buffers' read costs. In the
    /// output of pg_test_timing: the loop cost without interruptions, if these were heavy
    pub undisturbed_ns: Option<f64>,
    /// smallest step of the value
    pub granularity_ns: Option<f64>,
    /// why the step is unknown, if the value moved
    pub granularity_unavailable: Option<String>,
    /// lower and upper bound of the step, if only these are known
    pub granularity_between_ns: Option<(f64, f64)>,
    /// time for which the value did not change, if it never changed
    pub stood_still_ns: Option<f64>,
    /// readings that were compared with the previous one
    pub reads: u64,
    /// readings below the previous one, on the same CPU
    pub backward_steps: u64,
    /// largest backward step
    pub largest_backward_ns: f64,
    pub percentiles: Option<Percentiles>,
    pub gaps: Option<Gaps>,
    /// differences between consecutive readings, in the power-of-two rows of pg_test_timing
    pub histogram: Vec<Bin>,
}

/// Percentiles of the differences between consecutive readings, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentiles {
    pub min_ns: f64,
    pub p50_ns: f64,
    pub p90_ns: f64,
    pub p99_ns: f64,
    pub p99_9_ns: f64,
    pub p99_99_ns: f64,
    pub p99_999_ns: f64,
    pub max_ns: f64,
}

impl Percentiles {
    /// Returns the percentiles, given a function from a share of the differences to the longest one of them in ns.
    pub fn of(at: impl Fn(f64) -> Option<f64>) -> Option<Percentiles> {
        let shares = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1.0];
        let figures: Vec<f64> = shares.into_iter().map(at).collect::<Option<_>>()?;
        let [min_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, p99_999_ns, max_ns] = figures[..] else {
            return None;
        };
        Some(Percentiles { min_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, p99_999_ns, max_ns })
    }
}

/// If interruptions take a larger share of the time, the measurement is disturbed.
///
/// On an idle machine, interruptions take well under 1% of the time. The times of runs on a quiet machine differ by 3%
/// anyway (`statistics::RUN_TO_RUN_VARIATION`). A loss of 10% is clearly more, so a reader of a plan would see it.
pub const INTERRUPTED_SHARE: f64 = 0.10;

/// PostgreSQL's documentation of pg_test_timing calls a loop below 100 ns good.
pub const GOOD_READ_NS: f64 = 100.0;
/// Above this, most of a node's time is its two reads: an executor node returns a row in 20 to 100 ns. With 790 ns per
/// read, EXPLAIN ANALYZE of a count(*) took 96 times as long as the query.
pub const BAD_READ_NS: f64 = 500.0;

/// EXPLAIN prints microseconds. So a coarser step, or a larger offset between two CPUs, makes visible digits wrong.
pub const VISIBLE_NS: f64 = 1_000.0;

/// Interruptions: differences far above the rest. They do not count in the read cost. From the output of pg_test_timing,
/// the times are lower bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gaps {
    /// a difference above this is a gap: 16 times the median, and at least 1 us
    pub threshold_ns: f64,
    pub count: u64,
    pub total_ns: f64,
    pub largest_ns: f64,
    /// `total_ns` as a fraction of this clock's measuring time
    pub share: f64,
}

/// One row of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bin {
    /// upper bound of the row in whole ns: 0, 1, 3, 7, 15 ...
    pub le_ns: u64,
    /// Lower bound in whole ns. If it is missing, the row starts after the previous one. Up to PostgreSQL 18, rows overlap:
    /// pg_test_timing cuts each reading to microseconds, so a difference can be up to 1 us longer than the duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ge_ns: Option<u64>,
    pub count: u64,
}

impl ClockReport {
    /// Returns a clock without figures, for the reason `why`.
    pub fn unavailable(name: &str, why: impl Into<String>) -> ClockReport {
        ClockReport { name: name.into(), unavailable: Some(why.into()), ..ClockReport::default() }
    }

    /// Returns the sum of the differences between consecutive readings, in ns: the time for which the clock was read. `None`
    /// if interruptions could not be told from reads.
    pub fn measured_ns(&self) -> Option<f64> {
        let gaps = self.gaps?;
        if gaps.share > 0.0 { Some(gaps.total_ns / gaps.share) } else { Some(self.read_ns? * self.reads as f64) }
    }

    /// Returns the read cost. If only pg_test_timing's figure is known, returns that, without interruptions if possible.
    pub fn cost_ns(&self) -> Option<f64> {
        self.read_ns.or(self.undisturbed_ns).or(self.loop_ns)
    }

    /// Returns what timing adds to a call, if the figure is possible: at least one read, and at most six. Two reads add 1.9 to
    /// 2.2 times the read cost of the counter and of the system clock. A clock that is only a value in memory adds nothing.
    pub fn plausible_timed_call_ns(&self) -> Option<f64> {
        let cost = self.cost_ns()?;
        self.timed_call_ns.filter(|ns| (cost..=6.0 * cost).contains(ns))
    }

    /// Returns the approximate upper bound of the overhead of EXPLAIN ANALYZE per row and plan node with this clock.
    pub fn overhead_per_node_ns(&self) -> Option<f64> {
        Some(overhead_per_node_ns(self.cost_ns()?, self.plausible_timed_call_ns()))
    }

    /// Describes a histogram without percentiles, by the row with most readings.
    pub fn distribution(&self) -> Option<String> {
        if self.percentiles.is_some() || self.reads == 0 {
            return None;
        }
        let (fullest, row) = self.histogram.iter().enumerate().max_by_key(|(_, row)| row.count)?;
        let count = self.histogram[..=fullest].iter().map(|row| row.count).fold(0, u64::saturating_add);
        let share = match count as f64 / self.reads as f64 * 100.0 {
            share if share >= 99.95 && count < self.reads => "more than 99.9%".to_string(),
            share => format!("{share:.1}%"),
        };
        let below = crate::human::duration(row.le_ns as f64 + 1.0);
        Some(format!("the clock moved by less than {below} between {share} of the readings"))
    }
}

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

/// The name of this architecture's counter in reports.
pub const COUNTER: &str = if cfg!(target_arch = "aarch64") { "cntvct" } else { "rdtsc" };

/// The CPU's counter: the TSC on x86, CNTVCT on AArch64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_timed_call_is_ignored() {
        let clock = |timed_call_ns| ClockReport { read_ns: Some(20.0), timed_call_ns, ..ClockReport::default() };
        let plausible = |ns| clock(Some(ns)).plausible_timed_call_ns();
        assert_eq!([20.0, 42.0, 120.0].map(plausible), [20.0, 42.0, 120.0].map(Some));
        assert_eq!([0.0, 19.0, 121.0, 3e18, f64::NAN].map(plausible), [None; 5]);
        assert_eq!(clock(Some(3e18)).overhead_per_node_ns(), clock(None).overhead_per_node_ns());
    }
}
