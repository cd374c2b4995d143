//! The clocks of this host: those that PostgreSQL reads, and others for comparison.

use super::meter::{ClockMeter, Meter};
use timing_clock::{Clock, Posix, Refused, System, SystemSyscall};

/// The name of PostgreSQL's clock in reports.
pub const SYSTEM: &str = "system";

/// The clocks in display order. An unreadable clock is an error with its name and the reason.
pub type Clocks = Vec<Result<Box<dyn ClockMeter>, (&'static str, String)>>;

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
pub fn clock(name: &str, permission: Result<(), Refused>) -> Option<Box<dyn ClockMeter>> {
    clocks(permission).into_iter().flatten().find(|clock| clock.name() == name)
}

/// Returns every clock of this host.
///
/// If the counter is denied, a read of the vDSO's clocks ends the process. Then only clocks that make system calls or
/// do not use the counter are readable.
pub fn clocks(permission: Result<(), Refused>) -> Clocks {
    let mut clocks = Clocks::default();
    let vdso = permission.map_err(|why| format!("the vDSO reads the CPU's counter, and {why}"));
    add(&mut clocks, SYSTEM, System::default(), MAIN, vdso.clone());
    add_counters(&mut clocks);
    add(&mut clocks, "system_syscall", SystemSyscall::default(), MINOR, Ok(()));
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

fn add_counter<C: Clock + 'static>(clocks: &mut Clocks, name: &'static str, clock: Result<C, Refused>, weight: f64) {
    match clock {
        Ok(clock) => clocks.push(Ok(Box::new(Meter::new(name, clock, weight, true)))),
        Err(why) => clocks.push(Err((name, why.to_string()))),
    }
}

fn add<C: Clock + 'static>(
    clocks: &mut Clocks,
    name: &'static str,
    clock: C,
    weight: f64,
    permission: Result<(), String>,
) {
    match permission {
        Ok(()) => clocks.push(Ok(Box::new(Meter::new(name, clock, weight, false)))),
        Err(why) => clocks.push(Err((name, why))),
    }
}

fn add_existing<const ID: libc::clockid_t>(clocks: &mut Clocks, name: &'static str, permission: Result<(), String>) {
    let clock = Posix::<ID>;
    let permission = if clock.exists() { permission } else { Err("this kernel does not have this clock".into()) };
    add(clocks, name, clock, MINOR, permission);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(clocks: &Clocks) -> Vec<&'static str> {
        clocks.iter().flatten().map(|clock| clock.name()).collect()
    }

    #[test]
    fn the_system_clock_comes_first_and_has_the_weight_of_a_main_clock() {
        let clocks = clocks(Ok(()));
        let names = readable(&clocks);
        assert_eq!(names[0], SYSTEM);
        assert!(names.contains(&"system_syscall") && names.contains(&"realtime"), "{names:?}");
        let weight = |name| clock(name, Ok(())).map(|clock| (clock.weight(), clock.is_counter()));
        assert_eq!((weight(SYSTEM), weight("system_syscall")), (Some((4.0, false)), Some((1.0, false))));
        assert_eq!(weight("no such clock"), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn counters_are_marked_as_counters() {
        for (name, weight) in [("rdtsc", 4.0), ("lfence_rdtsc", 1.0)] {
            let clock = clock(name, Ok(())).unwrap();
            assert_eq!((clock.name(), clock.weight(), clock.is_counter()), (name, weight, true));
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
