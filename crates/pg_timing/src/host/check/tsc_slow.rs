//! `tsc-slow`: does PostgreSQL 19 read the TSC although the system clock is cheaper?

use super::advice::system_clock_on_19;
use super::clock_slow::LIMITS_NS;
use crate::human::duration;
use crate::report::{ClockReport, Finding, Report, SYSTEM, Severity, finding_id};

/// The two clocks are read one after the other. In between, a machine that is shared with other guests can change its
/// speed by up to a factor of 2. So a smaller difference can be chance.
const NOISE_FACTOR: f64 = 2.0;

const ID: &str = finding_id::TSC_SLOW;

pub fn check(report: &Report) -> Finding {
    finding(report, report.tsc.used_by_default)
}

/// Decides from the figures of both clocks, and from whether PostgreSQL 19 reads the TSC by default.
pub fn finding(report: &Report, used_by_default: Option<bool>) -> Finding {
    // EXPLAIN reads RDTSC.
    let clocks = report.clock("rdtsc").zip(report.clock(SYSTEM));
    let both = |cost: fn(&ClockReport) -> Option<f64>| clocks.and_then(|(tsc, system)| cost(tsc).zip(cost(system)));
    let figures = both(ClockReport::cost_ns).zip(both(ClockReport::overhead_per_node_ns));
    let ((tsc, system), (tsc_overhead, system_overhead)) = match (used_by_default, figures) {
        (Some(false), _) => return Finding::ok(ID, "PostgreSQL 19 does not use the TSC by default on this host"),
        (Some(true), Some(figures)) => figures,
        (Some(true), None) => return Finding::unknown(ID, "the costs of the TSC and of the system clock are unknown"),
        (None, _) => return Finding::unknown(ID, "not determined whether PostgreSQL 19 uses the TSC"),
    };
    let costs =
        format!("a read of the TSC takes {}, and a read of the system clock {}", duration(tsc), duration(system));
    if tsc <= NOISE_FACTOR * system {
        return Finding::ok(ID, costs);
    }
    let severity = if tsc > LIMITS_NS.1 { Severity::Critical } else { Severity::Warning };
    let summary = format!("PostgreSQL 19 uses the TSC by default, which is slower than the system clock: {costs}");
    Finding::new(ID, severity, summary)
        .evidence(format!("rdtsc: {tsc:.1} ns; system: {system:.1} ns"))
        .why(format!(
            "EXPLAIN ANALYZE reads the clock twice per row and plan node, and adds up to about {} instead of {}. A TSC is slow if \
             a hypervisor or a sandbox intercepts its reads",
            duration(tsc_overhead),
            duration(system_overhead)
        ))
        .fix(system_clock_on_19())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;

    fn finding(tsc_ns: Option<f64>, system_ns: Option<f64>, used_by_default: Option<bool>) -> Finding {
        let clock = |name: &str, read_ns| ClockReport { name: name.into(), read_ns, ..ClockReport::default() };
        let clocks = vec![clock("rdtsc", tsc_ns), clock(SYSTEM, system_ns)];
        super::finding(&Report { clocks, ..Report::empty(Origin::Measured, "not measured") }, used_by_default)
    }

    #[test]
    fn a_tsc_that_is_emulated_is_critical() {
        let slow = finding(Some(1400.0), Some(30.0), Some(true));
        assert_eq!(slow.severity, Severity::Critical);
        assert!(
            slow.summary.contains("the TSC takes 1.4 us, and a read of the system clock 30 ns"),
            "{}",
            slow.summary
        );
        let command = slow.fix[0].command.as_deref().unwrap();
        assert!(command.contains("timing_clock_source = 'system'"), "{command}");
    }

    #[test]
    fn a_difference_within_the_noise_is_no_alarm() {
        let severity = |tsc, system| finding(Some(tsc), Some(system), Some(true)).severity;
        assert_eq!(severity(16.0, 28.0), Severity::Ok);
        assert_eq!(severity(60.0, 30.0), Severity::Ok);
        assert_eq!(severity(61.0, 30.0), Severity::Warning);
        assert_eq!((severity(500.0, 30.0), severity(501.0, 30.0)), (Severity::Warning, Severity::Critical));
    }

    #[test]
    fn only_a_clock_that_is_used_counts() {
        let severity = |tsc, used| finding(tsc, Some(30.0), used).severity;
        assert_eq!(severity(Some(1400.0), Some(false)), Severity::Ok);
        assert_eq!(severity(Some(1400.0), None), Severity::Unknown);
        assert_eq!(severity(None, Some(true)), Severity::Unknown);
    }
}
