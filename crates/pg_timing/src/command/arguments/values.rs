//! What options take, and what they refuse.

use crate::host::facts::LogSource;
use clap::builder::TypedValueParser;
use timing_clock::Nanos;

pub fn log_source() -> impl TypedValueParser<Value = LogSource> {
    clap::builder::PathBufValueParser::new().map(|path| match path.as_os_str() == "-" {
        true => LogSource::Stdin,
        false => LogSource::File(path),
    })
}

/// A day: beyond, a typing error is likelier than a wish.
const MOST_SECONDS: f64 = 86_400.0;
/// Less leaves no time to read each clock a few times.
const LEAST_SECONDS: f64 = 0.1;

/// Less is over before the other clock source is measured.
const LEAST_TRIAL_SECONDS: f64 = 1.0;

/// Backends report once a second: less shows nothing, and this not much.
const LEAST_WINDOW_SECONDS: f64 = 2.0;

pub fn window_seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(LEAST_WINDOW_SECONDS, text)
}

pub fn seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(LEAST_SECONDS, text)
}

pub fn trial_seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(LEAST_TRIAL_SECONDS, text)
}

fn seconds_from(least: f64, text: &str) -> Result<Nanos, String> {
    match text.trim().parse::<f64>() {
        Ok(s) if (least..=MOST_SECONDS).contains(&s) => Ok(Nanos::from_secs(s)),
        Ok(s) if s.is_nan() => Err("not a number".into()),
        Ok(_) => Err(format!("must be between {least} and {MOST_SECONDS} seconds")),
        Err(_) => Err("not a number".into()),
    }
}

/// PostgreSQL's own range.
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

/// A second: no clock is read in more.
pub fn nanoseconds(text: &str) -> Result<f64, String> {
    positive(text, 1e9)
}

/// 30 years.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    positive(text, 1e12)
}

fn positive(text: &str, most: f64) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value <= most => Ok(value),
        Ok(value) if value.is_nan() => Err("not a number".into()),
        Ok(_) => Err(format!("must be more than 0 and at most {most}")),
        Err(_) => Err("not a number".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(seconds("4"), Ok(Nanos::from_secs(4.0)));
        for bad in ["0", "-1", "1e300", "inf", "NaN", "x", "", "4s", "86401"] {
            assert!(seconds(bad).is_err(), "{bad}");
            assert!(trial_seconds(bad).is_err(), "{bad}");
        }
        assert!(window_seconds("1.9").is_err() && window_seconds("2").is_ok());
        assert!(trial_seconds("0.9").is_err() && trial_seconds("86400").is_ok());
        for bad in ["0", "-1", "4294967296", "1.5", "x", ""] {
            assert!(whole_seconds(bad).is_err(), "{bad}");
        }
        for bad in ["0", "-20", "nan", "inf", "x", "", "20ns", "1e10"] {
            assert!(nanoseconds(bad).is_err(), "{bad}");
        }
        assert_eq!((nanoseconds("22.3"), milliseconds("1e10")), (Ok(22.3), Ok(1e10)));
        for bad in ["-0.1", "100.1", "nan", "x", ""] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }
}
