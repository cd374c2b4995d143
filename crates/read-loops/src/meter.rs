//! A clock with its totals.

use super::{Block, Budget, ClassicLoop, MeasuredStep, Outside, Record, measure_step};
use timing_clock::{Clock, Hertz, Nanos};

/// A [`Meter`] of any clock type, so that a list can hold all clocks. Each method is compiled for its clock type.
pub trait ClockMeter {
    /// Returns the clock's name in reports.
    fn name(&self) -> &'static str;
    /// Returns the weight of the clock in the measuring time. A minor clock has 1.
    fn weight(&self) -> f64;
    /// Reads the clock until the budget is spent.
    fn slice(&mut self, outside: &Outside, budget: &Budget);
    /// Measures the clock's step.
    fn measure_step(&mut self, budget: &Budget, limit: Nanos);
    /// Reads one block with pg_test_timing's loop, and adds it to `classic`.
    fn classic_block(&self, classic: &mut ClassicLoop) -> Block;
    /// Like `classic_block`, but cuts each reading to whole thousands of ticks: microseconds of a nanosecond clock.
    fn classic_block_in_thousands(&self, classic: &mut ClassicLoop) -> Block;
    /// Returns whether the clock is the CPU's counter. The ticks of all other clocks are nanoseconds.
    fn is_counter(&self) -> bool;
    /// Returns the totals and the step.
    fn record(&self) -> (&Record, Option<MeasuredStep>);
    /// Sets the totals to zero. The step stays.
    fn restart(&mut self);
}

/// A clock with its name and its totals. [`ClockMeter`] has its methods.
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

    fn classic_block_in_thousands(&self, classic: &mut ClassicLoop) -> Block {
        classic.run_in_units::<C, 1000>(&self.clock)
    }

    fn is_counter(&self) -> bool {
        self.is_counter
    }

    fn record(&self) -> (&Record, Option<MeasuredStep>) {
        (&self.record, self.step)
    }

    fn restart(&mut self) {
        self.record = Record::default();
    }
}

/// Returns the rate of this clock's ticks. `counter` is the counter's rate, if known.
pub fn rate_of(meter: &dyn ClockMeter, counter: Option<Hertz>) -> Option<Hertz> {
    match meter.is_counter() {
        true => counter,
        false => Some(timing_clock::NANOSECONDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use timing_clock::Granularity;
    use timing_clock::sim::{Character, SimClock, World};

    fn character() -> Character {
        Character { step: 10, ..Character::default() }
    }

    #[test]
    fn a_meter_keeps_its_properties_and_totals() {
        let (world, stop) = (World::new(1), AtomicBool::new(true));
        let mut meter = Meter::new("synthetic", SimClock::new(&world, character()), 4.0, true);
        assert_eq!((meter.name(), meter.weight(), meter.is_counter()), ("synthetic", 4.0, true));
        assert!(meter.record().0.buffers.is_empty() && meter.record().1.is_none());

        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let timer = SimClock::new(&world, Character::default());
        // The stop flag is set, so a slice has one block, and a block of 256 timed calls.
        meter.slice(&Outside { clock: &timer, cost: 0.0 }, &budget);
        assert_eq!((meter.record().0.buffers.len(), meter.clock.reads()), (1, 1024 + 2 * 256));

        let mut classic = ClassicLoop::default();
        let block = meter.classic_block(&mut classic);
        assert_eq!((classic.reads, classic.ticks), (1024, block.last - block.first));

        meter.restart();
        assert_eq!((meter.record().0.buffers.len(), meter.record().0.reads()), (0, 0));
    }

    #[test]
    fn the_step_is_measured_and_kept() {
        let (world, stop) = (World::new(1), AtomicBool::new(false));
        let mut meter = Meter::new("synthetic", SimClock::new(&world, character()), 1.0, false);
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        ClockMeter::measure_step(&mut meter, &budget, Nanos::from_secs(60.0));
        let step = meter.record().1.unwrap();
        assert_eq!(step.granularity, Granularity::Step(10.0));
        assert!(step.duration.0 > 0.0 && step.duration.secs() < 60.0, "{step:?}");
    }

    #[test]
    fn only_a_counter_has_the_counters_rate() {
        let world = World::new(1);
        let rate = |is_counter, counter| {
            rate_of(&Meter::new("", SimClock::new(&world, Character::default()), 1.0, is_counter), counter)
        };
        assert_eq!(rate(true, Some(Hertz(2e9))), Some(Hertz(2e9)));
        assert_eq!(rate(true, None), None);
        assert_eq!(rate(false, None), Some(timing_clock::NANOSECONDS));
    }
}
