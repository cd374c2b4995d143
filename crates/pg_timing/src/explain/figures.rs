//! Medians, and how sure they are.

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

/// How far the median of some runs may be from that of many: the robust standard error of a median,
/// twice, by Student's t for few. Runs at another time differ by more than these do among
/// themselves.
pub fn uncertainty(values: &[f64]) -> f64 {
    /// Medians of plain runs, a few seconds apart on a quiet machine, differed by 2.5% in the middle
    /// of TPC-H's 22 queries.
    const ANOTHER_TIME: f64 = 0.03;
    let middle = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    // 1.4826 makes a standard deviation of it, and 1.2533 is what a median has more than a mean.
    let deviation = 1.4826 * median(&deviations);
    let n = values.len() as f64;
    let few = if n > 3.0 { ((n - 1.0) / (n - 3.0)).sqrt() } else { 3.0 };
    (2.0 * 1.2533 * deviation / n.sqrt() * few).max(ANOTHER_TIME * middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[4.0, 1.0]), median(&[9.0, 1.0, 2.0])], [0.0, 3.0, 2.5, 2.0]);
        assert_eq!(uncertainty(&[100.0, 100.0, 100.0]), 3.0);
        assert!(uncertainty(&[90.0, 100.0, 110.0]) > uncertainty(&[90.0, 90.0, 100.0, 110.0, 110.0, 100.0, 100.0]));
    }
}
