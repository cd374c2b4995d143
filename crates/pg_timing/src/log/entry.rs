//! What the reader of a log finds, and what is missing.

use std::sync::Arc;

/// Where an entry begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// number of the file, from 0
    pub file: usize,
    /// from 1
    pub line: u64,
}

/// A text with plans. It is parsed later, by several threads.
#[derive(Debug, PartialEq)]
pub struct Entry {
    pub place: Place,
    /// the host, container or pod that wrote it, if the log names it
    pub host: Option<Arc<str>>,
    pub content: Content,
}

#[derive(Debug, PartialEq)]
pub enum Content {
    /// a message of the server
    Message(Message),
    /// text outside of a log, which can have any number of plans
    Pasted(String),
    Damaged(Damage),
}

/// What follows `duration: ... ms  plan:`.
#[derive(Debug, PartialEq)]
pub struct Message {
    pub ms: f64,
    pub text: String,
    /// its end is known; otherwise other text can follow the plan
    pub has_end: bool,
    /// a function or a trigger executed the statement
    pub is_nested: bool,
    /// the query's identifier, if the log has it
    pub query_id: Option<i64>,
    pub format: Format,
}

/// The server's formats of logs. syslog's messages are as those of stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Csv,
    Json,
    #[default]
    Text,
}

impl Format {
    /// Returns the name as a value of log_destination.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Csv => "csvlog",
            Format::Json => "jsonlog",
            Format::Text => "stderr",
        }
    }
}

impl Content {
    /// Returns the length of its text in bytes.
    pub fn len(&self) -> usize {
        match self {
            Content::Message(Message { text, .. }) | Content::Pasted(text) => text.len(),
            Content::Damaged(_) => 0,
        }
    }
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// the log ends within the message
    Truncated,
    /// the log begins within the message
    NoBeginning,
    /// the message ends in the next file
    Rotated,
    TooLong,
    /// syslog has split a line
    Split,
    /// lines of something else are within it
    Mixed,
    /// NUL bytes replace a part of the file
    Nul,
}

/// Parts of executed plans in text, JSON, YAML and XML. A plan without its beginning has at least one of them.
const PARTS: [&str; 11] = [
    "(actual ",
    "(never executed)",
    "Actual Loops",
    "Actual-Loops",
    "Shared Hit Blocks",
    "Shared-Hit-Blocks",
    "Buffers: ",
    "I/O Timings: ",
    "Rows Removed by ",
    "Sort Method",
    "Workers Launched",
];

/// Returns whether a text contains a part of an executed plan.
pub fn has_part_of_plan(text: &str) -> bool {
    PARTS.iter().any(|part| text.contains(part))
}

/// What at least one line of every plan contains, in any format and however it was copied. `Plan` is a key in JSON, YAML and XML.
const SIGNS: [&str; 5] = ["rows=", "cost=", "Plan", "never executed", "<explain"];

/// Returns where the first sign of a plan is. Without one, there is no plan.
pub fn sign_of_plan(text: &str) -> Option<usize> {
    SIGNS.iter().filter_map(|sign| memchr::memmem::find(text.as_bytes(), sign.as_bytes())).min()
}
