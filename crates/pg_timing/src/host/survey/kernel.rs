//! Reduces the kernel's log to the facts that checks and screens need.

use crate::host::kernel_log::{Demotion, DemotionKind, Event, KernelClockLog, story};
use crate::human::duration;
use crate::report::{Clocksource, Demoted, Fact, HostFacts, KernelReport, Switch};

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

/// Completes facts that are missing, from the log of a system without sysfs: FreeBSD's timecounters, and the timer of
/// an old Linux.
pub fn complete(log: &KernelClockLog, facts: &mut HostFacts, clocksource: &mut Clocksource) {
    if let (Some(name), None, None) =
        (log.old_clocksource(), clocksource.current.known(), clocksource.available.known())
    {
        // Such a kernel has no other one, and nobody can switch it.
        clocksource.current = Fact::Known(name.into());
        clocksource.available = Fact::Known(vec![name.into()]);
    }
    let mut timecounters: Vec<(i64, &str)> =
        log.timecounters().filter_map(|one| Some((one.quality?, one.name.as_str()))).collect();
    if timecounters.is_empty() || facts.kernel.known().is_some_and(|kernel| !kernel.starts_with("FreeBSD")) {
        return;
    }
    if facts.kernel.known().is_none() {
        facts.kernel = Fact::Known("FreeBSD".into());
    }
    if clocksource.available.known().is_none() {
        // The kernel never selects one with a negative quality. The current one may be another than the best, because a
        // sysctl selects it.
        timecounters.retain(|(quality, _)| *quality >= 0);
        timecounters.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
        clocksource.available = Fact::Known(timecounters.into_iter().map(|(_, name)| name.into()).collect());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::kernel_log::parse;
    use crate::report::{Origin, Report};

    /// Returns the kernel, the current clock source and the available ones.
    fn completed(log: &str) -> (Option<String>, Option<String>, Option<Vec<String>>) {
        let mut report = Report::empty(Origin::Captured, "x");
        complete(&parse(log), &mut report.host, &mut report.clocksource);
        let Clocksource { current, available, .. } = report.clocksource;
        (report.host.kernel.known().cloned(), current.known().cloned(), available.known().cloned())
    }

    #[test]
    fn the_timer_of_an_old_linux_is_its_clock_source() {
        for (timers, name) in [
            ("WALL PM GTOD PIT/TSC", "tsc"),
            ("WALL HPET GTOD HPET/TSC", "tsc"),
            ("WALL PM GTOD PM", "acpi_pm"),
            ("WALL HPET GTOD HPET", "hpet"),
        ] {
            let log = format!("[    0.000000] time.c: Using 3.579545 MHz {timers} timer.");
            assert_eq!(completed(&log), (None, Some(name.into()), Some(vec![name.into()])), "{timers}");
        }
        assert_eq!(completed("time.c: Using 1.193182 MHz PIT timer."), (None, None, None), "only the tick's timer");
    }

    #[test]
    fn freebsds_timecounters_are_available_best_first() {
        let log = "Timecounter \"i8254\" frequency 1193182 Hz quality 0\n\
                   Timecounter \"HPET\" frequency 14318180 Hz quality 950\n\
                   Timecounter \"ACPI-fast\" frequency 3579545 Hz quality 900\n\
                   Timecounter \"TSC-low\" frequency 1296049048 Hz quality -100\n";
        let names = ["HPET", "ACPI-fast", "i8254"].map(String::from).to_vec();
        assert_eq!(completed(log), (Some("FreeBSD".into()), None, Some(names)));
        assert_eq!(completed(""), (None, None, None));
    }

    #[test]
    fn known_facts_are_not_replaced() {
        let mut report = Report::empty(Origin::Captured, "x");
        report.clocksource.current = Fact::Known("hpet".into());
        report.host.kernel = Fact::Known("Linux 6.18".into());
        let log = parse(
            "time.c: Using 3.579545 MHz WALL PM GTOD PIT/TSC timer.\nTimecounter \"TSC\" frequency 1 Hz quality 1\n",
        );
        let before = (report.host.clone(), report.clocksource.clone());
        complete(&log, &mut report.host, &mut report.clocksource);
        assert_eq!((report.host, report.clocksource), before);
    }
}
