//! The kernel's messages about clocks: how each begins, what it is, and what it means.

use crate::host::pattern::{Fields, Match, find};
use crate::report::{MessageLevel as Level, is_cut_name};

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// a boot begins
    Boot,
    /// the boot parameters
    CommandLine,
    /// the number of CPUs
    Cpus,
    /// the processor's rate; also the TSC's, if no [`Kind::TscRate`] follows
    CpuRate,
    TscRate,
    RefinedRate,
    /// with `tsc=recalibrate`: the kernel measures and prints the rate, and does not use it
    RecalibratedRate,
    HypervisorRate,
    HpetRate,
    /// a clock source is available from now on
    Registered,
    /// the kernel selects a clock source
    Switched,
    /// names the current clock source
    Current,
    /// the kernel refuses a requested clock source
    Refused,
    /// the watchdog found a wrong rate
    Skew,
    /// the watchdog's own reading, the reading of the clock source, and their difference
    WatchdogReading,
    SourceReading,
    Difference,
    /// the watchdog found a difference between CPUs
    CpuSkew,
    /// the watchdog's comparison took too long: the clock source is marked unstable
    ReadBack,
    /// a clock source was marked unstable
    Unstable,
    UnstableAfterBoot,
    /// the TSC went back from one CPU to another
    Warp,
    /// the firmware changed the TSC of a CPU
    FirmwareBug,
    /// the timer of a Linux without clock sources
    OldTimer,
    /// a clock source of FreeBSD
    Timecounter,
    /// other messages about clocks
    Other,
}

/// Rates of the TSC that the kernel uses.
pub const TSC_RATES: &[Kind] = &[Kind::CpuRate, Kind::TscRate, Kind::RefinedRate, Kind::HypervisorRate];

/// One wording of a message.
pub struct Row {
    pub kind: Kind,
    pub level: Level,
    pub pattern: &'static str,
    /// what it means; empty if the message only carries figures
    pub meaning: &'static str,
}

const UNTIL_BOOT: &str = "the kernel stops using it until the next boot";
const SKIPPED: &str = "harmless: reading the watchdog took too long, so the kernel skips this check and keeps the clock source; in \
                       a virtual machine, an invariant TSC from the hypervisor ends such checks";
const SELECTED: &str = "the kernel's clock source from now on";
const FIRMWARE: &str = "the firmware changed a CPU's TSC, and the kernel corrected it";
const TIMECOUNTER: &str = "a clock source; FreeBSD selects the one with the highest quality, and none below 0";
const OLD_TIMER: &str = "an old Linux without a list of clock sources: its clock uses these timers";

/// Returns a row. Kernels before Linux 4.5 print no prefix `clocksource:`, so no pattern contains one.
const fn row(kind: Kind, level: Level, pattern: &'static str, meaning: &'static str) -> Row {
    Row { kind, level, pattern, meaning }
}

/// Every wording, Linux 2.6 to 7.1 and FreeBSD. A longer wording comes before a shorter one.
#[rustfmt::skip]
pub const TABLE: &[Row] = {
    use Kind::*;
    use Level::*;
    &[
        row(Boot, Detail, "Linux version {version} ", ""),
        row(CommandLine, Detail, "Kernel command line: {*line}", ""),
        row(CommandLine, Detail, "Command line: {*line}", ""),
        row(Cpus, Detail, "Brought up {#nodes} node, {#cpus} CPU", ""),
        row(Cpus, Detail, "Brought up {#nodes} nodes, {#cpus} CPU", ""),
        row(TscRate, Detail, "Detected {.mhz} MHz TSC", "the TSC's rate"),
        row(CpuRate, Detail, "Detected {.mhz} MHz processor", "the TSC's rate, unless another one follows"),
        row(RefinedRate, Detail, "Refined TSC clocksource calibration: {.mhz} MHz", "the TSC's exact rate"),
        row(RecalibratedRate, Note, "TSC freq recalibrated by [{by}]: {.mhz} MHz", "the TSC's rate by another timer; the kernel does not use it"),
        row(Other, Detail, "Previous calibrated TSC freq: {.mhz} MHz", "the TSC's rate that the kernel uses"),
        row(HypervisorRate, Detail, "TSC freq read from hypervisor : {.mhz} MHz", "the TSC's rate according to the hypervisor"),
        row(Other, Detail, "cp15 timer(s) running at {.mhz}MHz", "the counter's rate"),
        row(Other, Detail, "cp15 and mmio timer(s) running at {.mhz}MHz", "the counter's rate"),
        row(HpetRate, Detail, "hpet0: {#count} comparators, {#bits}-bit {.mhz} MHz counter", ""),
        row(Other, Note, "Warning: TSC freq calibrated by", "the claimed and the measured rate of the TSC differ: one of them is wrong"),
        row(Registered, Detail, "clocksource: {source}: mask: {mask} max_cycles: {cycles}, max_idle_ns: {#idle_ns} ns", ""),
        row(Registered, Detail, "clocksource {source}: mask: {mask} max_cycles: {cycles}, max_idle_ns: {#idle_ns} ns", ""),
        row(Switched, Detail, "Switched to clocksource {source}", SELECTED),
        row(Switched, Detail, "Switching to clocksource {source}", SELECTED),
        row(Switched, Detail, "Time: {source} clocksource has been installed", SELECTED),
        row(Switched, Note, "kern.timecounter.hardware: {from} -> {source}", "the switch worked; a restart undoes it, unless /etc/sysctl.conf has the setting"),
        row(Current, Note, "kern.timecounter.hardware: {*source}", "FreeBSD's current clock source"),
        // Linux prints this if the watchdog found a fault of another clock source than the current one.
        row(Current, Detail, "'{source}' (not '{marked}') is current clocksource", ""),
        row(Other, Detail, "Override clocksource {source} is not currently HRT", "the requested clock source must be verified first"),
        row(Refused, Note, "Override clocksource {source} is unstable and not HRT", "the kernel refuses the requested clock source: it is marked unstable"),
        row(Refused, Note, "Override clocksource {source} is not HRT", "the kernel refuses the requested clock source: it may be too coarse"),
        row(Skew, Fault, "timekeeping watchdog on CPU{#cpu}: Marking clocksource '{source}' as unstable", UNTIL_BOOT),
        row(Skew, Fault, "timekeeping watchdog: Marking clocksource '{source}' as unstable", UNTIL_BOOT),
        row(Skew, Fault, "Clocksource {source} unstable (delta = {#skew_ns} ns", UNTIL_BOOT),
        row(Skew, Fault, "Marking clocksource {source} unstable due to frequency skew", UNTIL_BOOT),
        row(CpuSkew, Fault, "Marking clocksource {source} unstable due to inter CPU skew", UNTIL_BOOT),
        row(WatchdogReading, Detail, "'{watchdog}' wd_nsec: {#nsec} wd_now: {now} wd_last: {last} mask: {mask}", ""),
        row(WatchdogReading, Detail, "'{watchdog}' wd_now: {now} wd_last: {last} mask: {mask}", ""),
        row(WatchdogReading, Detail, "Watchdog {watchdog} interval: {#nsec}ns", ""),
        row(SourceReading, Detail, "'{source}' cs_nsec: {#nsec} cs_now: {now} cs_last: {last} mask: {mask}", ""),
        row(SourceReading, Detail, "'{source}' cs_now: {now} cs_last: {last} mask: {mask}", ""),
        row(SourceReading, Detail, "Clocksource {source} interval: {#nsec}ns", ""),
        row(Difference, Detail, "Clocksource '{source}' skewed {#skew_ns} ns ({#ms} ms) over watchdog '{watchdog}' interval of {#interval_ns} ns", ""),
        row(ReadBack, Fault, "timekeeping watchdog on CPU{#cpu}: wd-{source}-wd excessive read-back delay of {#delay_ns}ns", UNTIL_BOOT),
        row(ReadBack, Fault, "timekeeping watchdog on CPU{#cpu}: wd-{source}-wd read-back delay of {#delay_ns}ns, attempt", UNTIL_BOOT),
        row(Other, Note, "timekeeping watchdog on CPU{#cpu}: {watchdog} wd-wd read-back delay of {#delay_ns}ns", SKIPPED),
        row(ReadBack, Fault, "timekeeping watchdog on CPU{#cpu}: {watchdog} read-back delay of {#delay_ns}ns, attempt", UNTIL_BOOT),
        row(Other, Note, "wd-{source}-wd read-back delay of {#delay_ns}ns, clock-skew test skipped", SKIPPED),
        row(Other, Note, "timekeeping watchdog on CPU{#cpu}: {watchdog} retried {#times} times before success", "harmless: the watchdog was read again, because the first reading took too long"),
        row(Other, Note, "Long readout interval, skipping watchdog check", "harmless: the machine was busy or paused, so the kernel skips this check"),
        row(Other, Note, "Watchdog {watchdog} read timed out", SKIPPED),
        row(Other, Note, "Watchdog remote CPU {#cpu} read timed out", SKIPPED),
        row(Other, Fault, "CPUs {cpus} ahead of CPU {#cpu} for clocksource", "the clock source differs between these CPUs"),
        row(Other, Fault, "CPUs {cpus} behind CPU {#cpu} for clocksource", "the clock source differs between these CPUs"),
        row(Unstable, Fault, "Marking TSC unstable due to {*reason}", UNTIL_BOOT),
        row(Unstable, Fault, "Marking clocksource {source} unstable due to {*reason}", UNTIL_BOOT),
        row(UnstableAfterBoot, Fault, "TSC found unstable after boot", UNTIL_BOOT),
        row(Warp, Fault, "Measured {#cycles} cycles TSC warp between CPUs", "the TSC goes back from one CPU to another"),
        row(Warp, Fault, "TSC warped randomly between CPUs", "the TSC goes back between CPUs in both directions"),
        row(Other, Note, "TSC ADJUST compensate: CPU{#cpu} observed {#cycles} warp", "the TSC of this CPU was behind, and the kernel corrected it"),
        row(FirmwareBug, Note, "TSC ADJUST differs", FIRMWARE),
        row(FirmwareBug, Note, "TSC ADJUST: CPU{#cpu}: {#found} force to 0", FIRMWARE),
        row(Other, Detail, "Skipped synchronization checks as TSC is reliable", "the kernel did not compare the CPUs"),
        row(Other, Detail, "kvm-clock: Using msrs", "KVM offers its clock"),
        row(OldTimer, Note, "time.c: Using {.mhz} MHz WALL {wall} GTOD {timer} timer", OLD_TIMER),
        row(OldTimer, Note, "time.c: Using {.mhz} MHz {timer} timer", OLD_TIMER),
        row(Timecounter, Note, "Timecounter \"{name}\" frequency {#hz} Hz quality {quality}", TIMECOUNTER),
        row(Other, Detail, "PM: suspend entry", "the machine goes to sleep"),
        row(Other, Detail, "Timekeeping suspended for {.seconds} seconds", "the machine slept that long"),
        row(Other, Detail, "PM: suspend exit", "the machine woke up"),
        row(Other, Note, "random: crng reseeded due to virtual machine fork", "the virtual machine was restored or cloned: its TSC may have been set"),
    ]
};

/// The kernel's reasons after "due to", and what they mean.
const REASONS: &[(&str, &str)] = &[
    ("TSCs unsynchronized", "the CPUs promise no constant rate, so the kernel assumes that their TSCs differ"),
    ("running on Hyper-V", "Hyper-V promises no constant rate of the TSC"),
    ("TSC halts in idle", "this TSC stops while a CPU is idle"),
    ("cpufreq changes", "this TSC follows the CPU's frequency"),
    ("KVM discovered backwards TSC", "the TSC of this KVM host went back between CPUs, or after a suspend"),
    ("could not calculate TSC khz", "the kernel found no second timer to measure the TSC's rate"),
    ("boot parameter", "the boot parameter tsc=unstable is set"),
];

/// Every message contains one of these. So a log of gigabytes is searched for few patterns.
const HINTS: &[&str] =
    &["lock", "TSC", "counter", "atchdog", "version", "mmand", "MHz", "Brought", "keeping", "wd-", "PM:", "fork", "'"];

/// Returns the message about clocks in a line.
pub fn message(line: &str) -> Option<(&'static Row, Match<'_>)> {
    if !HINTS.iter().any(|hint| line.contains(hint)) {
        return None;
    }
    // A line can end within the name of a clock source.
    let is_cut_off = |found: &Match| found.rest.is_empty() && found.fields.text("source").is_some_and(is_cut_name);
    TABLE.iter().find_map(|row| Some((row, find(row.pattern, line).filter(|found| !is_cut_off(found))?)))
}

impl Row {
    /// Returns what a message with these fields means.
    pub fn meaning(&self, fields: &Fields) -> &'static str {
        let reason = fields.text("reason").unwrap_or("");
        REASONS.iter().find(|(words, _)| reason.starts_with(words)).map_or(self.meaning, |(_, meaning)| meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_hint() {
        for row in TABLE {
            // The names of holes are not in the line.
            let texts = row.pattern.split('{').map(|part| part.rsplit('}').next().unwrap_or(part));
            let text: String = texts.collect();
            assert!(HINTS.iter().any(|hint| text.contains(hint)), "{text}");
        }
    }
}
