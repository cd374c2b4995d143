//! What a watch needs of a machine.

use super::Instruments;
use crate::report::{Activity, Clocksource, Cpus, Fact, OwnUse, Report, TscReport};
use timing_clock::{Features, Rate};

/// A machine to watch: [`LiveMachine`](super::LiveMachine), or a synthetic one in tests.
pub trait Machine {
    /// Keeps the thread on one CPU while it exists.
    type Pin;

    /// Returns the facts of the host, without figures.
    fn facts(&mut self) -> Report;
    /// Returns the clocks, with their steps measured. Called at the start, and after the clock source changed.
    fn instruments(&mut self) -> Instruments;
    fn clocksource(&mut self) -> Clocksource;
    /// Returns the messages about clocks in the kernel log since the last call, or why the log is not readable.
    fn kernel_messages(&mut self) -> Result<Vec<String>, String>;
    /// Returns the number of suspends since boot.
    fn suspends(&mut self) -> Option<u64>;
    /// Returns the hardware clock (RTC) and the time since boot, in seconds.
    fn hardware_clock(&mut self) -> Option<(f64, f64)>;
    /// Returns what the CPU reports about its counter and its hypervisor. It is constant unless the virtual machine moves to
    /// another host.
    fn features(&mut self) -> Option<Features>;
    /// Moves this thread to the `nth` CPU, in turns.
    fn pin(&mut self, nth: usize) -> Self::Pin;
    /// Starts the measurement of the machine's other activity.
    fn start_activity(&mut self);
    /// Returns the activity since the start.
    fn activity(&mut self) -> Fact<Activity>;
    /// Returns whether the counter can be used.
    fn judge_counter(&self, report: &Report, rate: &Result<Rate, String>) -> TscReport;
    /// Measures the skew between the first of these CPUs and the others.
    fn skew(&mut self, cpus: Cpus, rate: Option<Rate>) -> Cpus;
    fn own_use(&mut self) -> OwnUse;
    /// Returns the reading of a monotonic clock, in seconds.
    fn monotonic_s(&mut self) -> f64;
    /// Returns the time of day in seconds since 1970.
    fn unix_time(&mut self) -> f64;
    /// Sleeps. Returns for how long the machine or this process was stopped meanwhile, in seconds.
    fn sleep(&mut self, seconds: f64) -> f64;
}
