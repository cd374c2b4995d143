//! Units as types, so that ticks and nanoseconds cannot be mixed up.

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
