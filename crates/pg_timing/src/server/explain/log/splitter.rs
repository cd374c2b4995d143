//! Splits a log into its entries, and keeps those with a plan.
//!
//! A plan's entry begins with a line that ends with `duration: 5.123 ms  plan:`. In a text log, each further line of the
//! entry begins with a tab. In a CSV log, the entry ends with its record; in a JSON log, it is one line. The lines of
//! several senders can be mixed, so each sender has its own state.

mod open;
#[cfg(test)]
mod tests;

use super::entry::{Content, Damage, Entry, MAX_ENTRY_BYTES, Place};
use super::json_line::{self, JsonLine};
use super::lines::Line;
use super::nesting::Session;
use super::server_line::{begins_pasted_plan, is_log_line, is_part_of_plan, process};
use crate::server::explain::captured::announcement::announced_ms;
use crate::server::explain::captured::csv_record;
use crate::server::explain::captured::transport::{Part, Sent, continued, sent};
use open::{Added, Kind, Open};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// If there are more senders, the open entries of all of them end: processes end without notice.
const MAX_SENDERS: usize = 1000;

/// Two hosts are enough to know that the log is not from one server.
const MAX_HOSTS: usize = 2;

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
    /// number of the sender
    key: u64,
    /// the transport names the server's process, so the sender is one session
    is_process: bool,
    entry: Option<Open>,
    /// the beginning of a line that its transport has split
    unfinished: String,
    /// the log began within an entry, which was reported
    reported_beginning: bool,
    /// this sender has sent a line that begins an entry
    has_begun: bool,
}

impl Splitter {
    /// Begins a file. What the file before it left open has ended.
    pub fn begin_file(&mut self, file: usize, found: &mut dyn FnMut(Entry)) {
        self.end_file(false, found);
        self.place = Place { file, line: 0 };
    }

    /// Ends a file. `is_unfinished`: the last line has no end, so the last entry is truncated.
    pub fn end_file(&mut self, is_unfinished: bool, found: &mut dyn FnMut(Entry)) {
        let mut open: Vec<Open> =
            std::mem::take(&mut self.senders).into_iter().filter_map(|(_, sender)| sender.entry).collect();
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
        let is_process = line.process.is_some();
        let sender = self.senders.entry(key).or_insert_with(|| Sender { key, is_process, ..Sender::default() });
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
    fn line(&mut self, line: &str, part: Part, place: Place, found: &mut dyn FnMut(Entry)) {
        if let Some(open) = &mut self.entry {
            match open.add(line, part) {
                Added::Yes => return,
                Added::Last => return found(self.entry.take().expect("it is open").end(false)),
                Added::Truncated => found(self.entry.take().expect("it is open").end(true)),
                Added::No => found(self.entry.take().expect("it is open").end(false)),
            }
        }
        if continued(line).is_some() || part == Part::Next {
            // The rest of an entry without a plan, or an entry whose beginning is missing.
            if !self.has_begun && !self.reported_beginning && is_part_of_plan(line) {
                self.reported_beginning = true;
                found(Entry { place, content: Content::Damaged(Damage::NoBeginning) });
            }
            return;
        }
        let kind = if let Some(ms) = announced_ms(line) {
            match csv_record::begins_with_message(line) {
                true => Kind::Csv { is_quoted: true },
                false => Kind::Announced { ms },
            }
        } else if begins_pasted_plan(line) {
            Kind::Pasted
        } else {
            self.has_begun |= is_log_line(line);
            return;
        };
        self.has_begun = true;
        let text = match kind {
            Kind::Csv { .. } | Kind::Pasted => format!("{line}\n"),
            _ => String::with_capacity(TYPICAL_BYTES),
        };
        let process = process(line);
        let session = self.session(process);
        let process = process.map(Box::from);
        self.entry = Some(Open { place, kind, text, is_too_long: false, session, process, context: None });
    }

    /// Returns the session of an entry with this process in its prefix.
    fn session(&self, process: Option<&str>) -> Session {
        match process {
            _ if self.is_process => Session::Known(self.key),
            Some(process) => Session::of(self.key, process),
            None => Session::Unknown(self.key),
        }
    }
}
