//! The plans of an input that are not usable: how many, and why.

use crate::error::Error;

/// Number of plans that have a note of their own.
const MAX_NAMED: usize = 3;

/// Number of different reasons that are counted. A damaged file can have a different one for each plan.
const MAX_REASONS: usize = 5;

#[derive(Default)]
pub struct Skipped {
    /// why the last of them is not usable
    pub last: Option<Error>,
    named: Vec<String>,
    /// reasons of the plans without a note, each with the number of plans
    reasons: Vec<(String, usize)>,
    /// number of plans with yet another reason
    others: usize,
}

impl Skipped {
    pub fn add(&mut self, number: usize, why: Error) {
        let what = &why.what;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("plan {number} is not usable: {what}"));
        } else if let Some((_, count)) = self.reasons.iter_mut().find(|(reason, _)| reason == what) {
            *count += 1;
        } else if self.reasons.len() < MAX_REASONS {
            self.reasons.push((what.clone(), 1));
        } else {
            self.others += 1;
        }
        self.last = Some(why);
    }

    /// Returns one note for each of the first plans, and one note for each reason with the number of the other plans.
    pub fn notes(self) -> Vec<String> {
        let not_usable = |count: usize| match count {
            1 => "1 more plan is not usable".to_string(),
            count => format!("{count} more plans are not usable"),
        };
        let mut notes = self.named;
        notes.extend(self.reasons.iter().map(|(reason, count)| format!("{}: {reason}", not_usable(*count))));
        if self.others > 0 {
            notes.push(format!("{}, for other reasons", not_usable(self.others)));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skipped_plan_is_counted() {
        let mut skipped = Skipped::default();
        for number in 1..=20 {
            skipped.add(number, Error::new(if number < 10 { "a".into() } else { format!("b{number}") }, "c"));
        }
        assert_eq!(skipped.last.as_ref().unwrap().what, "b20");
        let notes = skipped.notes();
        assert_eq!(
            notes[..4],
            [
                "plan 1 is not usable: a",
                "plan 2 is not usable: a",
                "plan 3 is not usable: a",
                "6 more plans are not usable: a"
            ]
        );
        assert_eq!(
            notes[4..],
            [
                "1 more plan is not usable: b10",
                "1 more plan is not usable: b11",
                "1 more plan is not usable: b12",
                "1 more plan is not usable: b13",
                "7 more plans are not usable, for other reasons"
            ]
        );
    }
}
