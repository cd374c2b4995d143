//! Boils the kernel's log down to what checks and the screen need.

use crate::host::kernel_log::{Demotion, DemotionKind, Event, KernelClockLog, story};
use crate::human::duration;
use crate::report::{Demoted, KernelReport, Switch};

/// What a kernel finds in its first seconds it finds at each boot.
const AT_BOOT_S: f64 = 10.0;
/// A watchdog that was not run for so long was held up: it runs every half second.
const HELD_UP_NS: u64 = 10_000_000_000;

pub fn report(log: &KernelClockLog) -> KernelReport {
    KernelReport {
        story: story(log.this_boot()),
        since_boot: !log.truncated,
        demotion: log.demotion().map(|demotion| demoted(&demotion)),
        unstable: log.this_boot().iter().any(|entry| speaks_against(&entry.event)),
        switches: switches(log),
        firmware_bug: log.firmware_bug().is_some(),
        rate_warning: log.rate_warning(),
        refused: log.override_refused().filter(|refused| !refused.deferred).map(|refused| refused.clocksource.clone()),
    }
}

/// Whether a clock source, whichever, was found bad.
fn speaks_against(event: &Event) -> bool {
    use Event::*;
    matches!(event, Skew(_) | CpuSkew(_) | ReadBack(_) | Warp(_) | Unstable { .. } | UnstableAfterBoot)
}

fn switches(log: &KernelClockLog) -> Vec<Switch> {
    log.switches().map(|(seconds, to)| Switch { seconds, to: to.into() }).collect()
}

fn demoted(demotion: &Demotion) -> Demoted {
    Demoted {
        when: match (demotion.seconds, &demotion.stamp) {
            (Some(seconds), _) if seconds < AT_BOOT_S => Some("as it booted".into()),
            (Some(seconds), _) => Some(format!("at {seconds:.0} s")),
            (None, stamp) => stamp.as_ref().map(|stamp| format!("at {stamp}")),
        },
        cpu: demotion.cpu,
        watchdog: demotion.watchdog.clone(),
        skew_ns: demotion.skew_ns.filter(|_| figures_are_sure(demotion)),
        interval_ns: demotion.interval_ns.filter(|_| figures_are_sure(demotion)),
        seconds: demotion.seconds,
        // CPUs are compared as they are started; the watchdog's verdicts can come at any time.
        at_boot: demotion.seconds.map_or(matches!(demotion.kind, DemotionKind::Warp { .. }), |s| s < AT_BOOT_S),
        reason: demotion.reason.clone(),
        because: because(demotion),
        doubt: doubt(demotion),
    }
}

/// Counters are turned into time by the watchdog's rate. Where the log does not give it the figures
/// rest on a guess: the story says so, and no finding is built on them.
fn figures_are_sure(demotion: &Demotion) -> bool {
    demotion.assumed_mhz.is_none()
}

fn because(demotion: &Demotion) -> String {
    let watchdog = demotion.watchdog.as_deref().unwrap_or("its watchdog");
    match &demotion.kind {
        DemotionKind::Watchdog | DemotionKind::FrequencySkew => match (demotion.skew_ns, demotion.interval_ns) {
            (Some(skew), Some(interval)) if figures_are_sure(demotion) => {
                format!("it drifted from {watchdog} by {} in {}", duration(skew as f64), duration(interval as f64))
            }
            _ => format!("it drifted from {watchdog}"),
        },
        DemotionKind::ReadBackDelay { delay_ns: Some(ns) } => {
            format!("comparing it with {watchdog} took {}", duration(*ns as f64))
        }
        DemotionKind::ReadBackDelay { delay_ns: None } => format!("comparing it with {watchdog} took too long"),
        DemotionKind::Warp { cycles: Some(cycles), .. } => {
            format!("it went back by {cycles} cycles from one CPU to another")
        }
        DemotionKind::Warp { cycles: None, .. } => "it went back from one CPU to another".into(),
        DemotionKind::InterCpuSkew => "it differs between CPUs".into(),
        DemotionKind::Firmware => "the kernel found it unstable after boot and suspects the firmware".into(),
        DemotionKind::Reason => match &demotion.reason {
            Some(reason) => format!("of \"{reason}\""),
            None => "of a reason that is not in the log".into(),
        },
    }
}

/// The kinds of verdict that are known to be wrong at times.
fn doubt(demotion: &Demotion) -> Option<String> {
    if let DemotionKind::ReadBackDelay { .. } = demotion.kind {
        return Some("a slow comparison says more of a busy machine, or of a slow watchdog, than of the TSC".into());
    }
    if demotion.rounds.is_some() {
        return Some("the difference is that of whole rounds of the watchdog's counter: the TSC was right".into());
    }
    if demotion.after_suspend {
        return Some("the machine had slept before: its clocks can come back out of step without being bad".into());
    }
    let held_up = demotion.interval_ns.is_some_and(|ns| ns > HELD_UP_NS);
    held_up
        .then(|| "the kernel was held up meanwhile (a paused virtual machine): the watchdog may have been wrong".into())
}
