//! Sentences about faults of a clock source. If its name is missing, it is the TSC: on a PC the kernel watches no other
//! clock source.

use super::words::{long_span, span, when};
use super::{Story, is_tsc, spaced};
use crate::host::kernel_log::Entry;
use crate::host::kernel_log::event::{CheckSkipped, CpuSkew, Event, ReadBack, Skew, SyncCheck, Warp};
use crate::host::kernel_log::skew::Figures;

impl Story {
    /// Adds `CPU 2 found that tsc and the watchdog hpet disagree (...) and marked tsc unstable`.
    pub(super) fn skew(&mut self, entry: &Entry, skew: &Skew) {
        let figures = self.rates.figures(skew);
        let name = skew.clocksource.as_deref().unwrap_or("tsc");
        let watchdog = skew.watchdog.as_deref();
        let with = watchdog.map(|watchdog| format!("the watchdog {watchdog}")).unwrap_or("another clock".into());
        let by = difference(&figures, name, watchdog.unwrap_or("the other"));
        let found = format!("found that {name} and {with} disagree{by} and marked {name} unstable");
        self.by_cpu(entry, skew.cpu, &found);
        self.demoted |= is_tsc(name);
    }

    pub(super) fn cpu_skew(&mut self, entry: &Entry, skew: &CpuSkew) {
        let name = skew.clocksource.as_deref().unwrap_or("tsc");
        let which = match (skew.low, skew.high) {
            (Some((low, count)), Some((high, higher))) => {
                let cycles = higher.saturating_sub(count);
                let time = self.rates.tsc().filter(|_| is_tsc(name)).map(|mhz| cycles as f64 * 1e3 / mhz);
                let time = time.map(|ns| format!(", {}", long_span(ns as u64))).unwrap_or_default();
                format!(" (CPU {low} is {cycles} cycles behind CPU {high}{time})")
            }
            _ => String::new(),
        };
        self.kernel(entry, &format!("found that {name} differs between CPUs{which} and marked {name} unstable"));
        self.demoted |= is_tsc(name);
    }

    pub(super) fn read_back(&mut self, entry: &Entry, delay: &ReadBack) {
        let name = delay.clocksource.as_deref().unwrap_or("tsc");
        let watchdog = delay.watchdog.as_deref().unwrap_or("the watchdog");
        let took = delay.delay_ns.map(|ns| format!(" {}", span(ns))).unwrap_or(" too long".into());
        let limit = delay.limit_ns.map(|ns| format!(", more than {}", span(ns))).unwrap_or_default();
        let found = format!(
            "marked {name} unstable, because the comparison with {watchdog} took{took}{limit}; \
             a busy machine can also cause that"
        );
        self.by_cpu(entry, delay.cpu, &found);
        self.demoted |= is_tsc(name);
    }

    /// Adds a sentence for repeated readings or skipped checks.
    pub(super) fn busy(&mut self, run: &[Entry]) {
        let first = &run[0];
        let (cpu, watchdog, what) = match &first.event {
            Event::Retried { cpu, watchdog, times } => {
                let times = times.map(|times| format!("{times} more tries")).unwrap_or("more tries".into());
                (*cpu, watchdog, format!("needed {times} to compare"))
            }
            Event::CheckSkipped(CheckSkipped { cpu, watchdog, .. }) => (*cpu, watchdog, "skipped comparing".into()),
            _ => return,
        };
        let with = watchdog.as_deref().map(|watchdog| format!(" with {watchdog}")).unwrap_or_default();
        let many = match run.len() {
            1 => String::new(),
            times => {
                let last = when(&run[times - 1]);
                let last = last.trim_end();
                let last = if last.is_empty() { String::new() } else { format!(", the last{}", spaced(last)) };
                format!(" (the first of {times} times{last})")
            }
        };
        let found = format!("{what} the clock{with}, because reading took too long{many}");
        self.by_cpu(first, cpu, &found);
    }

    /// Adds a sentence if the comparison found a difference. Without one, lines may be missing.
    pub(super) fn sync_check(&mut self, entry: &Entry, check: &SyncCheck) {
        let side = |cpus: &Option<_>, side| cpus.as_ref().map(|cpus| format!("of CPUs {cpus} is {side}"));
        let sides: Vec<String> =
            [side(&check.ahead, "ahead"), side(&check.behind, "behind")].into_iter().flatten().collect();
        if sides.is_empty() {
            return;
        }
        let name = check.clocksource.as_deref().unwrap_or("tsc");
        self.by_cpu(entry, check.cpu, &format!("found that the {name} {} of this CPU", sides.join(" and ")));
    }

    pub(super) fn warp(&mut self, entry: &Entry, warp: &Warp) {
        let between = match warp.cpus {
            Some((a, b)) => format!("CPUs {a} and {b}"),
            None => "two CPUs".into(),
        };
        let by = warp.cycles.map(|cycles| {
            let time = self.rates.tsc().map(|mhz| cycles as f64 * 1e3 / mhz);
            let time = time.map(|ns| format!(", {}", long_span(ns as u64))).unwrap_or_default();
            format!(" by up to {cycles} cycles{time}")
        });
        let random = if warp.random { ", in both directions" } else { "" };
        let by = by.unwrap_or_default();
        self.kernel(
            entry,
            &format!("found that the TSC went back between {between}{by}{random}, and marked it unstable"),
        );
        self.demoted = true;
    }

    /// Adds a sentence for corrected TSC offsets.
    pub(super) fn offsets(&mut self, run: &[Entry]) {
        let first = &run[0];
        let many = if run.len() > 1 { format!(" (the first of {} times)", run.len()) } else { String::new() };
        let of = |cpu: &Option<u32>| cpu.map(|cpu| format!(" of CPU {cpu}")).unwrap_or(" of a CPU".into());
        let did = match &first.event {
            Event::WarpCorrected { cpu, cycles } => {
                let by = cycles.map(|cycles| format!(", which differed by {cycles} cycles")).unwrap_or_default();
                format!("corrected the TSC{}{by}{many}", of(cpu))
            }
            Event::FirmwareBug(bug) => {
                let by = bug.found.zip(bug.expected).map(|(found, expected)| i128::from(found) - i128::from(expected));
                let by = by.map(|by| format!(" by {by} cycles")).unwrap_or_default();
                format!("found that the firmware had changed the TSC{}{by}, and corrected it{many}", of(&bug.cpu))
            }
            _ => return,
        };
        self.kernel(first, &did);
    }

    /// Adds a sentence about the CPU, if it is known, or else about the kernel.
    fn by_cpu(&mut self, entry: &Entry, cpu: Option<u32>, did: &str) {
        match cpu {
            Some(cpu) => self.other(entry, &format!("CPU {cpu} {did}")),
            None => self.kernel(entry, did),
        }
    }
}

/// Returns the disagreement in parentheses, or an empty text if it is unknown.
fn difference(figures: &Figures, name: &str, watchdog: &str) -> String {
    let Some(skew_ns) = figures.skew_ns else { return String::new() };
    let skew = span(skew_ns);
    let (Some(watchdog_ns), Some(clocksource_ns)) = (figures.watchdog_ns, figures.clocksource_ns) else {
        return format!(" by {skew}");
    };
    let (by_watchdog, by_clocksource) = (long_span(watchdog_ns), long_span(clocksource_ns));
    if let Some(rounds) = figures.rounds {
        return format!(
            " ({name} counted {by_clocksource} and {watchdog} {by_watchdog}, \
             but {watchdog} overflowed {rounds} times in between; with these overflows both clocks agree)"
        );
    }
    if figures.assumed_mhz.is_some() || by_watchdog != by_clocksource && skew_ns.unsigned_abs() > watchdog_ns / 100 {
        let usual = figures.assumed_mhz.map(|mhz| format!(", at the usual {mhz:.6} MHz,")).unwrap_or_default();
        return format!(
            " ({name} counted {by_clocksource} while {watchdog}{usual} counted {by_watchdog}, a difference of {skew})"
        );
    }
    let ahead = if skew_ns < 0 { "behind" } else { "ahead" };
    format!(" ({name} went {skew} {ahead} in {by_watchdog})")
}
