//! `cpu-skew`: do the CPUs' counters differ?

use crate::human::duration;
use crate::report::{Fact, Finding, Fix, Report, Severity, Skew};

/// A process that moves between CPUs meets the skew as a step. From a microsecond on EXPLAIN prints it.
const VISIBLE_NS: f64 = 1_000.0;

const ID: &str = "cpu-skew";

pub fn check(report: &Report) -> Finding {
    let skews = &report.cpus.skew;
    let Some(widest) = skews.iter().map(|s| s.high_ns.abs().max(s.low_ns.abs())).reduce(f64::max) else {
        if matches!(&report.cpus.online, Fact::Known(cpus) if cpus.len() == 1) {
            return Finding::ok(ID, "this host has one CPU");
        }
        let why = report.cpus.skew_unavailable.clone().unwrap_or_else(|| "it was not measured".into());
        return Finding::unknown(ID, format!("whether the CPUs' clocks agree is unknown: {why}"));
    };
    if let Some(moving) = skews.iter().find(|s| s.moving) {
        let summary =
            format!("clock {} does not keep one offset between CPUs {} and {}", moving.clock, moving.a, moving.b);
        return Finding::new(ID, Severity::Critical, summary)
            .evidence(format!("it was between {} and {} within some milliseconds", duration(moving.low_ns), duration(moving.high_ns)))
            .why("the CPUs' counters run at different rates, or the clock went back: a time taken on one means nothing on the other")
            .fix(Fix::new("restart the machine: firmware sets the counters at power-on"));
    }
    // Only an interval that leaves 0 out is proof; how far it is away is the least the skew can be.
    let Some(worst) = skews.iter().max_by(|a, b| proven(a).total_cmp(&proven(b))).filter(|s| proven(s) > 0.0) else {
        return Finding::ok(ID, format!("the CPUs' clocks agree within {}", duration(widest)));
    };
    let severity = if proven(worst) >= VISIBLE_NS { Severity::Critical } else { Severity::Warning };
    let summary = format!(
        "clock {} differs between CPUs {} and {} by at least {}",
        worst.clock,
        worst.a,
        worst.b,
        duration(proven(worst))
    );
    skews
        .iter()
        .filter(|s| proven(s) > 0.0)
        .fold(Finding::new(ID, severity, summary), |finding, s| {
            finding.evidence(format!(
                "{}: CPU {} is {:.0} to {:.0} ns ahead of CPU {}",
                s.clock, s.b, s.low_ns, s.high_ns, s.a
            ))
        })
        .why("a process that is moved from one CPU to another sees time jump by that much, forward or back")
        .fix(Fix::new("restart the machine: firmware sets the counters at power-on"))
}

/// How far the interval stays away from 0.
fn proven(skew: &Skew) -> f64 {
    skew.low_ns.max(-skew.high_ns).max(0.0)
}
