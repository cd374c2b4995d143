//! The events about clocks in a kernel log.
//!
//! A field is `None` if that version does not print it, or if the line was damaged. An unreadable number removes the
//! field, and never the event.

use std::fmt;

/// One event about clocks.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// `Linux version 6.18.5 ...`: a boot begins
    Boot { version: Option<String> },
    /// The rate of a counter
    Rate(Rate),
    /// `Warning: TSC freq calibrated by CPUID/MSR differs from ...`
    RateWarning,
    /// `clocksource: tsc: mask: 0x... max_cycles: 0x..., max_idle_ns: N ns`: the clock source is available from now on
    ///
    /// `mhz`: the rate that these numbers imply
    Registered { clocksource: String, mhz: Option<f64> },
    /// `Switched to clocksource tsc`
    Switched { clocksource: String },
    /// `Override clocksource tsc is ...`: the kernel refuses the requested clock source
    OverrideRefused(OverrideRefused),
    /// The watchdog found a wrong rate and marked the clock source unstable
    Skew(Box<Skew>),
    /// The watchdog found a difference between CPUs and marked the clock source unstable (7.1)
    CpuSkew(CpuSkew),
    /// The watchdog's comparison took too long, and it marked the clock source unstable
    ReadBack(ReadBack),
    /// The watchdog's comparison took too long, and it was skipped
    CheckSkipped(CheckSkipped),
    /// `hpet retried 3 times before success`
    Retried { cpu: Option<u32>, watchdog: Option<String>, times: Option<u32> },
    /// The comparison between CPUs after a clock source was marked unstable
    SyncCheck(SyncCheck),
    /// The TSC of one CPU was behind that of another while the kernel started CPUs
    Warp(Warp),
    /// `TSC ADJUST compensate: CPU1 observed 340 warp. Adjust: 340`: the kernel corrected a warp
    WarpCorrected { cpu: Option<u32>, cycles: Option<i64> },
    /// `[Firmware Bug]: TSC ADJUST ...`
    FirmwareBug(FirmwareBug),
    /// `Skipped synchronization checks as TSC is reliable.`
    SyncSkipped,
    /// `Marking TSC unstable due to ...`; since 7.1 also for other clock sources
    Unstable { clocksource: String, reason: Option<String> },
    /// `TSC found unstable after boot, most likely due to broken BIOS.`
    UnstableAfterBoot,
    /// `sched_clock: Marking unstable (...)`: the scheduler stops using the TSC, too
    SchedClockUnstable,
    /// `kvm-clock: Using msrs ...`: the hypervisor offers its clock
    KvmClock,
    /// `time.c: Using 3.579545 MHz WALL PM GTOD PIT/TSC timer.` (2.6)
    OldTimer { mhz: Option<f64>, wall: Option<String>, timer: Option<String> },
    /// `Timecounter "TSC-low" frequency 1296049048 Hz quality 1000` (FreeBSD)
    Timecounter(Timecounter),
    /// The machine goes to sleep: `PM: suspend entry (deep)`, `Suspending console(s)`, ...
    Suspend { state: Option<String> },
    /// `random: crng reseeded due to virtual machine fork`: the virtual machine was restored from a snapshot, or cloned
    MachineForked,
    /// The machine woke up: `PM: suspend exit`, `Waking up from system sleep state S3`, ...
    Resume { slept_s: Option<f64> },
}

/// A clock source of FreeBSD. The kernel selects the one with the highest quality, and none with a negative quality.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timecounter {
    pub name: String,
    pub hz: Option<u64>,
    pub quality: Option<i64>,
}

/// A rate in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    pub source: RateSource,
    /// MHz, as printed
    pub mhz: f64,
}

/// The counter that a rate belongs to, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateSource {
    /// `Detected N MHz processor`: also the TSC's rate, if no [`RateSource::Tsc`] follows
    Processor,
    /// `Detected N MHz TSC`: if it differs from the processor's rate
    Tsc,
    /// `Refined TSC clocksource calibration`
    Refined,
    /// `TSC freq recalibrated by [HPET]`, with `tsc=recalibrate`: the kernel prints it, and continues with the old rate
    Recalibrated(String),
    /// `Previous calibrated TSC freq`: the rate before the recalibration
    Previous,
    /// `TSC freq read from hypervisor` (VMware)
    Hypervisor,
    /// `arch_timer: cp15 timer(s) running at N MHz`: AArch64's counter
    ArchTimer,
    /// `hpet0: 3 comparators, 64-bit N MHz counter`
    Hpet,
}

/// A clock source that the boot parameter or a write to sysfs requested, and that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideRefused {
    pub clocksource: String,
    /// whether it is marked unstable; then the refusal holds until the next boot
    pub unstable: bool,
    /// `deferring`: the kernel may still select it after a verification
    pub deferred: bool,
}

/// All lines of a watchdog message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skew {
    /// the clock source that was marked unstable
    pub clocksource: Option<String>,
    /// the CPU that compared
    pub cpu: Option<u32>,
    /// the clock source that it was compared with
    pub watchdog: Option<String>,
    /// clock source minus watchdog, as printed
    pub skew_ns: Option<i64>,
    /// time between the two comparisons by the watchdog, as printed
    pub interval_ns: Option<u64>,
    /// the watchdog's counter
    pub wd: Reading,
    /// the clock source's counter
    pub cs: Reading,
    /// the current clock source at that time
    pub current: Option<String>,
    /// `due to frequency skew` (7.1)
    pub frequency: bool,
}

/// Two readings of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// the time between them, computed by the kernel (since 6.1)
    pub nsec: Option<i64>,
    pub now: Option<u64>,
    pub last: Option<u64>,
    pub mask: Option<u64>,
}

impl Reading {
    /// Returns the ticks between the two readings, without overflows of the counter.
    pub fn elapsed(&self) -> Option<u64> {
        let (now, last, mask) = (self.now?, self.last?, self.mask?);
        // All digits of a mask are ones. A mask that lost digits at the end of the line is smaller than the readings.
        let complete = mask != 0 && mask & mask.wrapping_add(1) == 0 && now <= mask && last <= mask;
        complete.then(|| now.wrapping_sub(last) & mask)
    }
}

/// A difference of a clock source between CPUs (7.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuSkew {
    pub clocksource: Option<String>,
    /// the CPU with the lower reading, and the reading, which came after the higher one
    pub low: Option<(u32, u64)>,
    pub high: Option<(u32, u64)>,
}

/// A comparison took too long, so the kernel marked the clock source unstable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// the checked clock source; 5.13 to 6.0 do not print it
    pub clocksource: Option<String>,
    pub cpu: Option<u32>,
    /// printed by 5.13 to 6.0
    pub watchdog: Option<String>,
    /// time between the watchdog's readings before and after the clock source's reading
    pub delay_ns: Option<i64>,
    pub limit_ns: Option<i64>,
    /// the part of the delay that the watchdog itself takes
    pub watchdog_delay_ns: Option<i64>,
    pub attempt: Option<u32>,
}

/// A comparison took too long, so the kernel skipped it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckSkipped {
    pub clocksource: Option<String>,
    pub cpu: Option<u32>,
    pub watchdog: Option<String>,
    /// time between the watchdog's two readings
    pub delay_ns: Option<i64>,
    /// time between two readings of the watchdog alone
    pub watchdog_delay_ns: Option<i64>,
    /// `Long readout interval`: time since the last check, by the watchdog
    pub interval_ns: Option<i64>,
}

/// The comparison of an unstable clock source between CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncCheck {
    pub clocksource: Option<String>,
    /// the CPU that compared itself with the others
    pub cpu: Option<u32>,
    pub compared: Option<Cpus>,
    pub ahead: Option<Cpus>,
    pub behind: Option<Cpus>,
    /// shortest and longest duration of a comparison
    pub took_ns: Option<(i64, i64)>,
}

/// Ranges of CPUs in the kernel's format: `0,4-7`.
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

/// The TSC went back from one CPU to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warp {
    /// the running CPU, and the CPU that was just started
    pub cpus: Option<(u32, u32)>,
    /// the largest backward step
    pub cycles: Option<u64>,
    /// backward steps in both directions, which no constant offset explains
    pub random: bool,
}

/// The firmware changed a CPU's TSC offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirmwareBug {
    pub cpu: Option<u32>,
    /// the correct offset
    pub expected: Option<i64>,
    pub found: Option<i64>,
}
