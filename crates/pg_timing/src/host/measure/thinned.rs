//! A sample of bounded size out of a stream of any length.

/// At most this many values are kept.
const MOST: usize = 1 << 15;

/// Every `stride`-th value of what was pushed. When it is full, every other value goes and the
/// stride doubles, so that the sample stays spread evenly over the run.
#[derive(Clone, Debug)]
pub struct Thinned {
    values: Vec<f64>,
    stride: u64,
    pushed: u64,
}

impl Default for Thinned {
    fn default() -> Self {
        Thinned { values: Vec::new(), stride: 1, pushed: 0 }
    }
}

impl Thinned {
    pub fn push(&mut self, value: f64) {
        if self.pushed.is_multiple_of(self.stride) {
            if self.values.len() == MOST {
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

    /// How many values are kept.
    pub fn kept(&self) -> usize {
        self.values.len()
    }

    /// The 25th, 50th and 75th percentile. `None` if nothing was pushed.
    pub fn quartiles(&self) -> Option<[f64; 3]> {
        self.quantiles([0.25, 0.5, 0.75])
    }

    /// The 5th percentile: of times, those that nothing else on the machine has made longer.
    pub fn undisturbed(&self) -> Option<f64> {
        self.quantiles([0.05]).map(|[low]| low)
    }

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
    fn stays_small_and_spread_over_the_run() {
        let mut sample = Thinned::default();
        for i in 0..1_000_000 {
            sample.push(i as f64);
        }
        assert!(sample.values.len() <= MOST);
        let [low, mid, high] = sample.quartiles().unwrap();
        for (got, want) in [(low, 250_000.0), (mid, 500_000.0), (high, 750_000.0)] {
            assert!((got - want).abs() < 20_000.0, "{got} for {want}");
        }
    }

    #[test]
    fn nothing_pushed() {
        assert_eq!((Thinned::default().quartiles(), Thinned::default().undisturbed()), (None, None));
    }
}
