//! The kernel's messages about clocks: how each begins, what it is, and what it means.

use crate::host::pattern::{Fields, find};
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
    /// a clock source of FreeBSD
    Timecounter,
    /// other messages about clocks
    Other,
}

/// Rates of the TSC that the kernel uses.
pub const TSC_RATES: &[Kind] = &[Kind::CpuRate, Kind::TscRate, Kind::RefinedRate, Kind::HypervisorRate];

/// One wording of a message: its kind, its level, its pattern, and what it means. The meaning is empty if the message only
/// carries figures. Kernels before Linux 4.5 print no prefix `clocksource:`, so no pattern contains one.
pub struct Row(pub Kind, pub Level, pub &'static str, pub &'static str);

const UNTIL_BOOT: &str = "the kernel stops using it until the next boot";
const SKIPPED: &str = "harmless: reading the watchdog took too long, so the kernel skips this check and keeps the clock source; in \
                       a virtual machine, an invariant TSC from the hypervisor ends such checks";
const SELECTED: &str = "the kernel's clock source from now on";
const FIRMWARE: &str = "the firmware changed a CPU's TSC, and the kernel corrected it";
const TIMECOUNTER: &str = "a clock source; FreeBSD selects the one with the highest quality, and none below 0";

/// Every wording, Linux 2.6 to 7.1 and FreeBSD. A longer wording comes before a shorter one.
#[rustfmt::skip]
pub const TABLE: &[Row] = {
    use Kind::*;
    use Level::*;
    &[
        Row(Boot, Detail, "Linux version {version} ", ""),
        Row(CommandLine, Detail, "Kernel command line: {*line}", ""),
        Row(CommandLine, Detail, "Command line: {*line}", ""),
        Row(Cpus, Detail, "Brought up {#nodes} node, {#cpus} CPU", ""),
        Row(Cpus, Detail, "Brought up {#nodes} nodes, {#cpus} CPU", ""),
        Row(TscRate, Detail, "Detected {.mhz} MHz TSC", "the TSC's rate"),
        Row(CpuRate, Detail, "Detected {.mhz} MHz processor", "the TSC's rate, unless another one follows"),
        Row(RefinedRate, Detail, "Refined TSC clocksource calibration: {.mhz} MHz", "the TSC's exact rate"),
        Row(RecalibratedRate, Note, "TSC freq recalibrated by [{by}]: {.mhz} MHz", "the TSC's rate by another timer; the kernel does not use it"),
        Row(Other, Detail, "Previous calibrated TSC freq: {.mhz} MHz", "the TSC's rate that the kernel uses"),
        Row(HypervisorRate, Detail, "TSC freq read from hypervisor : {.mhz} MHz", "the TSC's rate according to the hypervisor"),
        Row(Other, Detail, "cp15 timer(s) running at {.mhz}MHz", "the counter's rate"),
        Row(Other, Detail, "cp15 and mmio timer(s) running at {.mhz}MHz", "the counter's rate"),
        Row(HpetRate, Detail, "hpet0: {#count} comparators, {#bits}-bit {.mhz} MHz counter", ""),
        Row(Other, Note, "Warning: TSC freq calibrated by", "the claimed and the measured rate of the TSC differ: one of them is wrong"),
        Row(Registered, Detail, "clocksource: {source}: mask: {mask} max_cycles: {cycles}, max_idle_ns: {#idle_ns} ns", ""),
        Row(Registered, Detail, "clocksource {source}: mask: {mask} max_cycles: {cycles}, max_idle_ns: {#idle_ns} ns", ""),
        Row(Switched, Detail, "Switched to clocksource {source}", SELECTED),
        Row(Switched, Detail, "Switching to clocksource {source}", SELECTED),
        Row(Switched, Detail, "Time: {source} clocksource has been installed", SELECTED),
        Row(Switched, Note, "kern.timecounter.hardware: {from} -> {source}", "the switch worked; a restart undoes it, unless /etc/sysctl.conf has the setting"),
        Row(Current, Note, "kern.timecounter.hardware: {*source}", "FreeBSD's current clock source"),
        // Linux prints this if the watchdog found a fault of another clock source than the current one.
        Row(Current, Detail, "'{source}' (not '{marked}') is current clocksource", ""),
        Row(Other, Detail, "Override clocksource {source} is not currently HRT", "the requested clock source must be verified first"),
        Row(Refused, Note, "Override clocksource {source} is unstable and not HRT", "the kernel refuses the requested clock source: it is marked unstable"),
        Row(Refused, Note, "Override clocksource {source} is not HRT", "the kernel refuses the requested clock source: it may be too coarse"),
        Row(Skew, Fault, "timekeeping watchdog on CPU{#cpu}: Marking clocksource '{source}' as unstable", UNTIL_BOOT),
        Row(Skew, Fault, "timekeeping watchdog: Marking clocksource '{source}' as unstable", UNTIL_BOOT),
        Row(Skew, Fault, "Clocksource {source} unstable (delta = {#skew_ns} ns", UNTIL_BOOT),
        Row(Skew, Fault, "Marking clocksource {source} unstable due to frequency skew", UNTIL_BOOT),
        Row(CpuSkew, Fault, "Marking clocksource {source} unstable due to inter CPU skew", UNTIL_BOOT),
        Row(WatchdogReading, Detail, "'{watchdog}' wd_nsec: {#nsec} wd_now: {now} wd_last: {last} mask: {mask}", ""),
        Row(WatchdogReading, Detail, "'{watchdog}' wd_now: {now} wd_last: {last} mask: {mask}", ""),
        Row(WatchdogReading, Detail, "Watchdog {watchdog} interval: {#nsec}ns", ""),
        Row(SourceReading, Detail, "'{source}' cs_nsec: {#nsec} cs_now: {now} cs_last: {last} mask: {mask}", ""),
        Row(SourceReading, Detail, "'{source}' cs_now: {now} cs_last: {last} mask: {mask}", ""),
        Row(SourceReading, Detail, "Clocksource {source} interval: {#nsec}ns", ""),
        Row(Difference, Detail, "Clocksource '{source}' skewed {#skew_ns} ns ({#ms} ms) over watchdog '{watchdog}' interval of {#interval_ns} ns", ""),
        Row(ReadBack, Fault, "timekeeping watchdog on CPU{#cpu}: wd-{source}-wd excessive read-back delay of {#delay_ns}ns", UNTIL_BOOT),
        Row(ReadBack, Fault, "timekeeping watchdog on CPU{#cpu}: wd-{source}-wd read-back delay of {#delay_ns}ns, attempt", UNTIL_BOOT),
        Row(Other, Note, "timekeeping watchdog on CPU{#cpu}: {watchdog} wd-wd read-back delay of {#delay_ns}ns", SKIPPED),
        Row(ReadBack, Fault, "timekeeping watchdog on CPU{#cpu}: {watchdog} read-back delay of {#delay_ns}ns, attempt", UNTIL_BOOT),
        Row(Other, Note, "wd-{source}-wd read-back delay of {#delay_ns}ns, clock-skew test skipped", SKIPPED),
        Row(Other, Note, "timekeeping watchdog on CPU{#cpu}: {watchdog} retried {#times} times before success", "harmless: the watchdog was read again, because the first reading took too long"),
        Row(Other, Note, "Long readout interval, skipping watchdog check", "harmless: the machine was busy or paused, so the kernel skips this check"),
        Row(Other, Note, "Watchdog {watchdog} read timed out", SKIPPED),
        Row(Other, Note, "Watchdog remote CPU {#cpu} read timed out", SKIPPED),
        Row(Other, Fault, "CPUs {cpus} ahead of CPU {#cpu} for clocksource", "the clock source differs between these CPUs"),
        Row(Other, Fault, "CPUs {cpus} behind CPU {#cpu} for clocksource", "the clock source differs between these CPUs"),
        Row(Unstable, Fault, "Marking TSC unstable due to {*reason}", UNTIL_BOOT),
        Row(Unstable, Fault, "Marking clocksource {source} unstable due to {*reason}", UNTIL_BOOT),
        Row(UnstableAfterBoot, Fault, "TSC found unstable after boot", UNTIL_BOOT),
        Row(Warp, Fault, "Measured {#cycles} cycles TSC warp between CPUs", "the TSC goes back from one CPU to another"),
        Row(Warp, Fault, "TSC warped randomly between CPUs", "the TSC goes back between CPUs in both directions"),
        Row(Other, Note, "TSC ADJUST compensate: CPU{#cpu} observed {#cycles} warp", "the TSC of this CPU was behind, and the kernel corrected it"),
        Row(FirmwareBug, Note, "TSC ADJUST differs", FIRMWARE),
        Row(FirmwareBug, Note, "TSC ADJUST: CPU{#cpu}: {#found} force to 0", FIRMWARE),
        Row(Other, Detail, "Skipped synchronization checks as TSC is reliable", "the kernel did not compare the CPUs"),
        Row(Other, Detail, "kvm-clock: Using msrs", "KVM offers its clock"),
        Row(Timecounter, Note, "Timecounter \"{name}\" frequency {#hz} Hz quality {quality}", TIMECOUNTER),
        Row(Other, Detail, "PM: suspend entry", "the machine goes to sleep"),
        Row(Other, Detail, "Timekeeping suspended for {.seconds} seconds", "the machine slept that long"),
        Row(Other, Detail, "PM: suspend exit", "the machine woke up"),
        Row(Other, Note, "random: crng reseeded due to virtual machine fork", "the virtual machine was restored or cloned: its TSC may have been set"),
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

/// Returns the message about clocks in a line: its wording, the position of its first byte, and what varies in it.
pub fn message(line: &str) -> Option<(&'static Row, usize, Fields)> {
    if !HINTS.iter().any(|hint| line.contains(hint)) {
        return None;
    }
    TABLE.iter().find_map(|row| {
        let (start, fields, rest) = find(row.2, line)?;
        // A line can end within the name of a clock source.
        let is_cut_off = rest.is_empty() && fields.text("source").is_some_and(is_cut_name);
        (!is_cut_off).then_some((row, start, fields))
    })
}

impl Row {
    /// Returns what a message with these fields means.
    pub fn meaning(&self, fields: &Fields) -> &'static str {
        let reason = fields.text("reason").unwrap_or("");
        REASONS.iter().find(|(words, _)| reason.starts_with(words)).map_or(self.3, |(_, meaning)| meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_hint() {
        for row in TABLE {
            // The names of holes are not in the line.
            let texts = row.2.split('{').map(|part| part.rsplit('}').next().unwrap_or(part));
            let text: String = texts.collect();
            assert!(HINTS.iter().any(|hint| text.contains(hint)), "{text}");
        }
    }
}
