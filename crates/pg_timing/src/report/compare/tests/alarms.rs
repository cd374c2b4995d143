//! An alarm and the row of its figure follow one rule: both changed beyond noise, or neither did.

use super::*;

/// Returns a host whose CPUs differ by these bounds, with the finding that the check would have.
fn skewed(low_ns: f64, high_ns: f64, moving: bool, severity: Severity) -> Report {
    let skew = Skew { clock: SYSTEM.into(), a: 0, b: 1, low_ns, high_ns, moving, passes: 9 };
    with(&alarm(&host(20.0), finding_id::CPU_SKEW, severity), |report| report.cpus.skew = vec![skew])
}

#[test]
fn an_alarm_about_skew_has_the_effect_of_its_figure() {
    let fine = skewed(-80.0, 70.0, false, Severity::Ok);
    let warning = |low, high| skewed(low, high, false, Severity::Warning);
    for (before, after, expected) in [
        (fine.clone(), warning(50.0, 150.0), Effect::Same),
        (fine.clone(), warning(100.0, 150.0), Effect::Worse),
        (warning(900.0, 1100.0), skewed(1000.0, 1200.0, false, Severity::Critical), Effect::Same),
        (warning(500.0, 700.0), skewed(1000.0, 1200.0, false, Severity::Critical), Effect::MuchWorse),
        // An offset that changes within milliseconds is a fault, whatever its size.
        (fine.clone(), skewed(-500.0, 600.0, true, Severity::Critical), Effect::MuchWorse),
    ] {
        for (before, after, expected) in [(&before, &after, expected), (&after, &before, expected.mirrored())] {
            let comparison = compared(before, after);
            let row = of(&comparison, FigureName::Skew).unwrap();
            let finding = comparison.findings[0].effect;
            assert_eq!((finding, comparison.verdict.effect), (expected, expected), "{:?}", comparison.figures);
            assert_eq!(row == Effect::Same, finding == Effect::Same, "{:?}", comparison.figures);
        }
    }
}

#[test]
fn an_alarm_about_two_costs_counts_if_one_of_them_changed() {
    let slow = |tsc_ns, severity| {
        with(&alarm(&host(20.0), finding_id::TSC_SLOW, severity), |report| {
            report.tsc.used_by_default = Some(true);
            report.clocks.push(ClockReport { name: COUNTER.into(), ..host(tsc_ns).clocks[0].clone() });
        })
    };
    let within_noise = compared(&slow(39.9, Severity::Ok), &slow(40.1, Severity::Warning));
    assert_eq!((within_noise.findings[0].effect, within_noise.verdict.effect), (Effect::Same, Effect::Same));
    assert_eq!(effect(&slow(30.0, Severity::Ok), &slow(50.0, Severity::Warning)), Effect::Worse);
}

#[test]
fn an_alarm_about_drift_counts_beyond_noise_or_with_a_jump() {
    let drifting = |rate_ppm, steps: &[DriftStep], severity| {
        let (clock, reference, steps) = (SYSTEM.into(), "CLOCK_MONOTONIC_RAW".into(), steps.to_vec());
        let drift = Drift { clock, reference, rate_ppm, uncertainty_ppm: 1.0, bend_ppm: 0.0, steps, over_seconds: 2.0 };
        with(&alarm(&host(20.0), finding_id::DRIFT, severity), |report| report.drift = vec![drift])
    };
    let near = drifting(395.0, &[], Severity::Ok);
    assert_eq!(effect(&near, &drifting(405.0, &[], Severity::Warning)), Effect::Same);
    assert_eq!(effect(&drifting(100.0, &[], Severity::Ok), &drifting(405.0, &[], Severity::Warning)), Effect::Worse);
    let jump = DriftStep { at_seconds: 1.0, by_ns: 1e6, error_ns: 1.0 };
    assert_eq!(effect(&near, &drifting(395.0, &[jump], Severity::Critical)), Effect::MuchWorse);
}
