//! The clocks of a machine: reads them in turns, compares them with each other, and returns the figures.

use super::*;
use timing_clock::{Clock, Counter, NANOSECONDS, Posix, REFERENCE_NAME, Reference, System, SystemSyscall};

/// The least number of turns per clock. The clocks alternate, so that a change of the machine (another process, the
/// CPU's frequency) affects every clock.
const ROUNDS: f64 = 20.0;
/// The longest turn of a clock, for the same reason.
const LONGEST_TURN: Nanos = Nanos::from_millis(50.0);
/// The longest time for measuring the step of a clock. A clock with steps of 10 ms needs it to show a few steps.
pub const STEP_TIME: Nanos = Nanos::from_millis(50.0);

/// The system call behind PostgreSQL's clock shows whether the vDSO reads the clock.
const SYSCALL: &str = "system_syscall";

/// The clocks of a machine.
pub struct Instruments {
    /// the clocks to read, with their steps
    pub clocks: Clocks,
    /// times whole buffers: the counter if it can be compared, or else a system call
    pub outside: Box<dyn Clock>,
    /// cost of timing an empty buffer with it, in its ticks
    pub outside_cost: f64,
    /// compares the counter with the reference clock; or why that is not possible
    pub counter: Result<DriftMeter<'static>, String>,
    pub offsets: Vec<OffsetMeter>,
}

/// Compares two clocks that count nanoseconds.
pub struct OffsetMeter {
    pub clock: &'static str,
    pub reference: &'static str,
    pub meter: DriftMeter<'static>,
    /// the largest change of the offset, as a fraction of the time, that is not a step
    pub slew: f64,
}

impl OffsetMeter {
    /// Returns the drift that the samples show.
    pub fn trend(&self) -> Option<Drift> {
        trend((self.clock, self.reference), self.slew, &self.meter.samples(1.0))
    }
}

/// The kernel adjusts CLOCK_REALTIME and CLOCK_BOOTTIME exactly like CLOCK_MONOTONIC, so their offsets are constant. This
/// covers the kernel's rounding.
pub const NO_SLEW: f64 = 1e-9;

/// Returns whether PostgreSQL can read this clock, or whether it shows the access path of PostgreSQL's clock.
pub fn is_main(name: &str) -> bool {
    name == SYSTEM || name == SYSCALL || COUNTERS.contains(&name)
}

impl Instruments {
    /// Returns those clocks of this machine that are `wanted`, and measures the step of each in `step_time`.
    pub fn live(wanted: impl Fn(&str) -> bool, budget: &Budget, step_time: Nanos) -> Instruments {
        let permission = timing_clock::counter::permitted();
        let mut clocks = clocks(permission);
        clocks.retain(|clock| wanted(clock.as_ref().map_or_else(|(name, _)| *name, |meter| meter.name)));
        clocks.iter_mut().flatten().for_each(|meter| meter.step = Some(meter.clock.step(budget, step_time)));
        let step = |wanted: &dyn Fn(&Meter) -> bool| {
            let meter = clocks.iter().flatten().find(|meter| wanted(meter))?;
            meter.step?.granularity.step()
        };
        // If the counter is denied, the reference is denied, too, because the vDSO reads the counter.
        let measured = permission.map(|()| measure_step(&Reference::default(), budget, step_time));
        let reference = measured.ok().and_then(|measured| measured.granularity.step());
        let counter = compared_counter(step(&|meter| meter.is_counter), reference);
        let system = step(&|meter| meter.name == SYSTEM);
        let offsets = system.zip(reference).map(|(system, reference)| offsets(system, reference)).unwrap_or_default();
        let outside: Box<dyn Clock> = match (&counter, Counter::new()) {
            (Ok(_), Ok(counter)) => Box::new(counter),
            _ => Box::new(SystemSyscall::default()),
        };
        let outside_cost = timing_cost(&*outside);
        Instruments { clocks, outside, outside_cost, counter, offsets }
    }

    /// Reads every clock in turns until the budget is spent. Each round runs on the next of `cpus`.
    pub fn read(&mut self, cpus: &[usize], budget: &Budget, progress: Progress) {
        // The measurement of the rate lasts from this sample to the last one.
        self.sample();
        let weights = self.weights();
        let heaviest = self.clocks.iter().flatten().map(|meter| meter.weight).fold(1.0, f64::max);
        let limit = budget.left();
        let rounds = (limit.0 / (LONGEST_TURN.0 / heaviest * weights)).max(ROUNDS).ceil();
        let unit = Nanos(limit.0 / rounds / weights);
        let mut round = 0;
        // The first round ignores the budget, so that every clock has figures.
        while round == 0 || (f64::from(round) < rounds && budget.go_on()) {
            // If the CPU is offline or refused, the clocks are read on any CPU.
            let _pin = cpus.get(round as usize % cpus.len().max(1)).and_then(|cpu| Pinned::to(*cpu).ok());
            let outside = Outside { clock: &*self.outside, cost: self.outside_cost };
            for meter in self.clocks.iter_mut().flatten() {
                if round == 0 || budget.go_on() {
                    meter.clock.slice(&mut meter.record, &outside, &budget.part(Nanos(unit.0 * meter.weight)));
                }
            }
            self.sample();
            round += 1;
            progress(f64::from(round) / rounds);
        }
    }

    /// Reads every clock anew, for `limit` in all and at least for one block each.
    pub fn read_once(&mut self, budget: &Budget, limit: Nanos) {
        let weights = self.weights();
        let outside = Outside { clock: &*self.outside, cost: self.outside_cost };
        for meter in self.clocks.iter_mut().flatten() {
            meter.record = Record::default();
            let part = budget.part(Nanos(limit.0 * meter.weight / weights.max(1.0)));
            meter.clock.slice(&mut meter.record, &outside, &part);
        }
    }

    fn weights(&self) -> f64 {
        self.clocks.iter().flatten().map(|meter| meter.weight).sum()
    }

    /// Compares each pair of clocks once, in about 50 us.
    fn sample(&mut self) {
        self.counter.iter_mut().for_each(|meter| meter.sample());
        self.offsets.iter_mut().for_each(|offset| offset.meter.sample());
    }

    /// Returns the counter's rate over the whole time, or over the longest period without a break.
    pub fn rate(&self) -> Result<Rate, String> {
        self.counter.as_ref()?.rate().ok_or_else(|| "the counter or its reference did not move".into())
    }

    /// Returns the counter's drift, without its measured rate: only changes of the rate and steps remain.
    pub fn counter_drift(&self, rate: Hertz) -> Option<Drift> {
        let samples = self.counter.as_ref().ok()?.samples(rate.nanos(1.0).0);
        trend((COUNTER, REFERENCE_NAME), MAX_SLEW, &samples)
    }

    /// Returns the drift of the kernel's clocks. CLOCK_REALTIME is left out: an administrator may set it, and no interval
    /// is wrong because of that.
    pub fn offset_drifts(&self) -> impl Iterator<Item = Drift> {
        let shown = self.offsets.iter().filter(|offset| offset.clock != "realtime");
        shown.filter_map(OffsetMeter::trend)
    }

    /// Returns the figures of each clock. `counter` is the counter's rate, which converts its ticks. `clocksource` is the kernel's
    /// clock source, if it is known and did not change.
    pub fn figures(&self, counter: Option<Hertz>, clocksource: Option<&str>) -> Vec<ClockReport> {
        let outside = if self.counter.is_ok() { counter } else { Some(NANOSECONDS) };
        let cost = |meter: &Meter| Some(outside?.nanos(meter.record.outside.undisturbed()?).0);
        let figures = self.clocks.iter().map(|clock| match clock {
            Ok(meter) => (figures(meter, counter, outside), cost(meter)),
            Err((name, why)) => (ClockReport::unavailable(name, why), None),
        });
        let (mut reports, costs): (Vec<_>, Vec<_>) = figures.unzip();
        determine_access(&mut reports, &costs, clocksource);
        reports
    }
}

/// Returns the comparison of the counter with the reference clock, or why there is none.
fn compared_counter(step: Option<f64>, reference: Option<f64>) -> Result<DriftMeter<'static>, String> {
    let counter = Counter::new().map_err(|e| e.to_string())?;
    let step = step.ok_or("the counter did not move")?;
    let reference = reference.ok_or_else(|| format!("{REFERENCE_NAME} did not move"))?;
    Ok(DriftMeter::new(counter, step, Reference::default(), Nanos(reference)))
}

/// Returns the pairs of the kernel's clocks. Their steps are equal, because they read the same hardware.
fn offsets(step: f64, reference_step: f64) -> Vec<OffsetMeter> {
    let system = DriftMeter::new(System::default(), step, Reference::default(), Nanos(reference_step));
    let mut offsets = vec![OffsetMeter { clock: SYSTEM, reference: REFERENCE_NAME, meter: system, slew: MAX_SLEW }];
    let mut add = |clock, meter| offsets.push(OffsetMeter { clock, reference: SYSTEM, meter, slew: NO_SLEW });
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if Posix::<{ libc::CLOCK_BOOTTIME }>.exists() {
        add("boottime", DriftMeter::new(Posix::<{ libc::CLOCK_BOOTTIME }>, step, System::default(), Nanos(step)));
    }
    add("realtime", DriftMeter::new(Posix::<{ libc::CLOCK_REALTIME }>, step, System::default(), Nanos(step)));
    offsets
}

/// Returns the figures of one clock.
fn figures(meter: &Meter, counter: Option<Hertz>, outside: Option<Hertz>) -> ClockReport {
    let Some(rate) = meter.rate(counter) else {
        return without_rate(meter.name, &meter.record);
    };
    let mut report = summarize(meter.name, &meter.record, meter.step, rate, outside);
    report.access_path = meter.is_counter.then_some(AccessPath::Instruction);
    report
}

/// A read that costs at least this share of a system call contains one. A read by the vDSO costs a twentieth to a third
/// of a system call.
const SYSCALL_SHARE: f64 = 0.75;
/// If a read costs more than this share of a system call, something intercepts it.
const INTERPOSED_SHARE: f64 = 1.5;

/// Sets the access path of each clock by its undisturbed read cost, in ns.
///
/// The medians are not reliable: if the machine is slow from time to time, one clock may be affected more than another. The
/// costs can mislead, too, but some clock sources are never read by the vDSO.
fn determine_access(clocks: &mut [ClockReport], costs: &[Option<f64>], clocksource: Option<&str>) {
    let has_vdso = clocksource.and_then(traits_of).is_none_or(|traits| traits.has_vdso);
    let cost = |name| clocks.iter().zip(costs).find(|(clock, _)| clock.name == name).and_then(|(_, cost)| *cost);
    let Some(call) = cost(SYSCALL) else { return };
    let call_median = clocks.iter().find(|clock| clock.name == SYSCALL).and_then(|clock| clock.read_ns);
    let interposed = call_median.map(|median| INTERPOSED_SHARE * call.max(median));
    // If the hypervisor traps counter reads, a vDSO read costs as much as a system call. Then the cost shows nothing.
    if cost(COUNTER).is_some_and(|counter| counter > call * SYSCALL_SHARE / 2.0) {
        return;
    }
    for (clock, cost) in clocks.iter_mut().zip(costs).filter(|(clock, _)| clock.access_path.is_none()) {
        clock.access_path = cost.filter(|_| clock.read_ns.is_some()).map(|cost| match cost / call {
            _ if clock.name == SYSCALL => AccessPath::Syscall,
            // The coarse clocks return the time of the kernel's last tick, which the vDSO can read with every clock source.
            ratio if ratio < SYSCALL_SHARE && (has_vdso || clock.name.ends_with("_coarse")) => AccessPath::Vdso,
            // system_syscall is the system call behind PostgreSQL's clock. Other clocks use others, so a higher cost
            // proves nothing. The undisturbed cost must exceed the median, too: with noise on a busy virtual machine,
            // the undisturbed costs of two equal clocks differed by more than 50%.
            _ if clock.name == SYSTEM && interposed.is_some_and(|limit| cost > limit) => AccessPath::Interposed,
            _ => AccessPath::Syscall,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of_system(costs: [f64; 3]) -> Option<AccessPath> {
        // Medians from a busy virtual machine whose clock is read by system calls.
        let medians = [(SYSTEM, 1308.0), ("system_syscall", 2000.0), (COUNTER, 38.0)];
        let mut clocks =
            medians.map(|(name, ns)| ClockReport { name: name.into(), read_ns: Some(ns), ..ClockReport::default() });
        determine_access(&mut clocks, &costs.map(Some), None);
        clocks[0].access_path
    }

    #[test]
    fn the_undisturbed_cost_decides_and_not_the_median() {
        assert_eq!(path_of_system([950.0, 1000.0, 30.0]), Some(AccessPath::Syscall));
        assert_eq!(path_of_system([100.0, 1000.0, 30.0]), Some(AccessPath::Vdso));
        assert_eq!(path_of_system([3100.0, 1000.0, 30.0]), Some(AccessPath::Interposed));
    }

    #[test]
    fn noise_is_no_interception() {
        // The median of the system calls is 2000 ns.
        assert_eq!(path_of_system([2000.0, 1000.0, 30.0]), Some(AccessPath::Syscall));
    }

    #[test]
    fn the_path_is_unknown_if_counter_reads_are_trapped() {
        assert_eq!(path_of_system([1000.0, 1100.0, 900.0]), None);
    }

    #[test]
    fn a_device_is_never_read_by_the_vdso() {
        let paths = |clocksource: &str| {
            let mut clocks = [SYSTEM, COUNTER, "monotonic_coarse", SYSCALL].map(|name| ClockReport {
                name: name.into(),
                read_ns: Some(100.0),
                access_path: (name == COUNTER).then_some(AccessPath::Instruction),
                ..ClockReport::default()
            });
            determine_access(&mut clocks, &[100.0, 30.0, 100.0, 1000.0].map(Some), Some(clocksource));
            [0, 1, 2].map(|nth: usize| clocks[nth].access_path.unwrap())
        };
        assert_eq!(paths("hpet"), [AccessPath::Syscall, AccessPath::Instruction, AccessPath::Vdso]);
        assert_eq!(paths("tsc"), [AccessPath::Vdso, AccessPath::Instruction, AccessPath::Vdso]);
        assert_eq!(paths("unknown-clock-source"), [AccessPath::Vdso, AccessPath::Instruction, AccessPath::Vdso]);
    }
}
