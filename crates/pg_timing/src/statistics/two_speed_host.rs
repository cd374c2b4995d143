//! A simulated host with two speeds, on which estimators are tested.
//!
//! Neighbors on the same core make everything slower for a while. The lengths of the phases are exponentially
//! distributed, so the speed has a memory.

use super::undisturbed::{ProbedRun, Response};

/// A host that alternates between its full speed and a slower one.
#[derive(Clone, Debug)]
pub struct TwoSpeedHost {
    random: Random,
    /// time factor of the probe in a slow phase, like 1.5
    factor: f64,
    /// relative standard deviation of a run at constant speed
    noise: f64,
    /// mean length of the fast and the slow phases, in ms
    mean_phase_ms: [f64; 2],
    is_slow: bool,
    /// rest of the current phase
    left_ms: f64,
}

impl TwoSpeedHost {
    /// Returns a host. `phase_ms` is the mean length of all phases, and `slow_share` the share of time at the lower speed.
    pub fn new(seed: u64, phase_ms: f64, slow_share: f64, factor: f64, noise: f64) -> TwoSpeedHost {
        let mut random = Random(seed);
        let mean_phase_ms = [2.0 * phase_ms * (1.0 - slow_share), 2.0 * phase_ms * slow_share];
        let is_slow = random.uniform() < slow_share;
        let left_ms = random.exponential(mean_phase_ms[usize::from(is_slow)]);
        TwoSpeedHost { random, factor, noise, mean_phase_ms, is_slow, left_ms }
    }

    /// Returns the time of a statement that takes `ms` at full speed.
    pub fn run(&mut self, ms: f64, Response(response): Response) -> f64 {
        let slow = self.factor.powf(response);
        let mut work = ms * (self.noise * self.random.normal()).exp();
        let mut time = 0.0;
        loop {
            let factor = if self.is_slow { slow } else { 1.0 };
            if work * factor < self.left_ms {
                self.left_ms -= work * factor;
                return time + work * factor;
            }
            time += self.left_ms;
            work -= self.left_ms / factor;
            self.is_slow = !self.is_slow;
            self.left_ms = self.random.exponential(self.mean_phase_ms[usize::from(self.is_slow)]);
        }
    }

    /// Runs statements in turns, each with its time at full speed and its response, until `budget_ms` is used and each ran
    /// `least` times. Returns the runs with the index of their statement.
    pub fn session(&mut self, statements: &[(f64, Response)], budget_ms: f64, least: usize) -> Vec<(usize, ProbedRun)> {
        const PROBE_MS: f64 = 3.0;
        let probe = |host: &mut TwoSpeedHost| {
            let times: Vec<f64> = (0..3).map(|_| host.run(PROBE_MS, Response(1.0))).collect();
            super::median(&times)
        };
        let (mut runs, mut elapsed, mut before_ms) = (Vec::new(), 0.0, probe(self));
        while elapsed < budget_ms || runs.len() < least * statements.len() {
            let round = runs.len() / statements.len();
            for n in 0..statements.len() {
                let index = (n + round) % statements.len();
                let (ms, response) = statements[index];
                let ms = self.run(ms, response);
                let after_ms = probe(self);
                runs.push((index, ProbedRun { ms, before_ms, after_ms }));
                elapsed += ms + 3.0 * after_ms;
                before_ms = after_ms;
            }
        }
        runs
    }
}

/// Pseudorandom numbers: a linear congruential generator. The same seed gives the same numbers on every machine.
/// Source of the multiplier: G. Steele and S. Vigna, "Computationally easy, spectrally good multipliers", 2022.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns a number between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number with a normal distribution and a standard deviation of 1: the sum of 12 uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}
