//! What the kernel can say about clocks.
//!
//! A field is `None` where that version does not print it, or where the line was damaged: a number
//! that cannot be read costs the field, never the event.

use std::fmt;

/// One thing that the kernel said about clocks.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// `Linux version 6.18.5 ...`: a boot begins
    Boot { version: Option<String> },
    /// The rate of a counter
    Rate(Rate),
    /// `Warning: TSC freq calibrated by CPUID/MSR differs from ...`
    RateWarning,
    /// `clocksource: tsc: mask: 0x... max_cycles: 0x..., max_idle_ns: N ns`: it can be chosen from now on
    ///
    /// `mhz`: the rate that these numbers come from
    Registered { clocksource: String, mhz: Option<f64> },
    /// `Switched to clocksource tsc`
    Switched { clocksource: String },
    /// `Override clocksource tsc is ...`: the one asked for cannot be had
    OverrideRefused(OverrideRefused),
    /// The watchdog found a clock source to run at another rate, and marked it unstable
    Skew(Box<Skew>),
    /// The watchdog found a clock source to differ between CPUs, and marked it unstable (7.1)
    CpuSkew(CpuSkew),
    /// The watchdog could not read fast enough to compare, and marked the clock source unstable for it
    ReadBack(ReadBack),
    /// The watchdog could not read fast enough to compare, and drew no conclusion
    CheckSkipped(CheckSkipped),
    /// `hpet retried 3 times before success`
    Retried { cpu: Option<u32>, watchdog: Option<String>, times: Option<u32> },
    /// The comparison between CPUs that follows once a clock source was marked unstable
    SyncCheck(SyncCheck),
    /// While CPUs were started, the TSC of one was behind that of another
    Warp(Warp),
    /// `TSC ADJUST compensate: CPU1 observed 340 warp. Adjust: 340`: a warp that could be mended
    WarpMended { cpu: Option<u32>, cycles: Option<i64> },
    /// `[Firmware Bug]: TSC ADJUST ...`
    FirmwareBug(FirmwareBug),
    /// `Skipped synchronization checks as TSC is reliable.`
    SyncSkipped,
    /// `Marking TSC unstable due to ...`; since 7.1 for other clock sources too
    Unstable { clocksource: String, reason: Option<String> },
    /// `TSC found unstable after boot, most likely due to broken BIOS.`
    UnstableAfterBoot,
    /// `sched_clock: Marking unstable (...)`: the scheduler's clock leaves the TSC too
    SchedClockUnstable,
    /// `kvm-clock: Using msrs ...`: the hypervisor offers its clock
    KvmClock,
    /// `time.c: Using 3.579545 MHz WALL PM GTOD PIT/TSC timer.` (2.6)
    OldTimer { mhz: Option<f64>, wall: Option<String>, timer: Option<String> },
    /// The machine goes to sleep: `PM: suspend entry (deep)`, `Suspending console(s)`, ...
    Suspend { state: Option<String> },
    /// The machine woke up: `PM: suspend exit`, `Waking up from system sleep state S3`, ...
    Resume { slept_s: Option<f64> },
}

/// A rate that the kernel names.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// whose, and where it comes from
    pub source: RateSource,
    /// megahertz, as printed
    pub mhz: f64,
}

/// Whose rate, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateSource {
    /// `Detected N MHz processor`: the TSC's too, if no [`RateSource::Tsc`] follows
    Processor,
    /// `Detected N MHz TSC`: where it is not the processor's
    Tsc,
    /// `Refined TSC clocksource calibration`
    Refined,
    /// `TSC freq recalibrated by [HPET]`, as `tsc=recalibrate` asks for: measured, but used only by newer kernels
    Recalibrated(String),
    /// `Previous calibrated TSC freq`: what the recalibration disagrees with
    Previous,
    /// `TSC freq read from hypervisor` (VMware)
    Hypervisor,
    /// `arch_timer: cp15 timer(s) running at N MHz`: AArch64's counter
    ArchTimer,
    /// `hpet0: 3 comparators, 64-bit N MHz counter`
    Hpet,
}

/// A clock source that was asked for, by the boot parameter or through sysfs, and cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideRefused {
    pub clocksource: String,
    /// it was marked unstable, so it stays refused until the next boot
    pub unstable: bool,
    /// `deferring`: it may still be taken once it has been verified
    pub deferred: bool,
}

/// A watchdog message, all its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skew {
    /// the clock source that was marked unstable
    pub clocksource: Option<String>,
    /// the CPU that compared
    pub cpu: Option<u32>,
    /// the clock source that it was compared with
    pub watchdog: Option<String>,
    /// printed, above zero where the clock source ran ahead
    pub skew_ns: Option<i64>,
    /// printed: the time between the two comparisons by the watchdog
    pub interval_ns: Option<u64>,
    /// the watchdog's counter
    pub wd: Reading,
    /// the clock source's counter
    pub cs: Reading,
    /// the clock source in use then
    pub current: Option<String>,
    /// `due to frequency skew` (7.1)
    pub frequency: bool,
}

/// A counter at two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// the time between them by the kernel's own reckoning (6.1 on)
    pub nsec: Option<i64>,
    pub now: Option<u64>,
    pub last: Option<u64>,
    pub mask: Option<u64>,
}

impl Reading {
    /// The counts between the two moments, the counter's whole rounds not counted.
    pub fn elapsed(&self) -> Option<u64> {
        let (now, last, mask) = (self.now?, self.last?, self.mask?);
        // A mask is ones only. One that lost digits at the line's end is below the counts.
        let whole = mask != 0 && mask & mask.wrapping_add(1) == 0 && now <= mask && last <= mask;
        whole.then(|| now.wrapping_sub(last) & mask)
    }
}

/// A clock source that differs between CPUs (7.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuSkew {
    pub clocksource: Option<String>,
    /// the CPU with the lower count, and that count; it was read after the other
    pub low: Option<(u32, u64)>,
    pub high: Option<(u32, u64)>,
}

/// Reading took too long, and the clock source was marked unstable for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// the clock source under test; 5.13 to 6.0 don't name it
    pub clocksource: Option<String>,
    pub cpu: Option<u32>,
    /// 5.13 to 6.0 name it
    pub watchdog: Option<String>,
    /// from the watchdog's first reading to its second, around the clock source's
    pub delay_ns: Option<i64>,
    pub limit_ns: Option<i64>,
    /// the watchdog's own part of it
    pub watchdog_delay_ns: Option<i64>,
    pub attempt: Option<u32>,
}

/// Reading took too long, and nothing was concluded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckSkipped {
    pub clocksource: Option<String>,
    pub cpu: Option<u32>,
    pub watchdog: Option<String>,
    /// from the watchdog's first reading to its second
    pub delay_ns: Option<i64>,
    /// between two readings of the watchdog alone
    pub watchdog_delay_ns: Option<i64>,
    /// `Long readout interval`: the last check was this long ago, by the watchdog
    pub interval_ns: Option<i64>,
}

/// How a clock source that was marked unstable compares between CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncCheck {
    pub clocksource: Option<String>,
    /// the CPU that compared itself with the others
    pub cpu: Option<u32>,
    pub compared: Option<Cpus>,
    pub ahead: Option<Cpus>,
    pub behind: Option<Cpus>,
    /// how long a comparison took, from and to
    pub took_ns: Option<(i64, i64)>,
}

/// CPUs as the kernel lists them: `0,4-7`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus(pub Vec<(u32, u32)>);

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

/// The TSC was seen to go back from one CPU to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warp {
    /// the one that was running, and the one just started
    pub cpus: Option<(u32, u32)>,
    /// the largest step back
    pub cycles: Option<u64>,
    /// in both directions: no offset would explain it
    pub random: bool,
}

/// The firmware changed the offset that each CPU adds to its TSC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirmwareBug {
    pub cpu: Option<u32>,
    /// the offset that it should have
    pub expected: Option<i64>,
    pub found: Option<i64>,
}
