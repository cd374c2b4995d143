//! Describes the events about clocks in a kernel log, in their order.

mod found;
mod words;

use words::when;

use super::event::{Event, Rate, RateSource};
use super::skew::Rates;
use super::{Entry, OverrideRefused, Timecounter};
use timing_clock::clocksource::is_tsc;

/// Returns one sentence for each event, or for several events that belong together.
pub fn story(events: &[Entry]) -> Vec<String> {
    let mut story = Story::default();
    let mut rest = events;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|entry| same_sentence(first, entry)).count().max(1);
        let (run, after) = rest.split_at(run);
        for entry in run {
            story.rates.learn(&entry.event);
        }
        story.describe(run, after);
        rest = after;
    }
    story.sentences
}

/// Returns whether one sentence describes both events. Frequent events would fill pages.
fn same_sentence(a: &Entry, b: &Entry) -> bool {
    use Event::*;
    match (&a.event, &b.event) {
        (Suspend { .. } | Resume { .. }, Suspend { .. } | Resume { .. }) => true,
        (Retried { .. } | CheckSkipped(_), Retried { .. } | CheckSkipped(_)) => true,
        (FirmwareBug(_), FirmwareBug(_)) | (WarpCorrected { .. }, WarpCorrected { .. }) => true,
        (OverrideRefused(a), OverrideRefused(b)) => a == b,
        (a, b) if is_recalibration(a) => is_recalibration(b),
        (Switched { clocksource: a }, Switched { clocksource: b }) => a == b,
        _ => false,
    }
}

/// Returns whether this is a message of `tsc=recalibrate`.
fn is_recalibration(event: &Event) -> bool {
    match event {
        Event::RateWarning => true,
        Event::Rate(rate) => matches!(rate.source, RateSource::Previous | RateSource::Recalibrated(_)),
        _ => false,
    }
}

#[derive(Default)]
struct Story {
    sentences: Vec<String>,
    rates: Rates,
    /// whether the last sentence was about the kernel, so that "it" is clear
    kernel_named: bool,
    /// whether the kernel has already selected a clock source
    switched: bool,
    /// whether the TSC was marked unstable
    demoted: bool,
}

impl Story {
    /// Adds a sentence about the kernel: `7823 s after boot it switched to hpet`.
    fn kernel(&mut self, entry: &Entry, did: &str) {
        let kernel = if self.kernel_named { "it" } else { "the kernel" };
        self.sentences.push(format!("{}{kernel} {did}", when(entry)));
        self.kernel_named = true;
    }

    /// Adds a sentence about something else.
    fn other(&mut self, entry: &Entry, sentence: &str) {
        self.sentences.push(format!("{}{sentence}", when(entry)));
        self.kernel_named = false;
    }

    /// Adds the sentence for `run`, which has at least one event. `after` are the later events.
    fn describe(&mut self, run: &[Entry], after: &[Entry]) {
        let first = &run[0];
        match &first.event {
            Event::Boot { version } => self.boot(first, version.as_deref()),
            Event::RateWarning => self.recalibrated(run),
            Event::Rate(Rate { source: RateSource::Previous | RateSource::Recalibrated(_), .. }) => {
                self.recalibrated(run)
            }
            Event::Rate(rate) => self.rate(first, rate, after),
            // If this matters, the kernel prints another message.
            Event::Registered { .. } | Event::SyncSkipped => {}
            Event::Switched { clocksource } => self.switched(first, clocksource),
            Event::OverrideRefused(refused) => self.refused(first, refused),
            Event::Skew(skew) => self.skew(first, skew),
            Event::CpuSkew(skew) => self.cpu_skew(first, skew),
            Event::ReadBack(delay) => self.read_back(first, delay),
            Event::CheckSkipped(_) | Event::Retried { .. } => self.busy(run),
            Event::SyncCheck(check) => self.sync_check(first, check),
            Event::Warp(warp) => self.warp(first, warp),
            Event::WarpCorrected { .. } | Event::FirmwareBug(_) => self.offsets(run),
            Event::Unstable { clocksource, reason } => self.unstable(first, clocksource, reason.as_deref()),
            // A demotion causes these messages. They matter only if its message is missing.
            Event::UnstableAfterBoot if !self.demoted => {
                self.kernel(first, "found the TSC unstable and suspects the firmware");
                self.demoted = true;
            }
            Event::SchedClockUnstable if !self.demoted => {
                self.kernel(first, "stopped using the TSC in its scheduler");
            }
            Event::UnstableAfterBoot | Event::SchedClockUnstable => {}
            Event::KvmClock => self.kernel(first, "found KVM's clock, kvm-clock"),
            Event::OldTimer { mhz, wall, timer } => self.old_timer(first, *mhz, wall.as_deref(), timer.as_deref()),
            Event::Timecounter(timecounter) => self.timecounter(first, timecounter),
            Event::MachineForked => self.kernel(first, "noticed that the virtual machine was restored or cloned"),
            Event::Suspend { .. } | Event::Resume { .. } => self.slept(run),
        }
    }

    fn boot(&mut self, entry: &Entry, version: Option<&str>) {
        let again = !self.sentences.is_empty();
        *self = Story { sentences: std::mem::take(&mut self.sentences), ..Story::default() };
        // The first boot needs no sentence.
        if again {
            let version = version.map(|version| format!(" with Linux {version}")).unwrap_or_default();
            // Every boot is at second 0 of its own time.
            let stamped = Entry { seconds: None, ..entry.clone() };
            self.other(&stamped, &format!("the machine booted again{version}"));
        }
    }

    fn rate(&mut self, entry: &Entry, Rate { source, mhz }: &Rate, after: &[Entry]) {
        let next = after.iter().find_map(|entry| match &entry.event {
            Event::Registered { .. } => None,
            other => Some(matches!(other, Event::Rate(Rate { source: RateSource::Tsc, .. }))),
        });
        let did = match source {
            // The TSC's own rate follows.
            RateSource::Processor if next == Some(true) => return,
            RateSource::Processor | RateSource::Tsc => format!("detected a TSC rate of {mhz:.3} MHz"),
            RateSource::Refined => format!("refined the TSC rate to {mhz:.3} MHz"),
            RateSource::Hypervisor => format!("got a TSC rate of {mhz:.3} MHz from the hypervisor"),
            RateSource::ArchTimer => format!("found a counter with a rate of {mhz:.2} MHz"),
            // These rates are needed only for calculations.
            RateSource::Hpet | RateSource::Previous | RateSource::Recalibrated(_) => return,
        };
        self.kernel(entry, &did);
    }

    /// Adds the sentence for `tsc=recalibrate`, which prints up to three lines.
    fn recalibrated(&mut self, run: &[Entry]) {
        let rate = |wanted: fn(&RateSource) -> bool| {
            run.iter().find_map(|entry| match &entry.event {
                Event::Rate(rate) if wanted(&rate.source) => Some(format!(" at {:.3} MHz", rate.mhz)),
                _ => None,
            })
        };
        let measured = rate(|source| matches!(source, RateSource::Recalibrated(_))).unwrap_or_default();
        let claimed = rate(|source| *source == RateSource::Previous).unwrap_or_default();
        let differs = if claimed.is_empty() {
            "; its rate differs from the claimed one".into()
        } else {
            format!("; the claimed rate was {}", claimed.trim_start_matches(" at "))
        };
        let differs = if run.iter().any(|entry| entry.event == Event::RateWarning) { differs } else { String::new() };
        self.kernel(&run[0], &format!("measured the TSC with another timer{measured}{differs}"));
    }

    fn switched(&mut self, entry: &Entry, clocksource: &str) {
        let boot = !self.switched && entry.seconds.is_none_or(|seconds| seconds < 60.0);
        let did = match (boot, clocksource) {
            (true, "tsc-early") => {
                "selected the clock source tsc-early (the TSC, before the kernel knows its exact rate)".into()
            }
            (true, name) => format!("selected the clock source {name}"),
            (false, name) => format!("switched to {name}"),
        };
        self.kernel(entry, &did);
        self.switched = true;
    }

    fn refused(&mut self, entry: &Entry, refused: &OverrideRefused) {
        let name = &refused.clocksource;
        let did = if refused.unstable {
            format!("refused the requested clock source {name}, because it is marked unstable")
        } else if refused.deferred {
            format!("deferred the requested clock source {name} until it is verified")
        } else {
            format!("refused the requested clock source {name}, because it may not be precise enough")
        };
        self.kernel(entry, &did);
    }

    fn unstable(&mut self, entry: &Entry, clocksource: &str, reason: Option<&str>) {
        // After a message about the fault itself, this adds nothing new.
        let follows =
            ["clocksource watchdog", "check_tsc_sync"].iter().any(|known| reason.is_none_or(|r| r.starts_with(known)));
        if is_tsc(clocksource) && self.demoted && follows {
            return;
        }
        let name = if is_tsc(clocksource) { "the TSC" } else { clocksource };
        let because = reason.map(|reason| format!(" {}", words::because(reason))).unwrap_or_default();
        self.kernel(entry, &format!("marked {name} unstable{because}"));
        self.demoted |= is_tsc(clocksource);
    }

    fn old_timer(&mut self, entry: &Entry, mhz: Option<f64>, wall: Option<&str>, timer: Option<&str>) {
        let wall = wall.map(|wall| format!(" {wall}")).unwrap_or_default();
        let mhz = mhz.map(|mhz| format!(" at {mhz:.6} MHz")).unwrap_or_default();
        let timer = timer.map(|timer| format!(" and reads it by {timer}")).unwrap_or_default();
        self.kernel(entry, &format!("uses the timer{wall}{mhz}{timer}"));
    }

    fn timecounter(&mut self, entry: &Entry, Timecounter { name, hz, quality }: &Timecounter) {
        let rate = hz.map(|hz| format!(" of {:.6} MHz", hz as f64 / 1e6)).unwrap_or_default();
        let quality = match quality {
            Some(quality @ ..0) => {
                format!(" with the quality {quality}, so the kernel does not select this timecounter")
            }
            Some(quality) => format!(" with the quality {quality}"),
            None => String::new(),
        };
        self.kernel(entry, &format!("found the timecounter {name}{rate}{quality}"));
    }

    fn slept(&mut self, run: &[Entry]) {
        let first = &run[0];
        let times = run.iter().filter(|entry| matches!(entry.event, Event::Suspend { .. })).count();
        let last = when(&run[run.len() - 1]);
        let last = last.trim_end();
        let woke = |entry: &&Entry| matches!(entry.event, Event::Resume { .. });
        let slept = run.iter().rev().find(woke).and_then(|entry| match entry.event {
            Event::Resume { slept_s } => slept_s,
            _ => None,
        });
        let slept = slept.map(|seconds| format!(", after {seconds:.0} s of sleep")).unwrap_or_default();
        let sentence = match (times, run.iter().any(|entry| woke(&entry))) {
            (0, _) => format!("the machine woke up{slept}"),
            (1, false) => "the machine went to sleep".into(),
            (1, true) => format!("the machine went to sleep, and it woke up{}{slept}", spaced(last)),
            (times, _) => {
                format!("the machine went to sleep {times} times; the last sleep ended{}", spaced(last))
            }
        };
        self.other(first, &sentence);
    }
}

/// Returns the text with a leading space, unless it is empty.
fn spaced(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

#[cfg(test)]
mod tests;
