//! What counts as a change, and its effect.

mod alarms;
mod backward;
mod postgres_19;

use super::*;
use crate::report::{
    Bin, COUNTER, ClockReport, Drift, DriftStep, Fact, Finding, Gaps, Origin, Percentiles, SYSTEM, Skew, finding_id,
};

/// Returns a report of check with a system clock of this undisturbed read cost.
fn host(read_ns: f64) -> Report {
    let clock = ClockReport {
        name: SYSTEM.into(),
        read_ns: Some(read_ns * 1.1),
        read_spread_ns: Some(0.5),
        undisturbed_ns: Some(read_ns),
        loop_ns: Some(read_ns + 4.0),
        granularity_ns: Some(1.0),
        reads: 1_000_000,
        ..ClockReport::default()
    };
    let mut report = Report::empty(Origin::Measured, "not in this test");
    report.clocks = vec![clock];
    report.tsc.used_by_default = Some(false);
    report.findings = finding_id::ALL.iter().map(|id| Finding::ok(id, "fine")).collect();
    report
}

/// Returns an output of pg_test_timing with this loop cost.
fn output(loop_ns: f64, program: Program) -> Report {
    let ge_ns = (program == Program::PgTestTimingClassic).then_some(0);
    // As many readings show another microsecond as fit the loop cost.
    let counts = [(999, 1_000_000 - 1000 * loop_ns as u64), (1999, 1000 * loop_ns as u64)];
    let histogram = counts.map(|(le_ns, count)| Bin { le_ns, ge_ns, count }).into();
    let clock = ClockReport { name: SYSTEM.into(), loop_ns: Some(loop_ns), reads: 1_000_000, ..Default::default() };
    let mut report = Report::empty(Origin::PgTestTiming, "not in the output");
    report.clocks = vec![ClockReport { histogram, ..clock }];
    report
}

fn percentiles(p50_ns: f64, p99_9_ns: f64) -> Percentiles {
    Percentiles {
        min_ns: 1.0,
        p50_ns,
        p90_ns: p50_ns,
        p99_ns: p50_ns,
        p99_9_ns,
        p99_99_ns: 1e9,
        p99_999_ns: 1e9,
        max_ns: 1e9,
    }
}

fn compared(before: &Report, after: &Report) -> Comparison {
    compare(("before.json", before), ("after.json", after))
}

fn effect(before: &Report, after: &Report) -> Effect {
    compared(before, after).verdict.effect
}

/// Returns the effect of a figure, or `None` if it was not compared.
fn of(comparison: &Comparison, name: FigureName) -> Option<Effect> {
    comparison.figures.iter().find(|figure| figure.figure == name).map(|figure| figure.effect)
}

fn with(report: &Report, change: impl FnOnce(&mut Report)) -> Report {
    let mut report = report.clone();
    change(&mut report);
    report
}

fn alarm(report: &Report, id: &str, severity: Severity) -> Report {
    with(report, |report| {
        let finding = report.findings.iter_mut().find(|finding| finding.id == id).unwrap();
        *finding = Finding::new(id, severity, "an alarm");
    })
}

#[test]
fn a_read_cost_counts_beyond_the_noise_and_above_5_ns() {
    for (before, after, expected) in [
        (20.0, 21.5, Effect::Same),
        (20.0, 24.9, Effect::Changed),
        (20.0, 26.0, Effect::Worse),
        (26.0, 20.0, Effect::Better),
        (200.0, 215.0, Effect::Same),
        (40.0, 95.0, Effect::Worse),
        (40.0, 101.0, Effect::MuchWorse),
        (60.0, 120.0, Effect::Worse),
        (2000.0, 20.0, Effect::MuchBetter),
    ] {
        assert_eq!(effect(&host(before), &host(after)), expected, "{before} {after}");
    }
    let summary = compared(&host(20.0), &host(800.0)).verdict.summary;
    assert!(
        summary.starts_with(
            "An undisturbed read of PostgreSQL's clock costs 40 times as much as before (800 ns, before 20 ns). EXPLAIN"
        ),
        "{summary}"
    );
}

/// A damaged report can have such a cost.
#[test]
fn a_cost_of_zero_has_no_ratio() {
    let summary = compared(&host(0.0), &host(20.0)).verdict.summary;
    assert!(summary.contains("PostgreSQL's clock costs more than before (20 ns, before 0 ns)."), "{summary}");
}

#[test]
fn the_median_is_used_if_a_report_has_no_undisturbed_cost() {
    let median = |ns| with(&host(ns), |report| report.clocks[0].undisturbed_ns = None);
    assert_eq!(effect(&median(20.0), &host(22.0)), Effect::Same);
    assert_eq!(effect(&median(20.0), &median(30.0)), Effect::Worse);
    let wide = |ns| with(&median(ns), |report| report.clocks[0].read_spread_ns = Some(4.0));
    assert_eq!(effect(&wide(20.0), &wide(30.0)), Effect::Same, "the spread is a part of the noise");
}

#[test]
fn a_clock_that_postgresql_does_not_read_is_neither_better_nor_worse() {
    let second = |ns, by_default| {
        with(&host(20.0), |report| {
            report.clocks.push(ClockReport { name: "rdtscp".into(), ..host(ns).clocks[0].clone() });
            report.tsc.used_by_default = Some(by_default);
        })
    };
    assert_eq!(effect(&second(15.0, false), &second(900.0, false)), Effect::Changed);
    let used = compared(&second(15.0, true), &second(900.0, true)).verdict;
    assert_eq!(used.effect, Effect::MuchWorse);
    assert!(
        used.summary.starts_with("An undisturbed read of rdtscp, which PostgreSQL 19 uses, costs 60 times"),
        "{}",
        used.summary
    );
}

#[test]
fn loops_are_compared_if_a_report_has_no_read_cost() {
    use Program::{PgTestTiming19, PgTestTimingClassic};
    // PostgreSQL 19 lists exact durations, so the median is known.
    let nineteen =
        |ns: f64| with(&output(ns, PgTestTiming19), |report| report.clocks[0].percentiles = Some(percentiles(ns, 1e6)));
    let comparison = compared(&host(22.0), &output(27.0, PgTestTimingClassic));
    assert_eq!((of(&comparison, FigureName::LoopCost), comparison.verdict.effect), (Some(Effect::Same), Effect::Same));
    for (before, after, expected) in [
        (output(36.0, PgTestTimingClassic), output(723.0, PgTestTimingClassic), Effect::MuchWorse),
        (output(25.0, PgTestTimingClassic), output(50.0, PgTestTimingClassic), Effect::Same),
        (output(36.0, PgTestTimingClassic), nineteen(19.0), Effect::Same),
        (nineteen(20.0), output(50.0, PgTestTimingClassic), Effect::Same),
        (nineteen(20.0), nineteen(50.0), Effect::Worse),
        (output(36.0, PgTestTimingClassic), host(700.0), Effect::MuchWorse),
        // The bounds overlap, but the costs differ by a factor of three.
        (nineteen(20.0), output(65.0, PgTestTimingClassic), Effect::NotCompared),
    ] {
        let comparison = compared(&before, &after);
        assert_eq!(comparison.verdict.effect, expected, "{:?}", comparison.verdict);
    }
}

#[test]
fn without_a_cost_the_verdict_is_not_compared_unless_something_is_worse() {
    let empty = with(&host(20.0), |report| report.clocks.clear());
    let comparison = compared(&empty, &host(20.0));
    assert_eq!(comparison.verdict.effect, Effect::NotCompared);
    let group = &comparison.not_compared[0];
    assert_eq!((group.what.join(""), group.missing_in), ("clock system".into(), MissingIn::Before));
    let worse = alarm(&empty, finding_id::TSC_DEMOTED, Severity::Warning);
    assert_eq!(effect(&empty, &worse), Effect::Worse);
    assert_eq!(effect(&worse, &empty), Effect::NotCompared);
}

#[test]
fn alarms_count_by_their_severity() {
    let ok = host(20.0);
    let [warning, critical, unknown] =
        [Severity::Warning, Severity::Critical, Severity::Unknown].map(|s| alarm(&ok, finding_id::TSC_DEMOTED, s));
    for (before, after, expected) in [
        (&ok, &warning, Effect::Worse),
        (&ok, &critical, Effect::MuchWorse),
        (&warning, &critical, Effect::MuchWorse),
        (&critical, &warning, Effect::MuchBetter),
        (&warning, &ok, Effect::Better),
        (&unknown, &warning, Effect::Same),
        (&unknown, &critical, Effect::NotCompared),
        (&critical, &unknown, Effect::NotCompared),
    ] {
        assert_eq!(effect(before, after), expected);
    }
    let unknown_before = compared(&unknown, &critical).not_compared;
    assert!(unknown_before.iter().any(|group| group.what.contains(&"tsc-demoted (CRITICAL)".to_string())));
    assert_eq!(
        compared(&unknown, &warning).verdict.summary,
        "No figure changed by more than the noise. An undisturbed read of PostgreSQL's clock costs 20 ns, before 20 ns; noise can explain \
         a difference of up to 3 ns. Alarms that only one of the reports can show: tsc-demoted (warning, after)."
    );
    let summary = compared(&unknown, &critical).verdict.summary;
    assert_eq!(summary, "Alarms that only one of the reports can show: tsc-demoted (critical, after).");
    let not_persistent = alarm(&ok, finding_id::CLOCKSOURCE_NOT_PERSISTENT, Severity::Warning);
    assert_eq!(effect(&ok, &not_persistent), Effect::Changed);
    let faster = alarm(&host(20.0), finding_id::CLOCKSOURCE_NOT_PERSISTENT, Severity::Warning);
    assert_eq!(effect(&host(700.0), &faster), Effect::MuchBetter);
}

#[test]
fn an_alarm_about_a_figure_within_noise_does_not_count() {
    let slow = |ns, severity| alarm(&host(ns), finding_id::CLOCK_SLOW, severity);
    let comparison = compared(&slow(99.0, Severity::Ok), &slow(101.0, Severity::Warning));
    assert_eq!((comparison.verdict.effect, comparison.findings[0].effect), (Effect::Same, Effect::Same));
    assert_eq!(
        comparison.verdict.summary,
        "No figure changed by more than the noise. So these alarms do not count: clock-slow. An undisturbed read of PostgreSQL's clock \
         costs 101 ns, before 99 ns; noise can explain a difference of up to 11 ns."
    );
    assert_eq!(effect(&slow(60.0, Severity::Ok), &slow(101.0, Severity::Warning)), Effect::Worse);
}

/// A reader must see the reason for "worse" first, even if something else is much better.
#[test]
fn the_reason_for_the_verdict_comes_first() {
    let faster = alarm(&host(20.0), finding_id::TSC_NOT_INVARIANT, Severity::Warning);
    let verdict = compared(&host(700.0), &faster).verdict;
    assert_eq!(verdict.effect, Effect::Worse);
    assert!(
        verdict.summary.starts_with("New alarm: tsc-not-invariant (warning). An undisturbed read of"),
        "{}",
        verdict.summary
    );
}

#[test]
fn steps_tails_and_lost_time() {
    let step = |ns| with(&host(20.0), |report| report.clocks[0].granularity_ns = Some(ns));
    assert_eq!(effect(&step(1.0), &step(1.1)), Effect::Same);
    assert_eq!(effect(&step(1.0), &step(70.0)), Effect::Changed);
    assert_eq!(effect(&step(1.0), &step(4e6)), Effect::Worse);
    let bounded = with(&step(1.0), |report| {
        report.clocks[0].granularity_ns = None;
        report.clocks[0].granularity_between_ns = Some((0.0, 2000.0));
    });
    assert_eq!((effect(&bounded, &step(10.0)), effect(&bounded, &step(4e6))), (Effect::Same, Effect::Worse));

    let lost = |share| {
        let gaps = Gaps { threshold_ns: 1000.0, count: 9, total_ns: 1.0, largest_ns: 1.0, share };
        with(&host(20.0), |report| report.clocks[0].gaps = Some(gaps))
    };
    assert_eq!(effect(&lost(0.02), &lost(0.2)), Effect::Same);
    assert_eq!(effect(&lost(0.02), &lost(0.6)), Effect::Changed);
    assert!(compared(&lost(0.02), &lost(0.6)).verdict.summary.contains("Lost time depends on the machine's load"));

    let tail = |p99_9_ns| with(&host(20.0), |report| report.clocks[0].percentiles = Some(percentiles(1.0, p99_9_ns)));
    assert_eq!((effect(&tail(30.0), &tail(200.0)), effect(&tail(30.0), &tail(300.0))), (Effect::Same, Effect::Changed));
    let few = with(&tail(300.0), |report| report.clocks[0].reads = 9_999);
    assert_eq!(of(&compared(&tail(30.0), &few), FigureName::Tail), None, "too few reads");
}

#[test]
fn rates_skews_and_drifts_have_their_own_errors() {
    let rate = |khz| {
        with(&host(20.0), |report| {
            report.tsc.frequency_khz = Fact::Known(khz);
            report.tsc.uncertainty_ppm = Some(0.1);
        })
    };
    let rates = |after| of(&compared(&rate(2e6), &rate(after)), FigureName::TscRate);
    assert_eq!((rates(2e6 * 1.0004), rates(2e6 * 1.0006)), (Some(Effect::Same), Some(Effect::Changed)));

    let skew = |low_ns, high_ns| {
        let skew = Skew { clock: SYSTEM.into(), a: 0, b: 1, low_ns, high_ns, moving: false, passes: 9 };
        with(&host(20.0), |report| report.cpus.skew = vec![skew])
    };
    assert_eq!(effect(&skew(-80.0, 70.0), &skew(-300.0, 200.0)), Effect::Same);
    assert_eq!(effect(&skew(-80.0, 70.0), &skew(-900.0, -700.0)), Effect::Worse);
    assert_eq!(effect(&skew(700.0, 900.0), &skew(-80.0, 70.0)), Effect::Better);

    let drift = |rate_ppm| {
        let (clock, reference) = (SYSTEM.into(), "CLOCK_MONOTONIC_RAW".into());
        let drift =
            Drift { clock, reference, rate_ppm, uncertainty_ppm: 1.0, bend_ppm: 0.0, steps: vec![], over_seconds: 2.0 };
        with(&host(20.0), |report| report.drift = vec![drift])
    };
    assert_eq!(
        (effect(&drift(-20.0), &drift(70.0)), effect(&drift(0.0), &drift(400.0))),
        (Effect::Same, Effect::Changed)
    );
}

#[test]
fn other_facts_are_neither_better_nor_worse() {
    let source = |name: &str| with(&host(20.0), |report| report.clocksource.current = Fact::Known(name.into()));
    let comparison = compared(&source("tsc"), &source("kvm-clock"));
    assert_eq!(comparison.verdict.effect, Effect::Changed);
    assert_eq!(comparison.verdict.summary, "Different, but neither better nor worse: clock source.");
    let usable = |usable| {
        with(&host(20.0), |report| {
            report.tsc.usable = Some(usable);
            report.tsc.used_by_default = Some(true);
        })
    };
    assert_eq!(
        (effect(&usable(true), &usable(false)), effect(&usable(false), &usable(true))),
        (Effect::Worse, Effect::Better)
    );
}
