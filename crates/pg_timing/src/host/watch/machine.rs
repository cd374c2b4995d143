//! What a watch needs of a machine, and this machine.

use super::*;
use crate::host::facts::{FollowedLog, Host, activity_since, counters, own_use};
use crate::host::measure::{Budget, Pinned, allowed};
use crate::host::survey::clocks::{STEP_TIME, is_main};
use crate::host::survey::{self, counter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use timing_clock::{Clock, Features, Nanos, Posix, counter::permitted};

/// A machine to watch: [`LiveMachine`], or a synthetic one in tests.
pub trait Machine {
    /// Returns the facts of the host, without figures.
    fn facts(&mut self) -> Report;
    /// Returns the clocks, with their steps measured. Called at the start, and after the clock source changed.
    fn instruments(&mut self) -> Instruments;
    fn clocksource(&mut self) -> Clocksource;
    /// Returns the messages about clocks in the kernel log since the last call, or why the log is not readable.
    fn kernel_messages(&mut self) -> Result<Vec<String>, String>;
    fn state(&mut self) -> State;
    /// Calls `read` on the `nth` CPU, in turns. Returns the machine's other activity meanwhile.
    fn on_cpu(&mut self, nth: usize, read: &mut dyn FnMut()) -> Activity;
    /// Returns whether the counter can be used.
    fn judge_counter(&self, facts: &Report, rate: &Result<Rate, String>) -> TscReport;
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

/// What shows that a machine was suspended, paused, restored or moved.
pub struct State {
    /// number of suspends since boot
    pub suspends: Option<u64>,
    /// readings of the hardware clock (RTC) and of the time since boot, in seconds
    pub hardware_clock: Option<(f64, f64)>,
    /// time of day in seconds since 1970
    pub unix_s: f64,
    /// what the CPU reports about its counter and its hypervisor. It is constant unless the virtual machine moves to another
    /// host
    pub features: Features,
    /// the hypervisor's marker of a restore or a move, if it has one
    pub vmclock_disruption: Option<u64>,
    pub ntp: Fact<Ntp>,
}

/// The hardware clock has steps of 1 s, and each of the two readings can be late by one step. A difference above this is a
/// pause.
const RTC_STEPS_S: f64 = 2.5;

impl State {
    /// Adds to the sample what changed since `before`.
    pub fn compare(&self, before: &State, sample: &mut Sample) {
        sample.suspends = self.suspends.zip(before.suspends).map_or(0, |(now, before)| now.saturating_sub(before));
        let both = self.hardware_clock.zip(before.hardware_clock);
        if let Some(((rtc_s, boottime_s), (rtc_before_s, boottime_before_s))) = both {
            let ahead_s = (rtc_s - rtc_before_s) - (boottime_s - boottime_before_s);
            // With NTP, the kernel sets a wrong hardware clock to the time of day. A pause makes a right one wrong.
            let is_right = |rtc_s: f64, unix_s: f64| (rtc_s - unix_s).abs() <= RTC_STEPS_S;
            let was_set = is_right(rtc_s, self.unix_s) && !is_right(rtc_before_s, before.unix_s);
            sample.paused_s = Some(ahead_s).filter(|ahead| *ahead > RTC_STEPS_S && !was_set);
        }
        if self.features != before.features {
            sample.restored = Some("the CPU reports other features: the virtual machine moved to another host".into());
        } else if self.vmclock_disruption.zip(before.vmclock_disruption).is_some_and(|(now, before)| now != before) {
            sample.restored =
                Some("the hypervisor's vmclock says that the machine was restored, cloned or moved".into());
        } else if sample.messages.iter().any(|message| message.contains("virtual machine fork")) {
            sample.restored = Some("the kernel noticed that the virtual machine was restored or cloned".into());
        }
    }
}

/// The machine that the program runs on.
pub struct LiveMachine {
    host: Host,
    log: FollowedLog,
    started: Instant,
    /// ends a sleep early
    stop: Arc<AtomicBool>,
}

/// The longest time for measuring the steps of all clocks. Only coarse clocks need so long.
const STEPS_TIME: Nanos = Nanos::from_millis(1000.0);
/// The longest time for comparing two CPUs. Idle CPUs need 1 to 2 ms per clock. On busy CPUs both threads wait actively.
const SKEW_LIMIT: Nanos = Nanos::from_millis(30.0);
/// A sleep ends this soon after the stop flag was set. Each check wakes the process, which takes CPU time.
pub const STOP_CHECK: Duration = Duration::from_millis(250);

impl LiveMachine {
    pub fn new(stop: Arc<AtomicBool>) -> LiveMachine {
        LiveMachine { host: Host::live(), log: FollowedLog::start(), started: Instant::now(), stop }
    }
}

impl Machine for LiveMachine {
    fn facts(&mut self) -> Report {
        survey::facts(&self.host, &self.log.log, Origin::Measured)
    }

    fn instruments(&mut self) -> Instruments {
        let stop = AtomicBool::new(false);
        Instruments::live(is_main, &Budget::new(STEPS_TIME, &stop), STEP_TIME)
    }

    fn clocksource(&mut self) -> Clocksource {
        self.host.clocksource()
    }

    fn kernel_messages(&mut self) -> Result<Vec<String>, String> {
        self.log.new_messages()
    }

    fn state(&mut self) -> State {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let boottime_ns = Posix::<{ libc::CLOCK_BOOTTIME }>.read();
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let boottime_ns = Posix::<{ libc::CLOCK_MONOTONIC }>.read();
        let rtc_s = self.host.hardware_clock_s();
        // The thread may run on any CPU. Fast and slow cores of one machine have different base frequencies.
        let mut features = Features::of_this_cpu();
        features.leaf_16_hz = None;
        State {
            suspends: self.host.suspends().known().copied(),
            hardware_clock: rtc_s.map(|rtc_s| (rtc_s as f64, boottime_ns as f64 / 1e9)),
            unix_s: self.unix_time(),
            features,
            vmclock_disruption: self.host.vmclock_disruption(),
            ntp: self.host.ntp(),
        }
    }

    fn on_cpu(&mut self, nth: usize, read: &mut dyn FnMut()) -> Activity {
        // If the CPU is offline or refused, the clocks are read on any CPU.
        let cpus = allowed().unwrap_or_default();
        let _pin = cpus.get(nth % cpus.len().max(1)).and_then(|cpu| Pinned::to(*cpu).ok());
        let before = counters(&self.host);
        read();
        activity_since(&before, &counters(&self.host))
    }

    fn judge_counter(&self, facts: &Report, rate: &Result<Rate, String>) -> TscReport {
        counter::judge(&self.host, facts, permitted(), rate, &self.log.log)
    }

    fn skew(&mut self, cpus: Cpus, rate: Option<Rate>) -> Cpus {
        let stop = AtomicBool::new(false);
        let rate = rate.ok_or_else(|| "the counter's rate is unknown".to_string());
        survey::between_cpus(cpus, permitted(), &rate, &Budget::new(SKEW_LIMIT, &stop))
    }

    fn own_use(&mut self) -> OwnUse {
        own_use(&self.host, self.started.elapsed().as_secs_f64())
    }

    fn monotonic_s(&mut self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn unix_time(&mut self) -> f64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
    }

    fn sleep(&mut self, seconds: f64) -> f64 {
        let mut stopped = Duration::ZERO;
        let mut now = Instant::now();
        let end = now + Duration::from_secs_f64(seconds.max(0.0));
        while now < end && !self.stop.load(Ordering::Relaxed) {
            let nap = (end - now).min(STOP_CHECK);
            std::thread::sleep(nap);
            let after = Instant::now();
            stopped = stopped.max((after - now).saturating_sub(nap));
            now = after;
        }
        stopped.as_secs_f64()
    }
}
