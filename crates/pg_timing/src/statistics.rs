//! Medians, and how sure they are.

use crate::report::Range;

/// Medians of plain runs, a few seconds apart on a quiet machine, differed by 2.5% in the middle of
/// TPC-H's 22 queries.
pub const ANOTHER_TIME: f64 = 0.03;

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

/// Student's t, for 95 of 100, of two values and more.
const T: [f64; 6] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45];

/// Two standard deviations. Of few values by all of them, for some may be alike by chance; of more,
/// robustly.
pub fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if let Some(t) = values.len().checked_sub(2).and_then(|more| T.get(more)) {
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        return t * (squares / (n - 1.0)).sqrt();
    }
    let middle = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    // As few as that are not sure of it.
    two_deviations(median(&deviations)) * if n > 3.0 { ((n - 1.0) / (n - 3.0)).sqrt() } else { 1.0 }
}

/// Two standard deviations, where half of the values are within `half` of the middle one.
pub fn two_deviations(half: f64) -> f64 {
    2.0 * 1.4826 * half
}

/// How far the median of some runs may be from that of many at the same time: its standard error,
/// twice; a median's is 1.2533 times that of a mean.
pub fn spread(values: &[f64]) -> f64 {
    1.2533 * deviation(values) / (values.len() as f64).max(1.0).sqrt()
}

/// How far it may be from that of runs at another time. What makes a machine slow lasts for many runs,
/// so that more of them do not make it surer: as far as a single run. Of runs at two speeds, as beside
/// a neighbour that comes and goes, the deviation sees the more frequent one alone; the farthest see both.
pub fn uncertainty(values: &[f64]) -> f64 {
    deviation(values).max(farthest(values)).max(ANOTHER_TIME * median(values))
}

/// From the median to the farthest, but for one in twenty at either end.
fn farthest(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let outside = values.len() / 20;
    match (sorted.get(outside), sorted.iter().nth_back(outside)) {
        (Some(low), Some(high)) => (high - median(values)).max(median(values) - low),
        _ => 0.0,
    }
}

/// What several reasons come to that are off by chance, each for itself.
pub fn together(offs: impl IntoIterator<Item = f64>) -> f64 {
    offs.into_iter().map(|off| off * off).sum::<f64>().sqrt()
}

/// How much longer the first take than the second, which were run in turns: what makes the machine
/// slow falls out, run by run. They do not take less: if it looks so, then noise is at least as large
/// as that.
pub fn longer(these: &[f64], those: &[f64]) -> Range {
    let each: Vec<f64> = these.iter().zip(those).map(|(this, that)| this - that).collect();
    let estimate = median(&each);
    let off = spread(&each).max(-2.0 * estimate);
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
        // Half of the time the machine is slow.
        let slow = longer(&[110.0, 210.0, 110.0, 210.0], &[100.0, 200.0, 100.0, 200.0]);
        assert_eq!(slow, Range { low: 10.0, estimate: 10.0, high: 10.0 });
        assert_eq!(uncertainty(&[100.0, 100.0, 100.0]), 3.0);
        assert!(spread(&[90.0, 100.0, 110.0]) > spread(&[90.0, 90.0, 100.0, 110.0, 110.0, 100.0, 100.0]));
        // Two speeds, of which one is seldom.
        assert_eq!(uncertainty(&[100.0, 100.0, 200.0, 100.0, 100.0, 100.0, 200.0, 100.0, 100.0]), 100.0);
        assert!(uncertainty(&[90.0, 90.0, 100.0, 110.0, 110.0, 90.0, 110.0]) > 20.0);
    }
}
