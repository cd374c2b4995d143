//! `clocksource-slow`: does the kernel's clock run on slow hardware?

use super::advice::other_clocksource;
use crate::human::duration;
use crate::report::{Fact, Finding, Grade, Report, Severity, finding_id, traits_of};

/// The kernel's tick takes at least 1 ms. A clock with smaller steps does not run on it, whatever its name is.
const TICK_NS: f64 = 1e6;

const ID: &str = finding_id::CLOCKSOURCE_SLOW;

pub fn check(report: &Report) -> Finding {
    let current = match &report.clocksource.current {
        Fact::Known(current) => current,
        Fact::Unavailable { unavailable } => {
            return Finding::unknown(ID, format!("the clock source is unknown: {unavailable}"));
        }
    };
    // Some clock sources are slow only on some kernels, so a measured cost decides.
    let measured = report.system().and_then(|clock| clock.read_ns);
    let is_cheap = measured.is_some_and(|ns| ns <= super::clock_slow::LIMITS_NS.0);
    let Some(traits) = traits_of(current) else {
        return match is_cheap {
            true => Finding::ok(
                ID,
                format!("clock source {current}, which pg_timing does not know; it is cheap on this host"),
            ),
            false => Finding::unknown(ID, format!("pg_timing does not know the clock source {current}")),
        };
    };
    if traits.grade == Grade::Coarse {
        let step_ns = report
            .system()
            .and_then(|clock| clock.granularity_ns.or(clock.granularity_between_ns.map(|(_, high)| high)));
        if let Some(step_ns) = step_ns.filter(|step| *step < TICK_NS) {
            let summary = format!("clock source {current}, whose steps are at most {} on this host", duration(step_ns));
            return Finding::ok(ID, summary);
        }
        return Finding::ok(
            ID,
            format!("clock source {current}: it is coarse (see clock-coarse), and not slow hardware"),
        );
    }
    if !traits.is_slow() {
        return Finding::ok(ID, format!("clock source {current}"));
    }
    if is_cheap {
        return Finding::ok(ID, format!("clock source {current}, which is cheap on this host"));
    }
    Finding::new(ID, Severity::Warning, format!("the kernel's clock source is {current}, which is slow"))
        .evidence(format!("{current}: {}; a read typically takes {}", traits.what, traits.read))
        .why("every process on this host pays this for each read of the clock, and EXPLAIN ANALYZE reads it most often")
        .fixes(other_clocksource(report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ClockReport, Origin, SYSTEM};

    fn finding(current: &str, read_ns: Option<f64>) -> Finding {
        let mut report = Report::empty(Origin::Captured, "");
        report.clocksource.current = Fact::Known(current.into());
        report.clocks = vec![ClockReport { name: SYSTEM.into(), read_ns, ..ClockReport::default() }];
        check(&report)
    }

    #[test]
    fn slow_hardware_is_a_warning_unless_its_cost_is_low() {
        for name in ["hpet", "acpi_pm", "cyclone", "hyperv_clocksource", "piix"] {
            assert_eq!(finding(name, None).severity, Severity::Warning, "{name}");
            assert_eq!(finding(name, Some(30.0)).severity, Severity::Ok, "{name}");
        }
        assert_eq!(finding("tsc", None).severity, Severity::Ok);
    }

    #[test]
    fn the_kernels_tick_is_coarse_and_not_slow() {
        for read_ns in [None, Some(60.0), Some(300.0)] {
            let jiffies = finding("jiffies", read_ns);
            assert_eq!(jiffies.severity, Severity::Ok);
            assert!(jiffies.summary.contains("coarse"), "{}", jiffies.summary);
        }
    }

    /// An old Linux calls its clock jiffies, and takes the time within a tick from another counter.
    #[test]
    fn jiffies_with_small_steps_are_not_coarse() {
        let mut report = Report::empty(Origin::Captured, "");
        report.clocksource.current = Fact::Known("jiffies".into());
        let clock =
            ClockReport { name: SYSTEM.into(), granularity_between_ns: Some((0.0, 2000.0)), ..ClockReport::default() };
        report.clocks = vec![clock];
        let summary = check(&report).summary;
        assert!(summary.contains("at most 2 us") && !summary.contains("coarse"), "{summary}");
    }

    #[test]
    fn an_unknown_clock_source_is_judged_by_its_cost() {
        assert_eq!(finding("flux", None).severity, Severity::Unknown);
        assert_eq!(finding("flux", Some(30.0)).severity, Severity::Ok);
        assert_eq!(finding("flux", Some(300.0)).severity, Severity::Unknown);
    }
}
