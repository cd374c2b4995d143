//! Whether the CPUs' clocks agree.

use crate::measure::{Budget, look_at_steps, skew_between};
use crate::report::{COUNTER, Cpus, SYSTEM, Skew};
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Rate, Refused, System};

/// A pair of CPUs that answer is done in 2 ms; one that is busy gets so long.
const PER_PAIR: Nanos = Nanos::from_millis(20.0);

/// Bounds the skew of the counter and of PostgreSQL's clock between the first CPU and each other.
pub fn between_cpus(cpus: Cpus, permission: Result<(), Refused>, rate: &Result<Rate, String>, budget: &Budget) -> Cpus {
    let Some(allowed) = cpus.allowed.known().cloned() else {
        return Cpus { skew_unavailable: Some("which CPUs may be used is unknown".into()), ..cpus };
    };
    let Some((&first, others @ [_, ..])) = allowed.split_first() else {
        return Cpus { skew_unavailable: Some("this process may use one CPU only".into()), ..cpus };
    };
    let mut skew = Vec::new();
    let mut refused = None;
    for &other in others {
        if !budget.go_on() {
            refused = Some(if budget.interrupted() { "it was interrupted" } else { "time was up" }.to_string());
            break;
        }
        if let (Ok(counter), Ok(rate)) = (Counter::new(), rate) {
            note(pair(COUNTER, &counter, rate.rate, first, other, budget), &mut skew, &mut refused);
        }
        if permission.is_ok() {
            note(pair(SYSTEM, &System::default(), NANOSECONDS, first, other, budget), &mut skew, &mut refused);
        }
    }
    if skew.is_empty() && refused.is_none() {
        refused = Some("no clock that can be compared may be read".into());
    }
    Cpus { skew, skew_unavailable: refused, ..cpus }
}

fn note(result: Result<Skew, String>, skew: &mut Vec<Skew>, refused: &mut Option<String>) {
    match result {
        Ok(bounds) => skew.push(bounds),
        Err(why) => *refused = Some(why),
    }
}

fn pair<C: Clock + Sync>(
    name: &str,
    clock: &C,
    rate: Hertz,
    a: usize,
    b: usize,
    budget: &Budget,
) -> Result<Skew, String> {
    // A reading can be late by a step: without knowing the step there is no bound.
    let step = look_at_steps(clock, budget, PER_PAIR).granularity.step().ok_or("the clock did not move")?;
    let bounds =
        skew_between(clock, step.ceil() as i64, (a, b), budget, PER_PAIR).map_err(|why| format!("{name}: {why}"))?;
    let round = |ns: f64| (ns * 10.0).round() / 10.0;
    Ok(Skew {
        clock: name.into(),
        a,
        b,
        low_ns: round(rate.nanos(bounds.low as f64).0),
        high_ns: round(rate.nanos(bounds.high as f64).0),
        moving: bounds.moving,
        passes: bounds.passes,
    })
}
