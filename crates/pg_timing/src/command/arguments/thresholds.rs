//! The parser of thresholds: `read=100ns,lost=5%,skew=1us`.

use crate::report::thresholds::{Limits, Watched};

/// A unit, and its size in the unit of the figure.
type Unit = (&'static str, f64);

const TIMES: &[Unit] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SHARES: &[Unit] = &[("%", 1.0)];

/// No read and no skew takes longer than 1000 s.
const MAX_NS: f64 = 1e12;
const MAX_PERCENT: f64 = 100.0;

/// Returns the limits of one severity. A number without a unit is in ns, or in percent for lost time.
pub fn limits(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in text.split(',') {
        let Some((name, limit)) = part.split_once('=') else {
            return Err(format!("\"{}\" has no limit: use NAME=LIMIT, as in read=100ns,lost=5%,skew=1us", part.trim()));
        };
        let name = name.trim();
        let Some(figure) = Watched::ALL.into_iter().find(|figure| figure.name() == name) else {
            return Err(format!("unknown name \"{name}\": use read, lost or skew"));
        };
        if limits.get(figure).is_some() {
            return Err(format!("{name} has two limits: use one"));
        }
        limits.set(figure, number(figure, limit.trim())?);
    }
    Ok(limits)
}

fn number(figure: Watched, text: &str) -> Result<f64, String> {
    let (units, max, names) = match figure {
        Watched::Read | Watched::Skew => (TIMES, MAX_NS, "ns, us, ms or s"),
        Watched::Lost => (SHARES, MAX_PERCENT, "%"),
    };
    // A number can have an exponent, so the unit is what follows the last digit or point.
    let digits = text.rfind(|c: char| c.is_ascii_digit() || c == '.').map_or(0, |last| last + 1);
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" => 1.0,
        unit => {
            let known = units.iter().find(|(name, _)| *name == unit);
            known.ok_or_else(|| format!("unknown unit \"{unit}\" of {}: use {names}", figure.name()))?.1
        }
    };
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=max).contains(&(number * factor)) => Ok(number * factor),
        Ok(_) => Err(match figure {
            Watched::Lost => format!("{} must be between 0% and 100%", figure.name()),
            _ => format!("{} must be between 0 and 1000 s", figure.name()),
        }),
        Err(_) => Err(format!("the limit of {} is not a number", figure.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> [Option<f64>; 3] {
        let limits = limits(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        Watched::ALL.map(|figure| limits.get(figure))
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
                let all = Watched::ALL.map(|figure| limits.get(figure));
                prop_assert!(all.iter().flatten().all(|limit| (0.0..=MAX_NS).contains(limit)), "{all:?}");
                prop_assert!(all.iter().any(Option::is_some));
            }
        }

        #[test]
        fn written_limits_are_read_back(read in 0.0..1e9f64, lost in 0.0..100f64, skew in 0.0..1e6f64) {
            let limits = limits(&format!("skew={skew}us,lost={lost}%,read={read}")).unwrap();
            let all = Watched::ALL.map(|figure| limits.get(figure).unwrap());
            prop_assert_eq!(all, [read, lost, skew * 1e3]);
        }
    }
}
