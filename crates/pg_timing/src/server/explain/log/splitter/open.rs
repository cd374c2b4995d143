//! An entry of a log whose end has not been seen.

use crate::server::explain::captured::csv_record;
use crate::server::explain::captured::transport::{Part, continued};
use crate::server::explain::log::entry::{Content, Damage, Entry, MAX_ENTRY_BYTES, Place};
use crate::server::explain::log::nesting::Session;
use crate::server::explain::log::server_line::{context, is_log_line, process};

pub struct Open {
    pub place: Place,
    pub kind: Kind,
    pub text: String,
    pub is_too_long: bool,
    pub session: Session,
    /// the process in the entry's prefix
    pub process: Option<Box<str>>,
    /// what follows `CONTEXT:  `, after the plan
    pub context: Option<String>,
}

/// A pasted text is passed on in pieces of this size, which begin at an empty line.
const PASTED_BYTES: usize = 256 << 10;

/// A longer context is cut. A function that calls itself a thousand times has about 100 kB.
const MAX_CONTEXT_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// the next line shows whether tabs precede the lines
    Announced {
        ms: f64,
    },
    Tabbed {
        ms: f64,
    },
    /// the tabs are lost, so the entry ends at the next line of the log
    WithoutTabs {
        ms: f64,
    },
    Csv {
        is_quoted: bool,
    },
    Pasted,
}

/// Whether a line belongs to an open entry.
pub enum Added {
    Yes,
    /// it is the entry's last line
    Last,
    /// it belongs to the next entry
    No,
    /// it belongs to the next entry, and the end of this one is missing
    Truncated,
}

impl Open {
    /// Adds a line, if it belongs to the entry.
    pub fn add(&mut self, text: &str, part: Part) -> Added {
        if self.adds_context(text, part) {
            return Added::Yes;
        }
        if self.context.is_some() {
            return Added::No;
        }
        match self.kind {
            Kind::Announced { ms } | Kind::Tabbed { ms } => {
                if let Some(rest) = continued(text) {
                    self.kind = Kind::Tabbed { ms };
                    self.push(rest);
                } else if part == Part::Next {
                    // syslog's lines have a limited length.
                    self.join(text);
                } else if part == Part::Cut && !is_log_line(text) {
                    // The transport's prefix can be cut, too: then nothing shows whether the line continues the entry.
                } else if self.kind == (Kind::Announced { ms }) && !is_log_line(text) {
                    self.kind = Kind::WithoutTabs { ms };
                    self.push(text);
                } else {
                    return Added::No;
                }
                Added::Yes
            }
            Kind::WithoutTabs { .. } if is_log_line(text) => Added::No,
            Kind::WithoutTabs { .. } => {
                self.push(text);
                Added::Yes
            }
            Kind::Csv { .. } if csv_record::begins(text) => Added::Truncated,
            Kind::Csv { is_quoted } => {
                self.push(text);
                let is_quoted = csv_record::is_quoted_after(text, is_quoted);
                self.kind = Kind::Csv { is_quoted };
                if is_quoted { Added::Yes } else { Added::Last }
            }
            Kind::Pasted if is_log_line(text) => Added::No,
            Kind::Pasted => {
                self.push(text);
                if text.trim().is_empty() && self.text.len() > PASTED_BYTES { Added::Last } else { Added::Yes }
            }
        }
    }

    /// Adds a line to the context, if it belongs there. Returns whether it does.
    fn adds_context(&mut self, text: &str, part: Part) -> bool {
        if !matches!(self.kind, Kind::Announced { .. } | Kind::Tabbed { .. } | Kind::WithoutTabs { .. }) {
            return false;
        }
        let next = continued(text);
        let Some(known) = &mut self.context else {
            // Most lines are of the plan, and a tab precedes them.
            if next.is_none() {
                let own = context(text).filter(|_| process(text) == self.process.as_deref());
                self.context = own.map(|context| format!("{context}\n"));
            }
            return self.context.is_some();
        };
        // syslog's lines have a limited length.
        if next.is_none() && part == Part::Next {
            known.pop();
        }
        let is_next = next.is_some()
            || part == Part::Next
            || part == Part::Cut
            || matches!(self.kind, Kind::WithoutTabs { .. }) && !is_log_line(text);
        if is_next && known.len() + text.len() < MAX_CONTEXT_BYTES {
            known.push_str(next.unwrap_or(text));
            known.push('\n');
        }
        is_next
    }

    fn push(&mut self, text: &str) {
        if self.text.len() + text.len() >= MAX_ENTRY_BYTES {
            self.is_too_long = true;
        }
        if self.is_too_long {
            self.text = String::new();
        } else {
            self.text.push_str(text);
            self.text.push('\n');
        }
    }

    /// Adds the rest of a line to the line before it.
    fn join(&mut self, text: &str) {
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        self.push(text);
    }

    pub fn end(self, is_truncated: bool) -> Entry {
        let Open { place, kind, text, is_too_long, session, context, .. } = self;
        let content = match kind {
            _ if is_too_long => Content::Damaged(Damage::TooLong),
            Kind::Pasted => Content::Pasted(text),
            _ if is_truncated => Content::Damaged(Damage::Truncated),
            Kind::Csv { is_quoted: true } => Content::Damaged(Damage::Truncated),
            Kind::Csv { is_quoted: false } => Content::Csv(text),
            Kind::Announced { ms } | Kind::Tabbed { ms } | Kind::WithoutTabs { ms } => {
                Content::Announced { ms, text, session, context: context.unwrap_or_default() }
            }
        };
        Entry { place, content }
    }
}
