//! What a change means for a reader of EXPLAIN ANALYZE.

use serde::{Deserialize, Serialize};

/// The meaning of a change. The order is from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    MuchBetter,
    Better,
    /// no difference beyond the noise
    Same,
    /// different, but neither better nor worse
    Changed,
    /// the read cost of PostgreSQL's clock could not be compared
    NotCompared,
    Worse,
    MuchWorse,
}

impl Effect {
    /// Returns the effect of the opposite change.
    pub fn mirrored(self) -> Effect {
        match self {
            Effect::MuchBetter => Effect::MuchWorse,
            Effect::Better => Effect::Worse,
            Effect::Worse => Effect::Better,
            Effect::MuchWorse => Effect::MuchBetter,
            Effect::Same | Effect::Changed | Effect::NotCompared => self,
        }
    }

    /// Returns the exit status: 0 same or better, 1 worse, 2 much worse, 3 not compared.
    pub fn exit_status(self) -> u8 {
        match self {
            Effect::MuchBetter | Effect::Better | Effect::Same | Effect::Changed => 0,
            Effect::Worse => 1,
            Effect::MuchWorse => 2,
            Effect::NotCompared => 3,
        }
    }

    /// Returns the effect in small letters.
    pub fn word(self) -> &'static str {
        match self {
            Effect::MuchBetter => "much better",
            Effect::Better => "better",
            Effect::Same => "same",
            Effect::Changed => "changed",
            Effect::NotCompared => "not compared",
            Effect::Worse => "worse",
            Effect::MuchWorse => "much worse",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opposite_of_the_opposite_is_the_same() {
        use Effect::*;
        for effect in [MuchBetter, Better, Same, Changed, NotCompared, Worse, MuchWorse] {
            assert_eq!(effect.mirrored().mirrored(), effect);
        }
        assert_eq!([MuchBetter, Same, Worse, MuchWorse, NotCompared].map(Effect::exit_status), [0, 0, 1, 2, 3]);
    }
}
