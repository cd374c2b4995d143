//! Finds the demotion of the TSC: its time, CPU and reason.

use super::Entry;
use super::event::{Event, ReadBack};
use super::skew::{Figures, Rates};
use timing_clock::clocksource::is_tsc;

/// The kernel marked the TSC unstable. This holds until the next boot.
#[derive(Debug, Clone, PartialEq)]
pub struct Demotion {
    /// `tsc`, or `tsc-early` during boot
    pub clocksource: String,
    /// seconds since boot
    pub seconds: Option<f64>,
    /// wall-clock time, as printed
    pub stamp: Option<String>,
    /// the CPU that found the fault
    pub cpu: Option<u32>,
    /// the clock source that it was compared with
    pub watchdog: Option<String>,
    /// TSC minus watchdog, as printed or computed from their counters
    pub skew_ns: Option<i64>,
    /// the interval of the comparison, by the watchdog
    pub interval_ns: Option<u64>,
    /// The assumed rate of the watchdog in MHz, if the log does not contain it. Figures are then given only if the
    /// clocks disagree at every rate that an HPET can have.
    pub assumed_mhz: Option<f64>,
    /// The number of overflows of the watchdog's counter that explains the skew. Then the TSC was right.
    pub rounds: Option<u64>,
    /// the text after "due to"
    pub reason: Option<String>,
    /// how the kernel found the fault
    pub kind: DemotionKind,
    /// whether the machine had slept before
    pub after_suspend: bool,
}

/// How the kernel found the fault of the TSC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemotionKind {
    /// the TSC and the watchdog had different rates
    Watchdog,
    /// the same, in the wording of Linux 7.1
    FrequencySkew,
    /// the comparison took too long, which points to a busy machine rather than to the TSC
    ReadBackDelay { delay_ns: Option<i64> },
    /// the TSC went back from one CPU to another while the kernel started CPUs
    Warp { cycles: Option<u64>, cpus: Option<(u32, u32)> },
    /// the watchdog found a difference between CPUs (7.1)
    InterCpuSkew,
    /// the kernel suspects the firmware and gives no other reason
    Firmware,
    /// only the text after "due to"
    Reason,
}

impl DemotionKind {
    /// Returns whether this kind of fault causes the kernel's `reason`.
    fn explains(&self, reason: Option<&str>) -> bool {
        match (self, reason) {
            (DemotionKind::Reason, _) => false,
            (DemotionKind::Warp { .. }, Some(reason)) => reason.starts_with("check_tsc_sync"),
            (_, Some(reason)) => reason.starts_with("clocksource watchdog"),
            (_, None) => true,
        }
    }
}

/// Returns the last demotion of the TSC in these entries.
pub(super) fn last(entries: &[Entry]) -> Option<Demotion> {
    let (mut rates, mut last, mut slept) = (Rates::default(), None, false);
    for entry in entries {
        rates.learn(&entry.event);
        slept |= matches!(entry.event, Event::Suspend { .. } | Event::Resume { .. });
        let new = found(entry, &rates, slept);
        match &entry.event {
            // The line "tsc: Marking TSC unstable due to clocksource watchdog" belongs to the fault above it.
            Event::Unstable { clocksource, reason } if is_tsc(clocksource) => match &mut last {
                Some(Demotion { reason: missing @ None, kind, .. }) if kind.explains(reason.as_deref()) => {
                    missing.clone_from(reason);
                }
                _ => last = new,
            },
            Event::UnstableAfterBoot => last = last.or(new),
            _ => last = new.or(last),
        }
    }
    last
}

/// Returns the demotion that this entry alone shows.
fn found(entry: &Entry, rates: &Rates, after_suspend: bool) -> Option<Demotion> {
    let (clocksource, cpu, watchdog, kind) = match &entry.event {
        Event::Skew(skew) => {
            let kind = if skew.frequency { DemotionKind::FrequencySkew } else { DemotionKind::Watchdog };
            (skew.clocksource.as_deref(), skew.cpu, skew.watchdog.clone(), kind)
        }
        Event::CpuSkew(skew) => (skew.clocksource.as_deref(), None, None, DemotionKind::InterCpuSkew),
        Event::ReadBack(ReadBack { clocksource, cpu, watchdog, delay_ns, .. }) => {
            (clocksource.as_deref(), *cpu, watchdog.clone(), DemotionKind::ReadBackDelay { delay_ns: *delay_ns })
        }
        Event::Warp(warp) => (None, None, None, DemotionKind::Warp { cycles: warp.cycles, cpus: warp.cpus }),
        Event::Unstable { clocksource, .. } => (Some(clocksource.as_str()), None, None, DemotionKind::Reason),
        Event::UnstableAfterBoot => (None, None, None, DemotionKind::Firmware),
        _ => return None,
    };
    // If the name is missing, it is the TSC: on a PC the kernel watches no other clock source.
    let clocksource = clocksource.unwrap_or("tsc");
    let figures = match &entry.event {
        Event::Skew(skew) => rates.figures(skew),
        _ => Figures::default(),
    };
    let reason = match &entry.event {
        Event::Unstable { reason, .. } => reason.clone(),
        _ => None,
    };
    is_tsc(clocksource).then(|| Demotion {
        clocksource: clocksource.into(),
        seconds: entry.seconds,
        stamp: entry.stamp.clone(),
        cpu,
        watchdog,
        skew_ns: figures.skew_ns,
        interval_ns: figures.watchdog_ns,
        assumed_mhz: figures.assumed_mhz,
        rounds: figures.rounds,
        reason,
        kind,
        after_suspend,
    })
}
