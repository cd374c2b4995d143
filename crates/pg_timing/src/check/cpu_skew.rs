//! `cpu-skew`: do the CPUs' clocks differ?

use crate::human::duration;
use crate::report::{Fact, Finding, Fix, Report, SYSTEM, Severity, Skew};

/// A process that moves between CPUs meets the skew as a step. From a microsecond on EXPLAIN prints it.
const VISIBLE_NS: f64 = 1_000.0;

/// A message between CPUs takes a tenth of a microsecond; a bound this wide tells of CPUs that were busy.
pub const BROAD_NS: f64 = 10_000.0;

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
    // The clock of PostgreSQL comes first; of each clock, what is proven.
    let mut bad: Vec<&Skew> = skews.iter().filter(|s| s.moving || proven(s) > 0.0).collect();
    bad.sort_by(|a, b| {
        (b.clock == SYSTEM, proven(b)).partial_cmp(&(a.clock == SYSTEM, proven(a))).unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some(worst) = bad.first() else {
        if widest > BROAD_NS {
            return Finding::unknown(
                ID,
                format!("whether the CPUs' clocks agree cannot be told better than to {}", duration(widest)),
            );
        }
        if let Some(why) = &report.cpus.skew_unavailable {
            let summary =
                format!("the CPUs' clocks agree within {}, as far as they were compared ({why})", duration(widest));
            return Finding::ok(ID, summary);
        }
        return Finding::ok(ID, format!("the CPUs' clocks agree within {}", duration(widest)));
    };
    let summary = match worst.moving {
        true => format!("{} does not keep one offset between CPUs {} and {}", whose(worst), worst.a, worst.b),
        false => format!(
            "{} differs between CPUs {} and {} by at least {:.0} ns",
            whose(worst),
            worst.a,
            worst.b,
            proven(worst).floor()
        ),
    };
    let finding =
        bad.iter().fold(Finding::new(ID, severity(report, worst), summary), |finding, s| finding.evidence(line(s)));
    if finding.severity == Severity::Ok {
        return finding.evidence(
            "nobody uses the counter here: the kernel keeps time by another clock, and PostgreSQL 19 does not take it",
        );
    }
    finding
        .why("a process that is moved from one CPU to another sees time jump by that much, forward or back")
        .fix(Fix::new("switch the machine off and on again: firmware sets the counters at power-on, and a plain restart may leave them"))
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

/// `system: CPU 8 is 1115 to 1343 ns ahead of CPU 0`
fn line(skew: &Skew) -> String {
    let Skew { clock, a, b, low_ns, high_ns, .. } = skew;
    match (skew.moving, *high_ns < 0.0) {
        (true, _) => {
            format!("{clock}: CPU {b} was between {low_ns:.0} and {high_ns:.0} ns from CPU {a} within milliseconds")
        }
        (_, false) => format!("{clock}: CPU {b} is {low_ns:.0} to {high_ns:.0} ns ahead of CPU {a}"),
        (_, true) => format!("{clock}: CPU {b} is {:.0} to {:.0} ns behind CPU {a}", -high_ns, -low_ns),
    }
}
