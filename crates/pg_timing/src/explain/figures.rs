//! Medians, and how sure they are.

use crate::report::Range;

/// The middle one; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// How far the median of some runs may be from that of many at the same time: the robust standard
/// error of a median, twice, by Student's t for few.
pub fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    // 1.4826 makes a standard deviation of it, and 1.2533 is what a median has more than a mean.
    let deviation = 1.4826 * median(&deviations);
    let n = values.len() as f64;
    let few = if n > 3.0 { ((n - 1.0) / (n - 3.0)).sqrt() } else { 3.0 };
    2.0 * 1.2533 * deviation / n.max(1.0).sqrt() * few
}

/// The same of runs at another time, which differ by more than these do among themselves.
pub fn uncertainty(values: &[f64]) -> f64 {
    /// Medians of plain runs, a few seconds apart on a quiet machine, differed by 2.5% in the middle
    /// of TPC-H's 22 queries.
    const ANOTHER_TIME: f64 = 0.03;
    spread(values).max(ANOTHER_TIME * median(values))
}

/// How much longer the first take than the second, which were run in turns. They do not take less: if
/// it looks so, then noise is at least as large as that.
pub fn longer(these: &[f64], those: &[f64]) -> Range {
    let estimate = median(these) - median(those);
    let off = spread(these).hypot(spread(those)).max(-2.0 * estimate);
    Range { low: (estimate - off).max(0.0), estimate: estimate.max(0.0), high: estimate + off }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[4.0, 1.0]), median(&[9.0, 1.0, 2.0])], [0.0, 3.0, 2.5, 2.0]);
        assert_eq!(spread(&[100.0, 100.0, 100.0]), 0.0);
        assert_eq!(longer(&[100.0; 3], &[90.0; 3]), Range { low: 10.0, estimate: 10.0, high: 10.0 });
        assert_eq!(longer(&[90.0; 3], &[100.0; 3]), Range { low: 0.0, estimate: 0.0, high: 10.0 });
        let noisy = longer(&[90.0, 100.0, 110.0], &[80.0; 3]);
        assert!(noisy.low == 0.0 && noisy.estimate == 20.0 && noisy.high > 40.0, "{noisy:?}");
        assert_eq!(uncertainty(&[100.0, 100.0, 100.0]), 3.0);
        assert!(uncertainty(&[90.0, 100.0, 110.0]) > uncertainty(&[90.0, 90.0, 100.0, 110.0, 110.0, 100.0, 100.0]));
    }
}
