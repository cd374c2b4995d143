//! Cases on simulated hosts with two speeds.

use super::Match;
use pg_timing::statistics::two_speed_host::{Random, TwoSpeedHost};
use pg_timing::statistics::undisturbed::{ProbedRun, Response};

const CASES: u64 = 150;

/// Statements of several lengths, with the time budget of `explain`, on hosts that are slow for several shares of time.
pub fn groups() -> Vec<(String, Vec<Match>)> {
    let mut groups = Vec::new();
    for (ms, budget_ms) in [(10.0, 3e3), (200.0, 8e3), (1000.0, 20e3), (3000.0, 40e3)] {
        for slow_share in [0.2, 0.5, 0.7] {
            let name = format!("simulated: {ms} ms, slow for {:.0}% of the time", 100.0 * slow_share);
            groups.push((name, (0..CASES).map(|seed| case(seed, ms, budget_ms, slow_share)).collect()));
        }
    }
    groups
}

fn case(seed: u64, ms: f64, budget_ms: f64, slow_share: f64) -> Match {
    let mut random = Random(seed * 7919 + 13);
    let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
    let phase_ms = between(100f64.ln(), 10_000f64.ln()).exp();
    let mut host = TwoSpeedHost::new(seed, phase_ms, slow_share, between(1.2, 2.0), between(0.004, 0.02));
    let plain = Response(between(0.6, 1.05));
    let timed = Response(plain.0 * between(0.6, 0.95));
    let factor = between(1.0, 2.5);
    let statements = [(ms, plain), (1.07 * ms, plain), (ms, plain), (factor * ms, timed)];
    let runs = host.session(&statements, budget_ms, 3);
    let of = |which: fn(usize) -> bool| -> Vec<ProbedRun> {
        runs.iter().filter(|(index, _)| which(*index)).map(|(_, run)| *run).collect()
    };
    Match {
        plain: of(|index| index == 0 || index == 2),
        timed: of(|index| index == 3),
        all: of(|_| true),
        true_ln_ms: ms.ln(),
        is_of_another_session: false,
        true_ln_factor: factor.ln(),
    }
}
