//! Findings about the values of a clock: backward steps and coarse steps.

use super::advice::other_clocksource;
use super::{critical, ok, unknown, warning, with_severity};
use crate::human::{count, duration};
use crate::report::{
    ClockReport, Finding, Fix, Grade, Origin, Report, SETTABLE_CLOCK, SYSTEM, Severity, VISIBLE_NS, traits_of,
};

/// `clock-backward`: did a clock go back?
pub fn clock_backward(report: &Report) -> Finding {
    // A clock of unknown rate counts, too: a backward step needs no rate.
    let checked = |clock: &&ClockReport| clock.name != SETTABLE_CLOCK && (clock.reads > 0 || clock.backward_steps > 0);
    let read: Vec<&ClockReport> = report.clocks.iter().filter(checked).collect();
    if read.is_empty() {
        return unknown("no clock was measured");
    }
    let back: Vec<&&ClockReport> = read.iter().filter(|clock| clock.backward_steps > 0).collect();
    let Some(worst) = back.iter().max_by(|a, b| a.largest_backward_ns.total_cmp(&b.largest_backward_ns)) else {
        let reads = read.iter().map(|clock| clock.reads).fold(0, u64::saturating_add);
        return ok(format!("no clock went back in {} readings", count(reads)));
    };
    let by = match worst.largest_backward_ns {
        0.0 => "by an unknown amount".to_string(),
        ns => format!("by up to {}", duration(ns)),
    };
    let finding = match back.iter().any(|clock| concerns_postgresql(report, clock)) {
        true => {
            let summary = format!("time went back {by} (clock {}): do not trust any timing on the host", worst.name);
            critical(summary).why(
                "if time goes back during an interval, its duration is too short or negative, in EXPLAIN ANALYZE and in the \
                 server's log",
            )
        }
        false => {
            let summary = format!("the clock {} went back {by}; PostgreSQL does not read it", worst.name);
            warning(summary).why("programs that read this clock measure wrong times")
        }
    };
    let finding = back.iter().fold(finding, |finding, clock| {
        let steps = if clock.backward_steps == 1 { "backward step" } else { "backward steps" };
        finding.evidence(format!(
            "{}: {} {steps}, the largest {}{}",
            clock.name,
            count(clock.backward_steps),
            if clock.largest_backward_ns > 0.0 {
                duration(clock.largest_backward_ns)
            } else {
                "of unknown size".into()
            },
            if clock.reads > 0 { format!(", in {} readings", count(clock.reads)) } else { String::new() }
        ))
    });
    finding
        .fix(
            Fix::new("in a virtual machine, restart it: a sleep of the host or a migration can break its clocks")
                .risk("stops everything in it"),
        )
        .fixes(other_clocksource(report))
}

/// Returns whether PostgreSQL reads this clock, or a clock that is computed from the same counter.
fn concerns_postgresql(report: &Report, clock: &ClockReport) -> bool {
    let counter_is_used = report.tsc.accepted_by_kernel != Some(false)
        || report.tsc.independent != Some(true)
        || report.tsc.used_by_default != Some(false);
    match clock.name.as_str() {
        SYSTEM | "system_syscall" => true,
        name if ["rdtsc", "cntvct"].iter().any(|counter| name.contains(counter)) => counter_is_used,
        _ => false,
    }
}

/// Most nodes take less than a step of such a clock (jiffies: 1 to 10 ms).
const USELESS_NS: f64 = 1_000_000.0;

/// `clock-coarse`: are the clock's steps too large to time a plan node?
pub fn clock_coarse(report: &Report) -> Finding {
    let Some(clock) = report.system() else {
        return coarse_by_clocksource(report, "PostgreSQL's clock was not measured".into());
    };
    if let Some(duration_ns) = clock.stood_still_ns {
        let summary = format!("PostgreSQL's clock stands still: it did not move in {}", duration(duration_ns));
        return critical(summary)
            .evidence(format!("{} readings, all equal", clock.reads))
            .why("EXPLAIN ANALYZE would print 0 for every time")
            .fixes(other_clocksource(report));
    }
    let Some((low, high)) = clock.granularity_ns.map(|step| (step, step)).or(clock.granularity_between_ns) else {
        let why = clock.granularity_unavailable.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        return coarse_by_clocksource(report, format!("the step of PostgreSQL's clock is unknown{why}"));
    };
    let steps = match low {
        low if low == high => duration(low),
        0.0 => format!("at most {}", duration(high)),
        low => format!("{} to {}", duration(low), duration(high)),
    };
    let severity = match low {
        low if low >= USELESS_NS => Severity::Critical,
        low if low > VISIBLE_NS => Severity::Warning,
        _ if high <= VISIBLE_NS => return ok(format!("PostgreSQL's clock moves in steps of {steps}")),
        _ => return unknown(format!("PostgreSQL's clock moves in steps of {steps}")),
    };
    with_severity(severity, format!("PostgreSQL's clock is coarse: it moves in steps of {steps}"))
        .evidence(match low == high {
            true => format!("system: the smallest step was {low} ns"),
            false => format!("system: most readings were equal, and no step was shorter than {}", duration(low)),
        })
        .why(COARSE_WHY)
        .fixes(finer_clocksource(report))
}

/// Returns the fix. The output of pg_test_timing does not name the clock source, so its fix shows how to find a finer
/// one.
fn finer_clocksource(report: &Report) -> Option<Fix> {
    if report.origin != Origin::PgTestTiming {
        return other_clocksource(report);
    }
    let what = "on that host, list the clock sources, and try a finer one as root: \"pg_timing clocksource use NAME\" tries it \
                for 10 seconds";
    Some(Fix::new(what).command("pg_timing clocksource list"))
}

const COARSE_WHY: &str =
    "a node's time is the sum of many short intervals; each interval is measured as 0 or as a whole step, at random";

/// Returns the finding if the step was not measured. The kernel's tick is always coarse. For any other clock source,
/// `why` is the reason.
fn coarse_by_clocksource(report: &Report, why: String) -> Finding {
    let coarse = report.clocksource.current.known().and_then(|name| traits_of(name));
    match coarse.filter(|traits| traits.grade == Grade::Coarse) {
        Some(traits) => critical(format!("the kernel's clock source is {}, which is coarse", traits.name))
            .evidence(format!("{}: {}", traits.name, traits.what))
            .why(COARSE_WHY)
            .fixes(other_clocksource(report)),
        None => unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::*;

    mod clock_backward {
        use super::*;

        #[test]
        fn a_clock_that_postgresql_does_not_read_is_a_warning() {
            let severity = |name: &str, counter_is_used: bool| {
                let mut report = Report::empty(Origin::Measured, "");
                let backward =
                    ClockReport { reads: 10, backward_steps: 1, largest_backward_ns: 5.0, ..ClockReport::default() };
                report.clocks = vec![ClockReport { name: name.into(), ..backward }];
                report.tsc.accepted_by_kernel = Some(counter_is_used);
                report.tsc.independent = Some(!counter_is_used);
                report.tsc.used_by_default = Some(false);
                clock_backward(&report).severity
            };
            for (name, if_unused, if_used) in [
                ("system", Severity::Critical, Severity::Critical),
                ("rdtsc", Severity::Warning, Severity::Critical),
                ("boottime", Severity::Warning, Severity::Warning),
                ("realtime", Severity::Unknown, Severity::Unknown),
            ] {
                assert_eq!((severity(name, false), severity(name, true)), (if_unused, if_used), "{name}");
            }
        }
    }

    mod clock_coarse {
        use super::*;

        fn finding(current: &str, clock: Option<ClockReport>) -> Finding {
            let mut report = Report::empty(Origin::Captured, "");
            report.clocksource.current = Fact::Known(current.into());
            report.clocks = clock.map(|clock| ClockReport { name: SYSTEM.into(), ..clock }).into_iter().collect();
            clock_coarse(&report)
        }

        #[test]
        fn the_step_decides() {
            for (step_ns, severity) in
                [(1.0, Severity::Ok), (1e3, Severity::Ok), (1e4, Severity::Warning), (4e6, Severity::Critical)]
            {
                let clock = ClockReport { granularity_ns: Some(step_ns), ..ClockReport::default() };
                assert_eq!(finding("tsc", Some(clock)).severity, severity, "{step_ns}");
            }
        }

        /// The screen shows a fix of several findings once, so this finding needs its own.
        #[test]
        fn an_output_of_pg_test_timing_has_its_own_fix() {
            let mut report = Report::empty(Origin::PgTestTiming, "");
            let coarse = ClockReport { name: SYSTEM.into(), granularity_ns: Some(4e6), ..ClockReport::default() };
            report.clocks = vec![coarse];
            let fix = clock_coarse(&report).fix;
            assert_eq!(fix[0].command.as_deref(), Some("pg_timing clocksource list"));
            assert!(other_clocksource(&report).is_some_and(|other| !fix.contains(&other)), "{fix:?}");
        }

        #[test]
        fn a_clock_that_stands_still_has_a_fix() {
            let stopped = ClockReport { stood_still_ns: Some(1e9), ..ClockReport::default() };
            let mut report = Report::empty(Origin::Captured, "");
            report.clocks = vec![ClockReport { name: SYSTEM.into(), ..stopped }];
            assert!(!clock_coarse(&report).fix.is_empty());
        }

        #[test]
        fn an_unknown_step_is_unknown_unless_the_clock_source_is_the_tick() {
            let hidden = || ClockReport { granularity_unavailable: Some("x".into()), ..ClockReport::default() };
            assert_eq!(finding("tsc", None).severity, Severity::Unknown);
            let unknown = finding("tsc", Some(hidden()));
            assert_eq!((unknown.severity, unknown.summary.ends_with("is unknown: x")), (Severity::Unknown, true));
            for clock in [None, Some(hidden())] {
                assert_eq!(finding("jiffies", clock).severity, Severity::Critical);
            }
        }
    }
}
