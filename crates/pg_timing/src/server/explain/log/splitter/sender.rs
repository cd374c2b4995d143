//! The lines of one sender: which of them belong to an entry with a plan.

use super::open::{Added, Kind, Open};
use crate::server::explain::captured::announcement::{announced_ms, is_log_line};
use crate::server::explain::captured::csv_record::{
    begins_with_message, begins_within_field, failed_session, is_quoted_after, message_at,
};
use crate::server::explain::captured::transport::{Part, Sent, continued};
use crate::server::explain::log::entry::{Content, Damage, Entry, Place};
use crate::server::explain::log::log_line_prefix::ProcessPlace;
use crate::server::explain::log::nesting::Session;
use crate::server::explain::log::server_line::is_failure;
use std::sync::Arc;

/// The state of one sender.
#[derive(Default)]
pub struct Sender {
    /// number of the sender
    key: u64,
    /// number of its host, container or pod
    pub host: u64,
    /// its name
    pub host_name: Option<Arc<str>>,
    /// the transport names the server's process, so the sender is one session
    is_process: bool,
    /// where its log_line_prefix has the process
    pub process_place: ProcessPlace,
    pub entry: Option<Open>,
    /// the beginning of a line that its transport has split
    pub unfinished: String,
    /// number of its last line
    pub last_line: u64,
    /// what the line before belongs to, if no entry is open
    before: Before,
    /// its records begin without a tab
    has_records: bool,
    /// it has sent nested plans, so it matters which statements fail
    has_nested: bool,
    /// syslog's number of the last message, if it has one
    message: Option<u64>,
    /// syslog's number of the last part
    part: u32,
}

/// What syslog has lost before a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lost {
    Nothing,
    /// parts of the same message
    Parts,
    /// the beginning of this message, and perhaps the end of the message before
    Beginning,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Before {
    /// nothing: the log may have begun within an entry
    #[default]
    Beginning,
    /// an entry without a plan, or text without one
    Other,
    /// a record of a CSV log without a plan; a quoted field is open
    QuotedCsv,
}

impl Sender {
    pub fn new(key: u64, line: &Sent, process_place: ProcessPlace) -> Sender {
        let (host, is_process) = (line.sending_host(), line.process.is_some());
        let host_name = line.host.map(Arc::from);
        Sender { key, host, host_name, is_process, process_place, ..Sender::default() }
    }

    /// The process that the transport named was a part of log_line_prefix.
    pub fn become_host(&mut self) {
        (self.key, self.is_process) = (self.host, false);
    }

    /// The lines that follow continue an entry whose damage is already counted.
    pub fn ignore_rest(&mut self) {
        self.before = Before::Other;
    }

    pub fn is_in_entry(&self) -> bool {
        self.entry.is_some()
    }

    /// Receives a line as the server wrote it.
    pub fn line(&mut self, text: &str, part: Part, place: Place, found: &mut dyn FnMut(Entry)) {
        let lost = self.lost_before(part);
        if let Some(open) = &mut self.entry {
            if lost != Lost::Nothing {
                open.damage = open.damage.or(Some(Damage::LostParts));
            }
            // A line of a record that is not known, for example in another language.
            if self.has_records && open.is_outside() && continued(text).is_some() {
                return;
            }
            let added = if lost == Lost::Beginning { Added::No } else { open.add(text, part, &mut self.process_place) };
            if added == Added::Yes {
                return;
            }
            self.has_nested |= open.may_be_nested();
            let damage = (added == Added::Truncated).then_some(Damage::Truncated);
            self.end_entry(damage).into_iter().for_each(&mut *found);
            self.before = Before::Other;
            if added == Added::Last {
                return;
            }
        }
        if self.has_nested && is_failure(text) && continued(text).is_none() {
            found(Entry { place, host: None, content: Content::Failed(self.session(text)) });
        }
        self.entry = self.begin(text, part, lost, place, found).map(|kind| Open::new(kind, text, place));
    }

    /// Ends the open entry. Returns it, if it can have a plan.
    pub fn end_entry(&mut self, damage: Option<Damage>) -> Option<Entry> {
        let open = self.entry.take()?;
        let session = self.session(&open.prefix);
        let (place, content) = open.end(session, damage)?;
        Some(Entry { place, host: self.host_name.clone(), content })
    }

    /// Returns the session that wrote a line.
    fn session(&self, line: &str) -> Session {
        match self.process_place.process(line) {
            _ if self.is_process => Session::Known(self.key),
            Some(process) => Session::of(self.key, process),
            None => Session::Unknown(self.key),
        }
    }

    /// Returns what is missing before a part of a message for syslog.
    fn lost_before(&mut self, part: Part) -> Lost {
        let (message, number, is_next) = match part {
            Part::Next { message, number } => (message, number, true),
            Part::First { message } => (Some(message), 1, false),
            Part::Begins { number } => (None, number, false),
            _ => (None, 1, false),
        };
        let last = std::mem::replace(&mut self.part, number);
        let last_message = std::mem::replace(&mut self.message, message);
        match is_next {
            true if last_message.zip(message).is_some_and(|(last, message)| last != message) => Lost::Beginning,
            true if number != last.saturating_add(1) => Lost::Parts,
            _ => Lost::Nothing,
        }
    }

    /// Returns what begins with a line, if it can have a plan.
    fn begin(
        &mut self,
        text: &str,
        part: Part,
        lost: Lost,
        place: Place,
        found: &mut dyn FnMut(Entry),
    ) -> Option<Kind> {
        let record = message_at(text);
        if self.before == Before::QuotedCsv && !begins_within_field(text) {
            if !is_quoted_after(text, true) {
                self.before = Before::Other;
            }
            return None;
        }
        if continued(text).is_some() || matches!(part, Part::Next { .. }) {
            // The rest of an entry without a plan, or of an entry whose beginning is missing.
            let is_rest = self.before == Before::Beginning || lost != Lost::Nothing;
            return is_rest.then_some(Kind::Rest);
        }
        let ms = announced_ms(text);
        self.has_records |= is_log_line(text) || record.is_some();
        if ms.is_some() && begins_with_message(text) {
            return Some(Kind::Csv { is_quoted: true });
        }
        if let Some(message) = record {
            if self.has_nested
                && let Some(session) = failed_session(text, message)
            {
                // As the entries with plans: a CSV log does not name its host.
                found(Entry { place, host: None, content: Content::Failed(Session::of(None::<&str>, session)) });
            }
            self.before = if is_quoted_after(text, false) { Before::QuotedCsv } else { Before::Other };
            return None;
        }
        if let Some(ms) = ms {
            return Some(Kind::Announced { ms });
        }
        if is_log_line(text) {
            self.before = Before::Other;
            return None;
        }
        if text.trim().is_empty() {
            return None;
        }
        Some(if self.before == Before::Beginning { Kind::Beginning } else { Kind::Outside })
    }
}
