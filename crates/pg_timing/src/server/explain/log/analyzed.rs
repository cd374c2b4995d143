//! One plan of a log after its analysis.

use super::calls::Cost;
use super::entry::Place;
use super::nesting::Nesting;
use super::shapes::AnalyzedNodes;
use crate::report::Range;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A plan whose overhead is estimated. Only its sums remain.
pub struct AnalyzedPlan {
    pub place: Place,
    pub key: Key,
    /// without constants
    pub text: Option<String>,
    pub reported_ms: f64,
    pub corrected_ms: Range,
    pub clock_ms: Range,
    pub nodes: AnalyzedNodes,
    pub nesting: Nesting,
    /// what the user should know about the clock
    pub note: Option<String>,
    /// relative error that the overhead of all plans has in common
    pub common_error: f64,
}

impl AnalyzedPlan {
    /// Returns the overhead of the plan's own nodes.
    pub fn own_cost(&self) -> Cost {
        Cost::of(self.reported_ms, self.corrected_ms, self.clock_ms)
    }
}

/// Which executions are counted together. The text is that without constants.
/// The default is the key of plans without a statement, and of all statements for which there is no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    query_id: Option<i64>,
    /// hash of the text; letters outside of quotation marks are lower case
    text: Option<u64>,
}

impl Key {
    pub fn new(query_id: Option<i64>, text: Option<&str>) -> Key {
        Key { query_id, text: text.map(hash_of_words) }
    }

    pub fn query_id(&self) -> Option<i64> {
        self.query_id
    }
}

/// Returns a hash that does not depend on the case of letters, except in quotation marks.
fn hash_of_words(text: &str) -> u64 {
    let mut is_quoted = false;
    let folded: Vec<u8> = text
        .bytes()
        .map(|byte| {
            is_quoted ^= byte == b'"';
            if is_quoted { byte } else { byte.to_ascii_lowercase() }
        })
        .collect();
    let mut hasher = DefaultHasher::new();
    folded.hash(&mut hasher);
    hasher.finish()
}
