//! The clocks of this host that PostgreSQL or a fast-clock library could read.

use super::meter::{ClockMeter, Meter};
use crate::report::SYSTEM;
use timing_clock::{Clock, Posix, Refused, System, SystemSyscall};

/// The clocks in the order in which they are shown; of one that cannot be read, its name and why.
pub type Clocks = Vec<Result<Box<dyn ClockMeter>, (&'static str, String)>>;

/// What PostgreSQL reads gets most of the time.
const MAIN: f64 = 4.0;
const MINOR: f64 = 1.0;

/// Every clock of this host. Where the counter is denied the vDSO would fault: only what enters the
/// kernel or needs no counter is read then.
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

/// The CPU's counter, read in every way this architecture has.
#[cfg(target_arch = "x86_64")]
fn add_counters(clocks: &mut Clocks) {
    use timing_clock::counter::{LfenceRdtsc, Rdtsc, Rdtscp};
    add_counter(clocks, "rdtscp", Rdtscp::new(), MAIN);
    add_counter(clocks, "rdtsc", Rdtsc::new(), MAIN);
    add_counter(clocks, "lfence_rdtsc", LfenceRdtsc::new(), MINOR);
}

/// The CPU's counter, read in every way this architecture has.
#[cfg(target_arch = "aarch64")]
fn add_counters(clocks: &mut Clocks) {
    use timing_clock::counter::{Cntvct, IsbCntvct};
    add_counter(clocks, "isb_cntvct", IsbCntvct::new(), MAIN);
    add_counter(clocks, "cntvct", Cntvct::new(), MAIN);
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
    let permission = if clock.exists() { permission } else { Err("this kernel does not have it".into()) };
    add(clocks, name, clock, MINOR, permission);
}
