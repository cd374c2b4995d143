//! Estimates how long a statement takes while nothing else slows the machine.
//!
//! A machine that shares its cores with others changes its speed for fractions of a second to minutes. A probe, which is a
//! fixed piece of work, runs before and after each run and shows the speed at these moments. All arithmetic uses natural
//! logarithms, so a factor of speed becomes a difference. The slowness of a probe is its logarithm minus that of the
//! fastest probes.
//!
//! Two estimates are combined, weighted by their errors:
//!
//! - **From the fast runs**: the median of the runs that ran at full speed. Their share is that of the runs between two
//!   fast probes. It is precise for statements that are shorter than the phases of the machine.
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

    /// Returns the estimate and its interval in ms.
    pub fn range(self) -> Range {
        Range {
            low: (self.ln_ms - self.error).exp(),
            estimate: self.ln_ms.exp(),
            high: (self.ln_ms + self.error).exp(),
        }
    }
}

/// How much of the common error remains in a ratio. Source: the tournament; with less, too few intervals contain the truth.
const DIFFERENT_RESPONSE: f64 = 0.4;

/// What the probes of a session say about its machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// ln of the time of the fastest probes
    fast: f64,
    /// mean slowness of all probes
    pub slowness: f64,
    /// standard deviation of the slowness
    deviation: f64,
    /// a probe with less slowness than this ran at full speed
    limit: f64,
    /// share of runs between two fast probes
    pub fast_share: f64,
    /// correlation of the probes before and after a run, 0 to 1: how well probes describe the run between them
    persistence: f64,
}

/// Probes that differ by less than this (5%) ran at the same speed.
const SAME_SPEED: f64 = 0.05;
/// One of 20 probes is faster than the fast speed, because of the noise.
const FASTEST: f64 = 0.05;

impl Machine {
    /// Describes the machine during these runs: all runs of a session, in all modes. `None` without runs.
    pub fn of(runs: &[ProbedRun]) -> Option<Machine> {
        let mut probes: Vec<f64> = runs.iter().flat_map(|run| [run.before_ms.ln(), run.after_ms.ln()]).collect();
        probes.sort_by(f64::total_cmp);
        if !probes.iter().all(|ln_ms| ln_ms.is_finite()) || probes.is_empty() {
            return None;
        }
        let fast = quantile(&probes, FASTEST);
        let machine = Machine { fast, slowness: 0.0, deviation: 0.0, limit: 0.0, fast_share: 0.0, persistence: 0.0 };
        let mut slowness: Vec<f64> = runs.iter().map(|run| machine.slowness_of(run)).collect();
        let (mean, deviation) = (mean(&slowness), deviation(&slowness));
        slowness.sort_by(f64::total_cmp);
        let limit = SAME_SPEED.max(quantile(&slowness, 0.9) / 4.0);
        let is_fast = |ms: f64| ms.ln() - fast < limit;
        let fast_runs = runs.iter().filter(|run| is_fast(run.before_ms) && is_fast(run.after_ms)).count();
        let fast_share = fast_runs as f64 / runs.len() as f64;
        let [before, after] = [|run: &ProbedRun| run.before_ms.ln(), |run: &ProbedRun| run.after_ms.ln()]
            .map(|probe| runs.iter().map(probe).collect::<Vec<f64>>());
        let persistence = correlation(&before, &after);
        Some(Machine { slowness: mean, deviation, limit, fast_share, persistence, ..machine })
    }

    /// Returns the mean slowness of the probes around a run.
    fn slowness_of(&self, run: &ProbedRun) -> f64 {
        ((run.before_ms.ln() + run.after_ms.ln()) / 2.0 - self.fast).max(0.0)
    }

    /// Returns the undisturbed time of these runs of a statement. `None` with fewer than three runs.
    pub fn undisturbed(&self, runs: &[ProbedRun], response: Response) -> Option<LogEstimate> {
        if runs.len() < 3 || runs.iter().any(|run| run.ms <= 0.0) {
            return None;
        }
        let (from_slowness, from_fast) = (self.from_slowness(runs, response), self.from_fast_runs(runs, response));
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
            error: (2.0 * few_runs(n) * variance.sqrt() + LEAST_ERROR / 2.0).hypot(common),
            common,
        }
    }

    /// Returns the median of the runs at full speed.
    pub fn from_fast_runs(&self, runs: &[ProbedRun], Response(response): Response) -> LogEstimate {
        let n = runs.len() as f64;
        let mut runs: Vec<(f64, f64)> = runs.iter().map(|run| (run.ms.ln(), self.slowness_of(run))).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let times: Vec<f64> = runs.iter().map(|(ln_ms, _)| *ln_ms).collect();
        // The share of the runs at full speed. If probes do not describe the runs between them, the fastest run counts.
        let share = self.fast_share.max(1.0 / n) * self.persistence.powi(2);
        let ln_ms = quantile(&times, share / 2.0);
        let scatter = ln_ms - quantile(&times, share * 0.16);
        let fastest = &runs[..runs.len().min(3.max((n * share / 2.0) as usize))];
        let slowness = mean(&fastest.iter().map(|(_, slowness)| *slowness).collect::<Vec<f64>>());
        let spread = fastest[fastest.len() - 1].0 - times[0];
        let error = [
            2.5 * few_runs(n) * scatter / (n * share).max(1.0).sqrt() + LEAST_ERROR,
            // Even the fastest runs may have been slowed.
            response * slowness,
            (1.0 - self.persistence) * spread * 0.8,
            LEAST_ERROR,
        ];
        LogEstimate { ln_ms, error: super::root_sum_squares(error), common: response * slowness }
    }
}

/// Nothing is known better than 1%: memory layout and caches differ from session to session.
const LEAST_ERROR: f64 = 0.01;

/// Returns by how much two standard errors have to grow if they come from so few runs. It is close to Student's t with
/// n - 1 degrees of freedom, divided by its limit.
fn few_runs(n: f64) -> f64 {
    1.0 + 1.2 / (n - 2.0).max(1.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    (values.iter().map(|value| (value - center).powi(2)).sum::<f64>() / (values.len().max(2) - 1) as f64).sqrt()
}

/// Returns the correlation, 0 to 1. If one of the two hardly varies, the machine has one speed: 1.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    const STEADY: f64 = 0.02;
    let (mean_a, mean_b, deviations) = (mean(a), mean(b), [deviation(a), deviation(b)]);
    if deviations.iter().any(|deviation| *deviation < STEADY) {
        return 1.0;
    }
    let products: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    (products / (a.len() - 1) as f64 / deviations[0] / deviations[1]).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::two_speed_host::{Random, TwoSpeedHost};

    /// Returns the errors and the half widths of the undisturbed time on many simulated hosts.
    fn on_hosts(ms: f64, budget_ms: f64, slow_share: f64, phase_ms: (f64, f64)) -> Vec<(f64, f64)> {
        let case = |seed| {
            let mut random = Random(seed * 7919 + 13);
            let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
            let phase = between(phase_ms.0.ln(), phase_ms.1.ln()).exp();
            let mut host = TwoSpeedHost::new(seed, phase, slow_share, between(1.2, 2.0), between(0.004, 0.02));
            let plain = Response(between(0.65, 1.05));
            let runs = host.session(&[(ms, plain), (2.0 * ms, Response(0.7 * plain.0))], budget_ms, 6);
            let all: Vec<ProbedRun> = runs.iter().map(|(_, run)| *run).collect();
            let plain: Vec<ProbedRun> = runs.iter().filter(|(index, _)| *index == 0).map(|(_, run)| *run).collect();
            let estimate = Machine::of(&all).unwrap().undisturbed(&plain, Response::PLAIN).unwrap();
            (estimate.ln_ms - ms.ln(), estimate.error)
        };
        (0..200).map(case).collect()
    }

    /// Asserts the share of intervals that contain the truth, and their median half width.
    fn assert_precise(cases: &[(f64, f64)], contained: f64, half_width: f64) {
        let share = cases.iter().filter(|(error, half)| error.abs() <= *half).count() as f64 / cases.len() as f64;
        let halves: Vec<f64> = cases.iter().map(|(_, half)| *half).collect();
        let half = crate::statistics::median(&halves);
        assert!(share >= contained && half <= half_width, "{share} contained, half width {half}");
    }

    #[test]
    fn a_host_of_one_speed_is_precise() {
        assert_precise(&on_hosts(200.0, 8e3, 0.0, (1e3, 1e3)), 0.9, 0.015);
        assert_precise(&on_hosts(3000.0, 40e3, 0.0, (1e3, 1e3)), 0.9, 0.02);
    }

    #[test]
    fn short_statements_find_the_fast_phases() {
        assert_precise(&on_hosts(10.0, 3e3, 0.5, (100.0, 1e3)), 0.85, 0.03);
        assert_precise(&on_hosts(200.0, 8e3, 0.5, (100.0, 3e3)), 0.85, 0.05);
    }

    #[test]
    fn long_statements_contain_both_speeds() {
        assert_precise(&on_hosts(3000.0, 40e3, 0.5, (100.0, 3e3)), 0.85, 0.15);
    }

    #[test]
    fn the_estimate_does_not_depend_on_the_unit() {
        let runs = |scale: f64| -> Vec<ProbedRun> {
            let times = [(10.0, 3.0), (16.0, 4.9), (10.2, 3.1), (17.0, 5.0), (10.1, 3.0)];
            let pairs = times.windows(2);
            pairs
                .map(|w| ProbedRun { ms: scale * w[0].0, before_ms: scale * w[0].1, after_ms: scale * w[1].1 })
                .collect()
        };
        let of = |scale| Machine::of(&runs(scale)).unwrap().undisturbed(&runs(scale), Response::PLAIN).unwrap();
        assert!((of(7.0).ln_ms - of(1.0).ln_ms - 7f64.ln()).abs() < 1e-9);
        assert!((of(7.0).error - of(1.0).error).abs() < 1e-9);
    }

    #[test]
    fn too_few_runs_and_impossible_times_have_no_estimate() {
        let run = ProbedRun { ms: 10.0, before_ms: 3.0, after_ms: 3.0 };
        assert_eq!(Machine::of(&[]), None);
        assert_eq!(Machine::of(&[ProbedRun { before_ms: 0.0, ..run }]), None);
        let machine = Machine::of(&[run; 5]).unwrap();
        assert_eq!(machine.undisturbed(&[run; 2], Response::PLAIN), None);
        assert_eq!(machine.undisturbed(&[run, run, ProbedRun { ms: 0.0, ..run }], Response::PLAIN), None);
        assert!(machine.undisturbed(&[run; 3], Response::PLAIN).is_some());
    }
}
