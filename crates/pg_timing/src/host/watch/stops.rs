//! Notices that the machine was suspended, paused, restored or moved.

use super::{Machine, Sample};
use timing_clock::Features;

/// The machine's state in the last sample.
pub struct Stops {
    suspends: Option<u64>,
    hardware_clock: Option<HardwareClock>,
    features: Option<Features>,
}

/// Readings of the hardware clock, of the time since boot and of the time of day, in seconds.
#[derive(Clone, Copy)]
struct HardwareClock {
    rtc_s: f64,
    boottime_s: f64,
    unix_s: f64,
}

/// The hardware clock has steps of 1 s, and each of the two readings can be late by one step. A difference above this is a
/// pause.
const RTC_STEPS_S: f64 = 2.5;

impl HardwareClock {
    /// Returns whether it shows the time of day.
    fn is_right(&self) -> bool {
        (self.rtc_s - self.unix_s).abs() <= RTC_STEPS_S
    }
}

impl Stops {
    pub fn new(machine: &mut impl Machine) -> Stops {
        Stops { suspends: machine.suspends(), hardware_clock: None, features: machine.features() }
    }

    /// Compares the machine with the last sample.
    pub fn sample(&mut self, machine: &mut impl Machine, sample: &mut Sample) {
        let suspends = machine.suspends();
        sample.suspends = suspends.zip(self.suspends).map_or(0, |(now, before)| now.saturating_sub(before));
        self.suspends = suspends;
        let clock = machine.hardware_clock();
        let unix_s = machine.unix_time();
        let clock = clock.map(|(rtc_s, boottime_s)| HardwareClock { rtc_s, boottime_s, unix_s });
        if let Some((now, before)) = clock.zip(self.hardware_clock) {
            let ahead_s = (now.rtc_s - before.rtc_s) - (now.boottime_s - before.boottime_s);
            // With NTP, the kernel sets a wrong hardware clock to the time of day. A pause makes a right one wrong.
            let was_set = now.is_right() && !before.is_right();
            sample.paused_s = Some(ahead_s).filter(|ahead| *ahead > RTC_STEPS_S && !was_set);
        }
        self.hardware_clock = clock;
        let features = machine.features();
        if features != self.features {
            let what = "the CPU reports other features than before: the virtual machine moved to another host";
            sample.restored = Some(what.into());
        } else if sample.messages.iter().any(|message| message.contains("virtual machine fork")) {
            sample.restored = Some("the kernel noticed that the virtual machine was restored or cloned".into());
        }
        self.features = features;
    }
}
