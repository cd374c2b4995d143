//! How often a clock went back, with the error of a small count.

use super::missing::Missing;
use super::pairs::{absent, numbers};
use super::{ComparedFigure, Effect, FigureName, Measure, MissingIn};
use crate::human::count;
use crate::report::{ClockReport, Fact, Report};

/// If this number of steps is expected, the probability to see none is exp(-3) = 5%. This is the rule of three: Hanley and
/// Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249 (1983).
const EXPECTED_STEPS: f64 = 3.0;
/// 95% of a normal distribution are within this number of standard deviations.
const DEVIATIONS_95: f64 = 1.96;
/// The unit of the figure is steps per million reads.
const MILLION: f64 = 1e6;

/// One report's count of a clock.
#[derive(Clone, Copy)]
struct Steps {
    steps: u64,
    reads: u64,
    rate: Measure,
}

/// Compares how often a clock went back. It is not compared if the report without steps has too few reads to have seen them.
pub fn figure(
    name: &str,
    before: (&Report, &ClockReport),
    after: (&Report, &ClockReport),
    is_read_by_postgres: bool,
    missing: &mut Missing,
) -> Option<ComparedFigure> {
    let what = format!("{name} backward steps");
    let (before, after) = missing.both(&what, counted(before), counted(after))?;
    let increase = match before.steps > 0 && after.steps > 0 {
        _ if !is_read_by_postgres => Effect::Changed,
        false => Effect::MuchWorse,
        // It was wrong before.
        true => Effect::Worse,
    };
    let mut figure = numbers(FigureName::BackwardSteps, Some(name), before.rate, after.rate, |_, _| increase);
    let (none, some, side, effect) = match (before.steps, after.steps) {
        (0, 1..) => (before, after, MissingIn::Before, increase),
        (1.., 0) => (after, before, MissingIn::After, increase.mirrored()),
        _ => return Some(figure),
    };
    let needed = EXPECTED_STEPS * some.reads as f64 / some.steps as f64;
    if (none.reads as f64) < needed {
        let reads = count(none.reads);
        let why =
            format!("too few reads: {reads}, and steps as rare as in the other report need {}", count(needed as u64));
        missing.add(what, side, why);
        return None;
    }
    figure.effect = effect;
    figure.noise = Some(none.rate.high);
    Some(figure)
}

/// Returns whether the report is of a pg_test_timing that stopped at its first backward step. It does not show how often it read.
pub fn stopped_at_a_step(report: &Report) -> bool {
    report.clocks.iter().any(|clock| clock.backward_steps > 0 && clock.reads == 0)
}

fn counted((report, clock): (&Report, &ClockReport)) -> Fact<Steps> {
    let (steps, reads) = (clock.backward_steps, clock.reads);
    match (steps, reads) {
        (0, 0) => Fact::unavailable(absent(report)),
        (_, 0) => Fact::unavailable("the number of reads is unknown"),
        _ => match rate(steps as f64, reads as f64) {
            Some(rate) => Fact::Known(Steps { steps, reads, rate }),
            None => Fact::unavailable("the number of backward steps is impossible"),
        },
    }
}

/// Returns the steps per million reads, with the bounds of their 95% interval.
fn rate(steps: f64, reads: f64) -> Option<Measure> {
    let (low, high) = bounds(steps);
    let [rate, low, high] = [steps, low, high].map(|steps| steps / reads * MILLION);
    Measure::within(Some(rate), low, high)
}

/// Returns the 95% bounds of the expected count: Byar's approximation of the exact bounds of a Poisson count (Garwood,
/// Biometrika 28, 1936), from Breslow and Day, Statistical Methods in Cancer Research II (1987), page 69. The lower bound of
/// one or two steps is too low, and all other bounds are within 3%.
fn bounds(steps: f64) -> (f64, f64) {
    let bound = |n: f64, deviations: f64| n * (1.0 - 1.0 / (9.0 * n) + deviations / (3.0 * n.sqrt())).powi(3);
    match steps {
        0.0 => (0.0, EXPECTED_STEPS),
        _ => (bound(steps, -DEVIATIONS_95).max(0.0), bound(steps + 1.0, DEVIATIONS_95)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact bounds are quantiles of the chi-squared distribution, from tables.
    #[test]
    fn the_bounds_are_those_of_a_poisson_count() {
        for (steps, low, high) in [(3.0, 0.6187, 8.7673), (10.0, 4.7954, 18.3904), (100.0, 81.364, 121.627)] {
            let (a, b) = bounds(steps);
            assert!((a / low - 1.0).abs() < 0.03 && (b / high - 1.0).abs() < 0.03, "{steps}: {a} {b}");
        }
        assert!(bounds(1.0).0 > 0.0 && bounds(1.0).0 < 0.0253);
    }
}
