//! `clock-coarse`: are the clock's steps too large to time a plan node?

use super::advice::other_clocksource;
use crate::human::duration;
use crate::report::{Finding, Fix, Grade, Origin, Report, Severity, VISIBLE_NS, finding_id, traits_of};

/// Most nodes take less than a step of such a clock (jiffies: 1 to 10 ms).
const USELESS_NS: f64 = 1_000_000.0;

const ID: &str = finding_id::CLOCK_COARSE;

pub fn check(report: &Report) -> Finding {
    let Some(clock) = report.system() else {
        return by_clocksource(report, "PostgreSQL's clock was not measured".into());
    };
    if let Some(duration_ns) = clock.stood_still_ns {
        let summary = format!("PostgreSQL's clock stands still: it did not move in {}", duration(duration_ns));
        return Finding::new(ID, Severity::Critical, summary)
            .evidence(format!("{} readings, all equal", clock.reads))
            .why("EXPLAIN ANALYZE would print 0 for every time")
            .fixes(other_clocksource(report));
    }
    let Some((low, high)) = clock.granularity_ns.map(|step| (step, step)).or(clock.granularity_between_ns) else {
        let why = clock.granularity_unavailable.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        return by_clocksource(report, format!("the step of PostgreSQL's clock is unknown{why}"));
    };
    let steps = match low {
        low if low == high => duration(low),
        0.0 => format!("at most {}", duration(high)),
        low => format!("{} to {}", duration(low), duration(high)),
    };
    let severity = match low {
        low if low >= USELESS_NS => Severity::Critical,
        low if low > VISIBLE_NS => Severity::Warning,
        _ if high <= VISIBLE_NS => return Finding::ok(ID, format!("PostgreSQL's clock moves in steps of {steps}")),
        _ => return Finding::unknown(ID, format!("PostgreSQL's clock moves in steps of {steps}")),
    };
    Finding::new(ID, severity, format!("PostgreSQL's clock is coarse: it moves in steps of {steps}"))
        .evidence(match low == high {
            true => format!("system: the smallest step was {low} ns"),
            false => format!("system: most readings were equal, and no step was shorter than {}", duration(low)),
        })
        .why(WHY)
        .fixes(fix(report))
}

/// Returns the fix. The output of pg_test_timing does not name the clock source, so its fix shows how to find a finer
/// one.
fn fix(report: &Report) -> Option<Fix> {
    if report.origin != Origin::PgTestTiming {
        return other_clocksource(report);
    }
    let what = "on that host, list the clock sources, and try a finer one as root: \"pg_timing clocksource use NAME\" tries it \
                for 10 seconds";
    Some(Fix::new(what).command("pg_timing clocksource list"))
}

const WHY: &str =
    "a node's time is the sum of many short intervals; each interval is measured as 0 or as a whole step, at random";

/// Returns the finding if the step was not measured. The kernel's tick is always coarse. For any other clock source,
/// `unknown` is the reason.
fn by_clocksource(report: &Report, unknown: String) -> Finding {
    let coarse = report.clocksource.current.known().and_then(|name| traits_of(name));
    match coarse.filter(|traits| traits.grade == Grade::Coarse) {
        Some(traits) => Finding::new(
            ID,
            Severity::Critical,
            format!("the kernel's clock source is {}, which is coarse", traits.name),
        )
        .evidence(format!("{}: {}", traits.name, traits.what))
        .why(WHY)
        .fixes(other_clocksource(report)),
        None => Finding::unknown(ID, unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ClockReport, Fact, SYSTEM};

    fn finding(current: &str, clock: Option<ClockReport>) -> Finding {
        let mut report = Report::empty(Origin::Captured, "");
        report.clocksource.current = Fact::Known(current.into());
        report.clocks = clock.map(|clock| ClockReport { name: SYSTEM.into(), ..clock }).into_iter().collect();
        check(&report)
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
        let fix = check(&report).fix;
        assert_eq!(fix[0].command.as_deref(), Some("pg_timing clocksource list"));
        assert!(other_clocksource(&report).is_some_and(|other| !fix.contains(&other)), "{fix:?}");
    }

    #[test]
    fn a_clock_that_stands_still_has_a_fix() {
        let stopped = ClockReport { stood_still_ns: Some(1e9), ..ClockReport::default() };
        let mut report = Report::empty(Origin::Captured, "");
        report.clocks = vec![ClockReport { name: SYSTEM.into(), ..stopped }];
        assert!(!check(&report).fix.is_empty());
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
