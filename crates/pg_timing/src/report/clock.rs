//! The figures of one clock.

use serde::{Deserialize, Serialize};

/// The name of PostgreSQL's clock, on every platform.
pub const SYSTEM: &str = read_loops::SYSTEM;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    #[serde(rename = "through", skip_serializing_if = "Option::is_none")]
    pub access_path: Option<AccessPath>,
    /// read cost: median over buffers of (last - first) / (n - 1)
    pub read_ns: Option<f64>,
    /// half the interquartile range of the buffers' read costs
    pub read_spread_ns: Option<f64>,
    /// loop cost as in pg_test_timing: elapsed time of a loop that reads and counts, divided by the reads
    pub loop_ns: Option<f64>,
    /// smallest step of the value
    pub granularity_ns: Option<f64>,
    /// time for which the value did not change, if it never changed
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// Interruptions: differences far above the rest. They do not count in the read cost.
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
    pub count: u64,
}

impl ClockReport {
    /// Returns a clock without figures, for the reason `why`.
    pub fn unavailable(name: &str, why: impl Into<String>) -> ClockReport {
        ClockReport { name: name.into(), unavailable: Some(why.into()), ..ClockReport::default() }
    }

    /// Returns the read cost. If only pg_test_timing's figure is known, returns that.
    pub fn cost_ns(&self) -> Option<f64> {
        self.read_ns.or(self.loop_ns)
    }

    /// Describes a histogram without percentiles: its fullest row and its lower bound.
    pub fn distribution(&self) -> Option<String> {
        use crate::human::duration;
        if self.percentiles.is_some() || self.reads == 0 {
            return None;
        }
        let from = |nth: usize| nth.checked_sub(1).map_or(0.0, |before| self.histogram[before].le_ns as f64 + 1.0);
        let first = self.histogram.iter().position(|row| row.count > 0)?;
        let (fullest, row) = self.histogram.iter().enumerate().max_by_key(|(_, row)| row.count)?;
        let share = row.count as f64 / self.reads as f64 * 100.0;
        let below = duration(row.le_ns as f64 + 1.0);
        let most = match fullest {
            0 => format!("{share:.1}% of the reads took less than {below}"),
            _ => format!("{share:.1}% of the reads took {} to {below}", duration(from(fullest))),
        };
        Some(match first {
            0 => most,
            _ => format!("{most}; none took less than {}", duration(from(first))),
        })
    }
}

/// Returns the maximum overhead of EXPLAIN ANALYZE per row and plan node: it reads the clock when it enters a node and
/// when it leaves it.
pub fn overhead_per_node_ns(read_ns: f64) -> f64 {
    2.0 * read_ns
}
