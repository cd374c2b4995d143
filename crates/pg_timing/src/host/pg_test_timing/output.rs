//! What an output of pg_test_timing contains.

/// One run of pg_test_timing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// measuring time of each clock, from `Testing timing overhead for N seconds`
    pub duration_s: Option<u64>,
    /// the clocks in the printed order, each with a loop time or a table
    pub clocks: Vec<ClockTable>,
    /// the lines of PostgreSQL 19 about the TSC
    pub tsc: Option<TscLines>,
    /// whether the clock went back; a cut text can show that without the amount
    pub went_back: bool,
    /// The amount in ns, negative as printed. A printed `ms` means microseconds, or nanoseconds in an output that
    /// counts in nanoseconds, because no version ever measured milliseconds.
    pub warp_ns: Option<i64>,
    /// whether a part of the output is missing or damaged
    ///
    /// The `...` that PostgreSQL 19 prints before the longest duration does not count. Missing rows at the end of a
    /// classic table are noticed if their share is at least the rounding of the printed ones.
    pub cut_off: bool,
    /// where the output begins in its text, in bytes
    pub position: usize,
}

/// The clock of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockKind {
    /// `clock_gettime`, which every version reads
    System,
    /// 19's `Clock source: RDTSCP`
    Rdtscp,
    /// 19's `Fast clock source: RDTSC`
    Rdtsc,
    /// an unknown clock, with its printed name
    Other(String),
}

/// The printed results of one clock.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockTable {
    pub kind: ClockKind,
    /// elapsed time divided by the number of readings; includes the loop's own work
    pub loop_ns: Option<f64>,
    /// The unit of the differences. Up to version 18 it is 1000: each reading was cut to whole microseconds before the
    /// subtraction. If there is no table, it is 1.
    pub unit_ns: f64,
    /// the printed shares add up to 100%, so no row is missing
    pub whole: bool,
    /// the histogram, shortest durations first
    pub bins: Vec<Bin>,
    /// PostgreSQL 19's exact durations, shortest first
    pub observed: Vec<Observed>,
}

/// One row of the histogram: `count` durations d with `from_ns <= d < below_ns`.
///
/// The rows of a table in microseconds overlap, because both readings were cut to whole microseconds before the
/// subtraction. A difference of 1 us is a duration of more than 0 and less than 2 us.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// lower bound, inclusive
    pub from_ns: f64,
    /// upper bound, exclusive
    pub below_ns: f64,
    /// from the column `count`, because the percentages are rounded
    pub count: u64,
}

impl ClockTable {
    /// Returns the smallest and the largest difference that a row counts.
    pub fn differences_ns(&self, bin: &Bin) -> (f64, f64) {
        let smallest = if bin.below_ns > self.unit_ns { bin.below_ns / 2.0 } else { 0.0 };
        (smallest, bin.below_ns - self.unit_ns)
    }
}

/// One row of PostgreSQL 19's exact durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    pub ns: u64,
    pub count: u64,
}

/// The lines of PostgreSQL 19 about the TSC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TscLines {
    /// `TSC frequency source: ...`, such as `x86, hypervisor, calibration`
    pub source: Option<String>,
    /// `TSC frequency in use: N kHz`
    pub in_use_khz: Option<u64>,
    /// `TSC frequency from calibration: N kHz`
    pub calibrated_khz: Option<u64>,
    /// `TSC calibration did not converge`
    pub not_converged: bool,
    /// `TSC clock source is not usable`
    pub not_usable: bool,
    /// `TSC clock source will (not) be used by default`
    pub used_by_default: Option<bool>,
}
