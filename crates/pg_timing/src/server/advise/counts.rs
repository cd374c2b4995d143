//! The server's own statistics at two times, and what lies between.

use crate::error::Error;
use crate::server::session::Session;
use std::collections::BTreeMap;

/// A part of the statistics: what it is called, and the statement that gives names and numbers. Of
/// those, `reset` is when somebody last set them to zero.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: &'static str,
    pub sql: String,
}

type Numbers = BTreeMap<String, f64>;

/// Each part's numbers, or why there are none.
#[derive(Clone, Debug, Default)]
pub struct Snapshot(BTreeMap<&'static str, Result<Numbers, String>>);

impl Snapshot {
    /// What the server refuses is no error, but that it went away is.
    pub fn take(session: &mut Session, parts: &[Part]) -> Result<Snapshot, Error> {
        let mut taken = BTreeMap::new();
        for part in parts {
            let numbers = match session.look(&part.sql) {
                Ok(rows) => {
                    Ok(rows.pairs().into_iter().filter_map(|(name, n)| Some((name, n.parse().ok()?))).collect())
                }
                Err(error) if error.state.ends_session() => return Err(error),
                Err(error) => Err(error.what),
            };
            taken.insert(part.name, numbers);
        }
        Ok(Snapshot(taken))
    }

    #[cfg(test)]
    pub fn of(part: &'static str, numbers: &[(&str, f64)]) -> Snapshot {
        let numbers = numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Snapshot([(part, Ok(numbers))].into())
    }

    #[cfg(test)]
    pub fn and(mut self, other: Snapshot) -> Snapshot {
        self.0.extend(other.0);
        self
    }

    fn number(&self, part: &str, name: &str) -> Result<f64, String> {
        let numbers = self.0.get(part).ok_or("it was not asked for")?.as_ref()?;
        numbers.get(name).copied().ok_or_else(|| format!("the server's statistics have no {name}"))
    }
}

/// Two looks at them.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub before: Snapshot,
    pub after: Snapshot,
}

impl Counts {
    /// How much a number grew.
    pub fn grew(&self, part: &str, name: &str) -> Result<f64, String> {
        let (before, after) = (self.before.number(part, name)?, self.after.number(part, name)?);
        let reset = |snapshot: &Snapshot| snapshot.number(part, "reset").ok();
        match after - before {
            growth if growth >= 0.0 && reset(&self.before) == reset(&self.after) => Ok(growth),
            _ => Err("the statistics were reset meanwhile".into()),
        }
    }

    /// Parts that the server did not show, and why.
    pub fn refused(&self) -> BTreeMap<&'static str, &str> {
        let both = self.before.0.iter().chain(&self.after.0);
        both.filter_map(|(part, numbers)| Some((*part, numbers.as_ref().err()?.as_str()))).collect()
    }

    /// What it is at the end.
    pub fn level(&self, part: &str, name: &str) -> Result<f64, String> {
        self.after.number(part, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(before: &[(&str, f64)], after: &[(&str, f64)]) -> Counts {
        Counts { before: Snapshot::of("io", before), after: Snapshot::of("io", after) }
    }

    #[test]
    fn what_is_not_known_is_no_zero() {
        let counts = counts(&[("reads", 1.0)], &[("reads", 4.0)]);
        assert_eq!(counts.grew("io", "reads"), Ok(3.0));
        assert!(counts.grew("io", "writes").is_err() && counts.grew("wal", "reads").is_err());
        assert_eq!(counts.level("io", "reads"), Ok(4.0));
        let after = Snapshot([("io", Err("permission denied".into()))].into());
        assert_eq!(Counts { after, ..counts }.refused(), [("io", "permission denied")].into());
    }

    #[test]
    fn a_reset_shows_even_if_more_came_since() {
        assert!(counts(&[("reads", 9.0)], &[("reads", 4.0)]).grew("io", "reads").is_err());
        let reset = counts(&[("reads", 1.0), ("reset", 5.0)], &[("reads", 4.0), ("reset", 6.0)]);
        assert!(reset.grew("io", "reads").is_err());
    }

    proptest! {
        #[test]
        fn growth_is_never_negative(before in 0.0..1e15, after in 0.0..1e15) {
            match counts(&[("n", before)], &[("n", after)]).grew("io", "n") {
                Ok(growth) => prop_assert!(growth >= 0.0 && after >= before),
                Err(_) => prop_assert!(after < before),
            }
        }
    }
}
