//! Whether the CPUs' clocks agree.

use crate::host::measure::{Budget, SkewError, measure_step, skew_between};
use crate::human::reason;
use crate::report::{COUNTER, Cpus, SYSTEM, Skew};
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Rate, Refused, System};

/// CPUs that answer are done in 1 to 2 ms a clock; busy ones get so long at least.
const PER_PAIR: Nanos = Nanos::from_millis(20.0);
/// And so long where there is time: by then the kernel has let both threads run at once.
const PATIENCE: Nanos = Nanos::from_millis(250.0);
/// What a pair takes as a rule, with both clocks.
const USUALLY: Nanos = Nanos::from_millis(6.0);

/// Two CPUs that are busy want this.
const LEAST: Nanos = Nanos::from_millis(600.0);

/// The time to set aside for so many CPUs out of `limit`: on a large host more, but never so much
/// that too little is left for reading the clocks.
pub fn wanted(cpus: usize, limit: Nanos) -> Nanos {
    let least = (limit.0 * 0.15).min(LEAST.0);
    Nanos((cpus as f64 * USUALLY.0).clamp(least, limit.0 * 0.4))
}

/// Bounds the skew of the counter and of PostgreSQL's clock between the first CPU and each other.
pub fn between_cpus(cpus: Cpus, permission: Result<(), Refused>, rate: &Result<Rate, String>, budget: &Budget) -> Cpus {
    let Some(allowed) = cpus.allowed.known().cloned() else {
        return Cpus { skew_unavailable: Some("which CPUs may be used is unknown".into()), ..cpus };
    };
    let Some((&first, rest @ [_, ..])) = allowed.split_first() else {
        return Cpus { skew_unavailable: Some("this process may use one CPU only".into()), ..cpus };
    };
    // Spread over the whole machine, so that where time runs out every socket was looked at.
    let mut others = rest.to_vec();
    others.sort_by_key(|cpu| (*cpu as u32).wrapping_mul(0x9E37_79B1));
    let mut compared = Compared { budget, limit: PER_PAIR, skew: Vec::new(), refused: None };
    let counter = Counter::new()
        .ok()
        .zip(rate.as_ref().ok())
        .map(|(counter, rate)| Compare::new(COUNTER, counter, rate.rate, budget));
    let system = permission.ok().map(|()| Compare::new(SYSTEM, System::default(), NANOSECONDS, budget));
    for (nth, &other) in others.iter().enumerate() {
        let share = budget.left().0 / (2 * (others.len() - nth)) as f64;
        compared.limit = Nanos(share.clamp(PER_PAIR.0, PATIENCE.0));
        if !budget.go_on() {
            let why = if budget.interrupted() { "it was interrupted" } else { "time was up" };
            compared.refused = Some(why.into());
            break;
        }
        compared.note(counter.as_ref(), first, other);
        compared.note(system.as_ref(), first, other);
    }
    if compared.skew.is_empty() && compared.refused.is_none() {
        compared.refused = Some("no clock that can be compared may be read".into());
    }
    Cpus { skew: compared.skew, skew_unavailable: compared.refused, ..cpus }
}

/// What came out so far, and the last reason why something did not.
struct Compared<'a> {
    budget: &'a Budget<'a>,
    /// for one clock of one pair
    limit: Nanos,
    skew: Vec<Skew>,
    refused: Option<String>,
}

impl Compared<'_> {
    fn note<C: Clock + Sync>(&mut self, clock: Option<&Compare<C>>, a: usize, b: usize) {
        match clock.map(|clock| clock.pair(a, b, self.budget, self.limit)) {
            Some(Ok(bounds)) => self.skew.push(bounds),
            Some(Err(why)) => self.refused = Some(why),
            None => {}
        }
    }
}

/// One clock to compare.
struct Compare<C> {
    name: &'static str,
    clock: C,
    rate: Hertz,
    /// in ticks. A reading can be late by a step: without knowing the step there is no bound.
    step: Option<f64>,
}

impl<C: Clock + Sync> Compare<C> {
    fn new(name: &'static str, clock: C, rate: Hertz, budget: &Budget) -> Self {
        let step = measure_step(&clock, budget, PER_PAIR).granularity.step();
        Compare { name, clock, rate, step }
    }

    fn pair(&self, a: usize, b: usize, budget: &Budget, limit: Nanos) -> Result<Skew, String> {
        let name = self.name;
        let step = self.step.ok_or_else(|| format!("{name}: the clock did not move"))?.ceil() as i64;
        let bounds = skew_between(&self.clock, step, (a, b), budget, limit).map_err(|error| match error {
            SkewError::Cpu(cpu, error) => format!("{name}: CPU {cpu}: {}", reason(&error)),
            SkewError::NoAnswer => format!("{name}: CPUs {a} and {b} did not answer each other in time"),
            SkewError::ThreadFailed => format!("{name}: CPU {b}: its thread failed"),
        })?;
        let ns = |ticks: i64| (self.rate.nanos(ticks as f64).0 * 10.0).round() / 10.0;
        Ok(Skew {
            clock: name.into(),
            a,
            b,
            low_ns: ns(bounds.low),
            high_ns: ns(bounds.high),
            moving: bounds.moving,
            passes: bounds.passes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_host_gets_more_time_and_never_too_much() {
        let four = Nanos::from_secs(4.0);
        assert_eq!([2, 256].map(|cpus| wanted(cpus, four).secs()), [0.6, 1.536]);
        assert_eq!(wanted(10_000, four).secs(), 1.6);
    }
}
