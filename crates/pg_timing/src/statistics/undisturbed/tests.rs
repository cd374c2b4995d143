//! Exact figures, and the coverage on simulated hosts.

use super::*;
use crate::statistics::two_speed_host::{Random, TwoSpeedHost};

/// Returns the errors and the half widths of the undisturbed time on many simulated hosts.
fn on_hosts(ms: f64, budget_ms: f64, slow_share: f64, phase_ms: (f64, f64)) -> Vec<(f64, f64)> {
    let case = |seed| {
        let mut random = Random(seed * 7919 + 13);
        let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
        let phase = between(phase_ms.0.ln(), phase_ms.1.ln()).exp();
        let mut host = TwoSpeedHost::new(seed, phase, slow_share, between(1.2, 2.0), between(0.004, 0.02));
        let plain = Response(between(0.65, 1.05));
        let runs = host.session(&[(ms, plain), (2.0 * ms, Response(0.7 * plain.0))], budget_ms, 6);
        let all: Vec<ProbedRun> = runs.iter().map(|(_, run)| *run).collect();
        let plain: Vec<ProbedRun> = runs.iter().filter(|(index, _)| *index == 0).map(|(_, run)| *run).collect();
        let estimate = Machine::of(&all).unwrap().undisturbed(&plain, Response::PLAIN).unwrap();
        (estimate.ln_ms - ms.ln(), estimate.error)
    };
    (0..200).map(case).collect()
}

/// Asserts the share of intervals that contain the truth, and their median half width.
fn assert_precise(cases: &[(f64, f64)], contained: f64, half_width: f64) {
    let share = cases.iter().filter(|(error, half)| error.abs() <= *half).count() as f64 / cases.len() as f64;
    let halves: Vec<f64> = cases.iter().map(|(_, half)| *half).collect();
    let half = crate::statistics::median(&halves);
    assert!(share >= contained && half <= half_width, "{share} contained, half width {half}");
}

#[test]
fn a_host_of_one_speed_is_precise() {
    assert_precise(&on_hosts(200.0, 8e3, 0.0, (1e3, 1e3)), 0.9, 0.015);
    assert_precise(&on_hosts(3000.0, 40e3, 0.0, (1e3, 1e3)), 0.9, 0.02);
}

#[test]
fn short_statements_find_the_fast_phases() {
    assert_precise(&on_hosts(10.0, 3e3, 0.5, (100.0, 1e3)), 0.85, 0.03);
    assert_precise(&on_hosts(200.0, 8e3, 0.5, (100.0, 3e3)), 0.85, 0.05);
}

#[test]
fn long_statements_contain_both_speeds() {
    assert_precise(&on_hosts(3000.0, 40e3, 0.5, (100.0, 3e3)), 0.85, 0.15);
}

#[test]
fn the_estimate_does_not_depend_on_the_unit() {
    let runs = |scale: f64| -> Vec<ProbedRun> {
        let times = [(10.0, 3.0), (16.0, 4.9), (10.2, 3.1), (17.0, 5.0), (10.1, 3.0)];
        let pairs = times.windows(2);
        pairs.map(|w| ProbedRun { ms: scale * w[0].0, before_ms: scale * w[0].1, after_ms: scale * w[1].1 }).collect()
    };
    let of = |scale| Machine::of(&runs(scale)).unwrap().undisturbed(&runs(scale), Response::PLAIN).unwrap();
    assert!((of(7.0).ln_ms - of(1.0).ln_ms - 7f64.ln()).abs() < 1e-9);
    assert!((of(7.0).error - of(1.0).error).abs() < 1e-9);
}

#[test]
fn too_few_runs_and_impossible_times_have_no_estimate() {
    let run = ProbedRun { ms: 10.0, before_ms: 3.0, after_ms: 3.0 };
    assert_eq!(Machine::of(&[]), None);
    assert_eq!(Machine::of(&[ProbedRun { before_ms: 0.0, ..run }]), None);
    let machine = Machine::of(&[run; 5]).unwrap();
    assert_eq!(machine.undisturbed(&[run; 2], Response::PLAIN), None);
    assert_eq!(machine.undisturbed(&[run, run, ProbedRun { ms: 0.0, ..run }], Response::PLAIN), None);
    assert!(machine.undisturbed(&[run; 3], Response::PLAIN).is_some());
}

fn assert_estimate(estimate: LogEstimate, [ln_ms, error, common]: [f64; 3]) {
    let differences = [estimate.ln_ms - ln_ms, estimate.error - error, estimate.common - common];
    assert!(differences.iter().all(|difference| difference.abs() < 1e-9), "{estimate:?}");
}

const MACHINE: Machine =
    Machine { fast: 1.0986122886681098, slowness: 0.1, deviation: 0.2, fast_share: 0.5, persistence: 0.9 };

fn run((ms, before_ms, after_ms): (f64, f64, f64)) -> ProbedRun {
    ProbedRun { ms, before_ms, after_ms }
}

fn five_runs() -> Vec<ProbedRun> {
    [(10.0, 3.0, 3.0), (11.0, 3.0, 3.6), (10.5, 3.3, 3.3), (12.0, 4.5, 4.5), (11.5, 5.0, 4.0)].map(run).into()
}

/// The expected figures come from a separate calculation with the formulas in the documentation.
#[test]
fn both_estimates_of_five_runs_are_exact() {
    let (runs, response) = (five_runs(), Response(0.85));
    assert_estimate(MACHINE.from_slowness(&runs, response), [2.2755433285639, 0.13819069959067407, 0.04]);
    assert_estimate(
        MACHINE.from_fast_runs(&runs, response),
        [2.3377140111960366, 0.08435520522993868, 0.05283343815703556],
    );
    let both = MACHINE.undisturbed(&runs, response).unwrap();
    assert_estimate(both, [2.320836769863479, 0.08435520522993868, 0.05283343815703556]);
}

#[test]
fn enough_runs_at_full_speed_need_no_other_runs() {
    let runs: Vec<ProbedRun> = (0..8).map(|n| run((10.0 + 0.1 * f64::from(n), 3.0, 3.0))).collect();
    let response = Response(0.85);
    let mostly_fast = Machine { fast_share: 0.9, ..MACHINE };
    let fast = mostly_fast.from_fast_runs(&runs, response);
    assert_estimate(fast, [2.329765827592657, 0.02504778496152012, 0.0]);
    assert_eq!(mostly_fast.undisturbed(&runs, response), Some(fast));
    // Six of eight runs are enough, and fewer are not.
    let uses_fast_runs =
        |machine: Machine| machine.undisturbed(&runs, response) == Some(machine.from_fast_runs(&runs, response));
    assert!(uses_fast_runs(Machine { fast_share: 0.75, ..MACHINE }));
    assert!(!uses_fast_runs(Machine { fast_share: 0.74, ..MACHINE }));
    // The probes do not describe the runs well enough.
    assert!(!uses_fast_runs(Machine { persistence: 0.8, ..mostly_fast }));
}

/// Query 13 of TPC-H took 165 or 215 ms, and the probes did not change.
#[test]
fn runs_that_are_slow_between_fast_probes_do_not_count() {
    let runs: Vec<ProbedRun> =
        [165.0, 215.0, 164.6, 199.5, 197.6, 163.9, 165.8, 165.7, 192.4, 164.7].map(|ms| run((ms, 3.0, 3.0))).into();
    let Range { low, estimate, high } =
        Machine::of(&runs).unwrap().undisturbed(&runs, Response::PLAIN).unwrap().range();
    assert!(low < 164.7 && (estimate - 164.85).abs() < 0.2 && high > 165.0 && high < 168.0, "{low} {estimate} {high}");
}

#[test]
fn the_spread_of_the_fastest_runs_counts_if_probes_do_not_describe_the_runs() {
    let runs: Vec<ProbedRun> = (0..20).map(|n| run((10.0 + 0.1 * f64::from(n), 3.0, 3.0))).collect();
    let machine = Machine { fast_share: 0.9, persistence: 0.5, ..MACHINE };
    assert_estimate(machine.from_fast_runs(&runs, Response(0.85)), [2.323729194345213, 0.02246676141294709, 0.0]);
}

#[test]
fn the_common_error_is_that_of_the_better_estimate() {
    let machine = Machine { slowness: 0.02, deviation: 0.05, fast_share: 0.2, persistence: 0.2, ..MACHINE };
    let runs = five_runs();
    let slowness = machine.from_slowness(&runs, Response(0.85));
    assert!(slowness.error < machine.from_fast_runs(&runs, Response(0.85)).error);
    let both = machine.undisturbed(&runs, Response(0.85)).unwrap();
    assert_eq!((both.common, slowness.common), (0.008, 0.008));
}

#[test]
fn common_errors_cancel_in_a_ratio() {
    let estimate = |ln_ms, common| LogEstimate { ln_ms, error: 0.05, common };
    let ratio = estimate(2.0, 0.03).ratio_to(estimate(1.5, 0.04));
    // Own errors of 0.04 and 0.03, 0.01 between the common errors, and 40% of 0.04 for the different responses.
    assert_estimate(ratio, [0.5, (0.0016f64 + 0.0009 + 0.0001 + 0.000256).sqrt(), 0.0]);
}

#[test]
fn another_session_differs_by_seven_percent() {
    let estimate = LogEstimate { ln_ms: 2.0, error: 0.24, common: 0.1 };
    assert_estimate(estimate.in_another_session(), [2.0, 0.25, 0.1]);
}

#[test]
fn a_range_is_symmetric_in_logarithms() {
    let range = LogEstimate { ln_ms: 2.0, error: 0.5, common: 0.0 }.range();
    assert_eq!(range, Range { low: 1.5f64.exp(), estimate: 2f64.exp(), high: 2.5f64.exp() });
}

#[test]
fn a_machine_is_described_by_its_probes() {
    let runs: Vec<ProbedRun> =
        [[(9.0, 3.0, 3.0); 8].as_slice(), &[(9.0, 3.0, 6.0), (9.0, 6.0, 6.0)]].concat().into_iter().map(run).collect();
    let machine = Machine::of(&runs).unwrap();
    // The slowness is 0 for 8 runs, ln(2) / 2 for one, and ln(2) for one.
    let ln2 = std::f64::consts::LN_2;
    let squares = 8.0 * 0.15f64.powi(2) + 0.35f64.powi(2) + 0.85f64.powi(2);
    let expected = [3f64.ln(), 0.15 * ln2, (squares / 9.0).sqrt() * ln2, 0.85, 0.729];
    let actual = [machine.fast, machine.slowness, machine.deviation, machine.fast_share, machine.persistence];
    assert!(actual.iter().zip(expected).all(|(actual, expected)| (actual - expected).abs() < 1e-9), "{machine:?}");
}

#[test]
fn the_full_speed_is_the_center_of_the_fastest_group() {
    // The fastest tenth ends at 0, so the group ends at 0.06.
    assert_eq!(full_speed([vec![0.0, 0.06, 0.0, 0.06, 0.06], vec![0.5; 6]].concat()), 0.06);
    assert_eq!(full_speed([vec![0.0, 0.061, 0.0, 0.061, 0.061], vec![0.5; 6]].concat()), 0.0);
    // One of 11 probes is no group.
    assert_eq!(full_speed([vec![-0.1], vec![0.0; 10]].concat()), 0.0);
    assert_eq!(full_speed(vec![1.5]), 1.5);
}

#[test]
fn probes_describe_the_run_between_them_if_the_phases_are_long() {
    let shares = [(0.5, 0.5, 1.0), (0.5, 0.25, 0.125), (0.5, 0.375, 0.5625), (0.5, 0.1, 0.125), (1.0, 1.0, 1.0)];
    for (fast, both, expected) in shares {
        assert_eq!(persistence(fast, both), expected, "{fast} {both}");
    }
}

#[test]
fn errors_grow_with_few_runs() {
    assert_eq!([1.0, 2.0, 3.0, 8.0].map(few_runs), [2.2, 2.2, 2.2, 1.2]);
}

#[test]
fn a_standard_deviation_needs_two_values() {
    assert_eq!((standard_deviation(&[1.0, 3.0]), standard_deviation(&[5.0])), (2f64.sqrt(), 0.0));
}

#[test]
fn three_runs_at_the_highest_speed_show_full_speed() {
    let run = |probe_ms: f64| ProbedRun { ms: 10.0, before_ms: probe_ms, after_ms: probe_ms };
    let saw_full_speed = |fast: usize| {
        let runs = [vec![run(3.0); fast], vec![run(5.0); 12 - fast]].concat();
        Machine::of(&runs).unwrap().saw_full_speed(12)
    };
    assert!(!saw_full_speed(2) && saw_full_speed(3) && saw_full_speed(12));
}
