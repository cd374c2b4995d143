//! Splits a log into its entries, and keeps those with a plan.
//!
//! A plan's entry begins with a line that ends with `duration: 5.123 ms  plan:`. In a text log, each further line of the
//! entry begins with a tab. In a CSV log, the entry ends with its record; in a JSON log, it is one line. The lines of
//! several senders can be mixed, so each sender has its own state.

#[cfg(test)]
mod tests;

use super::entry::{Content, Damage, Entry, MAX_ENTRY_BYTES, Place};
use super::json_line::{self, JsonLine};
use super::lines::Line;
use super::server_line::{begins_pasted_plan, is_log_line, is_part_of_plan};
use crate::server::explain::captured::announcement::announced_ms;
use crate::server::explain::captured::csv_record;
use crate::server::explain::captured::transport::{Part, Sent, continued, sent};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// If there are more senders, the open entries of all of them end: processes end without notice.
const MAX_SENDERS: usize = 1000;

/// Two hosts are enough to know that the log is not from one server.
const MAX_HOSTS: usize = 2;

/// A pasted text is passed on in pieces of this size, which begin at an empty line.
const PASTED_BYTES: usize = 256 << 10;

/// Most plans are shorter. Their texts need not grow.
const TYPICAL_BYTES: usize = 2 << 10;

/// Receives the lines of a log, and passes its entries to `found`.
#[derive(Default)]
pub struct Splitter {
    place: Place,
    /// a log from one sender needs no hash of each line's sender
    senders: BTreeMap<u64, Sender>,
    /// the sender of the line before
    last: u64,
    /// a few of the hosts or containers that sent lines
    pub hosts: BTreeSet<String>,
}

/// The state of one sender.
#[derive(Default)]
struct Sender {
    entry: Option<Open>,
    /// the beginning of a line that its transport has split
    unfinished: String,
    /// the log began within an entry, which was reported
    reported_beginning: bool,
    /// this sender has sent a line that begins an entry
    has_begun: bool,
}

/// An entry whose end has not been seen.
struct Open {
    place: Place,
    kind: Kind,
    text: String,
    is_too_long: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
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

impl Splitter {
    /// Begins a file. What the file before it left open has ended.
    pub fn begin_file(&mut self, file: usize, found: &mut dyn FnMut(Entry)) {
        self.end_file(false, found);
        self.place = Place { file, line: 0 };
    }

    /// Ends a file. `is_unfinished`: the last line has no end, so the last entry is truncated.
    pub fn end_file(&mut self, is_unfinished: bool, found: &mut dyn FnMut(Entry)) {
        let mut open: Vec<Open> = std::mem::take(&mut self.senders).into_iter().filter_map(|(_, sender)| sender.entry).collect();
        // The numbers of the plans are in the order of the log.
        open.sort_by_key(|entry| entry.place);
        open.into_iter().for_each(|entry| found(entry.end(is_unfinished)));
    }

    /// Receives the next line of a file.
    pub fn line(&mut self, line: &Line, found: &mut dyn FnMut(Entry)) {
        self.place.line += 1;
        let place = self.place;
        if line.is_cut {
            let text = String::from_utf8_lossy(line.text);
            if json_line::announces(&text) || begins_pasted_plan(&text) {
                found(Entry { place, content: Content::Damaged(Damage::TooLong) });
            }
            return;
        }
        let text = match str::from_utf8(line.text) {
            Ok(text) => Cow::Borrowed(text),
            // A plan is ASCII, but names and constants may have another encoding.
            Err(_) => String::from_utf8_lossy(line.text),
        };
        if text.starts_with('{')
            && let Some(json) = json_line::read(&text)
        {
            return self.json_line(json, &text, found);
        }
        let sent = sent(&text);
        let part = if line.is_unfinished && sent.part == Part::Whole { Part::Cut } else { sent.part };
        self.sent_line(Sent { part, ..sent }, found);
    }

    fn json_line(&mut self, json: JsonLine, line: &str, found: &mut dyn FnMut(Entry)) {
        match json {
            JsonLine::Entry => found(Entry { place: self.place, content: Content::Json(line.into()) }),
            // Log collectors write each line of a server as one JSON object.
            JsonLine::Line { text, process, is_unfinished } => {
                let part = if is_unfinished { Part::Unfinished } else { Part::Whole };
                let process = process.as_deref();
                self.sent_line(Sent { process, part, ..sent(&text) }, found);
            }
            JsonLine::Truncated => found(Entry { place: self.place, content: Content::Damaged(Damage::Truncated) }),
            JsonLine::Other => {}
        }
    }

    /// Returns the sender of a line. A log_line_prefix can look like the prefix of a container or of syslog. Then the lines
    /// that continue an entry have no prefix.
    fn sender_of(&self, line: &Sent) -> u64 {
        let has_entry = || self.senders.get(&self.last).is_some_and(|sender| sender.entry.is_some());
        let is_bare = line.host.is_none() && line.process.is_none() && continued(line.text).is_some();
        match is_bare && has_entry() {
            true => self.last,
            false => line.sender(),
        }
    }

    fn sent_line(&mut self, line: Sent, found: &mut dyn FnMut(Entry)) {
        if let Some(host) = line.host
            && self.hosts.len() < MAX_HOSTS
            && !self.hosts.contains(host)
        {
            self.hosts.insert(host.into());
        }
        let key = self.sender_of(&line);
        self.last = key;
        if self.senders.len() > MAX_SENDERS && !self.senders.contains_key(&key) {
            self.end_file(false, found);
        }
        let place = self.place;
        let sender = self.senders.entry(key).or_default();
        if line.part == Part::Unfinished {
            if sender.unfinished.len() < MAX_ENTRY_BYTES {
                sender.unfinished.push_str(line.text);
            }
            return;
        }
        if !sender.unfinished.is_empty() {
            let whole = std::mem::take(&mut sender.unfinished) + line.text;
            return sender.line(&whole, Part::Whole, place, found);
        }
        sender.line(line.text, line.part, place, found);
    }
}

impl Sender {
    /// Receives a line as the server wrote it.
    fn line(&mut self, text: &str, part: Part, place: Place, found: &mut dyn FnMut(Entry)) {
        if let Some(open) = &mut self.entry {
            match open.add(text, part) {
                Added::Yes => return,
                Added::Last => return found(self.entry.take().expect("it is open").end(false)),
                Added::Truncated => found(self.entry.take().expect("it is open").end(true)),
                Added::No => found(self.entry.take().expect("it is open").end(false)),
            }
        }
        if continued(text).is_some() || part == Part::Next {
            // The rest of an entry without a plan, or an entry whose beginning is missing.
            if !self.has_begun && !self.reported_beginning && is_part_of_plan(text) {
                self.reported_beginning = true;
                found(Entry { place, content: Content::Damaged(Damage::NoBeginning) });
            }
            return;
        }
        let kind = if let Some(ms) = announced_ms(text) {
            match csv_record::begins_with_message(text) {
                true => Kind::Csv { is_quoted: true },
                false => Kind::Announced { ms },
            }
        } else if begins_pasted_plan(text) {
            Kind::Pasted
        } else {
            self.has_begun |= is_log_line(text);
            return;
        };
        self.has_begun = true;
        let text = match kind {
            Kind::Csv { .. } | Kind::Pasted => format!("{text}\n"),
            _ => String::with_capacity(TYPICAL_BYTES),
        };
        self.entry = Some(Open { place, kind, text, is_too_long: false });
    }
}

/// Whether a line belongs to an open entry.
enum Added {
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
    fn add(&mut self, text: &str, part: Part) -> Added {
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

    fn end(self, is_truncated: bool) -> Entry {
        let Open { place, kind, text, is_too_long } = self;
        let content = match kind {
            _ if is_too_long => Content::Damaged(Damage::TooLong),
            Kind::Pasted => Content::Pasted(text),
            _ if is_truncated => Content::Damaged(Damage::Truncated),
            Kind::Csv { is_quoted: true } => Content::Damaged(Damage::Truncated),
            Kind::Csv { is_quoted: false } => Content::Csv(text),
            Kind::Announced { ms } | Kind::Tabbed { ms } | Kind::WithoutTabs { ms } => Content::Announced { ms, text },
        };
        Entry { place, content }
    }
}
