//! The times of a statement in all modes, at one speed of the machine.
//!
//! A shared machine changes its speed, so times of different moments are never subtracted. First, the undisturbed time of
//! each mode is estimated. Their ratios are then applied to the median of the reported runs. So all figures of a report are
//! at the speed that the machine had during these runs.

use super::run_results::Runs;
use crate::report::run_mode::{BASELINE, REPORTED};
use crate::report::{LiveRuns, Range};
use crate::statistics::undisturbed::{LogEstimate, Machine, Response};
use crate::statistics::{median, paired_difference};

pub struct Times<'a> {
    runs: &'a Runs,
    machine: Machine,
    reported: LogEstimate,
    reported_ms: f64,
}

/// With a larger error (as a logarithm), only an upper limit of the time is known.
const TOO_NOISY: f64 = 0.7;

impl<'a> Times<'a> {
    /// Returns `None` if the statement is too short or too noisy to measure.
    pub fn of(runs: &'a Runs) -> Option<Times<'a>> {
        let machine = runs.machine()?;
        let reported = machine.undisturbed(&runs.probed(REPORTED), Response::TIMED)?;
        let times = Times { runs, machine, reported, reported_ms: median(&runs.reported_ms()) };
        let baseline = times.undisturbed(BASELINE)?;
        // `LiveRuns::is_too_short` compares the same median, so the report states the reason that applied here.
        let is_too_short = median(&runs.ms_of(BASELINE)) <= LiveRuns::TOO_SHORT * runs.round_trip_ms;
        (!is_too_short && baseline.error < TOO_NOISY).then_some(times)
    }

    /// Returns the time in a mode while nothing else slows the machine.
    pub fn undisturbed(&self, mode: &str) -> Option<LogEstimate> {
        let is_timed = self.runs.timed.iter().any(|(timing, _)| timing.to_string() == mode);
        let estimate = match mode {
            REPORTED => return Some(self.reported),
            _ if is_timed => self.machine.undisturbed(&self.runs.probed(mode), Response::TIMED)?,
            _ => self.machine.undisturbed(&self.runs.probed(mode), Response::PLAIN)?,
        };
        // The round trip is subtracted from each baseline run.
        let round_trip = if mode == BASELINE { self.runs.round_trip_margin_ms / estimate.ln_ms.exp() } else { 0.0 };
        Some(LogEstimate { error: estimate.error.hypot(round_trip), ..estimate })
    }

    /// Returns whether the baseline ran at the highest speed for long enough.
    pub fn saw_full_speed(&self) -> bool {
        self.machine.saw_full_speed(self.runs.ms_of(BASELINE).len())
    }

    /// Returns the time in a mode in ms.
    fn ms(&self, mode: &str) -> Option<f64> {
        Some(self.reported_ms * (self.undisturbed(mode)?.ln_ms - self.reported.ln_ms).exp())
    }

    /// Returns the overhead factor. EXPLAIN ANALYZE does not make a statement faster, so it is at least 1.
    pub fn factor(&self) -> Option<Range> {
        let baseline = self.undisturbed(BASELINE)?;
        let Range { low, estimate, high } = self.reported.ratio_to(baseline).range();
        Some(Range { low: low.max(1.0), estimate: estimate.max(1.0), high: high.max(1.0) })
    }
}

/// Returns the larger relative error of the undisturbed time and of the overhead factor. `None` if the statement is too
/// short to measure.
pub fn precision(runs: &Runs) -> Option<f64> {
    let times = Times::of(runs)?;
    let baseline = times.undisturbed(BASELINE)?;
    Some(baseline.error.max(times.reported.ratio_to(baseline).error))
}

/// Returns the time in a mode in ms, or the median of its runs if the statement is too short.
pub fn time_ms(runs: &Runs, times: Option<&Times>, mode: &str) -> f64 {
    times.and_then(|times| times.ms(mode)).unwrap_or_else(|| median(&runs.ms_of(mode)))
}

/// Returns how much longer the statement takes in one mode than in another, in ms. The true difference is not negative.
pub fn difference_ms(runs: &Runs, times: Option<&Times>, longer: &str, shorter: &str) -> Range {
    let at_one_speed = |times: &Times| {
        let (long, short) = (times.ms(longer)?, times.ms(shorter)?);
        let error = short * times.undisturbed(longer)?.ratio_to(times.undisturbed(shorter)?).error;
        let estimate = long - short;
        // If the estimate is negative, the noise is at least as large.
        let error = error.max(-2.0 * estimate);
        Some(Range { low: (estimate - error).max(0.0), estimate: estimate.max(0.0), high: estimate + error })
    };
    times.and_then(at_one_speed).unwrap_or_else(|| paired_difference(&runs.by_round(longer), &runs.by_round(shorter)))
}
