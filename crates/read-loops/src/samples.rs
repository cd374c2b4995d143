//! Exact counts of tick differences, and samples with a maximum size, from streams of any length.

use std::collections::BTreeMap;

/// Differences below this many ticks are counted in an array. These ticks are 16 us of a nanosecond clock and about 5
/// us of a counter. An uninterrupted read of a fast clock is always shorter.
const DIRECT: usize = 1 << 14;
/// Maximum number of distinct long differences that are counted exactly. They take about 5 MB. A run of hours can have
/// more of them. Further differences are counted with three digits.
const DISTINCT: usize = 100_000;

/// The number of occurrences of each difference in ticks.
#[derive(Clone, Debug)]
pub struct Histogram {
    direct: Box<[u64; DIRECT]>,
    long: BTreeMap<u64, u64>,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { direct: vec![0; DIRECT].try_into().expect("its length is DIRECT"), long: BTreeMap::new(), count: 0 }
    }
}

impl Histogram {
    /// Counts one difference. Returns `false` if the difference is long: counting it takes longer.
    #[inline(always)]
    pub fn add(&mut self, ticks: u64) -> bool {
        self.count += 1;
        if let Some(count) = self.direct.get_mut(ticks as usize) {
            *count += 1;
            return true;
        }
        self.add_long(ticks);
        false
    }

    #[cold]
    fn add_long(&mut self, ticks: u64) {
        let is_exact = self.long.len() < DISTINCT || self.long.contains_key(&ticks);
        let key = if is_exact { ticks } else { three_digits(ticks) };
        *self.long.entry(key).or_insert(0) += 1;
    }

    /// Returns the number of differences.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns every difference with its number of occurrences, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let direct = self.direct.iter().enumerate().map(|(ticks, count)| (ticks as u64, *count));
        direct.filter(|(_, count)| *count > 0).chain(self.long.iter().map(|(ticks, count)| (*ticks, *count)))
    }

    /// Returns a quantile: at least this share of the differences is at or below it. `None` if the histogram is empty.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        self.iter().find_map(|(ticks, count)| {
            seen += count;
            (seen >= rank).then_some(ticks)
        })
    }

    /// Returns the largest difference. `None` if the histogram is empty.
    pub fn max(&self) -> Option<u64> {
        self.iter().last().map(|(ticks, _)| ticks)
    }
}

/// Returns the number with all digits after the third set to 0.
fn three_digits(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(2));
    n / unit * unit
}

/// The maximum size of the sample.
const MAX_SIZE: usize = 1 << 15;

/// A sample that keeps one of 2^`halvings` values of a stream. When it is full, it drops every other value. So the sample is
/// always spread evenly over the stream.
#[derive(Clone, Debug, Default)]
pub struct Subsample {
    values: Vec<f64>,
    halvings: u32,
    pushed: u64,
}

impl Subsample {
    /// Adds a value of the stream.
    pub fn push(&mut self, value: f64) {
        if self.values.len() == MAX_SIZE && self.pushed.is_multiple_of(1 << self.halvings) {
            self.values = self.values.iter().step_by(2).copied().collect();
            self.halvings += 1;
        }
        if self.pushed.is_multiple_of(1 << self.halvings) {
            self.values.push(value);
        }
        self.pushed += 1;
    }

    /// Returns the number of values in the sample.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Returns the 25th, 50th and 75th percentile. `None` if the sample is empty.
    pub fn quartiles(&self) -> Option<[f64; 3]> {
        self.quantiles([0.25, 0.5, 0.75])
    }

    /// Returns the 5th percentile: a time without disturbance by other work on the machine.
    pub fn undisturbed(&self) -> Option<f64> {
        self.quantiles([0.05]).map(|[low]| low)
    }

    /// Returns the sample's values at these shares of its sorted list. `None` if the sample is empty.
    fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<[f64; N]> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        Some(shares.map(|share| sorted[(last as f64 * share).round() as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_match_the_sorted_list(values in prop::collection::vec(0u64..1 << 20, 1..400), share in 0.0..=1.0f64) {
            let mut values: Vec<u64> = values;
            let mut histogram = Histogram::default();
            for &v in &values {
                histogram.add(v);
            }
            values.sort_unstable();
            let rank = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len());
            prop_assert_eq!(histogram.quantile(share), Some(values[rank - 1]));
            prop_assert_eq!(histogram.max(), values.last().copied());
            prop_assert_eq!(histogram.count(), values.len() as u64);
        }
    }

    #[test]
    fn memory_is_bounded_and_every_difference_is_counted() {
        let mut histogram = Histogram::default();
        for i in 0..300_000u64 {
            histogram.add(1_000_000 + i * 7);
        }
        assert!(histogram.long.len() < DISTINCT + 1_000);
        assert_eq!(histogram.iter().map(|(_, count)| count).sum::<u64>(), 300_000);
    }

    #[test]
    fn an_empty_histogram_has_no_quantiles() {
        assert_eq!((Histogram::default().quantile(0.5), Histogram::default().max()), (None, None));
    }

    #[test]
    fn three_digits_sets_further_digits_to_0() {
        assert_eq!(three_digits(123_456), 123_000);
        assert_eq!(three_digits(7), 7);
    }

    #[test]
    fn only_short_differences_are_counted_in_the_array() {
        let mut histogram = Histogram::default();
        assert_eq!([0, DIRECT as u64 - 1, DIRECT as u64].map(|ticks| histogram.add(ticks)), [true, true, false]);
        assert_eq!(histogram.iter().collect::<Vec<_>>(), [(0, 1), (DIRECT as u64 - 1, 1), (DIRECT as u64, 1)]);
    }

    #[test]
    fn a_full_histogram_counts_known_differences_exactly_and_new_ones_with_three_digits() {
        let mut histogram = Histogram::default();
        for i in 0..DISTINCT as u64 {
            histogram.add(1_000_000 + i);
        }
        histogram.add(1_000_007);
        histogram.add(123_456_789);
        histogram.add(123_499_999);
        assert_eq!(histogram.long.len(), DISTINCT + 1);
        assert_eq!((histogram.long.get(&1_000_007), histogram.long.get(&123_000_000)), (Some(&2), Some(&2)));
    }
}

#[cfg(test)]
mod subsample_tests {
    use super::*;

    #[test]
    fn a_long_stream_gives_an_evenly_spread_sample() {
        let mut sample = Subsample::default();
        for i in 0..1_000_000 {
            sample.push(i as f64);
        }
        assert!((MAX_SIZE / 2..=MAX_SIZE).contains(&sample.count()), "{}", sample.count());
        let [low, mid, high] = sample.quartiles().unwrap();
        for (got, want) in
            [(low, 250_000.0), (mid, 500_000.0), (high, 750_000.0), (sample.undisturbed().unwrap(), 50_000.0)]
        {
            assert!((got - want).abs() < 100.0, "{got} for {want}");
        }
    }

    #[test]
    fn a_short_stream_is_kept_completely() {
        let mut sample = Subsample::default();
        (0..MAX_SIZE).for_each(|i| sample.push(i as f64));
        assert_eq!(sample.count(), MAX_SIZE);
        assert_eq!(sample.quartiles().map(|q| q[1]), Some(16_384.0));
    }

    #[test]
    fn an_empty_sample_has_no_percentiles() {
        let empty = Subsample::default();
        assert_eq!((empty.quartiles(), empty.undisturbed(), empty.count()), (None, None, 0));
    }

    #[test]
    fn a_full_sample_drops_every_other_value() {
        let mut sample = Subsample::default();
        let (full, mut next) = (MAX_SIZE as u64, 0);
        for (length, stride) in [(full, 1), (full + 1, 2), (2 * full, 2), (2 * full + 1, 4), (4 * full + 5, 8)] {
            while next < length {
                sample.push(next as f64);
                next += 1;
            }
            let expected: Vec<f64> = (0..length).step_by(stride).map(|i| i as f64).collect();
            assert_eq!((1 << sample.halvings, &sample.values), (stride, &expected));
        }
    }
}
