//! Ticks to nanoseconds, in integers.

use crate::Hertz;

/// A factor that turns ticks into nanoseconds: one 64 by 64 bit multiplication and a shift.
///
/// The factor keeps 64 significant bits, so over all of `u64` its own rounding moves a result by
/// at most one nanosecond, and results are rounded to the nearest. A span longer than `u64::MAX`
/// ns (584 years) saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// nanoseconds per tick times 2^shift; the top bit is set
    factor: u64,
    shift: u32,
}

impl Scale {
    /// The scale at which `ticks` last `nanos` nanoseconds. `None` if either is 0.
    pub fn from_ratio(ticks: u64, nanos: u64) -> Option<Scale> {
        if ticks == 0 || nanos == 0 {
            return None;
        }
        // 127 bits of quotient hold the 64 that are kept, whatever the two numbers are.
        let lift = (nanos as u128).leading_zeros();
        let quotient = ((nanos as u128) << lift) / ticks as u128;
        let spare = 64 - quotient.leading_zeros() as i32; // bits below the 64 kept
        debug_assert!(spare >= 0);
        let rounded = match spare {
            0 => quotient,
            _ => ((quotient >> (spare - 1)) + 1) >> 1,
        };
        // Rounding up can carry into a 65th bit.
        let carry = (rounded >> 64) as u32;
        Some(Scale { factor: (rounded >> carry) as u64, shift: lift - spare as u32 - carry })
    }

    /// The scale of a clock of `rate`. `None` unless the rate is between 1 Hz and 2^53 Hz.
    pub fn from_rate(rate: Hertz) -> Option<Scale> {
        // A factor of 2^k is exact in floating point and keeps the fraction of a hertz.
        const MOST: f64 = (1u64 << 53) as f64;
        if !(1.0..=MOST).contains(&rate.0) {
            return None;
        }
        let mut ticks = rate.0;
        let mut nanos = 1_000_000_000u64;
        while ticks <= MOST / 2.0 && nanos < 1 << 62 {
            ticks *= 2.0;
            nanos *= 2;
        }
        Scale::from_ratio(ticks.round() as u64, nanos)
    }

    /// Nanoseconds in `ticks`, rounded to the nearest.
    #[inline]
    pub fn nanos(self, ticks: u64) -> u64 {
        let product = ticks as u128 * self.factor as u128;
        // Half of the last place is added after all but one bit are shifted out: it cannot overflow.
        let nanos = match self.shift {
            0 => product,
            shift => ((product >> (shift - 1)) + 1) >> 1,
        };
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// Nanoseconds in `ticks`, which may be negative: rounding is the same on both sides of 0.
    #[inline]
    pub fn signed_nanos(self, ticks: i64) -> i64 {
        let nanos = i64::try_from(self.nanos(ticks.unsigned_abs())).unwrap_or(i64::MAX);
        if ticks < 0 { -nanos } else { nanos }
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;
    use crate::Hertz;
    use proptest::prelude::*;

    /// ticks * nanos / per, rounded to the nearest, with nothing lost on the way
    fn exact(ticks: u64, per: u64, nanos: u64) -> u64 {
        let product = ticks as u128 * nanos as u128;
        u64::try_from((product + per as u128 / 2) / per as u128).unwrap_or(u64::MAX)
    }

    proptest! {
        #[test]
        fn within_one_ns_of_exact_arithmetic_over_the_whole_range(
            ticks in any::<u64>(), small in 0u32..64, per in 1u64.., nanos in 1u64..
        ) {
            let ticks = ticks >> small;
            let scale = Scale::from_ratio(per, nanos).unwrap();
            let (got, want) = (scale.nanos(ticks), exact(ticks, per, nanos));
            // saturation is decided by the exact product, so allow its edge
            prop_assert!(got.abs_diff(want) <= 1, "{got} for {want}");
        }

        #[test]
        fn rates_of_real_counters(hz in 1_000_000u64..10_000_000_000, ticks in any::<u64>(), small in 0u32..64) {
            let ticks = ticks >> small;
            let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
            prop_assert!(scale.nanos(ticks).abs_diff(exact(ticks, hz, 1_000_000_000)) <= 1);
        }

        #[test]
        fn never_decreases(hz in 1_000_000u64..10_000_000_000, ticks in 0..u64::MAX) {
            let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
            prop_assert!(scale.nanos(ticks) <= scale.nanos(ticks + 1));
        }

        #[test]
        fn the_same_on_both_sides_of_zero(hz in 1_000_000u64..10_000_000_000, ticks in 1..=i64::MAX) {
            let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
            prop_assert_eq!(scale.signed_nanos(ticks), -scale.signed_nanos(-ticks));
        }
    }

    #[test]
    fn no_bias_over_many_short_spans() {
        // 2 596 098 027 Hz, every span from 0 to a million ticks: the errors must average out.
        let hz = 2_596_098_027u64;
        let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
        let mut error = 0.0;
        for ticks in 0..1_000_000u64 {
            error += scale.nanos(ticks) as f64 - ticks as f64 * 1e9 / hz as f64;
        }
        assert!((error / 1e6).abs() < 1e-3, "mean error {} ns", error / 1e6);
    }

    #[test]
    fn a_nanosecond_clock_is_passed_through() {
        let scale = Scale::from_rate(crate::NANOSECONDS).unwrap();
        for ticks in [0, 1, 999, 1 << 53, u64::MAX] {
            assert_eq!(scale.nanos(ticks), ticks);
        }
    }

    #[test]
    fn rates_that_are_none_are_refused() {
        for hz in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e17] {
            assert_eq!(Scale::from_rate(Hertz(hz)), None);
        }
    }
}
