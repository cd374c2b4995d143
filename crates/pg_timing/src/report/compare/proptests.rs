//! Properties of all comparisons: of captured hosts, of outputs of pg_test_timing, and of arbitrary numbers.

use super::*;
use crate::host::check::judge;
use crate::host::pg_test_timing::{parse, report::report};
use crate::report::{ClockReport, Fact, Gaps, Origin, SYSTEM, Skew};
use proptest::prelude::*;
use std::path::PathBuf;

/// Returns the reports of the captured hosts and of the outputs of pg_test_timing.
fn reports() -> Vec<(String, Report)> {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = |folder: &str, end: &str| -> Vec<(String, String)> {
        let entries = std::fs::read_dir(tests.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path));
        let files = named.filter(|(name, _)| name.ends_with(end) && !name.contains("__log__"));
        files.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap())).collect()
    };
    let hosts = files("e2e/snapshots", ".json.snap").into_iter().map(|(name, text)| {
        let host = Report::from_json(&text.as_bytes()[text.find("\n{").unwrap()..]).unwrap();
        (name, host)
    });
    let outputs = files("fixtures/pg_test_timing", ".txt").into_iter().flat_map(|(name, text)| {
        parse(&text).unwrap().iter().map(|output| (name.clone(), report(output))).collect::<Vec<_>>()
    });
    let mut reports: Vec<(String, Report)> = hosts.chain(outputs).collect();
    reports.iter_mut().for_each(|(_, report)| judge(report));
    assert!(reports.len() > 45, "{}", reports.len());
    reports
}

/// Returns the comparison in the other direction.
fn mirrored(comparison: &Comparison) -> Comparison {
    let mut mirrored = comparison.clone();
    std::mem::swap(&mut mirrored.before, &mut mirrored.after);
    for figure in &mut mirrored.figures {
        std::mem::swap(&mut figure.before, &mut figure.after);
        figure.effect = figure.effect.mirrored();
    }
    for finding in &mut mirrored.findings {
        std::mem::swap(&mut finding.before, &mut finding.after);
        finding.effect = finding.effect.mirrored();
    }
    for group in &mut mirrored.not_compared {
        let (report, why) = group.why.split_once(": ").unwrap_or(("", &group.why));
        group.why = match report {
            "before" => format!("after: {why}"),
            "after" => format!("before: {why}"),
            _ => continue,
        };
    }
    sorted(mirrored)
}

/// Returns the comparison without the order, and without what has a direction.
fn sorted(mut comparison: Comparison) -> Comparison {
    comparison.figures.sort_by_key(|figure| (figure.figure, figure.clock.clone()));
    comparison.not_compared.iter_mut().for_each(|group| group.what.sort());
    comparison.not_compared.sort_by_key(|group| (group.why.clone(), group.what.clone()));
    comparison.verdict.summary.clear();
    comparison
}

/// Asserts that both directions have the same figures. Their verdicts are opposite, unless something is better and
/// something else is worse, or the costs could not be compared.
fn assert_mirror(name: &str, forth: &Comparison, back: &Comparison) {
    let (mut expected, mut actual) = (mirrored(forth), sorted(back.clone()));
    let effects: Vec<Effect> =
        forth.figures.iter().map(|f| f.effect).chain(forth.findings.iter().map(|f| f.effect)).collect();
    let is_mixed = effects.iter().any(|e| *e >= Effect::Worse) && effects.iter().any(|e| *e <= Effect::Better);
    let is_not_compared = [forth, back].iter().any(|comparison| comparison.verdict.effect == Effect::NotCompared);
    if !is_mixed && !is_not_compared {
        assert_eq!(forth.verdict.effect.mirrored(), back.verdict.effect, "{name}");
    }
    expected.verdict.effect = Effect::Same;
    actual.verdict.effect = Effect::Same;
    assert_eq!(expected, actual, "{name}");
}

#[test]
fn a_report_is_the_same_as_itself() {
    for (name, report) in reports() {
        let comparison = compare((&name, &report), (&name, &report));
        assert!(comparison.figures.iter().all(|figure| figure.effect == Effect::Same), "{name}: {comparison:?}");
        assert!(comparison.findings.is_empty(), "{name}");
        let has_cost = report.system().is_some_and(|clock| clock.read_ns.or(clock.loop_ns).is_some());
        let is_quiet = why_busy(&report).known().is_some();
        let expected = if has_cost && is_quiet { Effect::Same } else { Effect::NotCompared };
        assert_eq!(comparison.verdict.effect, expected, "{name}");
    }
}

#[test]
fn the_order_of_two_reports_only_reverses_the_effects() {
    let reports = reports();
    for (a, before) in &reports {
        for (b, after) in &reports {
            let forth = compare((a, before), (b, after));
            assert_mirror(&format!("{a} {b}"), &forth, &compare((b, after), (a, before)));
            let screen = crate::document::text::piped(&crate::document::compare::document(&forth));
            let wide = screen.lines().find(|line| anstream::adapter::strip_str(line).to_string().chars().count() > 80);
            assert_eq!(wide, None, "{a} {b}");
        }
    }
}

/// Any number that JSON can have, and often none.
fn number() -> impl Strategy<Value = Option<f64>> {
    let extremes = prop_oneof![Just(0.0), Just(-0.0), Just(1e308), Just(-1e308), Just(5e-324), Just(3.2e18)];
    prop_oneof![Just(None), (0.0..1e4).prop_map(Some), extremes.prop_map(Some), (-1e308..1e308).prop_map(Some)]
}

fn arbitrary_report() -> impl Strategy<Value = Report> {
    let numbers = prop::collection::vec(number(), 12);
    (numbers, any::<[u64; 2]>(), any::<[bool; 4]>()).prop_map(|(n, [reads, backward_steps], flags)| {
        let or_zero = |n: Option<f64>| n.unwrap_or_default();
        let gaps = |share| Gaps { threshold_ns: share, count: reads, total_ns: share, largest_ns: share, share };
        let clock = ClockReport {
            name: if flags[0] { SYSTEM } else { "rdtscp" }.into(),
            read_ns: n[0],
            read_spread_ns: n[1],
            undisturbed_ns: n[2],
            loop_ns: n[3],
            granularity_ns: n[4],
            granularity_between_ns: n[5].zip(n[6]),
            gaps: n[7].map(gaps),
            reads,
            backward_steps,
            ..ClockReport::default()
        };
        let origin = if flags[1] { Origin::Measured } else { Origin::PgTestTiming };
        let mut report = Report::empty(origin, "not in this test");
        report.clocks = vec![clock];
        report.tsc.frequency_khz = n[8].map_or(Fact::unavailable("missing"), Fact::Known);
        report.tsc.uncertainty_ppm = n[9];
        report.tsc.usable = Some(flags[2]);
        report.tsc.used_by_default = Some(flags[3]);
        let (low_ns, high_ns) = (or_zero(n[10]), or_zero(n[11]));
        report.cpus.skew =
            vec![Skew { clock: SYSTEM.into(), a: 0, b: 1, low_ns, high_ns, moving: false, passes: reads }];
        report
    })
}

proptest! {
    #[test]
    fn arbitrary_numbers_are_compared_or_refused(before in arbitrary_report(), after in arbitrary_report()) {
        let forth = compare(("a", &before), ("b", &after));
        assert_mirror("arbitrary", &forth, &compare(("b", &after), ("a", &before)));
        // JSON has no infinities.
        let is_finite = |figure: &ComparedFigure| figure.noise.is_none_or(f64::is_finite);
        prop_assert!(forth.figures.iter().all(is_finite), "{forth:?}");
        _ = crate::document::text::piped(&crate::document::compare::document(&forth));
    }

    #[test]
    fn a_report_with_arbitrary_numbers_is_the_same_as_itself(report in arbitrary_report()) {
        let comparison = compare(("a", &report), ("a", &report));
        prop_assert!(comparison.figures.iter().all(|figure| figure.effect == Effect::Same), "{comparison:?}");
    }
}
