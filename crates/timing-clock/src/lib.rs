//! The CPU's fast clock, its rate with an error bound, and the reasons not to trust it.
//!
//! ```
//! use timing_clock::{FastClock, Refreshed};
//!
//! let mut clock = match FastClock::new() {
//!     Ok(clock) => clock,
//!     Err(reason) => {
//!         println!("the CPU's counter cannot be used: {reason}"); // use std::time::Instant instead
//!         return;
//!     }
//! };
//! let start = clock.now();
//! let mut longest = 0;
//! // Time a million short tasks. Each read of the clock takes about 10 ns.
//! for task in 0..1_000_000u64 {
//!     let before = clock.now();
//!     std::hint::black_box(task * task);
//!     longest = longest.max(clock.nanos(before, clock.now()));
//! }
//! let end = clock.now();
//! // Measures the rate over the whole time, so the uncertainty is smaller. After a suspend or a migration, the times are wrong.
//! if clock.refresh() == Ok(Refreshed::Unchanged) {
//!     println!("total {} ns, longest task {longest} ns", clock.nanos(start, end));
//!     println!("uncertainty of the rate: +-{:.2} ppm", clock.rate().uncertainty.0);
//! }
//! ```
//!
//! # Contents
//!
//! * [`FastClock`]: the CPU's counter with its measured rate, for programs.
//! * [`fast::Instant`]: the interface of `std::time::Instant` on the same counter, or on the system's clock.
//! * [`Clock`]: the trait of all clocks. Its types are the CPU's counter ([`counter`]), the system's clocks ([`Posix`],
//!   [`System`]), and the same clocks read by system calls ([`Syscall`]). A read is inlined: it is a few instructions.
//! * [`measure_rate`] and [`RateMeter`]: measure a counter's rate and its uncertainty.
//! * [`Bracket`]: reads two clocks at almost the same instant, with a bound on the error.
//! * [`Claim`]: a rate that another source reports: CPUID, the hypervisor, the firmware or procfs.
//! * [`distrust`]: returns the reasons not to use the counter. [`postgres19()`]: predicts PostgreSQL 19's decision.
//! * [`ClockSources`] and [`clocksource`]: which clock sources the kernel uses and offers, and which are the counter.
//! * [`Scale`]: converts ticks to nanoseconds without overflow and without bias.
//! * [`granularity`]: finds the smallest step of a clock's value. It can be longer than one tick.
//! * [`sim`]: synthetic clocks for tests.
//!
//! # Accuracy of the rate
//!
//! The uncertainty of a rate is relative to the reference, [`REFERENCE_NAME`]: `CLOCK_MONOTONIC_RAW`, because NTP does not
//! adjust it, or `CLOCK_MONOTONIC` on FreeBSD. It does not include the error of the reference itself, which is often some
//! tens of ppm. `std::time::Instant` reads a clock that NTP adjusts, so it can differ by up to 500 ppm.
//!
//! The kernel's clock may use the same counter ([`ClockSources::uses_counter`]). Then the measurement checks the
//! conversion, but not the crystal: if the host's seconds are wrong, the rate is wrong by the same share.
//!
//! # Platforms
//!
//! Tested on Linux, on x86_64 and AArch64. The crate compiles for FreeBSD and macOS.

#![deny(missing_docs)]

/// The example in the README is compiled and executed.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod claim;
mod clock;
pub mod clocksource;
pub mod counter;
pub mod fast;
mod fast_clock;
mod features;
mod granularity;
mod rate;
pub mod sim;
mod trust;
mod units;

pub use claim::{Claim, ClaimSource, bogomips_claim, cpu_claims, firmware_claim};
pub use clock::{Clock, Posix, REFERENCE_NAME, Reference, Syscall, System, SystemSyscall, ticks_between};
pub use clocksource::ClockSources;
pub use counter::{Counter, Refused};
pub use fast_clock::{FastClock, Moment, Refreshed};
pub use features::{Architecture, Features};
pub use granularity::{Granularity, granularity};
pub use rate::{Bracket, Rate, RateError, RateMeter, measure_rate};
pub use trust::{Distrust, Postgres19, distrust, postgres19};
pub use units::{Hertz, NANOSECONDS, Nanos, Ppm, Scale};
