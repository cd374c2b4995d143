//! One clock with its totals.

use super::{Block, Budget, ClassicLoop, Outside, Record};
use timing_clock::{Clock, Granularity, Hertz, Nanos, granularity};

/// A clock's step, and how long it was measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredStep {
    pub granularity: Granularity,
    pub duration: Nanos,
}

/// Steps to observe for a fine clock. A coarse clock shows as many as fit into the time.
const STEPS: usize = 4000;

/// Measures the smallest step of `clock`, for at most `limit`.
pub fn measure_step<C: Clock>(clock: &C, budget: &Budget, limit: Nanos) -> MeasuredStep {
    let part = budget.part(limit);
    let granularity = granularity(clock, STEPS, || part.go_on());
    MeasuredStep { granularity, duration: part.spent() }
}

/// A [`Meter`] of any clock type, for a list of clocks. Each method is compiled for its clock type.
pub trait ClockMeter {
    /// Returns the clock's name in reports.
    fn name(&self) -> &'static str;
    /// Returns the clock's share of the measuring time, relative to a minor clock's 1.
    fn weight(&self) -> f64;
    /// Reads the clock until the budget is spent.
    fn slice(&mut self, outside: &Outside, budget: &Budget);
    /// Measures the clock's step.
    fn measure_step(&mut self, budget: &Budget, limit: Nanos);
    /// Reads one block with pg_test_timing's loop.
    fn classic_block(&self, classic: &mut ClassicLoop) -> Block;
    /// Whether ticks are those of the CPU's counter. Otherwise they are nanoseconds.
    fn is_counter(&self) -> bool;
    /// Returns the totals and the step.
    fn record(&self) -> (&Record, Option<MeasuredStep>);
}

/// See [`ClockMeter`].
pub struct Meter<C> {
    pub name: &'static str,
    pub clock: C,
    pub weight: f64,
    pub is_counter: bool,
    pub record: Record,
    pub step: Option<MeasuredStep>,
}

impl<C> Meter<C> {
    /// Returns a meter without totals.
    pub fn new(name: &'static str, clock: C, weight: f64, is_counter: bool) -> Meter<C> {
        Meter { name, clock, weight, is_counter, record: Record::default(), step: None }
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

    fn measure_step(&mut self, budget: &Budget, limit: Nanos) {
        self.step = Some(measure_step(&self.clock, budget, limit));
    }

    fn classic_block(&self, classic: &mut ClassicLoop) -> Block {
        classic.run(&self.clock)
    }

    fn is_counter(&self) -> bool {
        self.is_counter
    }

    fn record(&self) -> (&Record, Option<MeasuredStep>) {
        (&self.record, self.step)
    }
}

/// Returns the rate that converts this clock's ticks into time. `counter` is the counter's rate, if known.
pub fn rate_of(meter: &dyn ClockMeter, counter: Option<Hertz>) -> Option<Hertz> {
    match meter.is_counter() {
        true => counter,
        false => Some(timing_clock::NANOSECONDS),
    }
}
