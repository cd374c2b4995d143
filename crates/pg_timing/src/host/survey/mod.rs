//! Creates a [`Report`] from the facts of a [`Host`] and from measurements of its clocks.

#[cfg(all(test, target_arch = "aarch64"))]
mod aarch64_tests;
pub(in crate::host) mod clocks;
pub(in crate::host) mod counter;
pub(in crate::host) mod cpu_skew;
pub(in crate::host) mod kernel;

pub use cpu_skew::known_faults;

use crate::host::facts::{ActivityBefore, Host, KernelLog, activity_since};
use crate::host::measure::{self, Budget};
use crate::report::{ClockReport, Clocksource, Cpus, Fact, KernelReport, Measured, Origin, Report, SYSTEM};
use clocks::{Instruments, STEP_TIME, correct_access, is_main};
use counter::judge as judge_counter;
use std::sync::atomic::AtomicBool;
use timing_clock::{Hertz, Nanos, Ppm, Rate, Refused};

/// Receives the progress of the measurement, from 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(f64);

/// Measures this machine within the budget, and returns the report without findings.
pub fn live(host: &Host, log: &KernelLog, limit: Nanos, budget: &Budget, progress: Progress) -> Report {
    let mut report = facts(host, log, Origin::Measured);
    let permission = timing_clock::counter::permitted();
    let before = ActivityBefore::now(host);
    let cpus = report.cpus.allowed.known().cloned().unwrap_or_default();
    // The rest of the time is for the CPU skew.
    let reading = Nanos(limit.0 - cpu_skew::time_share(cpus.len(), limit).0);
    let instruments = read(|_| true, &cpus, &budget.part(reading), progress);
    let changed = update_clocksource(host, log, &mut report);
    let measured = instruments.rate();
    let hertz = |rate: &Result<Rate, String>| rate.as_ref().ok().map(|rate| rate.rate);
    report.clocks = instruments.figures(hertz(&measured));
    let rate = &if changed { Err("the clock source changed during the measurement".into()) } else { measured };
    if let (Some(current), false) = (report.clocksource.current.known(), changed) {
        correct_access(&mut report.clocks, current);
    }
    report.drift = hertz(rate).and_then(|rate| instruments.counter_drift(rate)).into_iter().collect();
    report.drift.extend(instruments.offset_drifts());
    report.activity = Fact::Known(activity_since(host, &before));
    report.tsc = judge_counter(host, &report, permission, rate, log);
    report.cpus = cpu_skew::between_cpus(report.cpus, permission, rate, budget);
    report.measured_at = Some(humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string());
    report.measured_seconds = (budget.spent().secs() * 100.0).round() / 100.0;
    report.interrupted = budget.interrupted();
    progress(1.0);
    report
}

/// Returns those clocks of this machine that are `wanted`, after reading them until the budget is spent.
fn read(wanted: impl Fn(&str) -> bool, cpus: &[usize], budget: &Budget, progress: Progress) -> Instruments {
    let step_time = Nanos(STEP_TIME.0.min((budget.left().0 / 20.0).max(12e6)));
    let mut instruments = Instruments::live(timing_clock::counter::permitted(), wanted, budget, step_time);
    instruments.read(cpus, budget, progress);
    instruments
}

/// Reads the clock source again, and returns whether it changed during the measurement.
///
/// If it changed, the figures mix two clocks, and the rate is that of neither.
fn update_clocksource(host: &Host, log: &KernelLog, report: &mut Report) -> bool {
    let now = host.clocksource();
    let before = report.clocksource.current.known().cloned();
    let changed = before.is_some() && now.current.known() != before.as_ref();
    if changed {
        report.clocksource = Clocksource { before, ..now };
        // A log from --kernel-log has no new lines.
        if !log.named
            && let Fact::Known(entries) = KernelLog::own(host).entries
        {
            report.kernel = Fact::Known(kernel::report(&entries));
        }
    }
    changed
}

/// Measures only PostgreSQL's clock.
pub fn system_clock(limit: Nanos, stop: &AtomicBool) -> ClockReport {
    let cpus = measure::allowed().unwrap_or_default();
    let wanted = |name: &str| is_main(name) && name != "rdtscp" && name != "isb_cntvct";
    let instruments = read(wanted, &cpus, &Budget::new(limit, stop), &mut |_| ());
    let rate = instruments.rate().ok().map(|rate| rate.rate);
    let system = instruments.figures(rate).into_iter().find(|clock| clock.name == SYSTEM);
    system.unwrap_or_else(|| ClockReport::unavailable(SYSTEM, "it was not read"))
}

/// Returns the report of a captured tree: its facts, and the figures that were measured when it was captured.
pub fn captured(host: &Host, log: &KernelLog) -> Report {
    let mut report = facts(host, log, Origin::Captured);
    let measured: Fact<Measured> = host.captured_json("measured");
    let measured = measured.and_then(|figures| figures.plausible().map_err(|e| format!("measured.json: {e}")).into());
    let why = match &measured {
        Fact::Unavailable { unavailable } if host.has_captured_json("measured") => unavailable.clone(),
        _ => "not measured".into(),
    };
    let figures = measured.known().cloned().unwrap_or_default();
    let rate = figures
        .frequency_khz
        .zip(figures.uncertainty_ppm)
        .map(|(khz, ppm)| Rate::new(Hertz(khz * 1e3), Ppm(ppm), Nanos::from_secs(figures.seconds)));
    let permission = if figures.permitted == Some(false) { Err(Refused::Denied) } else { Ok(()) };
    report.tsc = judge_counter(host, &report, permission, &rate.ok_or(why.clone()), log);
    report.tsc.permitted = figures.permitted;
    if rate.is_none() {
        report.tsc.usable = report.tsc.usable.filter(|_| !report.tsc.distrust.is_empty());
    }
    report.measured_seconds = figures.seconds;
    report.clocks = figures.clocks;
    report.activity = Fact::of(figures.activity, &why);
    report.drift = figures.drift;
    if !figures.skew.is_empty() {
        report.cpus = Cpus { skew: figures.skew, skew_unavailable: figures.skew_unavailable, ..report.cpus };
    }
    report
}

/// Returns the report of a log that the user named on this machine, if the log is from another host. Then it is judged
/// alone: figures of this machine say nothing about that host.
pub fn of_other_host(host: &Host, log: &KernelLog) -> Option<Report> {
    let entries = log.entries.known().filter(|_| log.named && host.is_live())?;
    let why = kernel::other_host(entries, host, &host.facts(), &host.clocksource())?;
    let mut report = captured(&Host::captured(NOWHERE.into()), log);
    report.kernel = report.kernel.map(|kernel| KernelReport { other_host: Some(why), ..kernel });
    Some(report)
}

/// A tree without files: no file can be below a device.
const NOWHERE: &str = "/dev/null/none";

pub use kernel::{complete, report as kernel_report};

/// Returns a report with the facts of the host and without figures.
pub(in crate::host) fn facts(host: &Host, log: &KernelLog, origin: Origin) -> Report {
    let empty = Report::empty(origin, "not measured");
    let (mut facts, mut clocksource) = (host.facts(), host.clocksource());
    // With --kernel-log on a live machine, the log may be from another machine.
    if let (Some(entries), false) = (log.entries.known(), log.named && host.is_live()) {
        kernel::complete(entries, &mut facts, &mut clocksource);
    }
    Report {
        host: facts,
        clocksource,
        kernel: log.entries.clone().map(|entries| kernel::report(&entries)),
        cpus: Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), ..empty.cpus },
        ..empty
    }
}
