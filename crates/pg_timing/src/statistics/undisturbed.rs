//! Estimates how long a statement takes while nothing else slows the machine.
//!
//! A machine that shares its cores with others changes its speed for fractions of a second to minutes. A probe, which is a
//! fixed piece of work, runs before and after each run and shows the speed at these moments. All arithmetic uses natural
//! logarithms, so a factor of speed becomes a difference. The slowness of a probe is its logarithm minus that of
//! the fastest group of probes.
//!
//! There are two estimates. If enough runs ran at full speed, the first one is the result. Otherwise both are combined,
//! weighted by their errors:
//!
//! - **From the fast runs**: the median of the runs that ran at full speed. Their share is that of the runs between two
//!   fast probes, or that of the fastest group of runs, if it is lower. It is precise for statements that are shorter than
//!   the phases of the machine.
//! - **From the mean slowness**: the mean of all runs minus the mean slowness of all probes, times the statement's
//!   response to it (a control variate). It is better for long statements, because each of their runs contains phases of
//!   both speeds.
//!
//! `bench tournament` compares this estimator with others, on recorded runs and on simulated hosts.

use super::{Range, quantile, weighted_mean};

/// One run of a statement, and the probes before and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbedRun {
    pub ms: f64,
    pub before_ms: f64,
    pub after_ms: f64,
}

/// By how much a statement slows down if the probe slows down: the ratio of the logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response(pub f64);

impl Response {
    /// Statements without timing. Source: 116 recorded runs of three statements had 0.69 to 0.97; the shorter the
    /// statement, the higher.
    pub const PLAIN: Response = Response(0.85);
    /// Clock reads slow down less than other work. The same runs, with timing, had 0.43 to 0.72.
    pub const TIMED: Response = Response(0.65);
    /// Standard error of both values for a statement that is not known.
    const ERROR: f64 = 0.2;
}

/// An estimate of ln(time), and half of its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogEstimate {
    pub ln_ms: f64,
    pub error: f64,
    /// the part of the error that comes from the machine's slowness. It is about the same in all modes of a session, so it
    /// cancels in their ratio
    pub common: f64,
}

impl LogEstimate {
    /// Returns ln of the ratio of two times of the same session.
    pub fn ratio_to(self, other: LogEstimate) -> LogEstimate {
        let own = |estimate: LogEstimate| (estimate.error.powi(2) - estimate.common.powi(2)).max(0.0).sqrt();
        // The statements respond to the slowness differently.
        let different = self.common.max(other.common) * DIFFERENT_RESPONSE;
        let error = super::root_sum_squares([own(self), own(other), self.common - other.common, different]);
        LogEstimate { ln_ms: self.ln_ms - other.ln_ms, error, common: 0.0 }
    }

    /// Returns the same estimate for another session. Its memory layout and its caches differ.
    pub fn in_another_session(self) -> LogEstimate {
        LogEstimate { error: self.error.hypot(BETWEEN_SESSIONS), ..self }
    }

    /// Returns the estimate and its interval in ms.
    pub fn range(self) -> Range {
        Range {
            low: (self.ln_ms - self.error).exp(),
            estimate: self.ln_ms.exp(),
            high: (self.ln_ms + self.error).exp(),
        }
    }
}

/// Half of the 95% interval of the difference between two sessions. Source: 59 statements that psql ran in turns with
/// pg_timing. Half of them differed by less than 1.9%, and 93% by less than 7%. With 5%, 90% of the intervals contained psql's
/// time. One reason is page faults: some sessions return their memory to the kernel after each run. Another one is the CPU on
/// which the session runs: docs/measuring.md.
const BETWEEN_SESSIONS: f64 = 0.07;

/// How much of the common error remains in a ratio. Source: the tournament; with less, too few intervals contain the truth.
const DIFFERENT_RESPONSE: f64 = 0.4;

/// What the probes of a session say about its machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// ln of the probe's time at full speed
    fast: f64,
    /// mean slowness of all probes
    pub slowness: f64,
    /// standard deviation of the slowness
    deviation: f64,
    /// share of runs at full speed
    pub fast_share: f64,
    /// how well probes describe the run between them, 0 to 1
    persistence: f64,
}

/// With at least this persistence, the runs between two fast probes ran at full speed.
const DESCRIBED: f64 = 0.8;
/// The undisturbed time needs so many runs.
const LEAST_RUNS: usize = 3;
/// With so many runs at full speed, the other runs add nothing.
const ENOUGH_FAST_RUNS: f64 = 6.0;
/// Probes, and runs of a statement, that differ by less than this (6%) ran at the same speed. At one speed, the standard
/// deviation of the probes was 2 to 4%. Source of the limit: the tournament; with 2%, half of the probes of a quiet machine
/// seem slow, and the undisturbed time becomes 2% too short.
pub const SAME_SPEED: f64 = 0.06;

impl Machine {
    /// Describes the machine during these runs: all runs of a session, in all modes. `None` without runs.
    pub fn of(runs: &[ProbedRun]) -> Option<Machine> {
        let probes: Vec<f64> = runs.iter().flat_map(|run| [run.before_ms.ln(), run.after_ms.ln()]).collect();
        if !probes.iter().all(|ln_ms| ln_ms.is_finite()) || probes.is_empty() {
            return None;
        }
        let fast = full_speed(probes);
        let machine = Machine { fast, slowness: 0.0, deviation: 0.0, fast_share: 0.0, persistence: 0.0 };
        let slowness: Vec<f64> = runs.iter().map(|run| machine.slowness_of(run)).collect();
        let share = |is_in: &dyn Fn(&ProbedRun) -> bool| {
            runs.iter().filter(|run| is_in(run)).count() as f64 / runs.len() as f64
        };
        let is_fast = |ms: f64| ms.ln() < fast + SAME_SPEED;
        let fast_before = share(&|run| is_fast(run.before_ms));
        let both_fast = share(&|run| is_fast(run.before_ms) && is_fast(run.after_ms));
        let persistence = persistence(fast_before, both_fast);
        // Probes vary, so a machine at full speed can seem a little faster or slower than that.
        Some(Machine {
            slowness: mean(&slowness).max(0.0),
            deviation: standard_deviation(&slowness),
            // A run between a fast and a slow probe may be a fast one.
            fast_share: (fast_before + both_fast) / 2.0,
            persistence,
            ..machine
        })
    }

    /// Returns the mean slowness of the probes around a run. It is negative if these probes were faster than usual.
    fn slowness_of(&self, run: &ProbedRun) -> f64 {
        (run.before_ms.ln() + run.after_ms.ln()) / 2.0 - self.fast
    }

    /// Returns whether at least three of this many runs were at the highest speed that the probes saw. Otherwise that speed
    /// can be an accident of some probes.
    pub fn saw_full_speed(&self, runs: usize) -> bool {
        self.fast_share * runs as f64 >= LEAST_RUNS as f64
    }

    /// Returns the undisturbed time of these runs of a statement. `None` with fewer than three runs.
    pub fn undisturbed(&self, runs: &[ProbedRun], response: Response) -> Option<LogEstimate> {
        if runs.len() < LEAST_RUNS || runs.iter().any(|run| run.ms <= 0.0) {
            return None;
        }
        let (from_slowness, from_fast) = (self.from_slowness(runs, response), self.from_fast_runs(runs, response));
        // Only the probes decide. In the tournament, the error of the factor grew from 0.7 to 1.1% if the fastest group of
        // the runs was also counted.
        if self.persistence > DESCRIBED && self.fast_share * runs.len() as f64 >= ENOUGH_FAST_RUNS {
            return Some(from_fast);
        }
        let both = weighted_mean((from_slowness.ln_ms, from_slowness.error), (from_fast.ln_ms, from_fast.error));
        // Both come from the same runs. So their errors are not independent, and the mean is not more certain than the
        // better of the two.
        let error = both.1.max(from_slowness.error.min(from_fast.error));
        let better = if from_slowness.error < from_fast.error { from_slowness } else { from_fast };
        Some(LogEstimate { ln_ms: both.0, error, common: better.common.min(error) })
    }

    /// Returns the mean of the runs, minus the part that the mean slowness explains.
    pub fn from_slowness(&self, runs: &[ProbedRun], Response(response): Response) -> LogEstimate {
        let n = runs.len() as f64;
        let x: Vec<f64> = runs.iter().map(|run| self.slowness_of(run)).collect();
        let y: Vec<f64> = runs.iter().map(|run| run.ms.ln()).collect();
        let (mean_x, mean_y) = (mean(&x), mean(&y));
        // The probes describe long runs poorly. So the slope over the runs is lower than the response. If the slowness
        // hardly varies, half of the response is assumed.
        const VARIATION: f64 = 0.02;
        let squares: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
        let products: f64 = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let slope = ((products + VARIATION * response / 2.0) / (squares + VARIATION)).clamp(0.0, response);
        let residuals = x.iter().zip(&y).map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum::<f64>();
        let variance = residuals / (n - 2.0).max(1.0) / n + ((response - slope) * self.deviation).powi(2) / n;
        let common = 2.0 * Response::ERROR * self.slowness;
        LogEstimate {
            ln_ms: mean_y - response * self.slowness - slope * (mean_x - self.slowness),
            error: (2.0 * few_runs(n) * variance.sqrt() + LEAST_ERROR).hypot(common),
            common,
        }
    }

    /// Returns the median of the runs at full speed.
    pub fn from_fast_runs(&self, runs: &[ProbedRun], Response(response): Response) -> LogEstimate {
        let n = runs.len() as f64;
        let mut runs: Vec<(f64, f64)> = runs.iter().map(|run| (run.ms.ln(), self.slowness_of(run))).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let times: Vec<f64> = runs.iter().map(|(ln_ms, _)| *ln_ms).collect();
        // What slows only the memory does not slow the probes. Then the fastest group of runs is smaller.
        let share_of_runs = self.fast_share.min(fastest_group(&times).len() as f64 / n);
        // If probes do not describe the runs between them, the fastest run counts.
        let share = share_of_runs.max(1.0 / n) * self.persistence;
        let ln_ms = quantile(&times, share / 2.0);
        let scatter = ln_ms - quantile(&times, share * 0.16);
        let fastest = &runs[..runs.len().min(3.max((n * share / 2.0) as usize))];
        let slowness = mean(&fastest.iter().map(|(_, slowness)| *slowness).collect::<Vec<f64>>()).max(0.0);
        let spread = fastest[fastest.len() - 1].0 - times[0];
        let error = [
            2.5 * few_runs(n) * scatter / (n * share).max(1.0).sqrt() + LEAST_ERROR,
            // Even the fastest runs may have been slowed.
            response * slowness,
            (1.0 - self.persistence) * spread * 0.8,
        ];
        LogEstimate { ln_ms, error: super::root_sum_squares(error), common: response * slowness }
    }
}

/// Nothing is known better than 0.3%: the step of the server's times, and the scheduler.
const LEAST_ERROR: f64 = 0.003;

/// Returns by how much two standard errors have to grow if they come from so few runs. It is close to Student's t with
/// n - 1 degrees of freedom, divided by its limit.
fn few_runs(n: f64) -> f64 {
    1.0 + 1.2 / (n - 2.0).max(1.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the standard deviation: sqrt(sum((x - mean)^2) / (n - 1)). It is 0 for a single value.
fn standard_deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    (values.iter().map(|value| (value - center).powi(2)).sum::<f64>() / (values.len().max(2) - 1) as f64).sqrt()
}

/// Returns how well two probes describe the run between them, from the shares of fast probes and of pairs of fast probes.
///
/// If the phases are long, a fast probe follows a fast probe: 1. If they are short compared with the runs, both are independent:
/// 0. Then runs at full speed are rare, unless the machine is fast nearly always.
fn persistence(fast: f64, both_fast: f64) -> f64 {
    let independent = fast * fast;
    let correlation = ((both_fast - independent) / (fast - independent).max(f64::EPSILON)).clamp(0.0, 1.0);
    correlation + (1.0 - correlation) * fast.powi(3)
}

/// Returns the center of the fastest group of values, as logarithms. It is the full speed of a machine with several speeds, and
/// the only speed of a quiet machine. There is at least one value.
///
/// The tournament compared this with a group that is as wide as the noise between neighboring values. On a machine that often
/// changes its speed, the changes look like noise, and the undisturbed time becomes 20% too long.
fn full_speed(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    super::median(fastest_group(&values))
}

/// Returns the values that are of the same speed as the fastest tenth. The values are sorted, and there is at least one.
///
/// A group of less than 10% of many values is not a speed of the machine: a few probes were 10% faster than all others. Of
/// ten or fewer values, the fastest one can be a group. In the tournament, that was better than at least two values.
fn fastest_group(values: &[f64]) -> &[f64] {
    const FASTEST: f64 = 0.1;
    let limit = quantile(values, FASTEST) + SAME_SPEED;
    &values[..values.partition_point(|value| *value <= limit)]
}

#[cfg(test)]
mod tests;
