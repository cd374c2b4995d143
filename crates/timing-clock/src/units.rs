//! Units as types, so that ticks and nanoseconds cannot be mixed up, and the conversion of ticks with integer arithmetic.

/// A time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Nanos(pub f64);

/// Ticks per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hertz(pub f64);

/// A relative difference or uncertainty in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ppm(pub f64);

impl Nanos {
    /// Converts milliseconds.
    pub const fn from_millis(ms: f64) -> Nanos {
        Nanos(ms * 1e6)
    }

    /// Converts seconds.
    pub const fn from_secs(s: f64) -> Nanos {
        Nanos(s * 1e9)
    }

    /// Returns the time in seconds.
    pub fn secs(self) -> f64 {
        self.0 / 1e9
    }
}

impl Hertz {
    /// Returns the rate in kilohertz. Kernels and PostgreSQL print rates in this unit.
    pub fn khz(self) -> f64 {
        self.0 / 1e3
    }

    /// Returns the duration of `ticks` at this rate.
    #[inline]
    pub fn nanos(self, ticks: f64) -> Nanos {
        Nanos(ticks * 1e9 / self.0)
    }

    /// Returns the number of ticks in `span` at this rate.
    #[inline]
    pub fn ticks(self, span: Nanos) -> f64 {
        span.0 * self.0 / 1e9
    }

    /// Returns the relative difference of this rate from `reference`. It is positive if this rate is higher.
    pub fn ppm_from(self, reference: Hertz) -> Ppm {
        Ppm((self.0 - reference.0) / reference.0 * 1e6)
    }
}

/// The rate of a clock whose ticks are nanoseconds.
pub const NANOSECONDS: Hertz = Hertz(1e9);

/// A factor that converts ticks to nanoseconds. A conversion is one multiplication of 64 by 64 bits and a shift.
///
/// Results are rounded to the nearest nanosecond. The factor has 64 significant bits, so its rounding changes a result
/// by at most one nanosecond, for every number of ticks. A result above `u64::MAX` ns (584 years) becomes `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// nanoseconds per tick, times 2^shift. The highest bit is set
    factor: u64,
    /// at least 1
    shift: u32,
}

impl Scale {
    /// Returns the scale of a clock with this rate. `None` if the rate is not between 1 Hz and 2^53 Hz. Below 1 MHz, the
    /// rate itself is rounded by up to 4e-11 of it.
    pub fn from_rate(rate: Hertz) -> Option<Scale> {
        const MAX_RATE: f64 = (1u64 << 53) as f64;
        if !(1.0..=MAX_RATE).contains(&rate.0) {
            return None;
        }
        let mut ticks = rate.0;
        let mut nanos = 1_000_000_000u128;
        // Doubling is exact in floating point. It keeps the fraction of a hertz in the integer ratio.
        while ticks <= MAX_RATE / 2.0 && nanos < 1 << 62 {
            ticks *= 2.0;
            nanos *= 2;
        }
        // The dividend has 128 bits and the divisor at most 54, so the quotient has more than 64 bits.
        let lift = nanos.leading_zeros();
        let quotient = (nanos << lift) / ticks.round() as u128;
        let excess_bits = 64 - quotient.leading_zeros();
        let rounded = ((quotient >> (excess_bits - 1)) + 1) >> 1;
        // Rounding up cannot carry into a 65th bit. That needs a ratio below a power of two by less than 2^-65 of it.
        // Two 64-bit numbers have no such ratio.
        Some(Scale { factor: u64::try_from(rounded).ok()?, shift: lift - excess_bits })
    }

    /// Converts `ticks` to nanoseconds, rounded to the nearest.
    #[inline]
    #[must_use]
    pub fn nanos(self, ticks: u64) -> u64 {
        let product = ticks as u128 * self.factor as u128;
        // Shift out all but one of the excess bits, then round. Adding the half before the shift could overflow.
        let nanos = ((product >> (self.shift - 1)) + 1) >> 1;
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// Converts `ticks` to nanoseconds. Negative ticks are rounded like positive ticks.
    #[inline]
    #[must_use]
    pub fn signed_nanos(self, ticks: i64) -> i64 {
        let nanos = i64::try_from(self.nanos(ticks.unsigned_abs())).unwrap_or(i64::MAX);
        if ticks < 0 { -nanos } else { nanos }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_convert_between_units() {
        assert_eq!(Nanos::from_millis(1.5), Nanos(1_500_000.0));
        assert_eq!(Nanos::from_secs(1.5), Nanos(1_500_000_000.0));
        assert_eq!(Nanos(2_500_000_000.0).secs(), 2.5);
    }

    #[test]
    fn a_rate_converts_ticks_to_time_and_back() {
        let rate = Hertz(2.5e9);
        assert_eq!(rate.khz(), 2_500_000.0);
        assert_eq!(rate.nanos(5.0), Nanos(2.0));
        assert_eq!(rate.ticks(Nanos(2.0)), 5.0);
        assert_eq!(NANOSECONDS.ticks(Nanos(7.0)), 7.0);
    }

    #[test]
    fn a_higher_rate_differs_by_a_positive_ppm() {
        assert_eq!(Hertz(2_000_010.0).ppm_from(Hertz(2_000_000.0)), Ppm(5.0));
        assert_eq!(Hertz(1_999_980.0).ppm_from(Hertz(2_000_000.0)), Ppm(-10.0));
    }
}

#[cfg(test)]
mod convert_tests {
    use super::Scale;
    use crate::Hertz;
    use proptest::prelude::*;

    /// Converts `ticks` at `hz` ticks per second with exact arithmetic. Rounds to the nearest.
    fn exact(ticks: u64, hz: u64) -> u64 {
        let product = ticks as u128 * 1_000_000_000;
        u64::try_from((product + hz as u128 / 2) / hz as u128).unwrap_or(u64::MAX)
    }

    proptest! {
        #[test]
        fn every_conversion_is_within_1_ns_of_exact_arithmetic(
            hz in 1u64..1 << 53,
            hz_shift in 0u32..53,
            ticks in any::<u64>(),
            tick_shift in 0u32..64,
        ) {
            let (hz, ticks) = ((hz >> hz_shift).max(1), ticks >> tick_shift);
            let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
            let (result, expected) = (scale.nanos(ticks), exact(ticks, hz));
            prop_assert!(result.abs_diff(expected) <= 1, "{result} instead of {expected}");
        }

        #[test]
        fn the_factor_is_the_nearest_one_of_64_bits(hz in 1u64..1 << 53) {
            let Scale { factor, shift } = Scale::from_rate(Hertz(hz as f64)).unwrap();
            prop_assert!(factor.leading_zeros() == 0, "{factor:x}");
            let (product, expected) = (factor as u128 * hz as u128, 1_000_000_000u128 << shift);
            prop_assert!(product.abs_diff(expected) * 2 <= hz as u128, "{product} instead of {expected}");
        }

        #[test]
        fn more_ticks_are_never_fewer_nanoseconds(hz in 1_000_000u64..10_000_000_000, ticks in 0..u64::MAX) {
            let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
            prop_assert!(scale.nanos(ticks) <= scale.nanos(ticks + 1));
        }

        #[test]
        fn negative_ticks_are_rounded_like_positive_ticks(hz in 1_000_000u64..10_000_000_000, ticks in 1..=i64::MAX) {
            let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
            prop_assert_eq!(scale.signed_nanos(ticks), -scale.signed_nanos(-ticks));
        }
    }

    #[cfg_attr(miri, ignore = "an interpreter takes too long")]
    #[test]
    fn rounding_errors_of_short_spans_have_mean_zero() {
        // Every span from 0 to a million ticks at 2 596 098 027 Hz.
        let hz = 2_596_098_027u64;
        let scale = Scale::from_rate(Hertz(hz as f64)).unwrap();
        let mut error = 0.0;
        for ticks in 0..1_000_000u64 {
            error += scale.nanos(ticks) as f64 - ticks as f64 * 1e9 / hz as f64;
        }
        assert!((error / 1e6).abs() < 1e-3, "mean error {} ns", error / 1e6);
    }

    #[test]
    fn nanosecond_ticks_stay_unchanged() {
        let scale = Scale::from_rate(crate::NANOSECONDS).unwrap();
        for ticks in [0, 1, 999, 1 << 53, u64::MAX] {
            assert_eq!(scale.nanos(ticks), ticks);
        }
    }

    #[test]
    fn extreme_results_saturate_with_their_sign() {
        let seconds = Scale::from_rate(Hertz(1.0)).unwrap();
        assert_eq!((seconds.nanos(1 << 35), seconds.nanos(u64::MAX)), (u64::MAX, u64::MAX));
        assert_eq!((seconds.signed_nanos(1 << 35), seconds.signed_nanos(-1 << 35)), (i64::MAX, -i64::MAX));
        let doubled = Scale::from_rate(Hertz(5e8)).unwrap();
        assert_eq!([3, 0, -3].map(|ticks| doubled.signed_nanos(ticks)), [6, 0, -6]);
        let short_ticks = Scale::from_rate(Hertz((1u64 << 53) as f64)).unwrap();
        assert_eq!((short_ticks.nanos(1 << 23), short_ticks.nanos(1 << 22)), (1, 0));
    }

    #[test]
    fn a_fraction_of_a_hertz_counts() {
        // 1 000 000.25 Hz: 4 000 001 ticks in 4 s. 1.25 Hz: 5 ticks in 4 s.
        assert_eq!(Scale::from_rate(Hertz(1_000_000.25)).unwrap().nanos(4_000_001), 4_000_000_000);
        assert_eq!(Scale::from_rate(Hertz(1.25)).unwrap().nanos(5), 4_000_000_000);
    }

    #[test]
    fn the_limits_of_a_rate_are_included() {
        assert_eq!(Scale::from_rate(Hertz(1.0)).unwrap().nanos(7), 7_000_000_000);
        assert_eq!(Scale::from_rate(Hertz((1u64 << 53) as f64)).unwrap().nanos(1 << 53), 1_000_000_000);
    }

    #[test]
    fn impossible_rates_are_refused() {
        for hz in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e17] {
            assert_eq!(Scale::from_rate(Hertz(hz)), None);
        }
    }
}
