//! Looks at a host and measures its clocks: [`Host`] and `measure` in, a [`Report`] out.

mod access_path;
mod claims;
mod clocks;
mod cpu_skew;
mod drift;
mod kernel;
mod known_faults;
mod tsc;

pub use known_faults::known_faults;

use crate::host::facts::{ActivityBefore, Host, KernelLog, activity_since};
use crate::host::measure::{self, Budget};
use crate::report::{ClockReport, Clocksource, Cpus, Fact, Measured, Origin, Report, SYSTEM};
use std::sync::atomic::AtomicBool;
use timing_clock::{Hertz, Nanos, Ppm, Rate, Refused, counter};

/// Told how far the measuring is, from 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(f64);

/// Measures this machine for as long as `budget` allows.
pub fn live(host: &Host, log: &KernelLog, limit: Nanos, budget: &Budget, progress: Progress) -> Report {
    let mut report = facts(host, log, Origin::Measured);
    let permission = counter::permitted();
    let before = ActivityBefore::now(host);
    let cpus = report.cpus.allowed.known().cloned().unwrap_or_default();
    // What is not set aside for the CPUs' order goes to reading clocks.
    let reading = Nanos(limit.0 - cpu_skew::wanted(cpus.len(), limit).0);
    let reading = clocks::read_all(permission, &cpus, &budget.part(reading), progress);
    let changed = look_again(host, log, &mut report);
    let rate = &if changed { Err("the clock source changed meanwhile".into()) } else { reading.rate.clone() };
    report.clocks = reading.summaries();
    if let (Some(current), false) = (report.clocksource.current.known(), changed) {
        access_path::correct(&mut report.clocks, current);
    }
    report.drift = reading.drift.drifts(rate.as_ref().ok().map(|rate| rate.rate));
    report.activity = activity_since(host, &before);
    report.tsc = tsc::judge(host, &report, permission, rate, log);
    report.cpus = cpu_skew::between_cpus(report.cpus, permission, rate, budget);
    report.measured_seconds = (budget.spent().secs() * 100.0).round() / 100.0;
    report.interrupted = budget.interrupted();
    progress(1.0);
    report
}

/// Whether the kernel took another clock source while its clocks were read: then the figures are of
/// two clocks, and the rate of none.
fn look_again(host: &Host, log: &KernelLog, report: &mut Report) -> bool {
    let now = host.clocksource();
    let before = report.clocksource.current.known().cloned();
    let changed = before.is_some() && now.current.known() != before.as_ref();
    if changed {
        report.clocksource = Clocksource { before, ..now };
        // A log that the user named says no more than before.
        if !log.named
            && let Fact::Known(said) = KernelLog::own(host).said
        {
            report.kernel = Fact::Known(kernel::report(&said));
        }
    }
    changed
}

/// Measures PostgreSQL's clock alone, as it is at this moment.
pub fn system_clock(limit: Nanos, stop: &AtomicBool) -> ClockReport {
    let cpus = measure::allowed().unwrap_or_default();
    let reading = clocks::read_system(counter::permitted(), &cpus, &Budget::new(limit, stop));
    let system = reading.summaries().into_iter().find(|clock| clock.name == SYSTEM);
    system.unwrap_or_else(|| ClockReport::unavailable(SYSTEM, "it was not read"))
}

/// Reads the facts of a captured tree, and what was measured when it was captured. Nothing is
/// measured: this machine's clocks are not that one's.
pub fn captured(host: &Host, log: &KernelLog) -> Report {
    let mut report = facts(host, log, Origin::Captured);
    let measured: Fact<Measured> = host.captured_json("measured");
    let measured = measured.and_then(|figures| figures.plausible().map_err(|e| format!("measured.json: {e}")).into());
    let why = match &measured {
        Fact::Unavailable { unavailable } if host.kept("measured") => unavailable.clone(),
        _ => "not measured".into(),
    };
    let figures = measured.known().cloned().unwrap_or_default();
    let rate = figures.frequency_khz.zip(figures.uncertainty_ppm).map(|(khz, ppm)| Rate {
        rate: Hertz(khz * 1e3),
        uncertainty: Ppm(ppm),
        duration: Nanos::from_secs(figures.seconds),
    });
    let permission = if figures.permitted == Some(false) { Err(Refused::Denied) } else { Ok(()) };
    report.tsc = tsc::judge(host, &report, permission, &rate.ok_or(why.clone()), log);
    report.tsc.permitted = figures.permitted;
    if rate.is_none() {
        report.tsc.usable = report.tsc.usable.filter(|_| !report.tsc.distrust.is_empty());
    }
    report.measured_seconds = figures.seconds;
    report.clocks = figures.clocks;
    report.activity = figures.activity.map_or_else(|| Fact::unavailable(&why), Fact::Known);
    report.drift = figures.drift;
    if !figures.skew.is_empty() {
        report.cpus = Cpus { skew: figures.skew, skew_unavailable: figures.skew_unavailable, ..report.cpus };
    }
    report
}

fn facts(host: &Host, log: &KernelLog, origin: Origin) -> Report {
    let empty = Report::empty(origin, "it was not measured");
    Report {
        host: host.facts(),
        clocksource: host.clocksource(),
        kernel: log.said.clone().map(|said| kernel::report(&said)),
        cpus: Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), ..empty.cpus },
        ..empty
    }
}
