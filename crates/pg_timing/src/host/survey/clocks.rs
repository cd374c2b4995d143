//! Reads every clock of the host in turns.

use super::drift::{DriftMeters, Steps};
use super::{Progress, access_path};
use crate::host::measure::{Budget, ClockMeter, Clocks, Outside, Pinned, clocks, measure_step};
use crate::host::measure::{rate_of, summarize, timing_cost, without_rate};
use crate::report::{AccessPath, COUNTER, ClockReport, SYSTEM};
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Rate, RateMeter, Reference, Refused, SystemSyscall};

/// The least number of turns per clock. The clocks alternate, so that a change of the machine (another process, the
/// CPU's frequency) affects every clock.
const ROUNDS: f64 = 20.0;
/// The longest turn of a clock, for the same reason.
const LONGEST_TURN: Nanos = Nanos::from_millis(50.0);
/// The longest time for measuring the step of a clock. A clock with steps of 10 ms needs it to show a few steps.
pub const STEP_TIME: Nanos = Nanos::from_millis(50.0);

/// The result of reading all clocks.
pub struct Reading {
    pub clocks: Clocks,
    pub drift: DriftMeters,
    /// the counter's rate over the whole time, or over the longest period without a break
    pub rate: Result<Rate, String>,
    /// whether the counter timed the buffers from outside; otherwise system calls did
    outside_is_counter: bool,
}

/// Reads every clock of the host.
pub fn read_all(permission: Result<(), Refused>, cpus: &[usize], budget: &Budget, progress: Progress) -> Reading {
    read(clocks(permission), permission, cpus, budget, progress)
}

/// Reads PostgreSQL's clock, and two clocks that show its access path: a plain system call and the counter.
pub fn read_system(permission: Result<(), Refused>, cpus: &[usize], budget: &Budget) -> Reading {
    let mut few = clocks(permission);
    few.retain(|clock| {
        let name = clock.as_ref().map_or_else(|(name, _)| *name, |meter| meter.name());
        [SYSTEM, COUNTER, "system_syscall"].contains(&name)
    });
    read(few, permission, cpus, budget, &mut |_| ())
}

/// Returns the result of reading clocks until the budget is spent. Each round runs on the next of `cpus`.
fn read(
    mut all: Clocks,
    permission: Result<(), Refused>,
    cpus: &[usize],
    budget: &Budget,
    progress: Progress,
) -> Reading {
    let mut meters: Vec<&mut Box<dyn ClockMeter>> = all.iter_mut().flatten().collect();
    let step_time = Nanos(STEP_TIME.0.min((budget.left().0 / 20.0).max(12e6)));
    meters.iter_mut().for_each(|meter| meter.measure_step(budget, step_time));

    // The rate needs no extra time: its measurement lasts from here to the end of the reading.
    let step = |wanted: &dyn Fn(&dyn ClockMeter) -> bool| {
        meters.iter().find(|meter| wanted(&****meter)).and_then(|meter| meter.record().1?.granularity.step())
    };
    let steps = Steps {
        counter: step(&|meter| meter.is_counter()),
        // If the counter is denied, the reference is denied, too, because the vDSO reads the counter.
        reference: permission
            .ok()
            .and_then(|()| measure_step(&Reference::default(), budget, step_time).granularity.step()),
        system: step(&|meter| meter.name() == SYSTEM),
        boottime: step(&|meter| meter.name() == "boottime"),
    };
    // The first sample precedes the start of the rate's measurement, so that no suspend falls between the two.
    let mut drift = DriftMeters::new(&steps);
    drift.sample();
    let rate_meter = start_rate(&steps);
    let outside_clock: Box<dyn Clock> = match (&rate_meter, Counter::new()) {
        (Ok(_), Ok(counter)) => Box::new(counter),
        _ => Box::new(SystemSyscall::default()),
    };
    let outside = Outside { clock: &*outside_clock, cost: timing_cost(&*outside_clock) };

    let weights: f64 = meters.iter().map(|meter| meter.weight()).sum();
    let heaviest = meters.iter().map(|meter| meter.weight()).fold(1.0, f64::max);
    let limit = budget.left();
    let rounds = (limit.0 / (LONGEST_TURN.0 / heaviest * weights)).max(ROUNDS).ceil();
    let unit = Nanos(limit.0 / rounds / weights);
    let mut round = 0;
    // The first round ignores the budget, so that every clock has figures.
    while round == 0 || (f64::from(round) < rounds && budget.go_on()) {
        // If the CPU is offline or refused, the clocks are read on any CPU.
        let _pin = cpus.get(round as usize % cpus.len().max(1)).and_then(|cpu| Pinned::to(*cpu).ok());
        for meter in &mut meters {
            if round == 0 || budget.go_on() {
                meter.slice(&outside, &budget.part(Nanos(unit.0 * meter.weight())));
            }
        }
        drift.sample();
        round += 1;
        progress(f64::from(round) / rounds);
    }
    let outside_is_counter = rate_meter.is_ok();
    let rate = rate_meter.and_then(|meter| meter.rate().map_err(|e| e.to_string()));
    let rate = rate.map(|whole| drift.constant_rate().unwrap_or(whole));
    Reading { clocks: all, drift, rate, outside_is_counter }
}

/// Starts measuring the counter's rate.
fn start_rate(steps: &Steps) -> Result<RateMeter<Counter, Reference>, String> {
    let counter = Counter::new().map_err(|e| e.to_string())?;
    let counter_step = steps.counter.ok_or("the counter did not move")?;
    let reference_step = steps.reference.ok_or_else(|| format!("{} did not move", timing_clock::REFERENCE_NAME))?;
    RateMeter::start_with(counter, counter_step, Reference::default(), reference_step).map_err(|e| e.to_string())
}

impl Reading {
    /// Returns the figures of each clock. The counter's rate converts ticks to nanoseconds.
    pub fn summaries(&self) -> Vec<ClockReport> {
        summaries(&self.clocks, self.rate.as_ref().ok().map(|rate| rate.rate), self.outside_is_counter)
    }
}

/// Returns the figures of each clock. `counter` is the counter's rate. `outside_is_counter` tells which clock timed the
/// buffers from outside.
pub fn summaries(clocks: &Clocks, counter: Option<Hertz>, outside_is_counter: bool) -> Vec<ClockReport> {
    let outside = if outside_is_counter { counter } else { Some(NANOSECONDS) };
    let mut reports: Vec<ClockReport> = clocks
        .iter()
        .map(|clock| match clock {
            Ok(meter) => summary(&**meter, counter, outside),
            Err((name, why)) => ClockReport::unavailable(name, why),
        })
        .collect();
    let undisturbed = |clock: &Result<Box<dyn ClockMeter>, _>| {
        let (record, _) = clock.as_ref().ok()?.record();
        Some(outside?.nanos(record.outside.undisturbed()?).0)
    };
    let costs: Vec<Option<f64>> = clocks.iter().map(undisturbed).collect();
    access_path::determine(&mut reports, &costs);
    reports
}

/// Returns the figures of one clock.
fn summary(meter: &dyn ClockMeter, counter: Option<Hertz>, outside: Option<Hertz>) -> ClockReport {
    let (record, measured_step) = meter.record();
    let Some(rate) = rate_of(meter, counter) else {
        return without_rate(meter.name(), record);
    };
    let mut report = summarize(meter.name(), record, measured_step, rate, outside);
    report.access_path = meter.is_counter().then_some(AccessPath::Instruction);
    report
}
