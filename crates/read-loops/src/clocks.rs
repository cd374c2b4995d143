//! The clocks of this host that PostgreSQL or a fast-clock library can read.

use super::meter::{ClockMeter, Meter};
use timing_clock::{Clock, Posix, Refused, System, SystemSyscall};

/// The name of PostgreSQL's clock in reports.
pub const SYSTEM: &str = "system";

/// The clocks in display order. A clock that cannot be read has its name and the reason.
pub type Clocks = Vec<Result<Box<dyn ClockMeter>, (&'static str, String)>>;

/// The clocks that PostgreSQL reads get most of the measuring time.
const MAIN: f64 = 4.0;
const MINOR: f64 = 1.0;

/// Returns the clock of that name, if it can be read.
pub fn clock(name: &str, permission: Result<(), Refused>) -> Option<Box<dyn ClockMeter>> {
    clocks(permission).into_iter().flatten().find(|clock| clock.name() == name)
}

/// Returns every clock of this host.
///
/// If the counter is denied, reading the vDSO's clocks would end the process. Then only clocks that use system calls, or
/// no counter, are readable.
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
    add_counter(clocks, "rdtscp", Rdtscp::new(), MAIN);
    add_counter(clocks, "rdtsc", Rdtsc::new(), MAIN);
    add_counter(clocks, "lfence_rdtsc", LfenceRdtsc::new(), MINOR);
}

/// Adds the CPU's counter, once for each read instruction of this architecture.
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
    let permission = if clock.exists() { permission } else { Err("this kernel does not have this clock".into()) };
    add(clocks, name, clock, MINOR, permission);
}
