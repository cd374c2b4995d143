//! What could not be compared, with the reasons.

use super::{MissingIn, NotCompared};
use crate::report::Fact;

/// The figures that could not be compared until now.
#[derive(Default)]
pub struct Missing(Vec<(String, MissingIn, String)>);

impl Missing {
    pub fn add(&mut self, what: impl Into<String>, missing_in: MissingIn, why: impl Into<String>) {
        self.0.push((what.into(), missing_in, why.into()));
    }

    /// Returns both values, or notes that one is missing. The reasons are those of the side that has no value.
    pub fn both<T>(&mut self, what: &str, before: Fact<T>, after: Fact<T>) -> Option<(T, T)> {
        let (side, why) = match (before, after) {
            (Fact::Known(before), Fact::Known(after)) => return Some((before, after)),
            (Fact::Unavailable { unavailable }, Fact::Known(_)) => (MissingIn::Before, unavailable),
            (Fact::Known(_), Fact::Unavailable { unavailable }) => (MissingIn::After, unavailable),
            // One reason is enough. The smaller one does not depend on the order of the reports.
            (Fact::Unavailable { unavailable: a }, Fact::Unavailable { unavailable: b }) => (MissingIn::Both, a.min(b)),
        };
        self.add(what, side, why);
        None
    }

    /// Returns the figures, grouped by reason, in the order in which they were added.
    pub fn grouped(self) -> Vec<NotCompared> {
        let mut groups: Vec<NotCompared> = Vec::new();
        for (what, missing_in, why) in self.0 {
            match groups.iter_mut().find(|group| group.missing_in == missing_in && group.why == why) {
                Some(group) if group.what.contains(&what) => {}
                Some(group) => group.what.push(what),
                None => groups.push(NotCompared { what: vec![what], missing_in, why }),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_with_the_same_reason_are_one_group() {
        let mut missing = Missing::default();
        let absent = || Fact::<f64>::unavailable("not measured");
        assert_eq!(missing.both("skew", Fact::Known(1.0), Fact::Known(2.0)), Some((1.0, 2.0)));
        assert_eq!(missing.both("skew", Fact::Known(1.0), absent()), None);
        assert_eq!(missing.both("drift", Fact::Known(1.0), absent()), None);
        assert_eq!(missing.both("step", absent(), Fact::unavailable("cut")), None);
        let groups = missing.grouped();
        let shown: Vec<_> = groups.iter().map(|group| (group.what.join(" "), group.missing_in, &*group.why)).collect();
        assert_eq!(
            shown,
            [("skew drift".to_string(), MissingIn::After, "not measured"), ("step".into(), MissingIn::Both, "cut")]
        );
    }
}
