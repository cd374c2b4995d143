//! The clocks to read, the pairs of clocks to compare, and short readings of the clocks.

use super::Machine;
use crate::host::measure::{
    Budget, COUNTERS, Clocks, DriftMeter, Drifting, Outside, clocks, measure_step, timing_cost,
};
use crate::host::survey::access_path;
use crate::host::survey::clocks::{STEP_TIME, summaries};
use crate::report::{Activity, ClockReport, Collector, Fact, SYSTEM};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use timing_clock::{Clock, Counter, Hertz, Nanos, Posix, REFERENCE_NAME, Reference, Refused, System, SystemSyscall};

/// The clocks of a machine.
pub struct Instruments {
    /// the clocks to read, with their steps
    pub clocks: Clocks,
    /// times whole buffers
    pub outside: Box<dyn Clock>,
    /// cost of timing an empty buffer with it, in its ticks
    pub outside_cost: f64,
    pub outside_is_counter: bool,
    /// compares the counter with the reference clock
    pub counter: Option<Box<dyn Drifting>>,
    pub offsets: Vec<OffsetMeter>,
}

/// Compares two clocks that count nanoseconds.
pub struct OffsetMeter {
    pub clock: &'static str,
    pub reference: &'static str,
    pub meter: Box<dyn Drifting>,
    /// the largest change of the offset, as a fraction of the time, that is not a step
    pub slew: f64,
}

/// The clocks that PostgreSQL can read have this weight or a higher one.
const MAIN_WEIGHT: f64 = 2.0;
/// The system call behind PostgreSQL's clock shows whether the vDSO reads the clock.
const SYSCALL: &str = "system_syscall";

/// The kernel adjusts CLOCK_REALTIME and CLOCK_BOOTTIME exactly like CLOCK_MONOTONIC, so their offsets are constant. This
/// covers the kernel's rounding.
pub const NO_SLEW: f64 = 1e-9;

impl Instruments {
    /// Returns this machine's clocks, and measures their steps.
    pub fn live(permission: Result<(), Refused>) -> Instruments {
        let stop = AtomicBool::new(false);
        let mut all = clocks(permission);
        all.retain(|clock| match clock {
            Ok(meter) => meter.weight() >= MAIN_WEIGHT || meter.name() == SYSCALL,
            Err((name, _)) => *name == SYSTEM || COUNTERS.contains(name),
        });
        for meter in all.iter_mut().flatten() {
            meter.measure_step(&Budget::new(STEP_TIME, &stop), STEP_TIME);
        }
        let step = |wanted: &dyn Fn(&str) -> bool| {
            let meter = all.iter().flatten().find(|meter| wanted(meter.name()))?;
            meter.record().1?.granularity.step()
        };
        let system_step = step(&|name| name == SYSTEM);
        let counter_step =
            all.iter().flatten().find(|meter| meter.is_counter()).and_then(|m| m.record().1?.granularity.step());
        // If the counter is denied, the reference is denied, too, because the vDSO reads the counter.
        let reference_step = permission.ok().and_then(|()| {
            measure_step(&Reference::default(), &Budget::new(STEP_TIME, &stop), STEP_TIME).granularity.step()
        });
        let outside_is_counter = counter_step.is_some() && reference_step.is_some();
        let outside: Box<dyn Clock> = match Counter::new() {
            Ok(counter) if outside_is_counter => Box::new(counter),
            _ => Box::new(SystemSyscall::default()),
        };
        let counter = Counter::new().ok().and_then(|clock| {
            Some(Box::new(DriftMeter::new(clock, counter_step?, Reference::default(), Nanos(reference_step?)))
                as Box<dyn Drifting>)
        });
        let offsets = match (system_step, reference_step) {
            (Some(system), Some(reference)) => offsets(system, reference),
            _ => Vec::new(),
        };
        Instruments { outside_cost: timing_cost(&*outside), clocks: all, outside, outside_is_counter, counter, offsets }
    }
}

/// Returns the pairs of the kernel's clocks. Their steps are equal, because they read the same hardware.
fn offsets(step: f64, reference_step: f64) -> Vec<OffsetMeter> {
    let mut offsets = vec![OffsetMeter {
        clock: SYSTEM,
        reference: REFERENCE_NAME,
        meter: Box::new(DriftMeter::new(System::default(), step, Reference::default(), Nanos(reference_step))),
        slew: crate::host::measure::MAX_SLEW,
    }];
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let boottime = Posix::<{ libc::CLOCK_BOOTTIME }>;
        if boottime.exists() {
            let meter = DriftMeter::new(boottime, step, System::default(), Nanos(step));
            offsets.push(OffsetMeter { clock: "boottime", reference: SYSTEM, meter: Box::new(meter), slew: NO_SLEW });
        }
    }
    let meter = DriftMeter::new(Posix::<{ libc::CLOCK_REALTIME }>, step, System::default(), Nanos(step));
    offsets.push(OffsetMeter { clock: "realtime", reference: SYSTEM, meter: Box::new(meter), slew: NO_SLEW });
    offsets
}

/// The time for reading clocks, as a share of an interval. The evaluation, the comparison of CPUs and the outputs take about
/// 6 ms, so that all together stay below 0.1% of one CPU in an interval of 15 s.
const READING_SHARE: f64 = 0.25e-3;
/// The least time for reading clocks, so that each clock has some buffers.
const MIN_READING: Nanos = Nanos::from_millis(1.0);
/// The share of an interval, and the least time, that reading and evaluating the clocks may take. Who requests a short interval
/// accepts a larger share.
const ALLOWED_SHARE: f64 = 0.8e-3;
const MIN_ALLOWED_S: f64 = 20e-3;

/// Reads the clocks, and keeps the last figures.
pub struct ClockReader {
    /// time for reading all clocks
    limit: Nanos,
    /// time for reading and evaluating them; if they take longer, they are not read in each interval
    allowed_s: f64,
    /// intervals until the next reading, if a reading is expensive
    skip: u64,
    /// the clocks' figures of the last reading
    pub figures: Vec<ClockReport>,
}

impl ClockReader {
    pub fn new(interval_s: f64) -> ClockReader {
        ClockReader {
            limit: Nanos((interval_s * 1e9 * READING_SHARE).max(MIN_READING.0)),
            allowed_s: (interval_s * ALLOWED_SHARE).max(MIN_ALLOWED_S),
            skip: 0,
            figures: Vec::new(),
        }
    }

    /// Reads each clock for one block only.
    #[cfg(test)]
    pub fn brief() -> ClockReader {
        ClockReader { limit: Nanos(0.0), allowed_s: f64::INFINITY, skip: 0, figures: Vec::new() }
    }

    /// Makes the next call of [`ClockReader::read`] read the clocks, even if that is expensive.
    pub fn make_due(&mut self) {
        self.skip = 0;
    }

    /// Reads the clocks on the CPU whose turn it is, and returns the collector and the activity meanwhile. `rate` is the
    /// counter's rate, and `current` the clock source. Clocks that are slow to read are read in some intervals only: returns
    /// None in the others.
    pub fn read<M: Machine>(
        &mut self,
        machine: &mut M,
        instruments: &mut Instruments,
        rate: Option<Hertz>,
        current: Option<&str>,
        turn: usize,
    ) -> Option<(Collector, Fact<Activity>)> {
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let (start, cpu_start_s) = (Instant::now(), thread_cpu_s());
        let stop = AtomicBool::new(false);
        let pinned = machine.pin(turn);
        machine.start_activity();
        let budget = Budget::new(self.limit, &stop);
        let Instruments { clocks: all, outside, outside_cost, outside_is_counter, .. } = instruments;
        let outside = Outside { clock: &**outside, cost: *outside_cost };
        let weights: f64 = all.iter().flatten().map(|meter| meter.weight()).sum();
        for meter in all.iter_mut().flatten() {
            meter.restart();
            meter.slice(&outside, &budget.part(Nanos(self.limit.0 * meter.weight() / weights.max(1.0))));
        }
        let activity = machine.activity();
        drop(pinned);
        self.figures = summaries(all, rate, *outside_is_counter);
        if let Some(current) = current {
            access_path::correct(&mut self.figures, current);
        }
        let seconds = start.elapsed().as_secs_f64();
        // A slow clock takes longer than the limit, because each clock is read for at least one block. An interruption takes
        // no CPU time: a pause of seconds must not stop the readings for an hour.
        self.skip = ((thread_cpu_s() - cpu_start_s).min(seconds) / self.allowed_s) as u64;
        Some((Collector { name: "clocks", seconds, error: no_figures(&self.figures) }, activity))
    }
}

/// Returns the CPU time of this thread in seconds.
fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns why PostgreSQL's clock has no figures.
fn no_figures(figures: &[ClockReport]) -> Option<String> {
    match figures.iter().find(|clock| clock.name == SYSTEM) {
        None => Some("PostgreSQL's clock is missing".into()),
        Some(clock) => clock.unavailable.clone(),
    }
}
