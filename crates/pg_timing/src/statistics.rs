//! Medians and intervals. All intervals are meant to contain the true value in 95 of 100 cases.
//!
//! Run times of a shared machine have outliers, and no known distribution. So the estimators here are medians, and their
//! intervals come from order statistics: they assume only that the values are independent.
//!
//! # The method of pairs
//! How many times longer does a statement take in one mode than in another?
//!
//! A shared machine changes its speed, so times of different moments are never compared. Each round has a run between two
//! baseline runs. The ratio of neighbors hardly depends on the machine's speed: if it changed within a round, that round is an
//! outlier, and the median ignores it. So the method needs no model of the machine. A statement that waits has a ratio of 1
//! without a special rule.
//!
//! # When the runs end
//! The runs end as soon as the interval is narrow enough. A rule that checks it after each round would stop too early: some
//! interval is narrow and wrong by chance. So there are at most five checks, and they share the error of 5% (Bonferroni's
//! inequality): each early check has 1%, and the last one has the rest. The printed interval contains this. The first check, after
//! three rounds, is for statements whose rounds agree nearly exactly, like one that sleeps.

use serde::{Deserialize, Serialize};
use std::ops::Add;

/// An estimate with its interval. In a live run it is a 95% interval: in 95 of 100 cases, the true value is between
/// `low` and `high`. For a captured plan, the interval contained the true value for 92 of 100 test statements. Only
/// `calls` and `clock_share` of a captured plan are bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Range {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
}

impl Range {
    /// Returns two bounds, with the middle as the estimate.
    pub fn between(low: f64, high: f64) -> Range {
        Range { low, estimate: (low + high) / 2.0, high }
    }

    /// Returns a value without an error.
    pub fn exactly(value: f64) -> Range {
        Range { low: value, estimate: value, high: value }
    }

    /// Returns the distance between the estimate and the farther bound.
    pub fn margin(self) -> f64 {
        (self.high - self.estimate).max(self.estimate - self.low)
    }

    /// Returns half of the logarithm of high / low. It is infinite if `low` is 0.
    pub fn relative_half_width(self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }

    /// Returns what remains of a whole without this part, and at least 0.
    pub fn subtracted_from(self, whole: f64) -> Range {
        let rest = |part: f64| (whole - part).max(0.0);
        Range { low: rest(self.high), estimate: rest(self.estimate), high: rest(self.low) }
    }

    /// Returns the difference of two independent ranges.
    pub fn minus(self, other: Range) -> Range {
        Range { low: self.low - other.high, estimate: self.estimate - other.estimate, high: self.high - other.low }
    }

    /// Returns the range within these limits.
    pub fn clamp(self, least: f64, most: f64) -> Range {
        let [low, estimate, high] = [self.low, self.estimate, self.high].map(|value| value.clamp(least, most));
        Range { low, estimate, high }
    }

    /// Returns the range multiplied by a factor.
    pub fn times(self, factor: f64) -> Range {
        Range { low: self.low * factor, estimate: self.estimate * factor, high: self.high * factor }
    }
}

impl Add for Range {
    type Output = Range;

    fn add(self, other: Range) -> Range {
        Range { low: self.low + other.low, estimate: self.estimate + other.estimate, high: self.high + other.high }
    }
}

/// The least run-to-run variation, as a share of the median.
///
/// Medians of baseline runs a few seconds apart on a quiet machine differed by 2.5% (median over TPC-H's 22 queries).
pub const RUN_TO_RUN_VARIATION: f64 = 0.03;

/// The error of a 95% interval.
pub const ERROR: f64 = 0.05;

/// Returns the median, or 0 if there are no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// Returns a quantile of sorted values, interpolated between neighbors, or 0 if there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (sorted.get(at.floor() as usize), sorted.get(at.ceil() as usize));
    below.zip(above).map_or(0.0, |(below, above)| below + (above - below) * at.fract())
}

/// Returns the values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns two standard deviations of a normal distribution from its median absolute deviation: 2 * 1.4826 * MAD.
/// Source: P. J. Rousseeuw and C. Croux, "Alternatives to the Median Absolute Deviation", 1993.
pub fn two_deviations(median_absolute_deviation: f64) -> f64 {
    2.0 * 1.4826 * median_absolute_deviation
}

/// Returns the median with its interval, which misses the true median with a probability of at most `error`.
///
/// With six or more values, the interval lies between order statistics, interpolated: T. P. Hettmansperger and S. J. Sheather,
/// "Confidence intervals based on interpolated order statistics", Statistics & Probability Letters 4 (1986) 75. Fewer values
/// have no such interval of 95%. Then it is their whole range, widened by [`widening`]. A single value has no interval.
pub fn median_interval(values: &[f64], error: f64) -> Range {
    let (sorted, n) = (sorted(values), values.len());
    let estimate = median(values);
    let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else { return Range::default() };
    if let Some(factor) = widening(n, error) {
        let (middle, half) = ((least + most) / 2.0, factor * (most - least) / 2.0);
        return Range { low: (middle - half).min(estimate), estimate, high: (middle + half).max(estimate) };
    }
    // The k-th values from both ends miss the median with the probability 2 * tail, where tail = P(Binomial(n, 1/2) < k).
    let (mut k, mut tail, mut ln_p) = (0, 0.0, -(n as f64) * 2f64.ln());
    while k < n / 2 && 2.0 * (tail + f64::exp(ln_p)) <= error {
        tail += ln_p.exp();
        ln_p += ((n - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
    let Some(outer) = k.checked_sub(1) else { return Range { low: least, estimate, high: most } };
    // The next values toward the middle miss it too often, so the interval ends between both.
    let part = (error - 2.0 * tail) / (2.0 * ln_p.exp());
    let weight = (n - k) as f64 * part / (k as f64 + (n - 2 * k) as f64 * part);
    let inner = k.min(n / 2 - 1 + n % 2);
    let between = |outer: f64, inner: f64| outer + weight.clamp(0.0, 1.0) * (inner - outer);
    Range {
        low: between(sorted[outer], sorted[inner]).min(estimate),
        estimate,
        high: between(sorted[n - 1 - outer], sorted[n - 1 - inner]).max(estimate),
    }
}

/// Returns the factor by which the range of so few values is widened about its middle.
///
/// `make tournament` shows the coverage on simulated machines. For normal values, the factors of the first row cover 95%
/// (n = 2: Student's t), and that of the second one 99%.
fn widening(n: usize, error: f64) -> Option<f64> {
    const USUAL: [f64; 4] = [12.7, 2.7, 1.6, 1.2];
    const STRICT: [f64; 4] = [64.0, 6.0, 2.6, 1.7];
    let factors = if error < 0.04 { STRICT } else { USUAL };
    factors.get(n.checked_sub(2)?).copied()
}

/// Returns the margin of the median's 95% interval. It is 0 for a single value.
pub fn median_error(values: &[f64]) -> f64 {
    median_interval(values, ERROR).margin()
}

/// Returns sqrt(sum(x^2)), which combines independent errors of the same confidence in quadrature.
pub fn root_sum_squares(errors: impl IntoIterator<Item = f64>) -> f64 {
    errors.into_iter().map(|error| error * error).sum::<f64>().sqrt()
}

/// Returns the figure rounded up to two significant digits, so that it remains a bound. More digits would suggest a precision
/// that a bound does not have.
pub fn round_up(figure: f64) -> f64 {
    if figure <= 0.0 || !figure.is_finite() {
        return figure;
    }
    let scale = 10f64.powi(1 - figure.log10().floor() as i32);
    // Without the small subtraction, an error of the product could raise a number that already has two digits.
    (figure * scale - 1e-9).ceil() / scale
}

/// Returns the rank of each value, from 1. Rank 1 has the largest value; equal values keep their order.
pub fn ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let mut ranks = vec![0; values.len()];
    order.into_iter().enumerate().for_each(|(rank, index)| ranks[index] = rank + 1);
    ranks
}

/// Numbers of rounds after which the interval is checked. The runs may go on after the last one, until the time is up.
pub const CHECKED_AFTER_ROUNDS: [usize; 4] = [3, 8, 16, 24];
/// The error of each early check.
const EARLY: f64 = 0.01;
/// The ratio itself depends a little on what else the machine does, and a short session sees only one state of it. With this
/// margin, at least 92% of the intervals contain the truth in each recording in `bench/recordings`, and without it 60% in the
/// worst one (`make tournament`).
const STATE_OF_MACHINE: f64 = 0.01;
/// Relative half-widths at which the runs end. Three rounds are a weak base, so they have to agree better.
const ENOUGH: f64 = 0.03;
const ENOUGH_FOR_THREE: f64 = 0.02;

/// A run and its two neighbors in another mode, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    pub before_ms: f64,
    pub run_ms: f64,
    pub after_ms: f64,
}

impl Round {
    /// Returns ln of the run's time minus the mean ln of its neighbors' times.
    fn ln_ratio(&self) -> f64 {
        // A time of 0 is below the resolution of the clock.
        let ln = |ms: f64| ms.max(1e-6).ln();
        ln(self.run_ms) - (ln(self.before_ms) + ln(self.after_ms)) / 2.0
    }
}

/// Returns how many times longer the runs take than their neighbors: the median over the rounds, with its interval. `is_last`: the
/// interval is not checked again.
pub fn ratio(rounds: &[Round], is_last: bool) -> Range {
    let logarithms: Vec<f64> = rounds.iter().map(Round::ln_ratio).collect();
    let earlier = CHECKED_AFTER_ROUNDS.iter().filter(|number| **number < rounds.len()).count();
    let error = if is_last { ERROR - EARLY * earlier as f64 } else { EARLY };
    let Range { low, estimate, high } = median_interval(&logarithms, error);
    Range { low: (low - STATE_OF_MACHINE).exp(), estimate: estimate.exp(), high: (high + STATE_OF_MACHINE).exp() }
}

/// Returns whether an early check ends the runs: the interval is checked after this number of rounds, and is narrow enough.
pub fn is_enough(rounds: usize, relative_half_width: f64) -> bool {
    let enough = if rounds == CHECKED_AFTER_ROUNDS[0] { ENOUGH_FOR_THREE } else { ENOUGH };
    CHECKED_AFTER_ROUNDS.contains(&rounds) && relative_half_width <= enough
}

/// Returns whether an early check ends a comparison of two statements: the interval is narrow enough, and either shows a difference
/// or is so narrow that a difference would be small.
pub fn is_decided(rounds: usize, ratio: Range) -> bool {
    const SMALL: f64 = 0.015;
    let half_width = ratio.relative_half_width();
    let has_difference = ratio.low > 1.0 || ratio.high < 1.0;
    is_enough(rounds, half_width) && (has_difference || half_width <= SMALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_up_to_two_digits() {
        for (figure, rounded) in
            [(0.012_31, 0.013), (0.022, 0.022), (72.6, 73.0), (73.0, 73.0), (99.1, 100.0), (217.3, 220.0), (0.0, 0.0)]
        {
            assert_eq!(round_up(figure), rounded);
        }
        assert!(round_up(f64::NAN).is_nan());
    }

    #[test]
    fn rank_1_has_the_largest_value() {
        assert_eq!(ranks(&[2.0, 5.0, 2.0, 9.0]), [3, 2, 4, 1]);
    }

    #[test]
    fn median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[4.0, 1.0]), median(&[9.0, 1.0, 2.0])], [0.0, 3.0, 2.5, 2.0]);
    }

    #[test]
    fn independent_errors_are_combined_in_quadrature() {
        assert_eq!(root_sum_squares([3.0, 4.0]), 5.0);
        assert_eq!(root_sum_squares([]), 0.0);
    }

    /// The exact confidence of [x(k), x(n+1-k)] is 1 - 2 P(Binomial(n, 1/2) < k): 96.9% for n = 6 and k = 1; 97.9% for n = 10
    /// and k = 2, and 89.1% for k = 3.
    #[test]
    fn the_interval_of_a_median_comes_from_order_statistics() {
        let interval = |n: u32, error| {
            let range = median_interval(&(1..=n).map(f64::from).collect::<Vec<_>>(), error);
            [range.low, range.estimate, range.high].map(|value| (1e4 * value).round() / 1e4)
        };
        assert_eq!(interval(6, 2.0 / 64.0), [1.0, 3.5, 6.0]);
        assert_eq!(interval(6, 0.01), [1.0, 3.5, 6.0], "no wider interval exists");
        assert_eq!(interval(10, 22.0 / 1024.0), [2.0, 5.5, 9.0]);
        // Between k = 2 and k = 3: I = (0.97852 - 0.95) / (0.97852 - 0.89063) = 0.32448, weight = 8 I / (2 + 6 I) = 0.65771.
        assert_eq!(interval(10, 0.05), [2.6577, 5.5, 8.3423]);
        let [low, _, high] = interval(1000, 0.05);
        assert!((468.0..470.0).contains(&low) && (531.0..533.0).contains(&high), "{low} {high}");
        assert!(interval(9, 0.5)[0] < 5.0 && interval(8, 0.9)[2] <= 5.0);
    }

    #[test]
    fn few_values_have_a_widened_range() {
        assert_eq!(median_interval(&[], 0.05), Range::default());
        assert_eq!(median_interval(&[7.0], 0.05), Range::exactly(7.0));
        let three = |error| median_interval(&[1.0, 2.0, 3.0], error);
        assert_eq!([three(0.05).margin(), three(0.01).margin()], [2.7, 6.0]);
        assert_eq!(median_error(&[5.0; 4]), 0.0);
        let uneven = median_interval(&[0.0, 0.0, 0.0, 10.0, 0.0], 0.05);
        assert_eq!([uneven.low, uneven.estimate, uneven.high], [-1.0, 0.0, 11.0]);
    }

    /// The interval covers the median of any distribution: of a uniform, a skewed, and one with two values.
    #[test]
    fn the_interval_covers_the_median() {
        let mut random = 7u64;
        let mut uniform = || {
            random = random.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
            (random >> 11) as f64 / (1u64 << 53) as f64
        };
        const CASES: usize = 3000;
        for n in [6, 8, 13, 24, 40] {
            for truth in [0.5, -(0.5f64.ln())] {
                let covered = (0..CASES).filter(|_| {
                    let value = |u: f64| if truth == 0.5 { u } else { -u.ln() };
                    let values: Vec<f64> = (0..n).map(|_| value(uniform())).collect();
                    let range = median_interval(&values, 0.05);
                    range.low <= truth && truth <= range.high
                });
                let share = covered.count() as f64 / CASES as f64;
                assert!((0.935..0.98).contains(&share), "{n} values: {share}");
            }
        }
    }

    const RANGE: Range = Range { low: 1.0, estimate: 4.0, high: 6.0 };

    #[test]
    fn the_estimate_between_two_bounds_is_their_middle() {
        assert_eq!(Range::between(2.0, 8.0), Range { low: 2.0, estimate: 5.0, high: 8.0 });
    }

    #[test]
    fn the_margin_is_the_distance_to_the_farther_bound() {
        assert_eq!([RANGE.margin(), Range { high: 9.0, ..RANGE }.margin()], [3.0, 5.0]);
    }

    #[test]
    fn a_range_is_converted_and_added_bound_by_bound() {
        assert_eq!(RANGE.times(0.5), Range { low: 0.5, estimate: 2.0, high: 3.0 });
        assert_eq!(
            RANGE + Range { low: 10.0, estimate: 20.0, high: 30.0 },
            Range { low: 11.0, estimate: 24.0, high: 36.0 }
        );
    }

    fn rounds(ratios: &[f64]) -> Vec<Round> {
        ratios.iter().map(|ratio| Round { before_ms: 8.0, run_ms: 4.0 * ratio, after_ms: 2.0 }).collect()
    }

    #[test]
    fn a_ratio_is_the_median_over_the_rounds() {
        let Range { low, estimate, high } = ratio(&rounds(&[1.5, 9.0, 1.5, 1.4, 1.6]), true);
        assert!((estimate - 1.5).abs() < 1e-9 && low < 1.4 && high > 9.0, "{low} {estimate} {high}");
    }

    /// Four early checks have 1% each, and the last one has the rest. For 8 rounds and 1%: I = (0.01 - 0.0078) / 0.0625, and the weight
    /// is 7 I / (1 + 6 I) = 0.2025.
    #[test]
    fn the_checks_share_the_error() {
        let half_width = |n: usize, is_last| {
            let ratios: Vec<f64> = (0..n).map(|nth| (nth as f64).exp()).collect();
            ratio(&rounds(&ratios), is_last).relative_half_width() - STATE_OF_MACHINE
        };
        assert!((half_width(8, false) - (3.5 - 0.2025)).abs() < 1e-4, "{}", half_width(8, false));
        assert!(half_width(8, true) < half_width(8, false));
        assert!((half_width(3, true) - 2.7).abs() < 1e-9 && (half_width(3, false) - 6.0).abs() < 1e-9);
        assert!(
            (half_width(24, true) - median_interval(&(0..24).map(f64::from).collect::<Vec<_>>(), 0.02).margin()).abs()
                < 1e-9
        );
    }

    #[test]
    fn rounds_that_agree_end_the_runs_at_a_check() {
        assert!(is_enough(3, 0.015) && !is_enough(3, 0.025) && is_enough(8, 0.025));
        assert!(!is_enough(4, 0.0) && !is_enough(2, 0.0) && !is_enough(8, 0.04));
    }
}
