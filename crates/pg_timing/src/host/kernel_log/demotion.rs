//! Finds the demotion of the TSC: its time, its CPU, and its reason by the counters that the kernel printed.

use super::{KernelClockLog, Kind, Message, TSC_RATES};
use crate::human::duration;
use crate::report::Demoted;
use timing_clock::clocksource::is_tsc;

/// ACPI's power management timer, by the ACPI specification.
const ACPI_PM_MHZ: f64 = 3.579545;
/// The HPET specification allows a period of 100 ns at most, and QEMU's HPET of 100 MHz is the fastest.
const HPET_MHZ: (f64, f64) = (10.0, 100.0);
/// A CPU's frequency changes by less than this factor. A TSC that counted more jumped, or the watchdog stood still.
const MAX_RATE_FACTOR: f64 = 4.0;
/// The kernel compares the counters every half second. If the watchdog counted more than this, the machine was paused.
const PAUSED_NS: f64 = 1e10;
/// A difference this close to a multiple of the watchdog's range is an overflow. The limit allows a few ms of rate error over
/// one or two overflows of the ACPI timer, 4.7 s each.
const SAME_NS: f64 = 10e6;
/// No TSC runs for that long between two checks. The kernel printed a difference that had wrapped below zero.
const WRAPPED_NS: i64 = 1_000_000_000_000_000_000;
/// The kernel prints the lines of an event at once. A slow serial console can delay them.
const MAX_DISTANCE_S: f64 = 5.0;
/// A fault that the kernel finds in its first seconds appears at each boot.
const AT_BOOT_S: f64 = 10.0;

impl KernelClockLog {
    /// Returns the last demotion of the TSC.
    pub fn demotion(&self) -> Option<Demoted> {
        let event = Event::last(self.this_boot());
        let first = event.0.first()?;
        let has = |kind: Kind| event.0.iter().any(|message| message.kind == kind);
        let text = |name: &str| event.0.iter().find_map(|message| message.fields.text(name));
        let (watchdog, reason) = (text("watchdog").unwrap_or("its watchdog"), text("reason"));
        let mut doubt = None;
        let because = if has(Kind::ReadBack) {
            doubt = Some("a slow comparison points to a busy machine or a slow watchdog rather than to the TSC".into());
            let took = event.number::<i64>(Kind::ReadBack, "delay_ns").map(|ns| duration(ns as f64));
            format!("the comparison with {watchdog} took {}", took.unwrap_or_else(|| "too long".into()))
        } else if has(Kind::Warp) {
            let by = event.number::<u64>(Kind::Warp, "cycles").map(|cycles| format!(" by {cycles} cycles"));
            format!("it went back{} from one CPU to another", by.unwrap_or_default())
        } else if has(Kind::CpuSkew) {
            "it differs between CPUs".into()
        } else if event.0.iter().any(|message| !matches!(message.kind, Kind::Unstable | Kind::UnstableAfterBoot)) {
            let compared = event.compare(self, watchdog, &mut doubt);
            compared.unwrap_or_else(|| format!("it differed too much from {watchdog}"))
        } else {
            reason.map_or("of a reason that the log does not show".into(), |reason| format!("of \"{reason}\""))
        };
        Some(Demoted {
            when: match (first.shown.seconds, &first.shown.stamp) {
                (Some(seconds), _) if seconds < AT_BOOT_S => Some("during boot".into()),
                (Some(seconds), _) => Some(format!("{seconds:.0} s after boot")),
                (None, stamp) => stamp.as_ref().map(|stamp| format!("at {stamp}")),
            },
            clocksource: first.source().into(),
            // The kernel compares the CPUs when it starts them. The watchdog can report at any time.
            at_boot: first.shown.seconds.map_or(has(Kind::Warp), |seconds| seconds < AT_BOOT_S),
            cpu: event.0.iter().find_map(|message| message.fields.number("cpu")),
            reason: reason.map(String::from),
            because,
            doubt,
        })
    }
}

impl Demoted {
    /// Returns when, where and why: ` 7823 s after boot on CPU 2, because it went back`.
    pub fn how(&self) -> String {
        let when = self.when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
        let cpu = self.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
        format!("{when}{cpu}, because {}", self.because)
    }
}

/// The messages about one demotion of the TSC.
struct Event<'a>(Vec<&'a Message>);

impl<'a> Event<'a> {
    /// Returns the last demotion, with all messages until the kernel selects another clock source.
    fn last(messages: &'a [Message]) -> Event<'a> {
        use Kind::*;
        let is_part = |message: &&Message| match message.kind {
            Skew | WatchdogReading | SourceReading | Difference | ReadBack | Warp | CpuSkew | Unstable
            | UnstableAfterBoot => is_tsc(message.source()),
            kind => kind == Switched,
        };
        let is_same = |a: &&Message, b: &&Message| {
            let apart_s = a.shown.seconds.zip(b.shown.seconds).map(|(a, b)| (b - a).abs());
            a.kind != Switched && b.kind != Switched && apart_s.is_none_or(|apart_s| apart_s < MAX_DISTANCE_S)
        };
        let parts: Vec<&Message> = messages.iter().filter(is_part).collect();
        let last = parts.chunk_by(is_same).rfind(|event| event[0].kind != Switched);
        Event(last.unwrap_or_default().to_vec())
    }

    fn number<T: std::str::FromStr>(&self, kind: Kind, name: &str) -> Option<T> {
        self.0.iter().filter(|message| message.kind == kind).find_map(|message| message.fields.number(name))
    }

    /// Returns what the counters of the TSC and its watchdog show, if the log has enough of them.
    fn compare(&self, log: &KernelClockLog, watchdog: &str, doubt: &mut Option<String>) -> Option<String> {
        // The mask gives the sign: a counter that went back was written, whatever difference the kernel printed.
        let signed = |(ticks, mask)| ticks as f64 - if ticks > mask / 2 { mask as f64 + 1.0 } else { 0.0 };
        let ticks = self.ticks(Kind::SourceReading).map(signed);
        let counted_ns = ticks.zip(log.mhz(TSC_RATES)).map(|(ticks, mhz)| ticks * 1e3 / mhz);
        let printed: Option<i64> = self.number(Kind::SourceReading, "nsec");
        let skew: Option<i64> = self.number(Kind::Difference, "skew_ns");
        let interval = self.interval(log, watchdog);
        let by_skew = skew.zip(interval).map(|(skew, (_, longest))| skew as f64 + longest);
        let tsc_ns = printed.map(|ns| ns as f64).or(by_skew).or(counted_ns);
        let is_wrapped = printed.is_some_and(|ns| ns >= WRAPPED_NS) || skew >= Some(WRAPPED_NS);
        if is_wrapped || ticks.is_some_and(|ticks| ticks < 0.0) || tsc_ns.is_some_and(|ns| ns < 0.0) {
            let by = counted_ns.filter(|ns| *ns < 0.0).map(|ns| format!(" by at least {}", duration(-ns)));
            let by = by.unwrap_or_default();
            return Some(format!("it went back{by}, as after a suspend, a restore or a migration"));
        }
        let ((shortest, longest), tsc_ns) = interval.zip(tsc_ns)?;
        if tsc_ns == 0.0 {
            return Some(format!("it stood still while {watchdog} counted {}", duration(shortest)));
        }
        let is_jump = tsc_ns > MAX_RATE_FACTOR * longest;
        if let Some(times) = self.overflows(log, watchdog, tsc_ns - shortest) {
            let range = if times == 1.0 { "the range".into() } else { format!("{times} times the range") };
            *doubt = Some(format!(
                "the difference is {range} of {watchdog}'s counter, which overflowed in a pause of the machine"
            ));
        } else if shortest > PAUSED_NS && tsc_ns > PAUSED_NS && !is_jump {
            let (tsc, watchdog_counted) = (duration(tsc_ns), duration(shortest));
            *doubt = Some(format!(
                "the machine was paused between two checks: the TSC counted {tsc}, and {watchdog} {watchdog_counted}"
            ));
        }
        let (least, most) = if shortest < longest { ("at least ", "at most ") } else { ("", "") };
        if is_jump && doubt.is_none() {
            let by = duration(tsc_ns - longest);
            let why = "as after a pause or a write to the TSC";
            return Some(format!("it jumped ahead of {watchdog} by {least}{by} in {most}{}, {why}", duration(longest)));
        }
        let (verb, by) = match tsc_ns {
            ns if ns > longest => ("gained", ns - longest),
            ns if ns < shortest => ("lost", shortest - ns),
            _ => return None,
        };
        Some(format!("it {verb} {least}{} on {watchdog} in {most}{}", duration(by), duration(longest)))
    }

    /// Returns how often the watchdog's counter overflowed between the two checks, if that explains the whole difference.
    fn overflows(&self, log: &KernelClockLog, watchdog: &str, difference_ns: f64) -> Option<f64> {
        let (slowest, fastest) = watchdog_mhz(log, watchdog)?;
        let range_ns = (self.ticks(Kind::WatchdogReading)?.1 as f64 + 1.0) * 1e3 / slowest;
        let times = (difference_ns / range_ns).round();
        (slowest == fastest && times >= 1.0 && (difference_ns - times * range_ns).abs() < SAME_NS).then_some(times)
    }

    /// Returns the ticks between two readings of a counter, and its mask.
    fn ticks(&self, kind: Kind) -> Option<(u64, u64)> {
        let reading = self.0.iter().find(|message| message.kind == kind)?;
        let hex = |name| reading.fields.hex(name);
        let (last, now, mask) = (hex("last")?, hex("now")?, hex("mask")?);
        // All digits of a mask are ones. A mask that lost digits at the end of the line is smaller than the readings.
        let is_complete = mask != 0 && mask & mask.wrapping_add(1) == 0 && now <= mask && last <= mask;
        is_complete.then_some((now.wrapping_sub(last) & mask, mask))
    }

    /// Returns bounds of the time between the two checks in ns, by the watchdog.
    fn interval(&self, log: &KernelClockLog, watchdog: &str) -> Option<(f64, f64)> {
        let printed = self.number(Kind::Difference, "interval_ns").or(self.number(Kind::WatchdogReading, "nsec"));
        if let Some(ns) = printed.filter(|ns: &i64| *ns >= 0) {
            return Some((ns as f64, ns as f64));
        }
        let (slowest, fastest) = watchdog_mhz(log, watchdog)?;
        let ticks = self.ticks(Kind::WatchdogReading)?.0 as f64;
        Some(((ticks * 1e3 / fastest).round(), (ticks * 1e3 / slowest).round()))
    }
}

/// Returns bounds of a watchdog's rate.
fn watchdog_mhz(log: &KernelClockLog, watchdog: &str) -> Option<(f64, f64)> {
    match watchdog {
        "hpet" => Some(hpet_mhz(log).map_or(HPET_MHZ, |mhz| (mhz, mhz))),
        "acpi_pm" => Some((ACPI_PM_MHZ, ACPI_PM_MHZ)),
        // Clocks of hypervisors count nanoseconds.
        "xen" | "kvm-clock" => Some((1e3, 1e3)),
        _ => None,
    }
}

/// Returns the HPET's rate.
///
/// When the kernel registers a clock source, it prints a number of cycles, and their duration minus 11% for adjustments of
/// the clock and divided by two (`clocks_calc_max_nsecs`).
fn hpet_mhz(log: &KernelClockLog) -> Option<f64> {
    let registered = |message: &Message| {
        let (cycles, ns) = (message.fields.hex("cycles")?, message.fields.number::<u64>("idle_ns")?);
        (cycles > 0 && ns > 0 && message.source() == "hpet").then(|| cycles as f64 * 0.89 / 2.0 / ns as f64 * 1e3)
    };
    log.mhz(&[Kind::HpetRate]).or_else(|| log.of(Kind::Registered).find_map(registered))
}
