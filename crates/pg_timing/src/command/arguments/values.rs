//! Parsers of option values, with the range of each value.

use crate::host::facts::LogSource;
use clap::builder::TypedValueParser;
use timing_clock::Nanos;

pub fn log_source() -> impl TypedValueParser<Value = LogSource> {
    clap::builder::PathBufValueParser::new().map(|path| match path.as_os_str() == "-" {
        true => LogSource::Stdin,
        false => LogSource::File(path),
    })
}

/// A day. A longer time is probably a typing error.
const MAX_SECONDS: f64 = 86_400.0;
/// In less time, each clock cannot be read several times.
const MIN_SECONDS: f64 = 0.1;
/// A shorter trial would end before the new clock source is measured.
const MIN_TRIAL_SECONDS: f64 = 1.0;
/// Backends report their statistics once per second, so a shorter observation shows nothing.
const MIN_WINDOW_SECONDS: f64 = 2.0;

pub fn window_seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(MIN_WINDOW_SECONDS, text)
}

pub fn seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(MIN_SECONDS, text)
}

pub fn trial_seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(MIN_TRIAL_SECONDS, text)
}

/// The shortest interval of the monitor. A sample takes some milliseconds.
const MIN_INTERVAL_SECONDS: f64 = 0.02;

pub fn interval_seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(MIN_INTERVAL_SECONDS, text)
}

/// More samples would take decades.
const MAX_SAMPLES: u64 = 1_000_000_000;

/// The number of samples of the monitor.
pub fn sample_count(text: &str) -> Result<u64, String> {
    match text.trim().parse::<u64>() {
        Ok(count) if (1..=MAX_SAMPLES).contains(&count) => Ok(count),
        _ => Err(format!("must be a whole number between 1 and {MAX_SAMPLES}")),
    }
}

fn seconds_from(min: f64, text: &str) -> Result<Nanos, String> {
    match text.trim().parse::<f64>() {
        Ok(s) if (min..=MAX_SECONDS).contains(&s) => Ok(Nanos::from_secs(s)),
        Ok(s) if s.is_nan() => Err("not a number".into()),
        Ok(_) => Err(format!("must be between {min} and {MAX_SECONDS} seconds")),
        Err(_) => Err("not a number".into()),
    }
}

/// A run without a limit could block the server, so there is no value for that.
pub fn limit_seconds(text: &str) -> Result<u64, String> {
    match text.trim().parse::<u64>() {
        Ok(seconds) if (1..=MAX_SECONDS as u64).contains(&seconds) => Ok(seconds),
        _ => Err(format!("must be a whole number of seconds between 1 and {MAX_SECONDS}")),
    }
}

/// No log has more plans.
const MAX_PLANS: usize = 1_000_000_000;

pub fn plan_number(text: &str) -> Result<usize, String> {
    up_to(MAX_PLANS, text)
}

/// A longer list is not readable, and its plans would fill the memory.
const MAX_COUNT: usize = 1000;

/// The number of plans or statements to show.
pub fn count(text: &str) -> Result<usize, String> {
    up_to(MAX_COUNT, text)
}

fn up_to(max: usize, text: &str) -> Result<usize, String> {
    match text.trim().parse::<usize>() {
        Ok(count) if (1..=max).contains(&count) => Ok(count),
        _ => Err(format!("must be a whole number between 1 and {max}")),
    }
}

/// The range is that of PostgreSQL's pg_test_timing.
pub fn whole_seconds(text: &str) -> Result<u32, String> {
    match text.trim().parse::<u32>() {
        Ok(s @ 1..) => Ok(s),
        _ => Err(format!("must be a whole number in range 1..{}", u32::MAX)),
    }
}

pub fn percent(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(p) if (0.0..=100.0).contains(&p) => Ok(p),
        _ => Err("must be a number in range 0..100".into()),
    }
}

/// Reading a clock takes at least 1 ns, which is about four cycles of a fast processor, and never more than one second.
pub fn nanoseconds(text: &str) -> Result<f64, String> {
    match positive(text, 1e9)? {
        ns if ns < 1.0 => Err("no clock is read in less than 1 ns".into()),
        ns => Ok(ns),
    }
}

/// The limit is 30 years.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    positive(text, 1e12)
}

fn positive(text: &str, max: f64) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value <= max => Ok(value),
        Ok(value) if value.is_nan() => Err("not a number".into()),
        Ok(_) => Err(format!("must be more than 0 and at most {max}")),
        Err(_) => Err("not a number".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_outside_the_range_are_refused() {
        assert_eq!(seconds("4"), Ok(Nanos::from_secs(4.0)));
        assert_eq!(seconds("0.1"), Ok(Nanos::from_millis(100.0)));
        for bad in ["0", "0.09", "-1", "1e300", "inf", "NaN", "x", "", "4s", "86401"] {
            assert!(seconds(bad).is_err(), "{bad}");
            assert!(trial_seconds(bad).is_err(), "{bad}");
            assert!(window_seconds(bad).is_err(), "{bad}");
        }
        assert!(trial_seconds("0.9").is_err() && trial_seconds("1").is_ok() && trial_seconds("86400").is_ok());
        assert!(window_seconds("1.9").is_err() && window_seconds("2").is_ok());
        for bad in ["0", "-1", "4294967296", "1.5", "x", ""] {
            assert!(whole_seconds(bad).is_err(), "{bad}");
            assert!(limit_seconds(bad).is_err(), "{bad}");
        }
        assert_eq!((limit_seconds("1"), limit_seconds("86400")), (Ok(1), Ok(86_400)));
        assert!(limit_seconds("86401").is_err());
        assert_eq!((whole_seconds("1"), whole_seconds("4294967295")), (Ok(1), Ok(4_294_967_295)));
    }

    #[test]
    fn costs_and_times_outside_the_range_are_refused() {
        for bad in ["0", "-20", "nan", "inf", "x", "", "20ns", "1e13"] {
            assert!(nanoseconds(bad).is_err(), "{bad}");
            assert!(milliseconds(bad).is_err(), "{bad}");
        }
        assert!(nanoseconds("1e10").is_err());
        assert!(nanoseconds("0.9").unwrap_err().contains("less than 1 ns"));
        assert_eq!((nanoseconds("22.3"), milliseconds("1e10")), (Ok(22.3), Ok(1e10)));
    }

    #[test]
    fn percentages_outside_the_range_are_refused() {
        for bad in ["-0.1", "100.1", "nan", "x", ""] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        assert_eq!((percent("0"), percent("100")), (Ok(0.0), Ok(100.0)));
    }
}
