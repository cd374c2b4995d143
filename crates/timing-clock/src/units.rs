//! Units as types, so that a tick is never taken for a nanosecond.

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Nanos(pub f64);

/// Ticks per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hertz(pub f64);

/// A relative difference or uncertainty, in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ppm(pub f64);

impl Nanos {
    /// So many milliseconds.
    pub const fn from_millis(ms: f64) -> Nanos {
        Nanos(ms * 1e6)
    }

    /// So many seconds.
    pub const fn from_secs(s: f64) -> Nanos {
        Nanos(s * 1e9)
    }

    /// The span in seconds.
    pub fn secs(self) -> f64 {
        self.0 / 1e9
    }
}

impl Hertz {
    /// The rate in kilohertz, the unit in which kernels and PostgreSQL print it.
    pub fn khz(self) -> f64 {
        self.0 / 1e3
    }

    /// How long `ticks` last at this rate.
    #[inline]
    pub fn nanos(self, ticks: f64) -> Nanos {
        Nanos(ticks * 1e9 / self.0)
    }

    /// How many ticks `span` holds at this rate.
    #[inline]
    pub fn ticks(self, span: Nanos) -> f64 {
        span.0 * self.0 / 1e9
    }

    /// How far this rate is above (positive) or below `reference`.
    pub fn ppm_from(self, reference: Hertz) -> Ppm {
        Ppm((self.0 - reference.0) / reference.0 * 1e6)
    }
}

/// The rate of a clock whose tick is the nanosecond.
pub const NANOSECONDS: Hertz = Hertz(1e9);
