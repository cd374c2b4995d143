//! The clocks to read, and the pairs of clocks to compare.

use crate::host::measure::{Budget, COUNTERS, Clocks, DriftMeter, Drifting, clocks, measure_step, timing_cost};
use crate::host::survey::clocks::STEP_TIME;
use crate::report::SYSTEM;
use std::sync::atomic::AtomicBool;
use timing_clock::{Clock, Counter, Nanos, Posix, REFERENCE_NAME, Reference, Refused, System, SystemSyscall};

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
