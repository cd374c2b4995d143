//! One entry of a log that contains a plan.

use super::nesting::Session;
use std::sync::Arc;

/// Where an entry begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// number of the file, from 0
    pub file: usize,
    /// from 1
    pub line: u64,
}

/// An entry, as the splitter passes it on. The text is parsed later, by several threads.
#[derive(Debug, PartialEq)]
pub struct Entry {
    pub place: Place,
    /// the host, container or pod that wrote it, if its lines name it
    pub host: Option<Arc<str>>,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// what follows `duration: ... ms  plan:` in the server's text log, without the tabs
    Announced {
        ms: f64,
        text: String,
        session: Session,
        /// what the server wrote before the message
        prefix: Box<str>,
        /// the functions that were being executed, the innermost first
        context: String,
    },
    /// a record of a CSV log
    Csv(String),
    /// a line of a JSON log
    Json(String),
    /// an announced plan whose lines have lost their tabs, and what follows it
    WithoutTabs {
        text: String,
        session: Session,
        prefix: Box<str>,
        context: String,
    },
    /// not a plan: a statement of this session has failed
    Failed(Session),
    /// text outside of log entries that may contain plans
    Pasted(String),
    /// text before the first entry of a file: plans, or the rest of an entry with a plan
    Beginning(String),
    /// the same, and tabs show that it is the rest of an entry
    Rest(String),
    Damaged(Damage),
}

impl Content {
    /// Returns the length of its texts in bytes.
    pub fn len(&self) -> usize {
        match self {
            Content::Announced { text, context, .. } | Content::WithoutTabs { text, context, .. } => {
                text.len() + context.len()
            }
            Content::Csv(text)
            | Content::Json(text)
            | Content::Pasted(text)
            | Content::Beginning(text)
            | Content::Rest(text) => text.len(),
            Content::Damaged(_) | Content::Failed(_) => 0,
        }
    }

    /// Returns the destination of such entries. Text outside of entries has none.
    pub fn destination(&self) -> Option<Destination> {
        match self {
            Content::Announced { .. } | Content::WithoutTabs { .. } => Some(Destination::Stderr),
            Content::Csv(_) => Some(Destination::Csvlog),
            Content::Json(_) => Some(Destination::Jsonlog),
            _ => None,
        }
    }
}

/// A value of log_destination. Syslog's entries are as those of stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    Csvlog,
    Jsonlog,
    Stderr,
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Destination::Csvlog => "csvlog",
            Destination::Jsonlog => "jsonlog",
            Destination::Stderr => "stderr",
        })
    }
}

/// Why an entry cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// the log ends within the entry
    Truncated,
    /// the log begins within the entry
    NoBeginning,
    /// the entry ends in the next file
    Rotated,
    TooLong,
    /// syslog has lost parts of the message
    LostParts,
    /// it has the lines of two plans
    Mixed,
    /// NUL bytes replace a part of the file
    Nul,
}

/// A longer entry is not read. A plan over a thousand partitions has a few MB.
pub const MAX_ENTRY_BYTES: usize = super::lines::MAX_LINE_BYTES;
