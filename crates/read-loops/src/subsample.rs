//! A sample with a maximum size, from a stream of any length.

/// The maximum size of the sample.
const MAX_SIZE: usize = 1 << 15;

/// A sample that keeps every `stride`-th value of a stream. When it is full, it drops every other value and doubles the
/// stride. So the sample is always spread evenly over the stream.
#[derive(Clone, Debug)]
pub struct Subsample {
    values: Vec<f64>,
    stride: u64,
    pushed: u64,
}

impl Default for Subsample {
    fn default() -> Self {
        Subsample { values: Vec::new(), stride: 1, pushed: 0 }
    }
}

impl Subsample {
    /// Adds a value of the stream.
    pub fn push(&mut self, value: f64) {
        if self.pushed.is_multiple_of(self.stride) {
            if self.values.len() == MAX_SIZE {
                let mut nth = 0;
                self.values.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.stride *= 2;
            }
            if self.pushed.is_multiple_of(self.stride) {
                self.values.push(value);
            }
        }
        self.pushed += 1;
    }

    /// Returns the number of values in the sample.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether the sample has no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
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

    #[test]
    fn a_long_stream_gives_an_evenly_spread_sample() {
        let mut sample = Subsample::default();
        for i in 0..1_000_000 {
            sample.push(i as f64);
        }
        assert!((MAX_SIZE / 2..=MAX_SIZE).contains(&sample.len()), "{}", sample.len());
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
        assert_eq!((sample.len(), sample.is_empty()), (MAX_SIZE, false));
        assert_eq!(sample.quartiles().map(|q| q[1]), Some(16_384.0));
    }

    #[test]
    fn an_empty_sample_has_no_percentiles() {
        let empty = Subsample::default();
        assert_eq!((empty.quartiles(), empty.undisturbed(), empty.is_empty()), (None, None, true));
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
            assert_eq!((sample.stride, &sample.values), (stride as u64, &expected));
        }
    }
}
