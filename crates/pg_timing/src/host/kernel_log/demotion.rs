//! Finds the demotion of the TSC: its time, CPU and reason, and what the watchdog's counters show.

use super::{Kind, Message, RateSource, mhz};
use crate::human::duration;
use crate::report::Demoted;
use timing_clock::clocksource::is_tsc;

/// The kernel marked the TSC unstable. This holds until the next boot.
#[derive(Debug, Clone, PartialEq)]
pub struct Demotion {
    pub demoted: Demoted,
    pub comparison: Option<Comparison>,
    pub kind: DemotionKind,
    /// whether the machine had slept before
    after_suspend: bool,
}

/// How the kernel found the fault of the TSC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemotionKind {
    /// the TSC and the watchdog counted different times
    Watchdog,
    /// the comparison took too long, which points to a busy machine rather than to the TSC
    ReadBackDelay { delay_ns: Option<i64> },
    /// the TSC went back from one CPU to another while the kernel started CPUs
    Warp { cycles: Option<u64> },
    /// the watchdog found a difference between CPUs (Linux 7.1)
    InterCpuSkew,
    /// the kernel suspects the firmware and gives no other reason
    Firmware,
    /// only the text after "due to"
    Reason,
}

/// What the counters of the TSC and its watchdog show between two checks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Comparison {
    /// the rates differ: TSC minus watchdog, and the interval by the watchdog
    Drift { skew_ns: i64, interval_ns: u64 },
    /// The TSC is lower than before: someone reset, restored or wrote it. `ns` is missing if its rate is.
    WentBack { ns: Option<f64>, reset: bool },
    /// the TSC is ahead by more than any rate explains: someone wrote it, or the watchdog stood still. `ns` is a lower bound if the interval is unknown
    JumpedAhead { ns: f64, interval_ns: Option<u64> },
    /// the watchdog's counter overflowed between the checks, and the TSC was right
    WatchdogOverflowed,
}

/// ACPI's power management timer, by the ACPI specification.
const ACPI_PM_MHZ: f64 = 3.579545;
/// The HPET specification allows a period of 100 ns at most, and QEMU's HPET of 100 MHz is the fastest.
const HPET_MHZ: (f64, f64) = (10.0, 100.0);
/// Two intervals with a smaller difference count as equal, apart from overflows of the watchdog. The kernel allowed 62
/// ms up to 5.12. The limit must allow a few ms of rate error over one or two overflows of the ACPI timer, 4.7 s each.
const SAME_NS: f64 = 10e6;
/// A CPU changes its frequency by less than this factor. A TSC that counted more was written.
const MAX_RATE_FACTOR: f64 = 4.0;
/// A counter that restarted from 0 has less than this share of its last value.
const RESET_SHARE: f64 = 0.01;
/// The kernel compares the counters every half second. If the TSC is not further ahead than a few checks, it can be right.
const STOOD_STILL_NS: f64 = 2e9;
/// No TSC runs for that long between two checks. The kernel printed a difference that had wrapped below zero.
const WRAPPED_NS: f64 = 1e18;
/// The kernel prints the lines of an event at once. A slow serial console can delay them.
const MAX_DISTANCE_S: f64 = 5.0;

/// A fault that the kernel finds in its first seconds appears at each boot.
const AT_BOOT_S: f64 = 10.0;
/// The watchdog runs every half second. If an interval is longer than 10 s, the machine stood still.
const STALLED_NS: u64 = 10_000_000_000;

/// The rates of counters in MHz, as far as the log contains them.
#[derive(Default)]
struct Rates {
    /// rate and quality; the kernel replaces a first estimate by better values
    tsc: Option<(f64, u8)>,
    hpet: Option<f64>,
}

impl Rates {
    fn learn(&mut self, message: &Message) {
        match message.kind {
            Kind::Rate(RateSource::Hpet) => self.hpet = mhz(message).or(self.hpet),
            Kind::Rate(RateSource::Processor) => self.learn_tsc(mhz(message), 1),
            Kind::Rate(RateSource::Hypervisor) => self.learn_tsc(mhz(message), 2),
            Kind::Rate(RateSource::Tsc) => self.learn_tsc(mhz(message), 3),
            Kind::Rate(RateSource::Refined) => self.learn_tsc(mhz(message), 4),
            Kind::Registered if is_tsc(message.source()) => self.learn_tsc(registered_mhz(message), 0),
            Kind::Registered if message.source() == "hpet" => self.hpet = self.hpet.or(registered_mhz(message)),
            _ => {}
        }
    }

    fn learn_tsc(&mut self, mhz: Option<f64>, quality: u8) {
        if let Some(mhz) = mhz.filter(|_| self.tsc.is_none_or(|(_, known)| known <= quality)) {
            self.tsc = Some((mhz, quality));
        }
    }

    /// Returns the smallest and the largest rate that a watchdog can have.
    fn watchdog(&self, name: &str) -> Option<(f64, f64)> {
        match name {
            "hpet" => Some(self.hpet.map_or(HPET_MHZ, |mhz| (mhz, mhz))),
            "acpi_pm" => Some((ACPI_PM_MHZ, ACPI_PM_MHZ)),
            // Clocks of hypervisors count nanoseconds.
            "xen" | "kvm-clock" => Some((1e3, 1e3)),
            _ => None,
        }
    }
}

/// Returns the rate of a clock source from the two numbers that the kernel prints when it registers it.
///
/// The second number is the duration of that many cycles, minus 11% for adjustments of the clock, and divided by two
/// (`clocks_calc_max_nsecs`).
fn registered_mhz(message: &Message) -> Option<f64> {
    let (cycles, ns) = (message.fields.hex("cycles")?, message.fields.number::<u64>("idle_ns")?);
    (cycles > 0 && ns > 0).then(|| cycles as f64 * 0.89 / 2.0 / ns as f64 * 1e3)
}

/// The figures of one watchdog event, which stand in several lines.
#[derive(Default)]
struct Figures {
    watchdog: Option<Reading>,
    source: Option<Reading>,
    skew_ns: Option<i64>,
    interval_ns: Option<u64>,
}

/// Two readings of a counter.
struct Reading {
    /// the time between them, computed by the kernel (since 6.1)
    nsec: Option<i64>,
    /// the first and the last reading, and the mask
    ticks: Option<(u64, u64, u64)>,
}

impl Reading {
    fn of(message: &Message) -> Reading {
        let hex = |name| message.fields.hex(name);
        // All digits of a mask are ones. A mask that lost digits at the end of the line is smaller than the readings.
        let complete = |(last, now, mask): &(u64, u64, u64)| {
            *mask != 0 && mask & mask.wrapping_add(1) == 0 && now <= mask && last <= mask
        };
        let ticks = hex("last").zip(hex("now")).zip(hex("mask")).map(|((last, now), mask)| (last, now, mask));
        Reading { nsec: message.fields.number("nsec"), ticks: ticks.filter(complete) }
    }

    /// Returns the ticks between the readings, negative if the counter went back: the mask gives the sign.
    fn signed(&self) -> Option<i128> {
        let (last, now, mask) = self.ticks?;
        let ticks = now.wrapping_sub(last) & mask;
        Some(if ticks > mask / 2 { i128::from(ticks) - i128::from(mask) - 1 } else { i128::from(ticks) })
    }

    /// Returns the ticks between the readings of a counter that only overflows, and the ticks of an overflow.
    fn forward(&self) -> Option<(f64, f64)> {
        let (last, now, mask) = self.ticks?;
        Some(((now.wrapping_sub(last) & mask) as f64, mask as f64 + 1.0))
    }
}

impl Figures {
    /// Adds the figures of a message, unless they are already there. Returns whether it has any.
    fn add(&mut self, message: &Message) -> bool {
        match message.kind {
            Kind::WatchdogReading => _ = self.watchdog.get_or_insert_with(|| Reading::of(message)),
            Kind::SourceReading => _ = self.source.get_or_insert_with(|| Reading::of(message)),
            Kind::Difference => self.interval_ns = self.interval_ns.or(message.fields.number("interval_ns")),
            Kind::Skew => {}
            _ => return false,
        }
        self.skew_ns = self.skew_ns.or(message.fields.number("skew_ns"));
        true
    }

    /// Returns what the counters show, if the log has enough of them.
    fn compare(&self, watchdog: Option<&str>, rates: &Rates) -> Option<Comparison> {
        let tsc_mhz = rates.tsc.map(|(mhz, _)| mhz);
        let signed = self.source.as_ref().and_then(Reading::signed);
        if let Some(ticks) = signed.filter(|ticks| *ticks < 0) {
            let (last, now, _) = self.source.as_ref()?.ticks?;
            let ns = tsc_mhz.map(|mhz| -ticks as f64 * 1e3 / mhz);
            return Some(Comparison::WentBack { ns, reset: (now as f64) < RESET_SHARE * last as f64 });
        }
        let printed = self.source.as_ref().and_then(|reading| reading.nsec);
        let wrapped = |ns: i64| ns as f64 > WRAPPED_NS;
        if printed.is_some_and(|ns| ns < 0 || wrapped(ns)) || self.skew_ns.is_some_and(wrapped) {
            let ns = printed.filter(|ns| *ns < 0).map(|ns| -ns as f64);
            return Some(Comparison::WentBack { ns, reset: false });
        }
        let (low, high) = self.interval(watchdog, rates)?;
        let by_ticks = signed.zip(tsc_mhz).map(|(ticks, mhz)| ticks as f64 * 1e3 / mhz);
        let by_skew = self.skew_ns.map(|skew| skew as f64 + low);
        let tsc_ns = printed.map(|ns| ns as f64).or(by_ticks.filter(|_| self.interval_ns.is_none())).or(by_skew)?;
        if tsc_ns < 0.0 {
            return Some(Comparison::WentBack { ns: Some(-tsc_ns), reset: false });
        }
        if self.overflows(watchdog, rates, tsc_ns) {
            return Some(Comparison::WatchdogOverflowed);
        }
        let known = (low == high).then_some(low as u64);
        if tsc_ns > MAX_RATE_FACTOR * high {
            return Some(Comparison::JumpedAhead { ns: tsc_ns - high, interval_ns: known });
        }
        let skew_ns = self.skew_ns.unwrap_or((tsc_ns - low).round() as i64);
        Some(Comparison::Drift { skew_ns, interval_ns: known? })
    }

    /// Returns bounds of the time between the two checks in ns, by the watchdog.
    fn interval(&self, watchdog: Option<&str>, rates: &Rates) -> Option<(f64, f64)> {
        let reading = self.watchdog.as_ref();
        let printed = self.interval_ns.map(|ns| ns as f64);
        if let Some(ns) = printed.or_else(|| reading?.nsec.filter(|ns| *ns >= 0).map(|ns| ns as f64)) {
            return Some((ns, ns));
        }
        let (slowest, fastest) = rates.watchdog(watchdog?)?;
        let (ticks, _) = reading?.forward()?;
        Some(((ticks * 1e3 / fastest).round(), (ticks * 1e3 / slowest).round()))
    }

    /// Returns whether both clocks agree, apart from overflows of the watchdog's counter.
    fn overflows(&self, watchdog: Option<&str>, rates: &Rates, tsc_ns: f64) -> bool {
        let counted = || {
            let (slowest, fastest) = rates.watchdog(watchdog?)?;
            let (ticks, range) = self.watchdog.as_ref()?.forward()?;
            (slowest == fastest).then_some((ticks * 1e3 / slowest, range * 1e3 / slowest))
        };
        counted().is_some_and(|(ns, range_ns)| {
            let rounds = ((tsc_ns - ns) / range_ns).round();
            rounds >= 1.0 && (tsc_ns - ns - rounds * range_ns).abs() < SAME_NS
        })
    }
}

/// Returns the last demotion of the TSC in these messages.
pub(super) fn last(messages: &[Message]) -> Option<Demotion> {
    let (mut rates, mut figures) = (Rates::default(), Figures::default());
    let (mut last, mut slept): (Option<Demotion>, bool) = (None, false);
    // The lines of an event can follow until the kernel selects another clock source.
    let mut open = false;
    for message in messages {
        rates.learn(message);
        slept |= matches!(message.kind, Kind::Suspend | Kind::Resume);
        open &= message.kind != Kind::Switched;
        let is_part = matches!(message.kind, Kind::WatchdogReading | Kind::SourceReading | Kind::Difference);
        let near = last.as_ref().is_some_and(|demotion| {
            demotion.demoted.seconds.zip(message.seconds).is_none_or(|(then, now)| (now - then).abs() < MAX_DISTANCE_S)
        });
        if !(is_part && open && near)
            && let Some(new) = found(message, slept, last.as_mut())
        {
            last = Some(new);
            figures = Figures::default();
            open = true;
        }
        let of_tsc = is_tsc(message.source());
        if let Some(demotion) = last.as_mut().filter(|_| open && of_tsc && figures.add(message)) {
            let watchdog = &mut demotion.demoted.watchdog;
            *watchdog = watchdog.take().or_else(|| message.fields.text("watchdog").map(String::from));
            demotion.comparison = figures.compare(watchdog.as_deref(), &rates);
        }
    }
    last.map(Demotion::explain)
}

/// Returns the demotion that this message shows. If it only explains the demotion before it, completes that one.
fn found(message: &Message, after_suspend: bool, before: Option<&mut Demotion>) -> Option<Demotion> {
    let fields = &message.fields;
    let reason = fields.text("reason").map(String::from);
    let kind = match message.kind {
        Kind::Skew | Kind::Difference | Kind::SourceReading | Kind::WatchdogReading => DemotionKind::Watchdog,
        Kind::ReadBack => DemotionKind::ReadBackDelay { delay_ns: fields.number("delay_ns") },
        Kind::Warp => DemotionKind::Warp { cycles: fields.number("cycles") },
        Kind::CpuSkew if message.fields.text("source").is_some() => DemotionKind::InterCpuSkew,
        Kind::Unstable => DemotionKind::Reason,
        Kind::UnstableAfterBoot if before.is_none() => DemotionKind::Firmware,
        _ => return None,
    };
    if !is_tsc(message.source()) {
        return None;
    }
    match before {
        // "tsc: Marking TSC unstable due to clocksource watchdog" belongs to the fault above it.
        Some(before)
            if kind == DemotionKind::Reason && before.demoted.reason.is_none() && before.kind.explains(&reason) =>
        {
            before.demoted.reason = reason;
            None
        }
        _ => {
            let demoted = Demoted {
                when: match (message.seconds, &message.stamp) {
                    (Some(seconds), _) if seconds < AT_BOOT_S => Some("during boot".into()),
                    (Some(seconds), _) => Some(format!("{seconds:.0} s after boot")),
                    (None, stamp) => stamp.as_ref().map(|stamp| format!("at {stamp}")),
                },
                clocksource: message.source().into(),
                seconds: message.seconds,
                // The kernel compares the CPUs when it starts them. The watchdog can report at any time.
                at_boot: message.seconds.map_or(matches!(kind, DemotionKind::Warp { .. }), |s| s < AT_BOOT_S),
                cpu: fields.number("cpu"),
                watchdog: fields.text("watchdog").map(String::from),
                reason,
                ..Demoted::default()
            };
            Some(Demotion { demoted, comparison: None, kind, after_suspend })
        }
    }
}

impl DemotionKind {
    /// Returns whether this kind of fault causes the kernel's `reason`.
    fn explains(self, reason: &Option<String>) -> bool {
        let begins = |words| reason.as_ref().is_none_or(|reason| reason.starts_with(words));
        match self {
            DemotionKind::Reason => false,
            DemotionKind::Warp { .. } => begins("check_tsc_sync"),
            _ => begins("clocksource watchdog"),
        }
    }
}

impl Demotion {
    /// Adds what the counters show, and what that means.
    fn explain(mut self) -> Demotion {
        if let Some(Comparison::Drift { skew_ns, interval_ns }) = self.comparison {
            (self.demoted.skew_ns, self.demoted.interval_ns) = (Some(skew_ns), Some(interval_ns));
        }
        self.demoted.because = because(&self);
        self.demoted.cause = cause(self.comparison).filter(|_| self.kind == DemotionKind::Watchdog);
        self.demoted.doubt = doubt(&self);
        self
    }
}

/// Returns the reason of a demotion, as the end of a sentence with "because".
fn because(demotion: &Demotion) -> String {
    let watchdog = demotion.demoted.watchdog.as_deref().unwrap_or("its watchdog");
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
        DemotionKind::Reason => match &demotion.demoted.reason {
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
        Some(Comparison::WatchdogOverflowed) => format!("the counter of {watchdog} overflowed between two checks"),
        None => format!("it differed too much from {watchdog}"),
    }
}

/// Returns what usually causes a jump of the counter.
fn cause(comparison: Option<Comparison>) -> Option<String> {
    let cause = match comparison? {
        Comparison::WentBack { reset: true, .. } => "a suspend, a restore or a migration of the machine resets its TSC",
        Comparison::WentBack { reset: false, .. } => {
            "a TSC that goes back was written: by a restore, a migration or a program"
        }
        Comparison::JumpedAhead { ns, .. } if ns < STOOD_STILL_NS => {
            "a jump, not drift: something wrote the TSC, or the watchdog stood still"
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
fn doubt(demotion: &Demotion) -> Option<String> {
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
        _ => demotion.demoted.interval_ns.filter(|ns| *ns > STALLED_NS).map(|_| {
            "the machine was paused between two checks (for example as a virtual machine), so the watchdog may be wrong"
                .into()
        }),
    }
}
