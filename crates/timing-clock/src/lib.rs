//! The fast clock of this CPU: what its rate is, how sure that is, and when not to trust it.
//!
//! ```
//! use timing_clock::FastClock;
//!
//! // Time a million things with 9 ns a read.
//! let mut clock = match FastClock::new() {
//!     Ok(clock) => clock,
//!     Err(reason) => {
//!         println!("not on this host: {reason}"); // take std::time::Instant instead
//!         return;
//!     }
//! };
//! let start = clock.now();
//! let mut longest = 0;
//! for thing in 0..1_000_000u64 {
//!     let before = clock.now();
//!     std::hint::black_box(thing * thing);
//!     longest = longest.max(clock.nanos(before, clock.now()));
//! }
//! clock.refresh().unwrap(); // the longer it runs, the better the rate is known
//! println!("{} ns, the longest {longest} ns", clock.elapsed_nanos(start));
//! println!("rate known to +-{:.2} ppm", clock.rate().uncertainty.0);
//! ```
//!
//! # What is here
//!
//! * [`Clock`] and its kinds: the CPU's counter ([`counter`]), the system's clocks ([`Posix`],
//!   [`System`]), the same past the vDSO ([`Syscall`]). A read is a few instructions, inlined.
//! * [`measure_rate`] and [`RateMeter`]: a counter's rate with its uncertainty, by bracketed reads.
//! * [`Bracket`]: two clocks at one instant, as nearly as one CPU can tell.
//! * [`Claim`]: what CPUID, the hypervisor, the kernel's log and procfs say the rate is.
//! * [`distrust`]: the reasons not to use the counter; [`postgres19()`]: what that server decides.
//! * [`Scale`]: ticks to nanoseconds without overflow and without bias.
//! * [`granularity`]: the step in which a clock's value moves, which is not one over its rate.
//! * [`sim`]: synthetic clocks for tests.
//!
//! # How true the rate is
//!
//! It is measured against `CLOCK_MONOTONIC_RAW`, which NTP leaves alone. Where the kernel's clock
//! stands on the same counter ([`KernelVerdict::stands_on_counter`]) that checks the conversion and
//! not the crystal: the rate then agrees with every other clock of the host, and is as far from
//! true seconds as the host is.
//!
//! Linux on x86_64 and AArch64 is tested; FreeBSD and macOS compile.

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
pub use trust::{Distrust, KernelVerdict, ON_THE_COUNTER, distrust, is_counter};
pub use units::{Hertz, NANOSECONDS, Nanos, Ppm};
