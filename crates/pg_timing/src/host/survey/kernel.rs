//! Reduces the kernel's log to the facts that checks and screens need.

use crate::host::kernel_log::{Demotion, DemotionKind, Event, KernelClockLog, story};
use crate::human::duration;
use crate::report::{Demoted, KernelReport, Switch};

/// A fault that the kernel finds in its first seconds appears at each boot.
const AT_BOOT_S: f64 = 10.0;
/// The watchdog runs every half second. If an interval is longer than 10 s, the machine stood still.
const STALLED_NS: u64 = 10_000_000_000;

/// Returns the facts of the kernel's log.
pub fn report(log: &KernelClockLog) -> KernelReport {
    KernelReport {
        story: story(log.this_boot()),
        since_boot: !log.truncated,
        demotion: log.demotion().map(|demotion| demoted(&demotion)),
        unstable: log.this_boot().iter().any(|entry| is_fault(&entry.event)),
        switches: switches(log),
        firmware_bug: log.firmware_bug().is_some(),
        rate_warning: log.rate_warning(),
        refused: log.override_refused().filter(|refused| !refused.deferred).map(|refused| refused.clocksource.clone()),
    }
}

/// Returns whether the kernel found a fault of any clock source.
fn is_fault(event: &Event) -> bool {
    use Event::*;
    matches!(event, Skew(_) | CpuSkew(_) | ReadBack(_) | Warp(_) | Unstable { .. } | UnstableAfterBoot)
}

fn switches(log: &KernelClockLog) -> Vec<Switch> {
    log.switches().map(|(seconds, to)| Switch { seconds, to: to.into() }).collect()
}

fn demoted(demotion: &Demotion) -> Demoted {
    Demoted {
        when: match (demotion.seconds, &demotion.stamp) {
            (Some(seconds), _) if seconds < AT_BOOT_S => Some("during boot".into()),
            (Some(seconds), _) => Some(format!("{seconds:.0} s after boot")),
            (None, stamp) => stamp.as_ref().map(|stamp| format!("at {stamp}")),
        },
        cpu: demotion.cpu,
        watchdog: demotion.watchdog.clone(),
        skew_ns: demotion.skew_ns.filter(|_| figures_are_certain(demotion)),
        interval_ns: demotion.interval_ns.filter(|_| figures_are_certain(demotion)),
        seconds: demotion.seconds,
        // The kernel compares the CPUs when it starts them. The watchdog can report at any time.
        at_boot: demotion.seconds.map_or(matches!(demotion.kind, DemotionKind::Warp { .. }), |s| s < AT_BOOT_S),
        reason: demotion.reason.clone(),
        because: because(demotion),
        doubt: doubt(demotion),
    }
}

/// Returns whether the log contains the watchdog's rate, which converts its counter to time. Without it the figures
/// assume a rate. Then the story says so, and no finding uses them.
fn figures_are_certain(demotion: &Demotion) -> bool {
    demotion.assumed_mhz.is_none()
}

/// Returns the reason of a demotion, as the end of a sentence with "because".
fn because(demotion: &Demotion) -> String {
    let watchdog = demotion.watchdog.as_deref().unwrap_or("its watchdog");
    match &demotion.kind {
        DemotionKind::Watchdog | DemotionKind::FrequencySkew => match (demotion.skew_ns, demotion.interval_ns) {
            (Some(skew), Some(interval)) if figures_are_certain(demotion) => {
                format!("it drifted from {watchdog} by {} in {}", duration(skew as f64), duration(interval as f64))
            }
            _ => format!("it drifted from {watchdog}"),
        },
        DemotionKind::ReadBackDelay { delay_ns: Some(ns) } => {
            format!("the comparison with {watchdog} took {}", duration(*ns as f64))
        }
        DemotionKind::ReadBackDelay { delay_ns: None } => format!("the comparison with {watchdog} took too long"),
        DemotionKind::Warp { cycles: Some(cycles), .. } => {
            format!("it went back by {cycles} cycles from one CPU to another")
        }
        DemotionKind::Warp { cycles: None, .. } => "it went back from one CPU to another".into(),
        DemotionKind::InterCpuSkew => "it differs between CPUs".into(),
        DemotionKind::Firmware => "the kernel found it unstable after boot and suspects the firmware".into(),
        DemotionKind::Reason => match &demotion.reason {
            Some(reason) => format!("of \"{reason}\""),
            None => "of a reason that the log does not show".into(),
        },
    }
}

/// Returns why the kernel may be wrong, for the kinds of demotion that are known to be wrong sometimes.
fn doubt(demotion: &Demotion) -> Option<String> {
    if let DemotionKind::ReadBackDelay { .. } = demotion.kind {
        return Some("a slow comparison points to a busy machine or a slow watchdog rather than to the TSC".into());
    }
    if demotion.rounds.is_some() {
        return Some(
            "the difference is a multiple of the range of the watchdog's counter, so the TSC was right".into(),
        );
    }
    if demotion.after_suspend {
        return Some("the machine was suspended before; after a suspend, clocks can differ without a fault".into());
    }
    let stalled = demotion.interval_ns.is_some_and(|ns| ns > STALLED_NS);
    stalled.then(|| {
        "the machine was paused between two checks (for example as a virtual machine), so the watchdog may be wrong"
            .into()
    })
}
