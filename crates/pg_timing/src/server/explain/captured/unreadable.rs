//! Why a plan in a text cannot be read.

use super::text::TextError;
use crate::server::explain::plan::Explained;

/// A plan, or why something that looks like a plan cannot be read.
pub type Found = Result<Explained, Unreadable>;

/// The text that a plan was read from, without what a log or psql adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<T> {
    Text(T),
    Json(T),
}

impl Source<&str> {
    pub fn to_owned(self) -> Source<String> {
        match self {
            Source::Text(text) => Source::Text(text.into()),
            Source::Json(text) => Source::Json(text.into()),
        }
    }
}

/// Why a plan cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Unreadable {
    Text(TextError),
    /// the JSON parser's message
    Json(String),
    /// the JSON has more levels than the parser accepts
    TooDeep,
    TooManyNodes,
    /// the YAML parser's message
    Yaml(String),
    /// the XML parser's message
    Xml(String),
    /// a log line announces a plan, and none follows
    Missing,
}
