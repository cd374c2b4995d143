//! Exact counts of tick differences.

use std::collections::BTreeMap;

/// Differences below this many ticks are counted in an array: 16 us of a nanosecond clock, some 5 us
/// of a counter, above any clean read of a fast clock.
const DIRECT: usize = 1 << 14;
/// Distinct long differences that are kept exactly (some 5 MB). A run of hours can see more; further
/// ones are then counted under their first three digits.
const DISTINCT: usize = 100_000;

/// How often each difference was seen, in ticks.
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
    /// Counts one difference. `false` if it was a long one, which takes longer to count.
    #[inline(always)]
    pub fn add(&mut self, ticks: u64) -> bool {
        self.count += 1;
        match self.direct.get_mut(ticks as usize) {
            Some(count) => {
                *count += 1;
                true
            }
            None => {
                self.add_long(ticks);
                false
            }
        }
    }

    #[cold]
    fn add_long(&mut self, ticks: u64) {
        let key = match self.long.len() < DISTINCT || self.long.contains_key(&ticks) {
            true => ticks,
            false => three_digits(ticks),
        };
        *self.long.entry(key).or_insert(0) += 1;
    }

    /// How many differences were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Every difference that was seen, smallest first, with how often.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let direct = self.direct.iter().enumerate().map(|(ticks, count)| (ticks as u64, *count));
        direct.filter(|(_, count)| *count > 0).chain(self.long.iter().map(|(ticks, count)| (*ticks, *count)))
    }

    /// The smallest difference that at least this share of all do not exceed. `None` if there are none.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        self.iter().find_map(|(ticks, count)| {
            seen += count;
            (seen >= rank).then_some(ticks)
        })
    }

    /// The largest difference.
    pub fn max(&self) -> Option<u64> {
        self.iter().last().map(|(ticks, _)| ticks)
    }
}

/// The number with all but its first three digits set to 0.
fn three_digits(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(2));
    n / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_list(values in prop::collection::vec(0u64..1 << 20, 1..400), share in 0.0..=1.0f64) {
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
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut histogram = Histogram::default();
        for i in 0..300_000u64 {
            histogram.add(1_000_000 + i * 7);
        }
        assert!(histogram.long.len() < DISTINCT + 1_000);
        assert_eq!(histogram.iter().map(|(_, count)| count).sum::<u64>(), 300_000);
    }

    #[test]
    fn empty() {
        assert_eq!((Histogram::default().quantile(0.5), Histogram::default().max()), (None, None));
        assert_eq!(three_digits(123_456), 123_000);
        assert_eq!(three_digits(7), 7);
    }
}
