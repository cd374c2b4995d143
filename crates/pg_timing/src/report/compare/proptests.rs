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
        let host: Report = serde_json::from_str(&text[text.find("\n{").unwrap()..]).unwrap();
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
    for change in &mut mirrored.changes {
        std::mem::swap(&mut change.before, &mut change.after);
        std::mem::swap(&mut change.before_ns, &mut change.after_ns);
        change.effect = change.effect.mirrored();
        change.note = change.note.take().map(|note| match note.split_once(": ") {
            Some(("before", why)) => format!("after: {why}"),
            Some(("after", why)) => format!("before: {why}"),
            _ => note,
        });
    }
    mirrored.verdict.summary.clear();
    mirrored
}

/// Asserts that both directions have the same figures. Their verdicts are opposite, unless something is better and
/// something else is worse, or the costs could not be compared.
fn assert_mirror(name: &str, forth: &Comparison, back: &Comparison) {
    let (mut expected, mut actual) = (mirrored(forth), back.clone());
    actual.verdict.summary.clear();
    let effects: Vec<Effect> = forth.changes.iter().map(|change| change.effect).collect();
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
        let is_same = |change: &Change| matches!(change.effect, Effect::Same | Effect::NotCompared);
        assert!(comparison.changes.iter().all(is_same), "{name}: {comparison:?}");
        let has_cost = report.system().is_some_and(|clock| clock.read_ns.or(clock.loop_ns).is_some());
        let is_quiet = why_busy(&report).is_none();
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

/// Any number that the reader of reports accepts, and often none. A damaged report can have negative ones.
fn number() -> impl Strategy<Value = Option<f64>> {
    let extremes = prop_oneof![Just(0.0), Just(1e20), Just(5e-324), Just(3.2e18)];
    prop_oneof![Just(None), (-50.0..1e4).prop_map(Some), extremes.prop_map(Some), (0.0..1e20).prop_map(Some)]
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
        let is_finite = |change: &Change| change.noise_ns.is_none_or(f64::is_finite);
        prop_assert!(forth.changes.iter().all(is_finite), "{forth:?}");
        _ = crate::document::text::piped(&crate::document::compare::document(&forth));
    }

    #[test]
    fn a_report_with_arbitrary_numbers_is_the_same_as_itself(report in arbitrary_report()) {
        let comparison = compare(("a", &report), ("a", &report));
        let is_same = |change: &Change| matches!(change.effect, Effect::Same | Effect::NotCompared);
        prop_assert!(comparison.changes.iter().all(is_same), "{comparison:?}");
    }
}
