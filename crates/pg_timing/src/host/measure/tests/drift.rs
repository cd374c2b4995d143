//! Synthetic clocks and series of samples with a known drift.

use super::super::*;
use proptest::prelude::*;
use timing_clock::sim::{Character, SimClock, World};

/// Returns the drift of a clock of this rate, with a pause in ns after each sample.
fn trend_of(hz: f64, pauses: &[f64]) -> Drift {
    let world = World::new(9);
    let clock = SimClock::new(&world, Character { hz, ..Character::default() });
    let reference = SimClock::new(&world, Character::default());
    let mut meter = DriftMeter::new(&clock, 1.0, &reference, Nanos(1.0));
    for ns in pauses {
        meter.sample();
        world.pass_ns(*ns);
    }
    trend(("x", "y"), MAX_SLEW, &meter.samples(1.0)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_rate_is_within_its_error(ppm in -500.0..500.0f64) {
        let got = trend_of(1e9 * (1.0 + ppm / 1e6), &[1e8; 20]);
        prop_assert!((got.rate_ppm - ppm).abs() <= got.uncertainty_ppm + 1e-6, "{got:?}");
        prop_assert!(got.steps.is_empty() && got.bend_ppm == 0.0, "{got:?}");
    }

    #[test]
    fn a_step_is_not_part_of_the_rate(by in prop_oneof![-1e10..-1e6f64, 1e6..1e10f64], ppm in -400.0..400.0f64) {
        let by: f64 = by;
        let mut samples: Vec<Sample> = (0..20)
            .map(|n| Sample { at: n as f64 * 1e8, offset: n as f64 * 1e8 * ppm / 1e6, error: 30.0 })
            .collect();
        samples[12..].iter_mut().for_each(|sample| sample.offset += by);
        let got = trend(("x", "y"), MAX_SLEW, &samples).unwrap();
        prop_assert_eq!(got.steps.len(), 1);
        prop_assert!((got.steps[0].by_ns - by).abs() <= got.steps[0].error_ns + 1e-3, "{:?}", got);
        prop_assert!((got.rate_ppm - ppm).abs() <= got.uncertainty_ppm + 1e-6, "{:?}", got);
        prop_assert!(got.uncertainty_ppm < 0.1 && got.bend_ppm < 1e-6, "{:?}", got);
    }
}

#[test]
fn the_error_of_a_sample_contains_the_steps_of_both_clocks() {
    let world = World::new(9);
    let clock = SimClock::new(&world, Character { hz: 2e9, ..Character::default() });
    let reference = SimClock::new(&world, Character::default());
    let mut meter = DriftMeter::new(&clock, 70.0, &reference, Nanos(5.0));
    meter.sample();
    let half_width = meter.brackets[0].half_width();
    assert_eq!(meter.samples(0.5)[0].error, (half_width + 70.0) / 2.0 + 5.0);
}

#[test]
fn a_change_of_rate_is_measured() {
    let samples: Vec<Sample> = (0..21)
        .map(|n| {
            let t = n as f64 * 1e8;
            Sample { at: t, offset: if n <= 10 { 0.0 } else { (t - 1e9) * 50e-6 }, error: 30.0 }
        })
        .collect();
    let got = trend(("x", "y"), MAX_SLEW, &samples).unwrap();
    // The errors of both halves: 60 ns in 1 s each.
    assert!((got.bend_ppm - (50.0 - 0.12)).abs() < 1e-6 && got.steps.is_empty(), "{got:?}");
}

/// Returns the rate and the samples of a meter whose reference stands still for `pause_ns` after sample `after`.
fn paused(hz: f64, step: u64, samples: usize, after: usize, pause_ns: f64) -> (Option<Rate>, Vec<Sample>) {
    let world = World::new(4);
    let clock = SimClock::new(&world, Character { hz, ..Character::default() });
    let reference = SimClock::new(&world, Character { step, ..Character::default() });
    let mut meter = DriftMeter::new(clock, 1.0, reference, Nanos(step as f64));
    let mut asleep = 0;
    for nth in 0..samples {
        meter.sample();
        if let Some(bracket) = meter.brackets.last_mut() {
            bracket.inside -= asleep;
        }
        world.pass_ns(if nth == after { pause_ns } else { 1e8 });
        asleep += if nth == after { pause_ns as u64 } else { 0 };
    }
    let rate = meter.rate();
    let ns_per_tick = rate.map_or(1e9 / hz, |rate| rate.rate.nanos(1.0).0);
    (rate, meter.samples(ns_per_tick))
}

#[test]
fn the_rate_is_measured_in_the_longest_period_without_a_pause() {
    let hz = 2.3e9;
    let (rate, samples) = paused(hz, 1, 50, 20, 60e9);
    let rate = rate.unwrap();
    assert!(rate.rate.ppm_from(Hertz(hz)).0.abs() <= rate.uncertainty.0, "{rate:?}");
    // Samples 21 to 49, and not the whole measurement.
    assert!((rate.duration.secs() - 2.8).abs() < 0.01 && rate.uncertainty.0 < 1.0, "{rate:?}");
    let got = trend(("x", "y"), MAX_SLEW, &samples).unwrap();
    assert_eq!(got.steps.len(), 1, "{got:?}");
    assert!((got.steps[0].by_ns - 60e9).abs() < 1e7, "{got:?}");
}

/// Returns a meter whose clock ticks once per ns. The reference counts this many ns between the samples.
fn meter_of(intervals: &[u64]) -> DriftMeter<'static> {
    let ends = intervals.iter().scan((0, 0), |(ticks, ns), interval| {
        (*ticks, *ns) = (*ticks + 1_000_000_000, *ns + interval);
        Some((*ticks, *ns))
    });
    let brackets =
        std::iter::once((0, 0)).chain(ends).map(|(before, inside)| Bracket { before, inside, width: 20 }).collect();
    DriftMeter { read: Box::new(|| None), clock_step: 1.0, reference_step: Nanos(1.0), brackets }
}

#[test]
fn the_median_tick_ignores_outliers_and_a_reference_that_stood_still() {
    assert_eq!(
        meter_of(&[1_000_000_003, 1_000_000_001, 1, 900_000_000_000, 1_000_000_002]).median_tick(),
        Some(1.000000002)
    );
    assert_eq!(meter_of(&[0, 1_000_000_000, 0, 0, 1_000_000_000, 0]).median_tick(), Some(1.0));
    assert_eq!(meter_of(&[0, 0]).median_tick(), None);
}

/// Within the limit of a crystal's wander, the longest period can have another rate than the median.
#[test]
fn the_constant_rate_is_the_rate_of_the_longest_period() {
    let slower = 1_000_004_000;
    let rate = meter_of(&[1_000_000_000, 0, slower, 1_000_000_000, slower, 1_000_000_000, 1_000_000_000]).rate();
    let rate = rate.unwrap();
    assert!(rate.rate.ppm_from(Hertz(1e9 / 1.000_001_6)).0.abs() < rate.uncertainty.0 / 10.0, "{rate:?}");
    assert!(rate.uncertainty.0 < 0.01 && (rate.duration.secs() - 5.0).abs() < 0.01, "{rate:?}");
}

/// qemu's TSC sometimes moved by 3 to 7 us in a busy virtual machine: the rate of the whole was 9 to 14 ppm off.
#[test]
fn a_small_move_of_the_clock_is_not_part_of_the_rate() {
    let moved = 1_000_000_000 - 7_000;
    let rate = meter_of(&[1_000_000_000, 1_000_000_000, moved, 1_000_000_000, moved, 1_000_000_000]).rate();
    let rate = rate.unwrap();
    assert!(rate.rate.ppm_from(Hertz(1e9)).0.abs() <= rate.uncertainty.0, "{rate:?}");
    assert!((rate.duration.secs() - 2.0).abs() < 0.01, "{rate:?}");
    let wandered = meter_of(&[1_000_000_000, 1_000_004_000, 1_000_000_000]).rate().unwrap();
    assert!((wandered.duration.secs() - 3.0).abs() < 0.01, "within the wander: {wandered:?}");
}

/// Some kernels count time in timer ticks. Then a tick is the error of a sample, and no step.
#[test]
fn a_coarse_reference_causes_no_steps() {
    for step in [1, 279, 4_000_000, 10_000_000] {
        let (rate, samples) = paused(2.3e9, step, 40, usize::MAX, 0.0);
        assert!(rate.unwrap().duration.secs() > 3.8, "there is no break: step {step}");
        let got = trend(("x", "y"), MAX_SLEW, &samples).unwrap();
        assert!(got.steps.is_empty() && got.bend_ppm == 0.0, "step {step}: {got:?}");
        assert!(got.rate_ppm.abs() <= got.uncertainty_ppm, "step {step}: {got:?}");
    }
}

#[test]
fn with_steps_only_the_rate_is_not_known() {
    let samples: Vec<Sample> =
        (0..4).map(|n| Sample { at: n as f64 * 1e8, offset: f64::from(n % 2) * 1e9, error: 30.0 }).collect();
    let got = trend(("x", "y"), MAX_SLEW, &samples).unwrap();
    assert_eq!((got.rate_ppm, got.uncertainty_ppm, got.steps.len()), (0.0, 1000.0, 3));
}

/// A step has an error, too: the errors of both samples, and that of the slew in its interval.
#[test]
fn a_step_and_its_error_exclude_the_slew() {
    let offsets = [0.0, 10_000.0, 20_000.0, 20_000.0 + 10_000.0 + 1e6, 40_000.0 + 1e6];
    let samples: Vec<Sample> =
        offsets.iter().zip(5..).map(|(&offset, n)| Sample { at: f64::from(n) * 1e8, offset, error: 25.0 }).collect();
    let got = trend(("x", "y"), MAX_SLEW, &samples).unwrap();
    // Two periods of 0.2 s and 0.1 s, each with an error of 50 ns.
    assert_eq!((got.rate_ppm, got.uncertainty_ppm), (100.0, 0.3333), "{got:?}");
    assert_eq!((got.steps.len(), got.steps[0].at_seconds, got.over_seconds), (1, 0.8, 0.4));
    assert_eq!((got.steps[0].by_ns, got.steps[0].error_ns), (1e6, 84.0), "{got:?}");
}

/// A sample between two steps belongs to no period.
#[test]
fn a_single_sample_does_not_add_to_the_error() {
    let offsets = [0.0, 0.0, 1e9, 0.0, 0.0];
    let samples: Vec<Sample> =
        offsets.iter().zip(0..).map(|(&offset, n)| Sample { at: f64::from(n) * 1e8, offset, error: 25.0 }).collect();
    let got = trend(("x", "y"), MAX_SLEW, &samples).unwrap();
    assert_eq!(got.steps.len(), 2);
    assert!((got.uncertainty_ppm - 100.0 / 2e8 * 1e6).abs() < 1e-9, "{got:?}");
}

#[test]
fn a_change_beyond_the_maximum_slew_and_both_errors_is_a_break() {
    let pair = |offset: f64| {
        [Sample { at: 7e6, offset: 5.0, error: 10.0 }, Sample { at: 8e6, offset: 5.0 + offset, error: 20.0 }]
    };
    for (offset, expected) in [(1030.0, false), (1031.0, true), (-1030.0, false), (-1031.0, true)] {
        assert_eq!(moves_beyond(MAX_SLEW, &pair(offset)), expected, "{offset}");
    }
    let all = pair(1031.0);
    assert_eq!(longest_period(&all), Some((all[0], all[1])), "no period has two samples");
}

#[test]
fn too_few_samples_have_no_trend() {
    let pair = [Sample { at: 0.0, offset: 0.0, error: 1.0 }, Sample { at: 1e8, offset: 0.0, error: 1.0 }];
    assert_eq!(trend(("x", "y"), MAX_SLEW, &pair), None, "two samples");
    assert!(trend(("x", "y"), MAX_SLEW, &[pair[0], pair[1], Sample { at: 2e8, ..pair[1] }]).is_some());
    assert_eq!(trend(("x", "y"), MAX_SLEW, &[]), None);
    let sample = Sample { at: 0.0, offset: 0.0, error: 1.0 };
    assert_eq!(trend(("x", "y"), MAX_SLEW, &[sample, sample, sample]), None, "no time passed");
}
