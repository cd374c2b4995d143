//! The CPU's fast clock, its rate with an error bound, and the reasons not to trust it.
//!
//! ```
//! use timing_clock::FastClock;
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
//! // Time a million short tasks. Each read of the clock takes about 9 ns.
//! for task in 0..1_000_000u64 {
//!     let before = clock.now();
//!     std::hint::black_box(task * task);
//!     longest = longest.max(clock.nanos(before, clock.now()));
//! }
//! clock.refresh().unwrap(); // measures the rate over the whole time, so the uncertainty is smaller
//! println!("total {} ns, longest task {longest} ns", clock.elapsed_nanos(start));
//! println!("uncertainty of the rate: +-{:.2} ppm", clock.rate().uncertainty.0);
//! ```
//!
//! # Contents
//!
//! * [`FastClock`]: the CPU's counter with its measured rate, for programs.
//! * [`Clock`]: the trait of all clocks. Its types are the CPU's counter ([`counter`]), the system's clocks ([`Posix`],
//!   [`System`]), and the same clocks read by system calls ([`Syscall`]). A read is inlined: it is a few instructions.
//! * [`measure_rate`] and [`RateMeter`]: measure a counter's rate and its uncertainty.
//! * [`Bracket`]: reads two clocks at almost the same instant, with a bound on the error.
//! * [`Claim`]: a rate that CPUID, the hypervisor, the firmware, the kernel's log or procfs reports.
//! * [`distrust`]: returns the reasons not to use the counter. [`postgres19()`]: predicts PostgreSQL 19's decision.
//! * [`Scale`]: converts ticks to nanoseconds without overflow and without bias.
//! * [`granularity`]: finds the smallest step of a clock's value. It can be longer than one tick.
//! * [`sim`]: synthetic clocks for tests.
//!
//! # Accuracy of the rate
//!
//! The reference is `CLOCK_MONOTONIC_RAW`, because NTP does not adjust it. The kernel's clock may use the same counter
//! ([`KernelVerdict::uses_counter`]). Then the measurement checks the conversion, but not the crystal. The rate agrees
//! with all other clocks of the host. If the host's seconds are wrong, the rate is wrong by the same share.
//!
//! # Platforms
//!
//! Tested on Linux, on x86_64 and AArch64. The crate compiles for FreeBSD and macOS.

#![deny(missing_docs)]

mod bracket;
mod claim;
mod clock;
mod convert;
pub mod counter;
mod fast;
mod features;
mod granularity;
mod postgres19;
mod rate;
pub mod sim;
mod system;
mod trust;
mod units;

pub use bracket::Bracket;
pub use claim::{Claim, ClaimSource, bogomips_claim, cpu_claims, firmware_claim};
pub use clock::{Clock, ticks_between};
pub use convert::Scale;
pub use counter::{Counter, Refused};
pub use fast::{FastClock, Moment, Refreshed};
pub use features::{Architecture, Features};
pub use granularity::{Granularity, granularity};
pub use postgres19::{Postgres19, postgres19};
pub use rate::{Rate, RateError, RateMeter, measure_rate};
pub use system::{Posix, REFERENCE_NAME, Reference, Syscall, System, SystemSyscall};
pub use trust::{Distrust, KernelVerdict, distrust, is_counter, is_counter_based, is_tsc};
pub use units::{Hertz, NANOSECONDS, Nanos, Ppm};
