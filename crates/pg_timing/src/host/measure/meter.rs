//! One clock of the host with its record.

use super::{Budget, Outside, Record};
use timing_clock::{Clock, Granularity, Hertz, Nanos, granularity};

/// How a clock's steps were looked at.
#[derive(Clone, Copy, Debug)]
pub struct Looked {
    pub granularity: Granularity,
    pub over: Nanos,
}

/// Steps wanted of a fine clock; a coarse one shows as many as fit in the time.
const STEPS: usize = 4000;

/// Looks for the smallest step of `clock`, for at most `limit`.
pub fn look_at_steps<C: Clock>(clock: &C, budget: &Budget, limit: Nanos) -> Looked {
    let part = budget.part(limit);
    let granularity = granularity(clock, STEPS, || part.go_on());
    Looked { granularity, over: part.spent() }
}

/// A clock whose type is known, behind a face that a list can hold: a slice is compiled for it.
pub trait ClockMeter {
    fn name(&self) -> &'static str;
    /// its share of the time, against 1 for a clock of minor interest
    fn weight(&self) -> f64;
    fn slice(&mut self, outside: &Outside, budget: &Budget);
    fn look_at_steps(&mut self, budget: &Budget, limit: Nanos);
    /// ticks are nanoseconds, or those of the CPU's counter
    fn is_counter(&self) -> bool;
    fn record(&self) -> (&Record, Option<Looked>);
}

/// See [`ClockMeter`].
pub struct Meter<C> {
    pub name: &'static str,
    pub clock: C,
    pub weight: f64,
    pub is_counter: bool,
    pub record: Record,
    pub looked: Option<Looked>,
}

impl<C> Meter<C> {
    pub fn new(name: &'static str, clock: C, weight: f64, is_counter: bool) -> Meter<C> {
        Meter { name, clock, weight, is_counter, record: Record::default(), looked: None }
    }
}

impl<C: Clock> ClockMeter for Meter<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn weight(&self) -> f64 {
        self.weight
    }

    fn slice(&mut self, outside: &Outside, budget: &Budget) {
        self.record.slice(&self.clock, outside, || budget.go_on());
    }

    fn look_at_steps(&mut self, budget: &Budget, limit: Nanos) {
        self.looked = Some(look_at_steps(&self.clock, budget, limit));
    }

    fn is_counter(&self) -> bool {
        self.is_counter
    }

    fn record(&self) -> (&Record, Option<Looked>) {
        (&self.record, self.looked)
    }
}

/// The rate that turns this clock's ticks into time.
pub fn rate_of(meter: &dyn ClockMeter, counter: Option<Hertz>) -> Option<Hertz> {
    match meter.is_counter() {
        true => counter,
        false => Some(timing_clock::NANOSECONDS),
    }
}
