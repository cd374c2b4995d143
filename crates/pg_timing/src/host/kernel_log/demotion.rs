//! When, by whom and why the TSC was given up.

use super::Entry;
use super::event::{Event, ReadBack};
use super::skew::{Figures, Rates};

/// The TSC was marked unstable. While this kernel runs nothing makes it good again.
#[derive(Debug, Clone, PartialEq)]
pub struct Demotion {
    /// `tsc`, or `tsc-early` during boot
    pub clocksource: String,
    /// when, in seconds since boot
    pub seconds: Option<f64>,
    /// when, by the wall clock as it stood in the log
    pub stamp: Option<String>,
    /// the CPU that found it
    pub cpu: Option<u32>,
    /// the clock source that it was compared with
    pub watchdog: Option<String>,
    /// how far the TSC ran ahead of the watchdog, printed or out of their counters
    pub skew_ns: Option<i64>,
    /// in which time, by the watchdog
    pub interval_ns: Option<u64>,
    /// The watchdog's rate in MHz, where the figures rest on a guess of it, because the log does not tell it. They are
    /// not given unless the clocks disagree at every rate that an HPET can have.
    pub assumed_mhz: Option<f64>,
    /// The whole rounds of the watchdog's counter that explain the skew: the TSC was right
    pub rounds: Option<u64>,
    /// what follows "due to"
    pub reason: Option<String>,
    /// how it was found
    pub kind: DemotionKind,
    /// the machine had slept before that
    pub after_suspend: bool,
}

/// How the TSC was found to be unstable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemotionKind {
    /// it ran at another rate than the watchdog
    Watchdog,
    /// the same, as 7.1 words it
    FrequencySkew,
    /// comparing took too long: says more about how busy the machine was than about the TSC
    ReadBackDelay { delay_ns: Option<i64> },
    /// it went back from one CPU to another while CPUs were started
    Warp { cycles: Option<u64>, cpus: Option<(u32, u32)> },
    /// it differed between CPUs, by the watchdog (7.1)
    InterCpuSkew,
    /// the kernel only says that it suspects the firmware
    Firmware,
    /// no evidence, only what follows "due to"
    Reason,
}

impl DemotionKind {
    /// Whether `reason` says no more than this finding.
    fn explains(&self, reason: Option<&str>) -> bool {
        match (self, reason) {
            (DemotionKind::Reason, _) => false,
            (DemotionKind::Warp { .. }, Some(reason)) => reason.starts_with("check_tsc_sync"),
            (_, Some(reason)) => reason.starts_with("clocksource watchdog"),
            (_, None) => true,
        }
    }
}

/// `tsc`, or what stands for it until its rate is known well.
pub(super) fn is_tsc(clocksource: &str) -> bool {
    matches!(clocksource, "tsc" | "tsc-early")
}

/// The last time that the TSC was marked unstable in these entries.
pub(super) fn last(entries: &[Entry]) -> Option<Demotion> {
    let (mut rates, mut last, mut slept) = (Rates::default(), None, false);
    for entry in entries {
        rates.note(&entry.event);
        slept |= matches!(entry.event, Event::Suspend { .. } | Event::Resume { .. });
        let new = found(entry, &rates, slept);
        match &entry.event {
            // what the line above it was about: "tsc: Marking TSC unstable due to clocksource watchdog"
            Event::Unstable { clocksource, reason } if is_tsc(clocksource) => match &mut last {
                Some(Demotion { reason: said @ None, kind, .. }) if kind.explains(reason.as_deref()) => {
                    said.clone_from(reason);
                }
                _ => last = new,
            },
            Event::UnstableAfterBoot => last = last.or(new),
            _ => last = new.or(last),
        }
    }
    last
}

/// What this entry alone says of the TSC's demotion.
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
    // Where the name is lost or was not printed: on a PC nothing else is watched.
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
