//! Reduces the kernel's log to the facts that checks and screens need.

use crate::host::facts::{Host, about_clocks};
use crate::host::kernel_log::{Comparison, Demotion, DemotionKind, KernelClockLog, Kind, Level, Message};
use crate::human::duration;
use crate::report::{Clocksource, Demoted, Fact, HostFacts, KernelMessage, KernelReport, MessageLevel, Switch};
use timing_clock::clocksource::is_tsc;
use timing_clock::{Hertz, bogomips_claim};

/// A fault that the kernel finds in its first seconds appears at each boot.
const AT_BOOT_S: f64 = 10.0;
/// The watchdog runs every half second. If an interval is longer than 10 s, the machine stood still.
const STALLED_NS: u64 = 10_000_000_000;
/// More different messages than one boot has. A faulty clock can produce messages for ever.
const MAX_MESSAGES: usize = 100;

/// Returns the facts of the kernel's log.
pub fn report(log: &KernelClockLog) -> KernelReport {
    let boot = log.this_boot();
    let about_clocks = |message: &&Message| !matches!(message.kind, Kind::Boot | Kind::CommandLine | Kind::Cpus);
    KernelReport {
        messages: messages(boot),
        recognized_lines: boot.iter().filter(about_clocks).count(),
        other_host: None,
        since_boot: !log.truncated,
        demotion: log.demotion().map(|demotion| demoted(&demotion)),
        unstable: boot.iter().any(|message| message.level == Level::Fault),
        switches: log.of(Kind::Switched).map(switch).collect(),
        firmware_bug: log.of(Kind::FirmwareBug).next().is_some(),
        rate_warning: log.of(Kind::RateWarning).next().is_some(),
        refused: log.of(Kind::Refused).next_back().map(|message| message.source().into()),
    }
}

fn switch(message: &Message) -> Switch {
    Switch { seconds: message.seconds, to: message.source().into() }
}

/// Returns the messages that mean something. One that comes again and again is counted.
fn messages(boot: &[Message]) -> Vec<KernelMessage> {
    let mut shown: Vec<(Kind, KernelMessage)> = Vec::new();
    for message in boot.iter().filter(|message| !message.meaning.is_empty()) {
        let is_repeated = message.level < Level::Fault && !matches!(message.kind, Kind::Switched | Kind::Timecounter);
        let first = shown.iter_mut().find(|(_, first)| is_repeated && first.meaning == message.meaning);
        if let Some((_, first)) = first {
            first.times += 1;
            first.last_seconds = message.seconds;
        } else if shown.len() < MAX_MESSAGES {
            shown.push((message.kind, shown_as(message)));
        }
    }
    shown.into_iter().map(|(_, message)| message).collect()
}

fn shown_as(message: &Message) -> KernelMessage {
    KernelMessage {
        seconds: message.seconds,
        stamp: message.stamp.clone(),
        text: message.text.clone(),
        meaning: message.meaning.into(),
        level: match message.level {
            Level::Detail => MessageLevel::Detail,
            Level::Note => MessageLevel::Note,
            Level::Fault => MessageLevel::Fault,
        },
        times: 1,
        last_seconds: None,
    }
}

/// Completes facts that are missing from the log of a system without sysfs: the last clock source, FreeBSD's
/// timecounters, and the timer of an old Linux.
pub fn complete(log: &KernelClockLog, facts: &mut HostFacts, clocksource: &mut Clocksource) {
    let field = |kind: Kind, name: &str| log.of(kind).next_back().and_then(|message| message.fields.text(name));
    if let (None, Some(line)) = (facts.boot_parameters.known(), field(Kind::CommandLine, "line")) {
        let words = line.split_whitespace().filter(|word| about_clocks(word));
        facts.boot_parameters = Fact::Known(words.map(String::from).collect());
    }
    let named =
        log.this_boot().iter().flat_map(|message| [message.fields.text("source"), message.fields.text("watchdog")]);
    let hypervisor = named.flatten().find_map(|name| match name {
        "xen" => Some("Xen"),
        "kvm-clock" => Some("KVM"),
        name if name.starts_with("hyperv") => Some("Hyper-V"),
        _ => None,
    });
    if let (None, Some(hypervisor)) = (facts.virtualization.known(), hypervisor) {
        facts.virtualization = Fact::Known(hypervisor.into());
    }
    if let (None, Some(current)) = (clocksource.current.known(), last_clocksource(log)) {
        clocksource.current = Fact::Known(current);
    } else if let (Some(name), None, None) =
        (log.old_clocksource(), clocksource.current.known(), clocksource.available.known())
    {
        // Such a kernel has no other one, and nobody can switch it.
        clocksource.current = Fact::Known(name.into());
        clocksource.available = Fact::Known(vec![name.into()]);
    }
    let quality =
        |message: &Message| Some((message.fields.number::<i64>("quality")?, message.fields.text("name")?.to_string()));
    let mut timecounters: Vec<(i64, String)> = log.of(Kind::Timecounter).filter_map(quality).collect();
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
        clocksource.available = Fact::Known(timecounters.into_iter().map(|(_, name)| name).collect());
    }
}

/// Returns the last clock source that the log shows, unless the kernel found a fault of it later.
fn last_clocksource(log: &KernelClockLog) -> Option<String> {
    let boot = log.this_boot();
    let last = boot.iter().rposition(|message| message.kind == Kind::Switched)?;
    let name = boot[last].source();
    let same = |other: &str| other == name || is_tsc(other) && is_tsc(name);
    let kept = boot[last..].iter().all(|message| message.level < Level::Fault || !same(message.source()));
    kept.then(|| name.into())
}

/// A rate from /proc/cpuinfo differs less from the one in the log of the same machine.
const SAME_RATE_PPM: f64 = 50_000.0;

/// Returns why the log cannot be from the host, if a fact contradicts it.
pub fn other_host(log: &KernelClockLog, host: &Host, facts: &HostFacts, clocksource: &Clocksource) -> Option<String> {
    let field = |kind: Kind, name: &str| log.of(kind).next_back().and_then(|message| message.fields.text(name));
    if let (Some(version), Some(kernel)) = (field(Kind::Boot, "version"), facts.kernel.known())
        && kernel.strip_prefix("Linux ").is_some_and(|own| own != version)
    {
        return Some(format!("its kernel is Linux {version}, and that of this host is {kernel}"));
    }
    if let (Some(last), Some(now)) = (last_clocksource(log), clocksource.current.known())
        && *now != last
    {
        return Some(format!("its last clock source is {last}, and that of this host is {now}"));
    }
    let cpus = field(Kind::Cpus, "cpus").and_then(|cpus| cpus.parse::<usize>().ok());
    if let (Some(cpus), Some(online)) = (cpus, host.online_cpus().known())
        && cpus != online.len()
    {
        return Some(format!("it shows {cpus} CPUs, and this host has {}", online.len()));
    }
    let own = host.read("/proc/cpuinfo").known().and_then(|text| bogomips_claim(text))?;
    let rate = log.rates().filter(|(source, _)| source.is_tsc()).last()?;
    let differs = own.rate.ppm_from(Hertz(rate.1 * 1e6)).0.abs() > SAME_RATE_PPM;
    differs.then(|| format!("its TSC has {:.0} MHz, and that of this host has {:.0} MHz", rate.1, own.rate.0 / 1e6))
}

fn demoted(demotion: &Demotion) -> Demoted {
    let (skew_ns, interval_ns) = match demotion.comparison {
        Some(Comparison::Drift { skew_ns, interval_ns }) => (Some(skew_ns), Some(interval_ns)),
        _ => (None, None),
    };
    Demoted {
        when: match (demotion.seconds, &demotion.stamp) {
            (Some(seconds), _) if seconds < AT_BOOT_S => Some("during boot".into()),
            (Some(seconds), _) => Some(format!("{seconds:.0} s after boot")),
            (None, stamp) => stamp.as_ref().map(|stamp| format!("at {stamp}")),
        },
        cpu: demotion.cpu,
        clocksource: demotion.clocksource.clone(),
        watchdog: demotion.watchdog.clone(),
        skew_ns,
        interval_ns,
        seconds: demotion.seconds,
        // The kernel compares the CPUs when it starts them. The watchdog can report at any time.
        at_boot: demotion.seconds.map_or(matches!(demotion.kind, DemotionKind::Warp { .. }), |s| s < AT_BOOT_S),
        reason: demotion.reason.clone(),
        because: because(demotion),
        cause: cause(demotion.comparison).filter(|_| demotion.kind == DemotionKind::Watchdog),
        doubt: doubt(demotion, interval_ns),
    }
}

/// Returns the reason of a demotion, as the end of a sentence with "because".
fn because(demotion: &Demotion) -> String {
    let watchdog = demotion.watchdog.as_deref().unwrap_or("its watchdog");
    match demotion.kind {
        DemotionKind::Watchdog => compared(demotion.comparison, watchdog),
        DemotionKind::ReadBackDelay { delay_ns: Some(ns) } => {
            format!("the comparison with {watchdog} took {}", duration(ns as f64))
        }
        DemotionKind::ReadBackDelay { delay_ns: None } => format!("the comparison with {watchdog} took too long"),
        DemotionKind::Warp { cycles: Some(cycles) } => {
            format!("it went back by {cycles} cycles from one CPU to another")
        }
        DemotionKind::Warp { cycles: None } => "it went back from one CPU to another".into(),
        DemotionKind::InterCpuSkew => "it differs between CPUs".into(),
        DemotionKind::Firmware => "the kernel found it unstable after boot and suspects the firmware".into(),
        DemotionKind::Reason => match &demotion.reason {
            Some(reason) => format!("of \"{reason}\""),
            None => "of a reason that the log does not show".into(),
        },
    }
}

/// Returns what the watchdog's comparison shows.
fn compared(comparison: Option<Comparison>, watchdog: &str) -> String {
    match comparison {
        Some(Comparison::Drift { skew_ns, interval_ns }) => {
            format!("it drifted from {watchdog} by {} in {}", duration(skew_ns as f64), duration(interval_ns as f64))
        }
        Some(Comparison::WentBack { ns, reset }) => {
            let by = ns.map(|ns| format!(" by {}", long_duration(ns))).unwrap_or_default();
            let reset = if reset { "was reset to 0, which is " } else { "went " };
            format!("it {reset}back{by}")
        }
        Some(Comparison::JumpedAhead { ns, interval_ns }) => {
            let within = interval_ns.map(|ns| format!(" in {}", duration(ns as f64))).unwrap_or_default();
            let least = if interval_ns.is_none() { "at least " } else { "" };
            format!("it jumped ahead of {watchdog} by {least}{}{within}", long_duration(ns))
        }
        Some(Comparison::WatchdogOverflowed) | None => format!("it drifted from {watchdog}"),
    }
}

/// Returns what usually causes a jump of the counter.
fn cause(comparison: Option<Comparison>) -> Option<String> {
    let cause = match comparison? {
        Comparison::WentBack { reset: true, .. } => "a suspend, a restore or a migration of the machine resets its TSC",
        Comparison::WentBack { reset: false, .. } => {
            "a TSC that goes back was written: by a restore, a migration or a program"
        }
        Comparison::JumpedAhead { .. } => "a jump, not drift: something wrote the TSC, or the machine was paused",
        Comparison::Drift { .. } | Comparison::WatchdogOverflowed => return None,
    };
    Some(cause.into())
}

/// Returns a duration of any length: `28.7 ms`, `38471 s (10.7 hours)`, `248525 s (2.9 days)`.
fn long_duration(ns: f64) -> String {
    let seconds = ns / 1e9;
    match seconds {
        ..7200.0 => duration(ns),
        7200.0..172_800.0 => format!("{seconds:.0} s ({:.1} hours)", seconds / 3600.0),
        _ => format!("{seconds:.0} s ({:.1} days)", seconds / 86_400.0),
    }
}

/// Returns why the kernel may be wrong, for the kinds of demotion that are known to be wrong sometimes.
fn doubt(demotion: &Demotion, interval_ns: Option<u64>) -> Option<String> {
    if let DemotionKind::ReadBackDelay { .. } = demotion.kind {
        return Some("a slow comparison points to a busy machine or a slow watchdog rather than to the TSC".into());
    }
    match demotion.comparison {
        Some(Comparison::WatchdogOverflowed) => {
            Some("the difference is a multiple of the range of the watchdog's counter, so the TSC was right".into())
        }
        // The counters prove a fault.
        Some(Comparison::WentBack { .. }) => None,
        _ if demotion.after_suspend => {
            Some("the machine was suspended before; after a suspend, clocks can differ without a fault".into())
        }
        _ => interval_ns.filter(|ns| *ns > STALLED_NS).map(|_| {
            "the machine was paused between two checks (for example as a virtual machine), so the watchdog may be wrong"
                .into()
        }),
    }
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
