//! Reads every clock of the host in turns.

use super::drift::{DriftMeters, Steps};
use super::{Progress, access_path};
use crate::host::measure::{Budget, ClockMeter, Clocks, Outside, Pinned, clocks, measure_step};
use crate::host::measure::{rate_of, summarise, timing_cost, without_rate};
use crate::report::{AccessPath, COUNTER, ClockReport, SYSTEM};
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Rate, RateMeter, Reference, Refused, SystemSyscall};

/// At least so many turns per clock, and none longer than this: what drifts (another process, the
/// CPU's frequency) then meets every clock alike.
const ROUNDS: f64 = 20.0;
const LONGEST_TURN: Nanos = Nanos::from_millis(50.0);
/// A clock of 10 ms steps needs so long to show a few; a fine one is done in 1 ms.
const LOOK: Nanos = Nanos::from_millis(50.0);

/// Everything that was read.
pub struct Reading {
    pub clocks: Clocks,
    pub drift: DriftMeters,
    /// the counter's rate over the whole time
    pub rate: Result<Rate, String>,
    /// buffers were timed from outside by the counter, and not by system calls
    outside_is_counter: bool,
}

/// Reads every clock that there is.
pub fn read_all(permission: Result<(), Refused>, cpus: &[usize], budget: &Budget, progress: Progress) -> Reading {
    read(clocks(permission), permission, cpus, budget, progress)
}

/// Reads PostgreSQL's clock, and what tells how it is read: a bare system call and the bare counter.
pub fn read_system(permission: Result<(), Refused>, cpus: &[usize], budget: &Budget) -> Reading {
    let mut few = clocks(permission);
    few.retain(|clock| {
        let name = clock.as_ref().map_or_else(|(name, _)| *name, |meter| meter.name());
        [SYSTEM, COUNTER, "system_syscall"].contains(&name)
    });
    read(few, permission, cpus, budget, &mut |_| ())
}

/// Reads clocks until the budget is spent, each turn on the next of `cpus`.
fn read(
    mut all: Clocks,
    permission: Result<(), Refused>,
    cpus: &[usize],
    budget: &Budget,
    progress: Progress,
) -> Reading {
    let mut meters: Vec<&mut Box<dyn ClockMeter>> = all.iter_mut().flatten().collect();
    let look = Nanos(LOOK.0.min((budget.left().0 / 20.0).max(12e6)));
    meters.iter_mut().for_each(|meter| meter.measure_step(budget, look));

    // The rate needs no time of its own: it is taken from now to the end of the reading.
    let step = |wanted: &dyn Fn(&dyn ClockMeter) -> bool| {
        meters.iter().find(|meter| wanted(&****meter)).and_then(|meter| meter.record().1?.granularity.step())
    };
    let steps = Steps {
        counter: step(&|meter| meter.is_counter()),
        // Where the counter is denied the reference is too: it is the vDSO's.
        reference: permission.ok().and_then(|()| measure_step(&Reference::default(), budget, look).granularity.step()),
        system: step(&|meter| meter.name() == SYSTEM),
        boottime: step(&|meter| meter.name() == "boottime"),
    };
    // Looked at before the rate's own first look: a suspend right after that is seen, too.
    let mut drift = DriftMeters::new(&steps);
    drift.look();
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
    // The first turns are taken whatever the budget says, so that no clock is without figures.
    while round == 0 || (f64::from(round) < rounds && budget.go_on()) {
        // Refused or offline: the clocks are read wherever the kernel puts us.
        let _pin = cpus.get(round as usize % cpus.len().max(1)).and_then(|cpu| Pinned::to(*cpu).ok());
        for meter in &mut meters {
            if round == 0 || budget.go_on() {
                meter.slice(&outside, &budget.part(Nanos(unit.0 * meter.weight())));
            }
        }
        drift.look();
        round += 1;
        progress(f64::from(round) / rounds);
    }
    let outside_is_counter = rate_meter.is_ok();
    let rate = rate_meter.and_then(|meter| meter.rate().map_err(|e| e.to_string()));
    let rate = rate.map(|whole| drift.unbroken_rate().unwrap_or(whole));
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
    /// The figures, with ticks turned into nanoseconds by the counter's rate.
    pub fn summaries(&self) -> Vec<ClockReport> {
        let counter = self.rate.as_ref().ok().map(|rate| rate.rate);
        let outside = if self.outside_is_counter { counter } else { Some(NANOSECONDS) };
        let mut reports: Vec<ClockReport> = self
            .clocks
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
        let costs: Vec<Option<f64>> = self.clocks.iter().map(undisturbed).collect();
        access_path::tell(&mut reports, &costs);
        reports
    }
}

fn summary(meter: &dyn ClockMeter, counter: Option<Hertz>, outside: Option<Hertz>) -> ClockReport {
    let (record, looked) = meter.record();
    let Some(rate) = rate_of(meter, counter) else {
        return without_rate(meter.name(), record);
    };
    let mut report = summarise(meter.name(), record, looked, rate, outside);
    report.through = meter.is_counter().then_some(AccessPath::Instruction);
    report
}
