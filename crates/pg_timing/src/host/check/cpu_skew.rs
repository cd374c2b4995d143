//! `cpu-skew`: do the CPUs' clocks differ?

use crate::human::duration;
use crate::report::{Fact, Finding, Fix, Report, SYSTEM, Severity, Skew, finding_id};

/// A process that moves between CPUs meets the skew as a step. From a microsecond on EXPLAIN prints it.
const VISIBLE_NS: f64 = 1_000.0;

/// A message between CPUs takes a tenth of a microsecond; a bound this wide tells of CPUs that were busy.
const BROAD_NS: f64 = 10_000.0;

const ID: &str = finding_id::CPU_SKEW;

pub fn check(report: &Report) -> Finding {
    let skews = &report.cpus.skew;
    if skews.is_empty() {
        if matches!(&report.cpus.online, Fact::Known(cpus) if cpus.len() == 1) {
            return Finding::ok(ID, "one CPU is online");
        }
        let why = report.cpus.skew_unavailable.clone().unwrap_or_else(|| "it was not measured".into());
        return Finding::unknown(ID, format!("whether the CPUs' clocks agree is unknown: {why}"));
    }
    // The clock of PostgreSQL comes first; of each clock, what is proven.
    let mut bad: Vec<&Skew> = skews.iter().filter(|s| differs(s).is_some()).collect();
    bad.sort_by(|a, b| {
        (b.clock == SYSTEM, proven(b)).partial_cmp(&(a.clock == SYSTEM, proven(a))).unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some(worst) = bad.first() else { return none_differs(report) };
    let severity = severity(report, worst);
    let system: Vec<&Skew> = skews.iter().filter(|s| s.clock == SYSTEM).collect();
    let summary = match (severity, worst.moving) {
        (Severity::Ok, _) if !system.is_empty() => {
            format!("{}; their counters differ, and nobody uses them", agreement(&system))
        }
        (_, true) => format!("{} does not keep one offset between CPUs {} and {}", whose(worst), worst.a, worst.b),
        (_, false) => format!(
            "{} differs between CPUs {} and {} by at least {:.0} ns",
            whose(worst),
            worst.a,
            worst.b,
            proven(worst).floor()
        ),
    };
    let lines = bad.iter().filter_map(|skew| differs(skew));
    let finding = lines.fold(Finding::new(ID, severity, summary), Finding::evidence);
    if severity == Severity::Ok {
        return finding.evidence(
            "nobody uses the counter here: the kernel keeps time by another clock, and PostgreSQL 19 does not take it",
        );
    }
    finding
        .why("a process that is moved from one CPU to another sees time jump by that much, forward or back")
        .fix(Fix::new("switch the machine off and on again: firmware sets the counters at power-on, and a plain restart may leave them"))
}

fn none_differs(report: &Report) -> Finding {
    let all: Vec<&Skew> = report.cpus.skew.iter().collect();
    let rest = report
        .cpus
        .skew_unavailable
        .as_ref()
        .map(|why| format!(" (not all could be compared: {why})"))
        .unwrap_or_default();
    match widest(&all) {
        w if w > BROAD_NS => Finding::unknown(
            ID,
            format!("{}: whether their clocks agree cannot be told better than to {}{rest}", who(&all), duration(w)),
        ),
        _ => Finding::ok(ID, agreement(&all) + &rest),
    }
}

/// `CPUs 0, 1: counter and system clock agree within 31 ns`
fn agreement(skews: &[&Skew]) -> String {
    format!("{}: {} agree within {}", who(skews), what(skews), duration(widest(skews)))
}

/// No skew is larger than this.
fn widest(skews: &[&Skew]) -> f64 {
    skews.iter().map(|s| s.low_ns.abs().max(s.high_ns.abs())).fold(0.0, f64::max)
}

/// The CPUs that were compared.
fn who(skews: &[&Skew]) -> String {
    let mut cpus: Vec<usize> = skews.iter().flat_map(|s| [s.a, s.b]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    match cpus.as_slice() {
        [first, .., last] if cpus.len() > 4 => format!("CPUs {first} to {last}, {} of them", cpus.len()),
        few => format!("CPUs {}", few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The clocks in which they were compared.
fn what(skews: &[&Skew]) -> &'static str {
    match (skews.iter().any(|s| s.clock == SYSTEM), skews.iter().any(|s| s.clock != SYSTEM)) {
        (true, true) => "counter and system clock",
        (true, false) => "their system clocks",
        _ => "their counters",
    }
}

/// How far the interval stays away from 0: the least that the skew can be.
fn proven(skew: &Skew) -> f64 {
    skew.low_ns.max(-skew.high_ns).max(0.0)
}

fn severity(report: &Report, worst: &Skew) -> Severity {
    let unused = worst.clock != SYSTEM
        && report.tsc.accepted_by_kernel == Some(false)
        && report.tsc.independent == Some(true)
        && report.tsc.used_by_default == Some(false);
    match worst {
        _ if unused => Severity::Ok,
        skew if skew.moving || proven(skew) >= VISIBLE_NS => Severity::Critical,
        _ => Severity::Warning,
    }
}

fn whose(skew: &Skew) -> String {
    match skew.clock.as_str() {
        SYSTEM => "PostgreSQL's clock".into(),
        counter => format!("the counter ({counter})"),
    }
}

/// How two CPUs differ, if that is sure: `system: CPU 8 is 1115 to 1343 ns ahead of CPU 0`
pub fn differs(skew: &Skew) -> Option<String> {
    if !skew.moving && proven(skew) == 0.0 {
        return None;
    }
    let Skew { clock, a, b, low_ns, high_ns, .. } = skew;
    Some(match (skew.moving, *high_ns < 0.0) {
        (true, _) => {
            format!("{clock}: CPU {b} was between {low_ns:.0} and {high_ns:.0} ns from CPU {a} within milliseconds")
        }
        (_, false) => format!("{clock}: CPU {b} is {low_ns:.0} to {high_ns:.0} ns ahead of CPU {a}"),
        (_, true) => format!("{clock}: CPU {b} is {:.0} to {:.0} ns behind CPU {a}", -high_ns, -low_ns),
    })
}
