//! Values of options that several commands take, and the parsers of values with their ranges.

use crate::report::thresholds::{Limits, Watched};
use clap::ValueEnum;
use clap::builder::TypedValueParser;
use std::ops::RangeInclusive;
use timing_clock::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// A day. A longer time is probably a typing error.
pub const DAY_S: u64 = 86_400;

/// Returns a parser of a time in seconds, at most a day.
pub fn seconds(least: f64) -> impl TypedValueParser<Value = Nanos> {
    number(least..=DAY_S as f64).map(Nanos::from_secs)
}

/// Returns a parser of a number in this range.
pub fn number(range: RangeInclusive<f64>) -> impl TypedValueParser<Value = f64> {
    move |text: &str| match text.trim().parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(number) if !number.is_nan() => Err(format!("must be between {} and {}", range.start(), range.end())),
        _ => Err("not a number".to_string()),
    }
}

/// Returns a parser of a whole number from 1.
pub fn count(most: u64) -> impl TypedValueParser<Value = u64> {
    move |text: &str| match text.trim().parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("must be a whole number between 1 and {most}")),
    }
}

/// Sizes of units in the unit of the figure.
const UNITS: [(&str, f64); 6] = [("", 1.0), ("%", 1.0), ("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Returns the limits of one severity, like `read=100ns,lost=5%,skew=1us`. A number without a unit is in ns, or in percent for
/// lost time.
pub fn limits(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in text.split(',').map(str::trim) {
        let Some((name, limit)) = part.split_once('=').map(|(name, limit)| (name.trim(), limit.trim())) else {
            return Err(format!("\"{part}\" has no limit: use NAME=LIMIT, as in read=100ns,lost=5%,skew=1us"));
        };
        let Some(nth) = Watched::ALL.iter().position(|figure| figure.name == name) else {
            return Err(format!("unknown name \"{name}\": use read, lost or skew"));
        };
        let Watched { units, most: (most, range), .. } = Watched::ALL[nth];
        // A number can have an exponent, so the unit is what follows the last digit or point.
        let digits = limit.rfind(|c: char| c.is_ascii_digit() || c == '.').map_or(0, |last| last + 1);
        let (number, unit) = (limit[..digits].parse::<f64>(), limit[digits..].trim());
        let is_unit = unit.is_empty() || units.split([',', ' ']).any(|known| known == unit);
        let Some((_, factor)) = UNITS.into_iter().find(|(known, _)| is_unit && *known == unit) else {
            return Err(format!("unknown unit \"{unit}\" of {name}: use {units}"));
        };
        let number = number.map_err(|_| format!("the limit of {name} is not a number"))? * factor;
        if !(0.0..=most).contains(&number) {
            return Err(format!("{name} must be between {range}"));
        }
        if limits[nth].replace(number).is_some() {
            return Err(format!("{name} has two limits: use one"));
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed_by<T: Clone + Send + Sync>(parser: &impl TypedValueParser<Value = T>, text: &str) -> Option<T> {
        parser.parse_ref(&clap::Command::new("x"), None, text.as_ref()).ok()
    }

    #[test]
    fn numbers_outside_the_range_are_refused() {
        for bad in ["0", "0.09", "-1", "1e300", "inf", "NaN", "x", "", "4s", "86401"] {
            assert_eq!(parsed_by(&seconds(0.1), bad), None, "{bad}");
        }
        assert_eq!(parsed_by(&seconds(0.1), "4"), Some(Nanos::from_secs(4.0)));
        assert_eq!(parsed_by(&seconds(1.0), "0.9"), None);
        for bad in ["0", "-1", "86401", "1.5", "x", ""] {
            assert_eq!(parsed_by(&count(DAY_S), bad), None, "{bad}");
        }
        assert_eq!((parsed_by(&count(DAY_S), "86400"), parsed_by(&count(9), "9")), (Some(86_400), Some(9)));
        for bad in ["-0.1", "100.1", "nan", "x", ""] {
            assert_eq!(parsed_by(&number(0.0..=100.0), bad), None, "{bad}");
        }
        assert_eq!(parsed_by(&number(0.0..=100.0), "1e2"), Some(100.0));
    }

    fn parsed(text: &str) -> [Option<f64>; 3] {
        limits(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn limits_have_names_and_units() {
        assert_eq!(parsed("read=100ns,lost=5%,skew=1us"), [Some(100.0), Some(5.0), Some(1000.0)]);
        assert_eq!(parsed(" skew = 1.5 ms , read=0.001s"), [Some(1e6), None, Some(1.5e6)]);
        assert_eq!(parsed("read=1e3"), [Some(1000.0), None, None], "nanoseconds without a unit");
        assert_eq!(parsed("lost=0.5"), [None, Some(0.5), None], "percent without a unit");
        assert_eq!(parsed("lost=0,read=1000s"), [Some(1e12), Some(0.0), None]);
    }

    #[test]
    fn errors_name_the_part_that_is_wrong() {
        for (text, why) in [
            ("", "has no limit"),
            ("read", "\"read\" has no limit"),
            ("read=100ns,", "\"\" has no limit"),
            ("cost=5", "unknown name \"cost\": use read, lost or skew"),
            ("Read=5", "unknown name"),
            ("read=5%", "unknown unit \"%\" of read: use ns, us, ms or s"),
            ("lost=5ns", "unknown unit \"ns\" of lost: use %"),
            ("read=5 min", "unknown unit \"min\""),
            ("read=", "not a number"),
            ("read=ns", "not a number"),
            ("read=1,000ns", "\"000ns\" has no limit"),
            ("read=10:20", "not a number"),
            ("read=--5", "not a number"),
            ("read=-5", "between 0 and 1000 s"),
            ("read=1001s", "between 0 and 1000 s"),
            ("lost=100.1", "between 0% and 100%"),
            ("read=nan", "unknown unit"),
            ("read=1e400", "between"),
            ("read=5,read=6", "read has two limits"),
        ] {
            let error = limits(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_limits_or_an_error(text in any::<String>()) {
            _ = limits(&text);
        }

        #[test]
        fn any_list_of_names_and_numbers_has_finite_limits(
            text in "((read|lost|skew|x)? ?=? ?[-+]?[0-9.e]{0,6} ?(ns|us|ms|s|%|µs)?,?){0,4}"
        ) {
            if let Ok(limits) = limits(&text) {
                prop_assert!(limits.iter().flatten().all(|limit| (0.0..=1e12).contains(limit)), "{limits:?}");
                prop_assert!(limits.iter().any(Option::is_some));
            }
        }

        #[test]
        fn written_limits_are_read_back(read in 0.0..1e9f64, lost in 0.0..100f64, skew in 0.0..1e6f64) {
            let limits = limits(&format!("skew={skew}us,lost={lost}%,read={read}")).unwrap();
            prop_assert_eq!(limits.map(Option::unwrap), [read, lost, skew * 1e3]);
        }
    }
}
