//! What a series of samples says: the rate, and the steps.

use super::Sample;
use timing_clock::{Nanos, Ppm};

/// A sudden change of the offset that no change of rate explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// ns since the first sample
    pub at: f64,
    /// change of the offset in ns; positive if the clock jumped ahead
    pub by: f64,
    /// bound on the error of `by`, in ns
    pub error: f64,
}

/// The drift that a series of samples shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// rate of the clock relative to the reference, without steps
    pub rate: Ppm,
    pub uncertainty: Ppm,
    /// difference between the rates of the first and the second half, beyond the errors of both
    pub bend: Ppm,
    pub steps: Vec<Step>,
    pub over: Nanos,
}

/// The kernel lets NTP slew a clock by 500 ppm. This is twice as much, because a counter's rate can change, too. A
/// faster change of the offset is a step.
pub const MAX_SLEW: f64 = 1_000e-6;

/// Returns the drift. `None` with fewer than three samples, because two cannot separate a step from a slew.
pub fn trend(samples: &[Sample]) -> Option<Trend> {
    trend_beyond(MAX_SLEW, samples)
}

/// Returns the drift, like [`trend`]. A change of the offset by more than `slew` (a fraction) is a step.
pub fn trend_beyond(slew: f64, samples: &[Sample]) -> Option<Trend> {
    let (first, last) = (samples.first()?, samples.last()?);
    if samples.len() < 3 || last.at <= first.at {
        return None;
    }
    let (rate, uncertainty) = rate_without_steps(slew, samples);
    let middle = samples.len() / 2;
    let halves = (rate_without_steps(slew, &samples[..=middle]), rate_without_steps(slew, &samples[middle..]));
    let bend = (halves.0.0 - halves.1.0).abs() - halves.0.1 - halves.1.1;
    let step = |pair: &[Sample]| {
        let interval = pair[1].at - pair[0].at;
        Step {
            at: pair[1].at,
            by: pair[1].offset - pair[0].offset - rate * interval,
            error: pair[0].error + pair[1].error + uncertainty * interval,
        }
    };
    Some(Trend {
        rate: Ppm(rate * 1e6),
        uncertainty: Ppm(uncertainty * 1e6),
        bend: Ppm((bend * 1e6).max(0.0)),
        steps: samples.windows(2).filter(|pair| moves_beyond(slew, pair)).map(step).collect(),
        over: Nanos(last.at - first.at),
    })
}

/// Returns the rate and its error, as fractions, from the periods between the steps. An interval with a step contains
/// an unknown slew, so it is left out. If no interval remains, the rate is only known to be below `slew`.
fn rate_without_steps(slew: f64, samples: &[Sample]) -> (f64, f64) {
    let (mut moved, mut span, mut error) = (0.0, 0.0, 0.0);
    for period in samples.chunk_by(|a, b| !moves_beyond(slew, &[*a, *b])) {
        if let [from, .., to] = period {
            moved += to.offset - from.offset;
            span += to.at - from.at;
            error += from.error + to.error;
        }
    }
    if span > 0.0 { (moved / span, error / span) } else { (0.0, slew) }
}

/// Returns whether the offset changed by more than `rate` (a fraction) and the errors of both samples can explain.
pub(super) fn moves_beyond(rate: f64, pair: &[Sample]) -> bool {
    let moved = (pair[1].offset - pair[0].offset).abs();
    moved > rate * (pair[1].at - pair[0].at) + pair[0].error + pair[1].error
}
