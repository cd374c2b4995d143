//! Reads every clock of the host in turns.

use super::Progress;
use crate::measure::{Budget, ClockMeter, Clocks, Outside, Pinned, clocks, rate_of, summarise, timing_cost};
use crate::report::{ClockReport, SYSTEM, Through};
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Ppm, Reference, Refused, SystemSyscall, measure_rate};

/// Turns per clock: what drifts (another process, the CPU's frequency) meets every clock alike.
const ROUNDS: u32 = 20;
/// A clock of 10 ms steps needs so long to show a few; a fine one is done in 1 ms.
const LOOK: Nanos = Nanos::from_millis(50.0);

/// Reads every clock that there is until the budget is spent, each turn on the next of `cpus`.
pub fn read_all(permission: Result<(), Refused>, cpus: &[usize], budget: &Budget, progress: Progress) -> Clocks {
    let mut all = clocks(permission);
    let mut meters: Vec<&mut Box<dyn ClockMeter>> = all.iter_mut().flatten().collect();

    let outside_clock: Box<dyn Clock> = match Counter::new() {
        Ok(counter) => Box::new(counter),
        Err(_) => Box::new(SystemSyscall::default()),
    };
    let outside = Outside { clock: &*outside_clock, rate: quick_rate(), cost: timing_cost(&*outside_clock) };

    let limit = budget.left();
    let look = Nanos(LOOK.0.min((limit.0 / 20.0).max(12e6)));
    for meter in &mut meters {
        meter.look_at_steps(budget, look);
    }
    let weights: f64 = meters.iter().map(|meter| meter.weight()).sum();
    let unit = Nanos(budget.left().0 / f64::from(ROUNDS) / weights);
    for round in 0..ROUNDS {
        // Refused or offline: the clocks are read wherever the kernel puts us.
        let _pin = cpus.get(round as usize % cpus.len().max(1)).and_then(|cpu| Pinned::to(*cpu).ok());
        for meter in &mut meters {
            if round > 0 && !budget.go_on() {
                continue;
            }
            // The first turn is taken whatever the budget says, so that no clock is without figures.
            meter.slice(&outside, &budget.part(Nanos(unit.0 * meter.weight())));
        }
        progress(f64::from(round + 1) / f64::from(ROUNDS));
    }
    all
}

/// The counter's rate, well enough to time a buffer by; the true one is known only at the end.
fn quick_rate() -> Hertz {
    let rate = Counter::new()
        .ok()
        .and_then(|counter| measure_rate(counter, Reference::default(), Ppm(100.0), Nanos::from_millis(5.0)).ok());
    rate.map_or(NANOSECONDS, |rate| rate.rate)
}

/// The figures, with ticks turned into nanoseconds by the counter's rate.
pub fn summaries(clocks: &Clocks, counter: Option<Hertz>) -> Vec<ClockReport> {
    let mut reports: Vec<ClockReport> = clocks
        .iter()
        .map(|clock| match clock {
            Ok(meter) => summary(&**meter, counter),
            Err((name, why)) => ClockReport::unavailable(name, why),
        })
        .collect();
    tell_through(&mut reports);
    reports
}

fn summary(meter: &dyn ClockMeter, counter: Option<Hertz>) -> ClockReport {
    let Some(rate) = rate_of(meter, counter) else {
        return ClockReport::unavailable(meter.name(), "its rate could not be measured");
    };
    let (record, looked) = meter.record();
    let mut report = summarise(meter.name(), record, looked, rate);
    report.through = meter.is_counter().then_some(Through::Instruction);
    report
}

/// From so much of a bare system call's cost on, a read must have made one; the vDSO's takes a
/// twentieth to a third of it.
const LIKE_A_CALL: f64 = 0.75;
/// And from so much on, something else is in the way as well.
const BEYOND_A_CALL: f64 = 1.5;

/// Tells the vDSO from the system call by what a read costs.
fn tell_through(clocks: &mut [ClockReport]) {
    let cost = |clocks: &[ClockReport], name| clocks.iter().find(|c| c.name == name).and_then(|c| c.read_ns);
    let Some(call) = cost(clocks, "system_syscall") else { return };
    for clock in clocks.iter_mut().filter(|clock| clock.through.is_none()) {
        clock.through = clock.read_ns.map(|read| match read / call {
            _ if clock.name == "system_syscall" => Through::Syscall,
            ratio if ratio < LIKE_A_CALL => Through::Vdso,
            // PostgreSQL's clock alone is compared with the very call that it would make.
            ratio if ratio > BEYOND_A_CALL && clock.name == SYSTEM => Through::Interposed,
            _ => Through::Syscall,
        });
    }
}
