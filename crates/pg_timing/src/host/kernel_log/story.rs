//! Tells what the kernel's log says about clocks, in order and in plain words.

mod found;
mod words;

use words::when;

use super::demotion::is_tsc;
use super::event::{Event, Rate, RateSource};
use super::skew::Rates;
use super::{Entry, OverrideRefused};

/// What happened, a sentence for each event, or for several that belong together.
pub fn story(events: &[Entry]) -> Vec<String> {
    let mut teller = Teller::default();
    let mut rest = events;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|entry| alike(first, entry)).count().max(1);
        let (run, after) = rest.split_at(run);
        for entry in run {
            teller.rates.note(&entry.event);
        }
        teller.tell(run, after);
        rest = after;
    }
    teller.told
}

/// Whether a single sentence says both. What a machine does again and again would fill pages.
fn alike(a: &Entry, b: &Entry) -> bool {
    use Event::*;
    match (&a.event, &b.event) {
        (Suspend { .. } | Resume { .. }, Suspend { .. } | Resume { .. }) => true,
        (Retried { .. } | CheckSkipped(_), Retried { .. } | CheckSkipped(_)) => true,
        (FirmwareBug(_), FirmwareBug(_)) | (WarpMended { .. }, WarpMended { .. }) => true,
        (OverrideRefused(a), OverrideRefused(b)) => a == b,
        (a, b) if is_measured_again(a) => is_measured_again(b),
        (Switched { clocksource: a }, Switched { clocksource: b }) => a == b,
        _ => false,
    }
}

/// What `tsc=recalibrate` has the kernel say.
fn is_measured_again(event: &Event) -> bool {
    match event {
        Event::RateWarning => true,
        Event::Rate(rate) => matches!(rate.source, RateSource::Previous | RateSource::Recalibrated(_)),
        _ => false,
    }
}

#[derive(Default)]
struct Teller {
    told: Vec<String>,
    rates: Rates,
    /// the last sentence was about the kernel, so that "it" is clear
    kernel_named: bool,
    /// a clock source had been taken before
    switched: bool,
    /// the TSC was marked unstable
    demoted: bool,
}

impl Teller {
    /// A sentence about the kernel: `at 7823 s it switched to hpet`.
    fn kernel(&mut self, entry: &Entry, did: &str) {
        let kernel = if self.kernel_named { "it" } else { "the kernel" };
        self.told.push(format!("{}{kernel} {did}", when(entry)));
        self.kernel_named = true;
    }

    /// A sentence about something else.
    fn other(&mut self, entry: &Entry, sentence: &str) {
        self.told.push(format!("{}{sentence}", when(entry)));
        self.kernel_named = false;
    }

    /// `run`: entries that a sentence can tell together, at least one. `after`: what comes then.
    fn tell(&mut self, run: &[Entry], after: &[Entry]) {
        let first = &run[0];
        match &first.event {
            Event::Boot { version } => self.boot(first, version.as_deref()),
            Event::RateWarning => self.measured_again(run),
            Event::Rate(Rate { source: RateSource::Previous | RateSource::Recalibrated(_), .. }) => {
                self.measured_again(run)
            }
            Event::Rate(rate) => self.rate(first, rate, after),
            // the kernel then says more where it matters
            Event::Registered { .. } | Event::SyncSkipped => {}
            Event::Switched { clocksource } => self.switched(first, clocksource),
            Event::OverrideRefused(refused) => self.refused(first, refused),
            Event::Skew(skew) => self.skew(first, skew),
            Event::CpuSkew(skew) => self.cpu_skew(first, skew),
            Event::ReadBack(delay) => self.read_back(first, delay),
            Event::CheckSkipped(_) | Event::Retried { .. } => self.busy(run),
            Event::SyncCheck(check) => self.sync_check(first, check),
            Event::Warp(warp) => self.warp(first, warp),
            Event::WarpMended { .. } | Event::FirmwareBug(_) => self.offsets(run),
            Event::Unstable { clocksource, reason } => self.unstable(first, clocksource, reason.as_deref()),
            // they follow from a demotion, and add something only where that was lost
            Event::UnstableAfterBoot if !self.demoted => {
                self.kernel(first, "found the TSC unstable and suspects the firmware");
                self.demoted = true;
            }
            Event::SchedClockUnstable if !self.demoted => {
                self.kernel(first, "stopped relying on the TSC for its own scheduling");
            }
            Event::UnstableAfterBoot | Event::SchedClockUnstable => {}
            Event::KvmClock => self.kernel(first, "found KVM's clock, kvm-clock"),
            Event::OldTimer { mhz, wall, timer } => self.old_timer(first, *mhz, wall.as_deref(), timer.as_deref()),
            Event::Suspend { .. } | Event::Resume { .. } => self.slept(run),
        }
    }

    fn boot(&mut self, entry: &Entry, version: Option<&str>) {
        let again = !self.told.is_empty();
        *self = Teller { told: std::mem::take(&mut self.told), ..Teller::default() };
        // one boot is what everybody expects
        if again {
            let version = version.map(|version| format!(" with Linux {version}")).unwrap_or_default();
            // at second 0 of its own time, as every boot
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
            // the TSC's own rate comes next
            RateSource::Processor if next == Some(true) => return,
            RateSource::Processor | RateSource::Tsc => format!("detected a TSC of {mhz:.3} MHz"),
            RateSource::Refined => format!("measured the TSC more exactly, at {mhz:.3} MHz"),
            RateSource::Hypervisor => format!("was told by the hypervisor that the TSC has {mhz:.3} MHz"),
            RateSource::ArchTimer => format!("found a counter of {mhz:.2} MHz"),
            // of interest only for computing with it
            RateSource::Hpet | RateSource::Previous | RateSource::Recalibrated(_) => return,
        };
        self.kernel(entry, &did);
    }

    /// `tsc=recalibrate`: up to three lines.
    fn measured_again(&mut self, run: &[Entry]) {
        let rate = |wanted: fn(&RateSource) -> bool| {
            run.iter().find_map(|entry| match &entry.event {
                Event::Rate(rate) if wanted(&rate.source) => Some(format!(" at {:.3} MHz", rate.mhz)),
                _ => None,
            })
        };
        let measured = rate(|source| matches!(source, RateSource::Recalibrated(_))).unwrap_or_default();
        let claimed = rate(|source| *source == RateSource::Previous).unwrap_or_default();
        let differs = if claimed.is_empty() {
            ", which is not the claimed rate".into()
        } else {
            format!(", not{claimed} as claimed")
        };
        let differs = if run.iter().any(|entry| entry.event == Event::RateWarning) { differs } else { String::new() };
        self.kernel(&run[0], &format!("measured the TSC by another timer{measured}{differs}"));
    }

    fn switched(&mut self, entry: &Entry, clocksource: &str) {
        let boot = !self.switched && entry.seconds.is_none_or(|seconds| seconds < 60.0);
        let did = match (boot, clocksource) {
            (true, "tsc-early") => {
                "took tsc-early, the TSC before its rate is measured well, as its clock source".into()
            }
            (true, name) => format!("took {name} as its clock source"),
            (false, name) => format!("switched to {name}"),
        };
        self.kernel(entry, &did);
        self.switched = true;
    }

    fn refused(&mut self, entry: &Entry, refused: &OverrideRefused) {
        let name = &refused.clocksource;
        let did = if refused.unstable {
            format!("was asked for {name} and refused, since {name} is marked unstable")
        } else if refused.deferred {
            format!("was asked for {name} and put that off until {name} is verified")
        } else {
            format!("was asked for {name} and refused, since it is not known to be precise enough")
        };
        self.kernel(entry, &did);
    }

    fn unstable(&mut self, entry: &Entry, clocksource: &str, reason: Option<&str>) {
        // With a finding right above it this says nothing new.
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
        let timer = timer.map(|timer| format!(" and reads it with {timer}")).unwrap_or_default();
        self.kernel(entry, &format!("keeps the time by the timer{wall}{mhz}{timer}"));
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
        let slept = slept.map(|seconds| format!(", having slept for {seconds:.0} s")).unwrap_or_default();
        let sentence = match (times, run.iter().any(|entry| woke(&entry))) {
            (0, _) => format!("the machine woke up from sleep{slept}"),
            (1, false) => "the machine was put to sleep".into(),
            (1, true) => format!("the machine was put to sleep, and it woke up{}{slept}", spaced(last)),
            (times, _) => {
                format!("the machine was put to sleep, the first of {times} times; the last ended{}", spaced(last))
            }
        };
        self.other(first, &sentence);
    }
}

/// With a blank before it, if there is anything.
fn spaced(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

#[cfg(test)]
mod tests;
