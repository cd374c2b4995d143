//! The data between measuring and rendering. Every output is a function of a report.
//!
//! The serde names are the JSON contract. The JSON Schemas in docs/ are generated from these types.

mod call_cost;
mod clock;
mod clocksource;
pub mod compare;
pub mod document;
mod explain;
mod finding;
pub mod finding_id;
mod host;
mod monitor;
mod server;
mod test;
#[cfg(test)]
mod tests;
pub mod thresholds;

pub use crate::statistics::Range;
pub use call_cost::*;
pub use clock::*;
pub use clocksource::*;
pub use explain::*;
pub use finding::*;
pub use host::*;
pub use monitor::*;
pub use server::*;
pub use test::*;

use serde::{Deserialize, Serialize};

/// Statements take ms, and their calls take ns.
pub const NS_PER_MS: f64 = 1e6;
pub const MS_PER_NS: f64 = 1.0 / NS_PER_MS;

/// A fact, or the reason why it is not available. In JSON: the value, or `{"unavailable": "why"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Fact<T> {
    Known(T),
    Unavailable { unavailable: String },
}

impl<T> Default for Fact<T> {
    fn default() -> Fact<T> {
        Fact::unavailable("not in the input")
    }
}

impl<T> Fact<T> {
    pub fn unavailable(why: impl Into<String>) -> Fact<T> {
        Fact::Unavailable { unavailable: why.into() }
    }

    /// Returns the value, or why it is not available.
    pub fn of(value: Option<T>, why: impl Into<String>) -> Fact<T> {
        value.map_or_else(|| Fact::unavailable(why), Fact::Known)
    }

    /// Returns the value, or why it is not available.
    pub fn get(&self) -> Result<&T, &str> {
        match self {
            Fact::Known(value) => Ok(value),
            Fact::Unavailable { unavailable } => Err(unavailable),
        }
    }

    pub fn known(&self) -> Option<&T> {
        self.get().ok()
    }

    pub fn and_then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Fact::Known(value) => f(value),
            Fact::Unavailable { unavailable } => Fact::Unavailable { unavailable },
        }
    }

    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::Known(f(value)))
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Fact<T> {
    fn from(result: Result<T, E>) -> Fact<T> {
        result.map_or_else(|why| Fact::unavailable(why.to_string()), Fact::Known)
    }
}
