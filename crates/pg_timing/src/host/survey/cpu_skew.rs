//! Measures whether the clocks of the CPUs agree, and finds known faults of a clock source before a switch to it.

use crate::host::check;
use crate::host::facts::{Host, KernelLog};
use crate::host::measure::{Budget, SkewError, measure_step, skew_between};
use crate::human::reason;
use crate::report::{COUNTER, Cpus, SYSTEM, Skew};
use timing_clock::clocksource::is_counter;
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Ppm, Rate, Reference, Refused, System};
use timing_clock::{counter, measure_rate};

/// The shortest time limit for one clock of a pair. Idle CPUs need 1 to 2 ms.
const MIN_PER_PAIR: Nanos = Nanos::from_millis(20.0);
/// The longest time limit for one clock of a pair. Within this time the kernel has run both threads at once.
const MAX_PER_PAIR: Nanos = Nanos::from_millis(250.0);
/// The usual time for both clocks of a pair.
const USUAL_PER_PAIR: Nanos = Nanos::from_millis(6.0);

/// The time that two busy CPUs need.
const MIN_TOTAL: Nanos = Nanos::from_millis(600.0);

/// Returns the part of `limit` for comparing `cpus` CPUs. It grows with their number, up to 40% of the limit.
pub fn time_share(cpus: usize, limit: Nanos) -> Nanos {
    let min = (limit.0 * 0.15).min(MIN_TOTAL.0);
    Nanos((cpus as f64 * USUAL_PER_PAIR.0).clamp(min, limit.0 * 0.4))
}

/// Measures bounds of the skew between the first CPU and each other CPU, for the counter and for PostgreSQL's clock.
pub fn between_cpus(cpus: Cpus, permission: Result<(), Refused>, rate: &Result<Rate, String>, budget: &Budget) -> Cpus {
    let Some(allowed) = cpus.allowed.known().cloned() else {
        return Cpus { skew_unavailable: Some("the CPUs that this process may use are unknown".into()), ..cpus };
    };
    let Some((&first, rest @ [_, ..])) = allowed.split_first() else {
        return Cpus { skew_unavailable: Some("this process may use only one CPU".into()), ..cpus };
    };
    // The order is spread over the machine, so that every socket is compared even if time runs out.
    let mut others = rest.to_vec();
    others.sort_by_key(|cpu| (*cpu as u32).wrapping_mul(0x9E37_79B1));
    let counter = Counter::new()
        .ok()
        .zip(rate.as_ref().ok())
        .map(|(counter, rate)| ComparedClock::new(COUNTER, counter, rate.rate, budget));
    let system = permission.ok().map(|()| ComparedClock::new(SYSTEM, System::default(), NANOSECONDS, budget));
    let (mut skew, mut failure) = (Vec::new(), None);
    for (nth, &other) in others.iter().enumerate() {
        let share = budget.left().0 / (2 * (others.len() - nth)) as f64;
        let limit = Nanos(share.clamp(MIN_PER_PAIR.0, MAX_PER_PAIR.0));
        if !budget.go_on() {
            failure = Some(if budget.interrupted() { "interrupted" } else { "the time limit was reached" }.into());
            break;
        }
        let by_counter = counter.as_ref().map(|clock| clock.pair(first, other, budget, limit));
        let by_system = system.as_ref().map(|clock| clock.pair(first, other, budget, limit));
        for bounds in by_counter.into_iter().chain(by_system) {
            match bounds {
                Ok(bounds) => skew.push(bounds),
                Err(why) => failure = Some(why),
            }
        }
    }
    if skew.is_empty() && failure.is_none() {
        failure = Some("this process cannot read a clock that can be compared".into());
    }
    Cpus { skew, skew_unavailable: failure, ..cpus }
}

/// A clock to compare.
struct ComparedClock<C> {
    name: &'static str,
    clock: C,
    rate: Hertz,
    /// in ticks. A reading can be late by one step, so without the step there is no bound.
    step: Option<f64>,
}

impl<C: Clock + Sync> ComparedClock<C> {
    fn new(name: &'static str, clock: C, rate: Hertz, budget: &Budget) -> Self {
        let step = measure_step(&clock, budget, MIN_PER_PAIR).granularity.step();
        ComparedClock { name, clock, rate, step }
    }

    /// Returns the bounds of the skew between CPUs `a` and `b`.
    fn pair(&self, a: usize, b: usize, budget: &Budget, limit: Nanos) -> Result<Skew, String> {
        let name = self.name;
        let step = self.step.ok_or_else(|| format!("{name}: the clock did not move"))?.ceil() as i64;
        let bounds = skew_between(&self.clock, step, (a, b), budget, limit).map_err(|error| match error {
            SkewError::Cpu(cpu, error) => format!("{name}: CPU {cpu}: {}", reason(&error)),
            SkewError::NoAnswer => format!("{name}: CPUs {a} and {b} did not answer each other in time"),
            SkewError::NoThread(error) => format!("no second thread can be created: {}", reason(&error)),
            SkewError::ThreadFailed => format!("{name}: the thread on CPU {b} failed"),
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

/// The skew is shown in ns, so a coarse rate is enough.
const RATE_ERROR: Ppm = Ppm(10.0);
/// The longest time for measuring the rate.
const RATE_TIME: Nanos = Nanos::from_millis(20.0);

/// Returns the known faults: from the kernel's log, and for the CPUs' counter, proven differences between CPUs.
pub fn known_faults(host: &Host, name: &str, budget: &Budget) -> Vec<String> {
    let mut faults = Vec::new();
    if KernelLog::own(host).entries.known().is_some_and(|entries| entries.demoted(name)) {
        faults.push(format!("the kernel log says that {name} was marked unstable"));
    }
    if is_counter(name) {
        faults.extend(cpu_differences(host, budget));
    }
    faults
}

/// Returns the proven differences between the CPUs' counters.
fn cpu_differences(host: &Host, budget: &Budget) -> Vec<String> {
    let permission = counter::permitted();
    let rate = Counter::new().map_err(|e| e.to_string()).and_then(|counter| {
        measure_rate(counter, Reference::default(), RATE_ERROR, RATE_TIME).map_err(|e| e.to_string())
    });
    let cpus =
        Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), skew: Vec::new(), skew_unavailable: None };
    let cpus = between_cpus(cpus, permission, &rate, budget);
    cpus.skew.iter().filter(|skew| skew.clock == COUNTER).filter_map(check::differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_grows_with_the_cpus_up_to_a_maximum() {
        let four = Nanos::from_secs(4.0);
        assert_eq!([2, 256].map(|cpus| time_share(cpus, four).secs()), [0.6, 1.536]);
        assert_eq!(time_share(10_000, four).secs(), 1.6);
    }
}
