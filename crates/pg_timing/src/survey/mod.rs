//! Looks at a host and measures its clocks: [`Host`] and `measure` in, a [`Report`] out.

mod clocks;
mod order;
mod tsc;

use crate::check;
use crate::host::{ActivityBefore, Host, KernelLog, activity_since};
use crate::measure::Budget;
use crate::report::{Cpus, Origin, Report};
use timing_clock::{Counter, Nanos, RateMeter, Reference, counter};

/// Told how far the measuring is, from 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(f64);

/// The share of the time that goes to reading clocks; the rest is for their steps, the CPUs'
/// order, and slack, so that the whole stays within the limit.
const READING: f64 = 0.85;

/// Measures this machine for as long as `budget` allows.
pub fn live(host: &Host, log: &KernelLog, limit: Nanos, budget: &Budget, progress: Progress) -> Report {
    let mut report = facts(host, Origin::Measured);
    let permission = counter::permitted();
    let before = ActivityBefore::now(host);
    // The rate needs no time of its own: it is the time between the start and the end of the rest.
    let meter = Counter::new()
        .map_err(|e| e.to_string())
        .and_then(|counter| RateMeter::start(counter, Reference::default()).map_err(|e| e.to_string()));
    let cpus = report.cpus.allowed.known().cloned().unwrap_or_default();
    let reading = budget.part(Nanos(limit.0 * READING));
    let read = clocks::read_all(permission, &cpus, &reading, progress);
    let rate = meter.and_then(|meter| meter.rate().map_err(|e| e.to_string()));
    report.clocks = clocks::summaries(&read, rate.as_ref().ok().map(|rate| rate.rate));
    report.activity = activity_since(host, &before);
    report.tsc = tsc::judge(host, &report, permission, &rate, log);
    report.cpus = order::between_cpus(report.cpus, permission, &rate, budget);
    report.measured_seconds = (budget.spent().secs() * 100.0).round() / 100.0;
    report.interrupted = budget.interrupted();
    progress(1.0);
    check::judge(&mut report);
    report
}

/// Reads the facts of a captured tree. Nothing is measured: this machine's clocks are not that one's.
pub fn captured(host: &Host, log: &KernelLog) -> Report {
    let mut report = facts(host, Origin::Captured);
    let rate = Err("not measured: the facts are those of a captured tree".to_string());
    report.tsc = tsc::judge(host, &report, Ok(()), &rate, log);
    report.tsc.permitted = None;
    report.tsc.usable = None;
    check::judge(&mut report);
    report
}

fn facts(host: &Host, origin: Origin) -> Report {
    let empty = Report::empty(origin, "it was not measured");
    Report {
        host: host.facts(),
        clocksource: host.clocksource(),
        cpus: Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), ..empty.cpus },
        ..empty
    }
}
