//! The clocks of this host: those that PostgreSQL reads, and others for comparison. Each has its totals.

use super::{Block, Budget, ClassicLoop, MeasuredStep, Outside, Record, measure_step};
use timing_clock::{Clock, Hertz, Nanos, Posix, Refused, System, SystemSyscall};

/// The loops over a clock. They are compiled for its type.
pub trait Loops {
    /// Reads the clock until the budget is spent.
    fn slice(&self, record: &mut Record, outside: &Outside, budget: &Budget);
    /// Measures the clock's step.
    fn step(&self, budget: &Budget, limit: Nanos) -> MeasuredStep;
    /// Reads one block with pg_test_timing's loop, and adds it to `classic`. `in_thousands` cuts each reading to whole
    /// thousands of ticks: microseconds of a nanosecond clock.
    fn classic_block(&self, classic: &mut ClassicLoop, in_thousands: bool) -> Block;
}

impl<C: Clock> Loops for C {
    fn slice(&self, record: &mut Record, outside: &Outside, budget: &Budget) {
        record.slice(self, outside, || budget.go_on());
    }

    fn step(&self, budget: &Budget, limit: Nanos) -> MeasuredStep {
        measure_step(self, budget, limit)
    }

    fn classic_block(&self, classic: &mut ClassicLoop, in_thousands: bool) -> Block {
        if in_thousands { classic.run::<C, 1000>(self) } else { classic.run::<C, 1>(self) }
    }
}

/// A clock of any type with its name and its totals.
pub struct Meter<'a> {
    /// in reports
    pub name: &'static str,
    pub clock: Box<dyn Loops + 'a>,
    /// share of the measuring time. A minor clock has 1
    pub weight: f64,
    /// the clock is the CPU's counter. The ticks of all other clocks are nanoseconds
    pub is_counter: bool,
    pub record: Record,
    pub step: Option<MeasuredStep>,
}

impl<'a> Meter<'a> {
    /// Returns a meter without totals.
    pub fn new(name: &'static str, clock: impl Clock + 'a, weight: f64, is_counter: bool) -> Meter<'a> {
        Meter { name, clock: Box::new(clock), weight, is_counter, record: Record::default(), step: None }
    }

    /// Returns the rate of this clock's ticks. `counter` is the counter's rate, if known.
    pub fn rate(&self, counter: Option<Hertz>) -> Option<Hertz> {
        if self.is_counter { counter } else { Some(timing_clock::NANOSECONDS) }
    }
}

/// The name of PostgreSQL's clock in reports.
pub const SYSTEM: &str = "system";

/// The clocks in display order. An unreadable clock is an error with its name and the reason.
pub type Clocks = Vec<Result<Meter<'static>, (&'static str, String)>>;

/// Weight of the clocks that PostgreSQL reads. They get most of the measuring time.
const MAIN: f64 = 4.0;
/// Weight of other clocks.
const MINOR: f64 = 1.0;

/// The names of the CPU's counter, read by an instruction that PostgreSQL uses.
#[cfg(target_arch = "x86_64")]
pub const COUNTERS: [&str; 2] = ["rdtscp", "rdtsc"];
/// The names of the CPU's counter, read by an instruction that PostgreSQL uses.
#[cfg(target_arch = "aarch64")]
pub const COUNTERS: [&str; 2] = ["isb_cntvct", "cntvct"];

/// Returns the clock with this name. `None` if there is no such clock, or it cannot be read.
pub fn clock(name: &str, permission: Result<(), Refused>) -> Option<Meter<'static>> {
    clocks(permission).into_iter().flatten().find(|clock| clock.name == name)
}

/// Returns every clock of this host.
///
/// If the counter is denied, a read of the vDSO's clocks ends the process. Then only clocks that make system calls or
/// do not use the counter are readable.
pub fn clocks(permission: Result<(), Refused>) -> Clocks {
    let mut clocks = Clocks::default();
    let vdso = permission.map_err(|why| format!("the vDSO reads the CPU's counter, and {why}"));
    add(&mut clocks, SYSTEM, vdso.clone().map(|()| System::default()), MAIN, false);
    add_counters(&mut clocks);
    add(&mut clocks, "system_syscall", Ok(SystemSyscall::default()), MINOR, false);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    add_existing::<{ libc::CLOCK_MONOTONIC_RAW }>(&mut clocks, "monotonic_raw", vdso.clone());
    #[cfg(any(target_os = "linux", target_os = "android"))]
    add_existing::<{ libc::CLOCK_BOOTTIME }>(&mut clocks, "boottime", vdso.clone());
    add_existing::<{ libc::CLOCK_REALTIME }>(&mut clocks, "realtime", vdso);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    add_existing::<{ libc::CLOCK_MONOTONIC_COARSE }>(&mut clocks, "monotonic_coarse", Ok(()));
    clocks
}

/// Adds the CPU's counter, once for each read instruction of this architecture.
#[cfg(target_arch = "x86_64")]
fn add_counters(clocks: &mut Clocks) {
    use timing_clock::counter::{LfenceRdtsc, Rdtsc, Rdtscp};
    let [rdtscp, rdtsc] = COUNTERS;
    add_counter(clocks, rdtscp, Rdtscp::new(), MAIN);
    add_counter(clocks, rdtsc, Rdtsc::new(), MAIN);
    add_counter(clocks, "lfence_rdtsc", LfenceRdtsc::new(), MINOR);
}

/// Adds the CPU's counter, once for each read instruction of this architecture.
#[cfg(target_arch = "aarch64")]
fn add_counters(clocks: &mut Clocks) {
    use timing_clock::counter::{Cntvct, IsbCntvct};
    let [isb_cntvct, cntvct] = COUNTERS;
    add_counter(clocks, isb_cntvct, IsbCntvct::new(), MAIN);
    add_counter(clocks, cntvct, Cntvct::new(), MAIN);
}

fn add(list: &mut Clocks, name: &'static str, clock: Result<impl Clock + 'static, String>, weight: f64, counter: bool) {
    list.push(clock.map(|clock| Meter::new(name, clock, weight, counter)).map_err(|why| (name, why)));
}

fn add_counter<C: Clock + 'static>(clocks: &mut Clocks, name: &'static str, clock: Result<C, Refused>, weight: f64) {
    add(clocks, name, clock.map_err(|why| why.to_string()), weight, true);
}

fn add_existing<const ID: libc::clockid_t>(clocks: &mut Clocks, name: &'static str, permission: Result<(), String>) {
    let clock = Posix::<ID>;
    let permission = if clock.exists() { permission } else { Err("this kernel does not have this clock".into()) };
    add(clocks, name, permission.map(|()| clock), MINOR, false);
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
        let clock = SimClock::new(&world, character());
        let mut meter = Meter::new("synthetic", &clock, 4.0, true);
        assert_eq!((meter.name, meter.weight, meter.is_counter), ("synthetic", 4.0, true));
        assert!(meter.record.buffers.count() == 0 && meter.step.is_none());

        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let timer = SimClock::new(&world, Character::default());
        // The stop flag is set, so a slice has one block, and a block of 256 timed calls.
        meter.clock.slice(&mut meter.record, &Outside { clock: &timer, cost: 0.0 }, &budget);
        assert_eq!((meter.record.buffers.count(), clock.reads()), (1, 1024 + 2 * 256));

        let mut classic = ClassicLoop::default();
        let block = meter.clock.classic_block(&mut classic, false);
        assert_eq!((classic.reads, classic.ticks), (1024, block.last - block.first));
    }

    #[test]
    fn the_step_is_measured() {
        let (world, stop) = (World::new(1), AtomicBool::new(false));
        let meter = Meter::new("synthetic", SimClock::new(&world, character()), 1.0, false);
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let step = meter.clock.step(&budget, Nanos::from_secs(60.0));
        assert_eq!(step.granularity, Granularity::Step(10.0));
        assert!(step.duration.0 > 0.0 && step.duration.secs() < 60.0, "{step:?}");
    }

    #[test]
    fn only_a_counter_has_the_counters_rate() {
        let world = World::new(1);
        let rate = |is_counter, counter| {
            Meter::new("", SimClock::new(&world, Character::default()), 1.0, is_counter).rate(counter)
        };
        assert_eq!(rate(true, Some(Hertz(2e9))), Some(Hertz(2e9)));
        assert_eq!(rate(true, None), None);
        assert_eq!(rate(false, None), Some(timing_clock::NANOSECONDS));
    }
}

#[cfg(test)]
mod clocks_tests {
    use super::*;

    fn readable(clocks: &Clocks) -> Vec<&'static str> {
        clocks.iter().flatten().map(|clock| clock.name).collect()
    }

    #[test]
    fn the_system_clock_comes_first_and_has_the_weight_of_a_main_clock() {
        let clocks = clocks(Ok(()));
        let names = readable(&clocks);
        assert_eq!(names[0], SYSTEM);
        assert!(names.contains(&"system_syscall") && names.contains(&"realtime"), "{names:?}");
        let weight = |name| clock(name, Ok(())).map(|clock| (clock.weight, clock.is_counter));
        assert_eq!((weight(SYSTEM), weight("system_syscall")), (Some((4.0, false)), Some((1.0, false))));
        assert_eq!(weight("no such clock"), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn counters_are_marked_as_counters() {
        for (name, weight) in [("rdtsc", 4.0), ("lfence_rdtsc", 1.0)] {
            let clock = clock(name, Ok(())).unwrap();
            assert_eq!((clock.name, clock.weight, clock.is_counter), (name, weight, true));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_denied_counter_leaves_only_clocks_that_do_not_use_it() {
        let clocks = clocks(Err(Refused::Denied));
        let names = readable(&clocks);
        assert!(names.contains(&"system_syscall") && names.contains(&"monotonic_coarse"), "{names:?}");
        for name in [SYSTEM, "monotonic_raw", "boottime", "realtime"] {
            assert!(!names.contains(&name), "{names:?}");
            let reason =
                clocks.iter().filter_map(|clock| clock.as_ref().err()).find(|(unreadable, _)| *unreadable == name);
            assert!(reason.is_some_and(|(_, why)| why.starts_with("the vDSO reads the CPU's counter, and ")), "{name}");
        }
    }

    #[test]
    fn a_clock_that_the_kernel_does_not_have_is_an_error() {
        let mut clocks = Clocks::default();
        add_existing::<1000>(&mut clocks, "unknown", Ok(()));
        let error = clocks.remove(0).err();
        assert_eq!(error, Some(("unknown", "this kernel does not have this clock".into())));
        add_existing::<{ libc::CLOCK_REALTIME }>(&mut clocks, "realtime", Ok(()));
        assert_eq!(readable(&clocks), ["realtime"]);
    }
}
