//! Medians, intervals and their errors. All intervals are meant to contain the true value in 95 of 100 cases.
//!
//! Run times of a shared machine have outliers, so most estimators here use medians.

mod range;
pub mod two_speed_host;
pub mod undisturbed;

pub use range::Range;

/// The least run-to-run variation, as a share of the median.
///
/// Medians of baseline runs a few seconds apart on a quiet machine differed by 2.5% (median over TPC-H's 22 queries).
pub const RUN_TO_RUN_VARIATION: f64 = 0.03;

/// A normal distribution's standard deviation, divided by its median absolute deviation (1 / 0.6745).
/// Source: P. J. Rousseeuw and C. Croux, "Alternatives to the Median Absolute Deviation", 1993.
const SD_PER_MAD: f64 = 1.4826;

/// The standard error of a normal sample's median, divided by that of its mean: the square root of pi / 2.
/// Source: M. G. Kendall and A. Stuart, "The Advanced Theory of Statistics", volume 1.
const MEDIAN_ERROR: f64 = 1.2533;

/// Returns the median, or 0 if there are no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Returns a quantile of sorted values, interpolated between neighbors, or 0 if there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (sorted.get(at.floor() as usize), sorted.get(at.ceil() as usize));
    below.zip(above).map_or(0.0, |(below, above)| below + (above - below) * at.fract())
}

/// Quantiles of Student's t for a two-sided 95% interval, with 1 to 6 degrees of freedom.
const T: [f64; 6] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45];

/// Returns the 95% half-width for a single value: about two standard deviations.
///
/// - 2 to 7 values: t * sqrt(sum((x - mean)^2) / (n - 1)), with Student's t. A median absolute deviation of so few values
///   can be 0 by chance.
/// - More values: [`two_deviations`] of the median absolute deviation, which ignores outliers. The factor
///   sqrt((n - 1) / (n - 3)) is the standard deviation of Student's t; it accounts for the few values.
pub fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if let Some(t) = values.len().checked_sub(2).and_then(|index| T.get(index)) {
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        return t * (squares / (n - 1.0)).sqrt();
    }
    let center = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    two_deviations(median(&deviations)) * if n > 3.0 { ((n - 1.0) / (n - 3.0)).sqrt() } else { 1.0 }
}

/// Returns two standard deviations of a normal distribution from its median absolute deviation: 2 * 1.4826 * MAD.
pub fn two_deviations(median_absolute_deviation: f64) -> f64 {
    2.0 * SD_PER_MAD * median_absolute_deviation
}

/// Returns the 95% half-width of the median of these values: 1.2533 * deviation / sqrt(n).
///
/// It compares with the median of many runs at the same time, so it does not contain changes of the machine's speed.
pub fn median_error(values: &[f64]) -> f64 {
    MEDIAN_ERROR * deviation(values) / (values.len() as f64).max(1.0).sqrt()
}

/// Returns the 95% half-width of the median, compared with runs at another time. It is the largest of three figures:
///
/// - the [`deviation`] of a single run. What makes a machine slow lasts for many runs, so more runs do not help;
/// - the [`max_deviation`]. If a machine alternates between two speeds, the deviation sees only the more frequent one;
/// - [`RUN_TO_RUN_VARIATION`].
pub fn uncertainty(values: &[f64]) -> f64 {
    deviation(values).max(max_deviation(values)).max(RUN_TO_RUN_VARIATION * median(values))
}

/// Returns the largest distance from the median, without the most extreme 5% of the values at each end.
fn max_deviation(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let outliers = values.len() / 20;
    match (sorted.get(outliers), sorted.iter().nth_back(outliers)) {
        (Some(low), Some(high)) => (high - median(values)).max(median(values) - low),
        _ => 0.0,
    }
}

/// Returns sqrt(sum(x^2)), which combines independent errors in quadrature.
pub fn root_sum_squares(errors: impl IntoIterator<Item = f64>) -> f64 {
    errors.into_iter().map(|error| error * error).sum::<f64>().sqrt()
}

/// Returns the mean of two independent estimates with their 95% margins, weighted by the inverse of their variances.
///
/// If the estimates differ by more than both margins explain, the margin grows by the same ratio (the Birge ratio).
/// Source: R. T. Birge, "The Calculation of Errors by the Method of Least Squares", Physical Review 40 (1932) 207.
pub fn weighted_mean(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    let ((a, a_margin), (b, b_margin)) = (first, second);
    let both = a_margin.hypot(b_margin);
    if both == 0.0 {
        return ((a + b) / 2.0, (a - b).abs() / 2.0);
    }
    let weight = (b_margin / both).powi(2);
    let ratio = ((a - b).abs() / both).max(1.0);
    let margin = match a_margin * b_margin {
        // An estimate without a margin does not remove a contradiction.
        0.0 => ((a - b).abs() - both).max(0.0),
        product => product / both * ratio,
    };
    (weight * a + (1.0 - weight) * b, margin)
}

/// Returns the median of `longer - shorter` over pairs of neighboring runs, with its interval.
///
/// The machine's speed is about the same within a pair, so it cancels. The true difference is not negative. If the
/// estimate is negative, the noise is at least as large, so the half-width is at least twice the estimate.
pub fn paired_difference(longer: &[f64], shorter: &[f64]) -> Range {
    let differences: Vec<f64> = longer.iter().zip(shorter).map(|(longer, shorter)| longer - shorter).collect();
    let estimate = median(&differences);
    let error = median_error(&differences).max(-2.0 * estimate);
    Range { low: (estimate - error).max(0.0), estimate: estimate.max(0.0), high: estimate + error }
}

/// Returns the rank of each value, from 1. Rank 1 has the largest value; equal values keep their order.
pub fn ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let mut ranks = vec![0; values.len()];
    order.into_iter().enumerate().for_each(|(rank, index)| ranks[index] = rank + 1);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that two numbers agree to six digits.
    fn assert_close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() <= 1e-6 * expected.abs().max(1e-9), "{actual}, not {expected}");
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
    fn deviation_of_few_values_uses_students_t() {
        // Standard deviations sqrt(2), 1 and sqrt(14 / 3).
        assert_close(deviation(&[1.0, 3.0]), 12.71 * 2f64.sqrt());
        assert_close(deviation(&[1.0, 2.0, 3.0]), 4.30);
        assert_close(deviation(&[1.0, 2.0, 3.0, 6.0]), 3.18 * (14.0f64 / 3.0).sqrt());
        // Seven values have 6 degrees of freedom: 2.45 * sqrt(28 / 6).
        assert_close(deviation(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), 2.45 * (28.0f64 / 6.0).sqrt());
    }

    #[test]
    fn deviation_of_many_values_ignores_outliers() {
        // The median is 4.5 and the median absolute deviation is 2: 2 * 1.4826 * 2 * sqrt(7 / 5).
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        assert_close(deviation(&values), 5.9304 * 1.4f64.sqrt());
        let with_outlier = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8000.0];
        assert_close(deviation(&with_outlier), deviation(&values));
    }

    #[test]
    fn deviation_of_less_than_two_values_is_zero() {
        assert_eq!([deviation(&[]), deviation(&[5.0])], [0.0, 0.0]);
    }

    #[test]
    fn median_error_shrinks_with_the_number_of_values() {
        assert_eq!([median_error(&[]), median_error(&[100.0; 3])], [0.0, 0.0]);
        assert_close(median_error(&[1.0, 2.0, 3.0]), 1.2533 * 4.30 / 3f64.sqrt());
    }

    #[test]
    fn uncertainty_is_the_largest_of_three_figures() {
        assert_close(uncertainty(&[100.0; 3]), 3.0);
        assert_close(uncertainty(&[90.0, 100.0, 110.0]), 43.0);
        // Two speeds, of which one is rare: the median absolute deviation is 0.
        assert_eq!(uncertainty(&[100.0, 100.0, 200.0, 100.0, 100.0, 100.0, 200.0, 100.0, 100.0]), 100.0);
    }

    #[test]
    fn max_deviation_ignores_one_value_of_twenty_at_each_end() {
        let mut values = vec![100.0; 18];
        values.extend([90.0, 130.0]);
        assert_eq!(max_deviation(&values), 0.0);
        assert_eq!(max_deviation(&values[2..]), 30.0);
        assert_eq!(max_deviation(&[50.0, 100.0, 110.0]), 50.0);
        assert_eq!(max_deviation(&[]), 0.0);
    }

    #[test]
    fn independent_errors_are_combined_in_quadrature() {
        assert_eq!(root_sum_squares([3.0, 4.0]), 5.0);
        assert_eq!(root_sum_squares([]), 0.0);
    }

    #[test]
    fn a_weighted_mean_is_closer_to_the_more_certain_estimate() {
        let (mean, margin) = weighted_mean((100.0, 3.0), (105.0, 4.0));
        assert_close(mean, (100.0 * 16.0 + 105.0 * 9.0) / 25.0);
        assert_close(margin, 12.0 / 5.0);
        // They differ by twice of what both margins explain.
        let (mean, margin) = weighted_mean((100.0, 3.0), (110.0, 4.0));
        assert_close(mean, 103.6);
        assert_close(margin, 2.0 * 12.0 / 5.0);
        assert_eq!(weighted_mean((7.0, 0.0), (9.0, 2.0)), (7.0, 0.0));
        assert_eq!(weighted_mean((7.0, 0.0), (9.0, 0.0)), (8.0, 1.0));
        assert_eq!(weighted_mean((7.0, 0.0), (12.0, 2.0)), (7.0, 3.0));
    }

    /// The interval of the weighted mean contains the true value in 95% of the cases; the narrower interval does not, if
    /// its margin was underestimated by chance.
    #[test]
    fn a_weighted_mean_covers_the_truth() {
        let mut random = 7u64;
        let mut uniform = || {
            random = random.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
            (random >> 11) as f64 / (1u64 << 53) as f64
        };
        // The sum of 12 uniform values is nearly normal, with a standard deviation of 1.
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        const CASES: usize = 4000;
        let covered = (0..CASES).filter(|_| {
            let (mean, margin) = weighted_mean((normal() * 3.0, 1.96 * 3.0), (normal() * 4.0, 1.96 * 4.0));
            mean.abs() <= margin
        });
        let share = covered.count() as f64 / CASES as f64;
        assert!((0.94..0.97).contains(&share), "{share}");
    }

    #[test]
    fn the_machines_speed_cancels_in_a_paired_difference() {
        let difference = |longer: &[f64], shorter: &[f64]| paired_difference(longer, shorter);
        let ten = Range { low: 10.0, estimate: 10.0, high: 10.0 };
        assert_eq!(difference(&[100.0; 3], &[90.0; 3]), ten);
        // The machine is slow half of the time.
        assert_eq!(difference(&[110.0, 210.0, 110.0, 210.0], &[100.0, 200.0, 100.0, 200.0]), ten);
    }

    #[test]
    fn a_paired_difference_is_never_negative() {
        let negative = paired_difference(&[90.0; 3], &[100.0; 3]);
        assert_eq!(negative, Range { low: 0.0, estimate: 0.0, high: 10.0 });
        let noisy = paired_difference(&[90.0, 100.0, 110.0], &[80.0; 3]);
        assert_eq!((noisy.low, noisy.estimate), (0.0, 20.0));
        assert_close(noisy.high, 20.0 + 1.2533 * 43.0 / 3f64.sqrt());
    }
}
