//! Finding `cpu-skew`: do the clocks of the CPUs differ?

use super::{ok, unknown, with_severity};
use crate::human::duration;
use crate::report::{Fact, Finding, Fix, Report, SYSTEM, Severity, Skew, VISIBLE_NS};

/// A message between CPUs takes about 100 ns. Wider bounds mean that the CPUs were busy.
const WIDE_NS: f64 = 10_000.0;

pub fn cpu_skew(report: &Report) -> Finding {
    let skews = &report.cpus.skew;
    if skews.is_empty() {
        if matches!(&report.cpus.online, Fact::Known(cpus) if cpus.len() == 1) {
            return ok("one CPU is online");
        }
        let why = report.cpus.skew_unavailable.clone().unwrap_or_else(|| "not measured".into());
        return unknown(format!("not determined whether the CPUs' clocks agree: {why}"));
    }
    // PostgreSQL's clock comes first; within a clock, the largest certain skew.
    let mut bad: Vec<&Skew> = skews.iter().filter(|s| differs(s).is_some()).collect();
    bad.sort_by(|a, b| {
        (b.clock == SYSTEM, certain(b))
            .partial_cmp(&(a.clock == SYSTEM, certain(a)))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some(worst) = bad.first() else { return no_difference(report) };
    let severity = severity(report, worst);
    let system: Vec<&Skew> = skews.iter().filter(|s| s.clock == SYSTEM).collect();
    let summary = match (severity, worst.moving) {
        (Severity::Ok, _) if !system.is_empty() => {
            format!(
                "{}; the CPUs' counters differ, but neither the kernel nor PostgreSQL uses the counter",
                agreement(&system)
            )
        }
        (_, true) => format!("the offset of {} between CPUs {} and {} changes", clock_name(worst), worst.a, worst.b),
        (_, false) => format!(
            "{} differs between CPUs {} and {} by at least {:.0} ns",
            clock_name(worst),
            worst.a,
            worst.b,
            certain(worst).floor()
        ),
    };
    let lines = bad.iter().filter_map(|skew| differs(skew));
    let finding = with_severity(severity, summary).evidence_lines(lines);
    if severity == Severity::Ok {
        return finding
            .evidence("neither the kernel (its clock source is another one) nor PostgreSQL 19 uses the counter");
    }
    finding
        .why("a process that moves from one CPU to another sees the time jump by that much, forward or back")
        .fix(Fix::new("switch the machine off and on again: the firmware sets the counters at power-on, and a restart may not reset them"))
}

/// Returns the finding if no two CPUs differ for certain.
fn no_difference(report: &Report) -> Finding {
    let all: Vec<&Skew> = report.cpus.skew.iter().collect();
    let missing = report
        .cpus
        .skew_unavailable
        .as_ref()
        .map(|why| format!(" (not all CPUs were compared: {why})"))
        .unwrap_or_default();
    match widest(&all) {
        w if w > WIDE_NS => unknown(format!(
            "{}: their clocks agree within {}, but the CPUs were too busy for a narrower bound{missing}",
            cpu_list(&all),
            duration(w)
        )),
        _ => ok(agreement(&all) + &missing),
    }
}

/// Returns `CPUs 0, 1: counter and system clock agree within 31 ns`.
fn agreement(skews: &[&Skew]) -> String {
    format!("{}: {} agree within {}", cpu_list(skews), clock_names(skews), duration(widest(skews)))
}

/// Returns the largest bound, in ns.
fn widest(skews: &[&Skew]) -> f64 {
    skews.iter().map(|s| s.low_ns.abs().max(s.high_ns.abs())).fold(0.0, f64::max)
}

/// Returns the compared CPUs.
fn cpu_list(skews: &[&Skew]) -> String {
    let mut cpus: Vec<usize> = skews.iter().flat_map(|s| [s.a, s.b]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    match cpus.as_slice() {
        [first, .., last] if cpus.len() > 4 => format!("{} CPUs from {first} to {last}", cpus.len()),
        few => format!("CPUs {}", few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns the clocks that were compared.
fn clock_names(skews: &[&Skew]) -> &'static str {
    match (skews.iter().any(|s| s.clock == SYSTEM), skews.iter().any(|s| s.clock != SYSTEM)) {
        (true, true) => "counter and system clock",
        (true, false) => "system clocks",
        _ => "counters",
    }
}

/// Returns the distance of the bounds from 0, in ns: the skew is at least that large.
fn certain(skew: &Skew) -> f64 {
    skew.low_ns.max(-skew.high_ns).max(0.0)
}

fn severity(report: &Report, worst: &Skew) -> Severity {
    let unused = worst.clock != SYSTEM
        && report.tsc.accepted_by_kernel == Some(false)
        && report.tsc.independent == Some(true)
        && report.tsc.used_by_default == Some(false);
    match worst {
        _ if unused => Severity::Ok,
        skew if skew.moving || certain(skew) >= VISIBLE_NS => Severity::Critical,
        _ => Severity::Warning,
    }
}

/// Returns the name of the clock on the screen.
fn clock_name(skew: &Skew) -> String {
    match skew.clock.as_str() {
        SYSTEM => "PostgreSQL's clock".into(),
        counter => format!("the counter ({counter})"),
    }
}

/// Returns the difference of two CPUs if it is certain: `system: CPU 8 is 1115 to 1343 ns ahead of CPU 0`.
pub fn differs(skew: &Skew) -> Option<String> {
    if !skew.moving && certain(skew) == 0.0 {
        return None;
    }
    let Skew { clock, a, b, low_ns, high_ns, .. } = skew;
    Some(match (skew.moving, *high_ns < 0.0) {
        (true, _) => {
            format!(
                "{clock}: within milliseconds the offset of CPU {b} from CPU {a} varied from {low_ns:.0} to {high_ns:.0} ns"
            )
        }
        (_, false) => format!("{clock}: CPU {b} is {low_ns:.0} to {high_ns:.0} ns ahead of CPU {a}"),
        (_, true) => format!("{clock}: CPU {b} is {:.0} to {:.0} ns behind CPU {a}", -high_ns, -low_ns),
    })
}
