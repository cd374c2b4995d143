//! What counts as a change, and its effect.

use super::*;
use crate::host::check::CHECKS;
use crate::report::{Bin, DriftStep, Fact, Skew};

/// Returns a report of check with a system clock of this undisturbed read cost.
fn host(read_ns: f64) -> Report {
    let clock = ClockReport {
        name: SYSTEM.into(),
        read_ns: Some(read_ns * 1.02),
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
    report.findings = CHECKS.iter().map(|(id, _)| Finding::new(id, Severity::Ok, "fine")).collect();
    report
}

/// Returns an output of pg_test_timing 9.2 to 18, or 19, with this loop cost.
fn output(loop_ns: f64, is_classic: bool) -> Report {
    let histogram = vec![Bin { le_ns: 999, ge_ns: is_classic.then_some(0), count: 1_000_000 }];
    let clock = ClockReport { name: SYSTEM.into(), loop_ns: Some(loop_ns), reads: 1_000_000, ..Default::default() };
    let mut report = Report::empty(Origin::PgTestTiming, "not in the output");
    report.clocks = vec![ClockReport { histogram, ..clock }];
    report
}

/// Returns a host with a system clock and a counter of these undisturbed read costs.
fn two_clocks(system_ns: f64, counter_ns: f64, used_by_default: bool) -> Report {
    with(&host(system_ns), |report| {
        report.clocks.push(ClockReport { name: COUNTER.into(), ..host(counter_ns).clocks[0].clone() });
        report.tsc.used_by_default = Some(used_by_default);
    })
}

fn compared(before: &Report, after: &Report) -> Comparison {
    compare(("before.json", before), ("after.json", after))
}

fn effect(before: &Report, after: &Report) -> Effect {
    compared(before, after).verdict.effect
}

/// Returns the row of a figure or a finding.
fn of<'a>(comparison: &'a Comparison, what: &str) -> &'a Change {
    comparison.changes.iter().find(|change| change.what == what).unwrap_or_else(|| panic!("{what}: {comparison:?}"))
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
    assert!(summary.starts_with("Now much worse: system read 800 ns (before 20 ns). EXPLAIN"), "{summary}");
}

/// A damaged report can have such a cost.
#[test]
fn a_cost_of_zero_has_no_ratio() {
    let comparison = compared(&host(0.0), &host(20.0));
    let screen = crate::document::text::piped(&crate::document::compare::document(&comparison));
    assert!(screen.contains("\nsystem read     0 ns  20 ns       -"), "{screen}");
}

#[test]
fn the_median_is_used_if_a_report_has_no_undisturbed_cost() {
    let median = |ns| with(&host(ns), |report| report.clocks[0].undisturbed_ns = None);
    assert_eq!(effect(&median(20.0), &host(22.0)), Effect::Same);
    let disturbed = with(&host(100.0), |report| report.clocks[0].read_ns = Some(111.0));
    let same_median = with(&median(116.0), |report| report.clocks[0].read_spread_ns = None);
    assert_eq!(effect(&disturbed, &same_median), Effect::Same, "the median is compared with the median");
    assert_eq!(effect(&same_median, &disturbed), Effect::Same);
    assert_eq!(effect(&median(20.0), &median(30.0)), Effect::Worse);
    let wide = |ns| with(&median(ns), |report| report.clocks[0].read_spread_ns = Some(4.0));
    assert_eq!(effect(&wide(20.0), &wide(30.0)), Effect::NotCompared, "the spread shows a changing speed");
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
        used.summary.starts_with("Now much worse: rdtscp read 900 ns (before 15 ns; only PostgreSQL 19 reads it)."),
        "{}",
        used.summary
    );
}

#[test]
fn loops_are_compared_if_a_report_has_no_read_cost() {
    for (before, after, expected) in [
        (host(22.0), output(27.0, true), Effect::Same),
        (output(36.0, true), output(723.0, true), Effect::MuchWorse),
        (output(25.0, true), output(50.0, true), Effect::Same),
        (output(36.0, true), output(19.0, false), Effect::Same),
        (output(20.0, false), output(50.0, false), Effect::Worse),
        (output(36.0, true), host(700.0), Effect::MuchWorse),
        // The bounds overlap, but the costs differ by a factor of three.
        (output(20.0, false), output(65.0, true), Effect::NotCompared),
        (output(65.0, true), output(20.0, false), Effect::NotCompared),
    ] {
        let comparison = compared(&before, &after);
        assert_eq!(of(&comparison, "system loop").effect == Effect::NotCompared, expected == Effect::NotCompared);
        assert_eq!(comparison.verdict.effect, expected, "{:?}", comparison.verdict);
    }
}

#[test]
fn without_a_cost_the_verdict_is_not_compared_unless_something_is_worse() {
    let empty = with(&host(20.0), |report| report.clocks.clear());
    let comparison = compared(&empty, &host(20.0));
    assert_eq!(comparison.verdict.effect, Effect::NotCompared);
    assert_eq!(of(&comparison, "system read").note.as_deref(), Some("before: not in the report"));
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
    let unknown_before = compared(&unknown, &critical);
    assert_eq!(of(&unknown_before, "tsc-demoted").note.as_deref(), Some("before: the check could not decide"));
    let end = "Alarms that only one of the reports can show: tsc-demoted CRITICAL (before UNKNOWN).";
    assert_eq!(unknown_before.verdict.summary, end);
    let not_persistent = alarm(&ok, finding_id::CLOCKSOURCE_NOT_PERSISTENT, Severity::Warning);
    assert_eq!(effect(&ok, &not_persistent), Effect::Changed);
    let faster = alarm(&host(20.0), finding_id::CLOCKSOURCE_NOT_PERSISTENT, Severity::Warning);
    assert_eq!(effect(&host(700.0), &faster), Effect::MuchBetter);
}

#[test]
fn an_alarm_about_a_figure_within_noise_does_not_count() {
    let slow = |ns, severity| alarm(&host(ns), finding_id::CLOCK_SLOW, severity);
    let comparison = compared(&slow(99.0, Severity::Ok), &slow(101.0, Severity::Warning));
    assert_eq!((comparison.verdict.effect, of(&comparison, "clock-slow").effect), (Effect::Same, Effect::Same));
    assert_eq!(
        comparison.verdict.summary,
        "No figure changed by more than the noise. Read cost: system read 101 ns (before 99 ns); noise can explain a difference of 11 ns."
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
        verdict.summary.starts_with("Now worse: tsc-not-invariant WARNING (before OK). Now much better: system read"),
        "{}",
        verdict.summary
    );
}

#[test]
fn steps_and_timed_calls() {
    let step = |ns| with(&host(20.0), |report| report.clocks[0].granularity_ns = Some(ns));
    assert_eq!(effect(&step(1.0), &step(1.1)), Effect::Same);
    assert_eq!(effect(&step(1.0), &step(70.0)), Effect::Changed);
    assert_eq!(effect(&step(1.0), &step(4e6)), Effect::Worse);
    let bounded = with(&step(1.0), |report| {
        report.clocks[0].granularity_ns = None;
        report.clocks[0].granularity_between_ns = Some((0.0, 2000.0));
    });
    assert_eq!((effect(&bounded, &step(10.0)), effect(&bounded, &step(4e6))), (Effect::Same, Effect::Worse));
    let comparison = compared(&bounded, &step(4e6));
    let change = of(&comparison, "system step");
    assert_eq!((change.before.as_str(), change.before_ns, change.after_ns), ("<= 2 us", None, Some(4e6)));
    let call = |ns| with(&host(20.0), |report| report.clocks[0].timed_call_ns = Some(ns));
    for (before, after, expected) in
        [(38.0, 45.0, Effect::Same), (38.0, 47.0, Effect::Changed), (38.0, 60.0, Effect::Worse)]
    {
        assert_eq!(effect(&call(before), &call(after)), expected);
    }
    let summary = compared(&call(38.0), &call(60.0)).verdict.summary;
    assert_eq!(summary, "Now worse: system timed call 60 ns (before 38 ns).");
}

#[test]
fn the_bounds_of_a_skew_are_its_noise() {
    let skew = |low_ns, high_ns| {
        let skew = Skew { clock: SYSTEM.into(), a: 0, b: 1, low_ns, high_ns, moving: false, passes: 9 };
        with(&host(20.0), |report| report.cpus.skew = vec![skew])
    };
    assert_eq!(effect(&skew(-80.0, 70.0), &skew(-300.0, 200.0)), Effect::Same);
    assert_eq!(effect(&skew(-80.0, 70.0), &skew(-900.0, -700.0)), Effect::Worse);
    assert_eq!(effect(&skew(700.0, 900.0), &skew(-80.0, 70.0)), Effect::Better);
    let comparison = compared(&skew(700.0, 900.0), &skew(-80.0, 70.0));
    let change = of(&comparison, "system skew");
    assert_eq!((change.before.as_str(), change.before_ns, change.after_ns), ("700 ns to 900 ns", None, None));
}

#[test]
fn other_facts_are_neither_better_nor_worse() {
    let source = |name: &str| with(&host(20.0), |report| report.clocksource.current = Fact::Known(name.into()));
    let comparison = compared(&source("tsc"), &source("kvm-clock"));
    assert_eq!(comparison.verdict.effect, Effect::Changed);
    assert_eq!(
        comparison.verdict.summary,
        "Different, but neither better nor worse: clock source kvm-clock (before tsc)."
    );
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

#[test]
fn backward_steps_count_unless_chance_explains_them() {
    let back = |steps: u64, reads: u64| {
        let severity = if steps > 0 { Severity::Critical } else { Severity::Ok };
        with(&alarm(&host(20.0), finding_id::CLOCK_BACKWARD, severity), |report| {
            report.clocks[0].backward_steps = steps;
            report.clocks[0].reads = reads;
        })
    };
    for (before, after, expected) in [
        ((0, 30_000_000), (1, 1000), Effect::MuchWorse),
        ((0, 1_000_000), (9, 1_000_000), Effect::MuchWorse),
        ((0, 1_000_000), (3, 1_000_000), Effect::NotCompared),
        ((0, 1000), (3, 30_000_000), Effect::NotCompared),
        ((0, 1000), (0, 30_000_000), Effect::Same),
        ((3, 1_000_000), (9, 3_000_000), Effect::Same),
        // The times are wrong in both.
        ((3, 1_000_000), (90, 1_000_000), Effect::Same),
        // pg_test_timing stops at the first step, and does not print how often it read.
        ((0, 1_000_000), (1, 0), Effect::MuchWorse),
    ] {
        let [before, after] = [before, after].map(|(steps, reads)| back(steps, reads));
        assert_eq!(effect(&before, &after), expected, "{:?}", compared(&before, &after));
        assert_eq!(effect(&after, &before), expected.mirrored(), "{:?}", compared(&after, &before));
    }
    let comparison = compared(&back(0, 1000), &back(3, 30_000_000));
    let why = of(&comparison, "clock-backward").note.as_deref();
    assert_eq!(why, Some("too few reads to see steps as rare as in the other report"));
    let comparison = compared(&back(0, 30_000_000), &back(1, 1000));
    let screen = crate::document::text::piped(&crate::document::compare::document(&comparison));
    assert!(screen.contains("\nclock-backward: OK -> CRITICAL; an alarm\n"), "{screen}");
}

/// An alarm and the row of its figure follow one rule: both changed beyond noise, or neither did. An offset that changes within
/// milliseconds is a fault, whatever its size.
#[test]
fn an_alarm_has_the_effect_of_its_figure() {
    let skewed = |low_ns: f64, high_ns: f64, moving: bool, severity: Severity| {
        let skew = Skew { clock: SYSTEM.into(), a: 0, b: 1, low_ns, high_ns, moving, passes: 9 };
        with(&alarm(&host(20.0), finding_id::CPU_SKEW, severity), |report| report.cpus.skew = vec![skew])
    };
    let drifting = |rate_ppm, steps: &[DriftStep], severity| {
        let (clock, reference, steps) = (SYSTEM.into(), "CLOCK_MONOTONIC_RAW".into(), steps.to_vec());
        let drift = Drift { clock, reference, rate_ppm, uncertainty_ppm: 1.0, bend_ppm: 0.0, steps, over_seconds: 2.0 };
        with(&alarm(&host(20.0), finding_id::DRIFT, severity), |report| report.drift = vec![drift])
    };
    let slow = |tsc_ns, severity| alarm(&two_clocks(20.0, tsc_ns, true), finding_id::TSC_SLOW, severity);
    let jump = DriftStep { at_seconds: 1.0, by_ns: 1e6, error_ns: 1.0 };
    use Severity::{Critical, Ok, Warning};
    for (before, after, expected) in [
        (skewed(-80.0, 70.0, false, Ok), skewed(50.0, 150.0, false, Warning), Effect::Same),
        (skewed(-80.0, 70.0, false, Ok), skewed(100.0, 150.0, false, Warning), Effect::Worse),
        (skewed(900.0, 1100.0, false, Warning), skewed(1000.0, 1200.0, false, Critical), Effect::Same),
        (skewed(500.0, 700.0, false, Warning), skewed(1000.0, 1200.0, false, Critical), Effect::MuchWorse),
        (skewed(-80.0, 70.0, false, Ok), skewed(-500.0, 600.0, true, Critical), Effect::MuchWorse),
        (drifting(395.0, &[], Ok), drifting(405.0, &[], Warning), Effect::Same),
        (drifting(100.0, &[], Ok), drifting(405.0, &[], Warning), Effect::Worse),
        (drifting(395.0, &[], Ok), drifting(395.0, &[jump], Critical), Effect::MuchWorse),
        (slow(39.9, Ok), slow(40.1, Warning), Effect::Same),
        (slow(30.0, Ok), slow(50.0, Warning), Effect::Worse),
    ] {
        assert_eq!(effect(&before, &after), expected, "{:?}", compared(&before, &after));
        assert_eq!(effect(&after, &before), expected.mirrored(), "{:?}", compared(&after, &before));
    }
}

const ONLY_19: &str = "; only PostgreSQL 19 reads it).";

#[test]
fn the_read_cost_decides_whether_another_default_of_postgresql_19_is_worse() {
    for (system, counter, expected) in [
        (20.0, 9.0, Effect::Worse),
        (800.0, 9.0, Effect::MuchWorse),
        // At most 5 ns, and within noise.
        (13.0, 9.0, Effect::Changed),
        (20.0, 20.0, Effect::Changed),
        // Something intercepts the counter.
        (20.0, 900.0, Effect::MuchBetter),
    ] {
        let [tsc, no_tsc] = [true, false].map(|used| two_clocks(system, counter, used));
        assert_eq!(effect(&tsc, &no_tsc), expected, "{system} {counter}");
        assert_eq!(effect(&no_tsc, &tsc), expected.mirrored(), "{system} {counter}");
    }
    let unmeasured = with(&two_clocks(20.0, 9.0, true), |report| _ = report.clocks.pop());
    assert_eq!(effect(&unmeasured, &two_clocks(20.0, 9.0, false)), Effect::Changed);
    let [tsc, no_tsc] = [true, false].map(|used| two_clocks(20.0, 9.0, used));
    assert_eq!(compared(&tsc, &no_tsc).verdict.summary, format!("Now worse: PG19 read 20 ns (before 9 ns{ONLY_19}"));
}

#[test]
fn the_verdict_says_that_older_servers_do_not_read_the_counter() {
    let fast = two_clocks(20.0, 9.0, true);
    let slow_counter = compared(&fast, &two_clocks(20.0, 30.0, true)).verdict;
    assert_eq!(slow_counter.effect, Effect::Worse);
    assert!(slow_counter.summary.contains(ONLY_19), "{}", slow_counter.summary);
}

/// Load makes reads longer, by a factor of at most 2.2. Within this factor, nothing is claimed, and `clock-slow` is no news.
#[test]
fn reports_of_a_busy_host_are_not_compared() {
    let interrupted = |report: &Report| alarm(report, finding_id::CLOCK_GAPS, Severity::Warning);
    let changing = |ns| with(&host(ns), |report| report.clocks[0].read_ns = Some(ns * 1.5));
    let slow = |ns| alarm(&interrupted(&host(ns)), finding_id::CLOCK_SLOW, Severity::Warning);
    for (before, after, expected) in [
        (host(20.0), interrupted(&host(20.0)), Effect::NotCompared),
        (host(20.0), interrupted(&host(39.0)), Effect::NotCompared),
        (host(20.0), changing(39.0), Effect::NotCompared),
        (interrupted(&host(39.0)), interrupted(&host(20.0)), Effect::NotCompared),
        (host(60.0), slow(115.0), Effect::NotCompared),
        (host(20.0), interrupted(&host(700.0)), Effect::MuchWorse),
        (interrupted(&host(20.0)), host(40.0), Effect::Worse),
        (changing(20.0), host(40.0), Effect::Worse),
    ] {
        assert_eq!(effect(&before, &after), expected, "{:?}", compared(&before, &after));
        assert_eq!(effect(&after, &before), expected.mirrored());
    }
    let summary = compared(&host(20.0), &interrupted(&host(39.0))).verdict.summary;
    assert_eq!(summary, "The read cost of PostgreSQL's clock could not be compared (after: busy host: an alarm).");
}

/// A neighbor on the core makes all reads longer, and no interruption shows it.
#[test]
fn another_speed_of_the_cpu_is_not_a_change_of_the_clock() {
    let at = |factor: f64, system_ns: f64| {
        let clocks = [(SYSTEM, system_ns), (COUNTER, 12.0), ("rdtscp", 23.0), ("monotonic_coarse", 4.2)];
        with(&host(20.0), |report| {
            let clock =
                |(name, ns): (&str, f64)| ClockReport { name: name.into(), ..host(ns * factor).clocks[0].clone() };
            report.clocks = clocks.map(clock).into();
        })
    };
    assert_eq!(effect(&at(1.0, 28.0), &at(1.9, 28.0)), Effect::NotCompared);
    assert_eq!(effect(&at(1.9, 28.0), &at(1.0, 28.0)), Effect::NotCompared);
    assert_eq!(effect(&at(1.0, 28.0), &at(1.0, 55.0)), Effect::Worse, "only one clock changed");
    assert_eq!(effect(&at(1.0, 28.0), &at(1.9, 300.0)), Effect::MuchWorse);
}

#[test]
fn the_opposite_of_the_opposite_is_the_same_effect() {
    use Effect::{Better, Changed, MuchBetter, MuchWorse, NotCompared, Same, Worse};
    for effect in [MuchBetter, Better, Same, Changed, NotCompared, Worse, MuchWorse] {
        assert_eq!(effect.mirrored().mirrored(), effect);
    }
    assert_eq!((Worse.mirrored(), MuchWorse.word(), MuchWorse.exit_status()), (Better, "much worse", 2));
}
