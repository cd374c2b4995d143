//! Splits a log into its entries, and keeps those with a plan.
//!
//! A plan's entry begins with a line that ends with `duration: 5.123 ms  plan:`. In a text log, each further line of the
//! entry begins with a tab. In a CSV log, the entry ends with its record; in a JSON log, it is one line. The lines of
//! several senders can be mixed, so each sender has its own state.

#[cfg(test)]
mod tests;

mod json;
mod open;
mod sender;

use super::entry::{Content, Damage, Entry, MAX_ENTRY_BYTES, Place};
use super::json_line::{self, JsonLine};
use super::lines::Line;
use super::log_line_prefix::ProcessPlace;
use super::server_line::context;
use super::signs::begins_pasted_plan;
use crate::server::explain::captured::announcement::announced_ms;
use crate::server::explain::captured::transport::{NO_SENDER, Part, Sent, continued, sent, sent_by_container};
use memchr::memmem;
use open::Open;
use sender::Sender;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// If there are more senders, the half that has been silent for longest is forgotten: processes end without notice.
const MAX_SENDERS: usize = 1000;

/// Receives the lines of a log, and passes its entries to `found`.
#[derive(Default)]
pub struct Splitter {
    place: Place,
    /// a log from one sender needs no hash of each line's sender
    senders: BTreeMap<u64, Sender>,
    /// the sender of the line before
    last: u64,
    /// where log_line_prefix has the process, in the lines of a sender that is forgotten
    process_place: ProcessPlace,
    /// the line before belongs to the last sender, and has no prefix of syslog
    is_after_bare: bool,
    /// what looks like the prefix of syslog is a log_line_prefix
    has_no_syslog: bool,
    /// the plan that ends with the last line of the file before, until the next file shows whether it goes on there
    pending: Option<Entry>,
    /// the server's JSON log has plans, so it matters which statements fail
    has_json_plans: bool,
}

impl Splitter {
    /// Begins a file. What the file before it left open has ended.
    pub fn begin_file(&mut self, file: usize, found: &mut dyn FnMut(Entry)) {
        self.end_file(false, found);
        (self.place, self.has_no_syslog) = (Place { file, line: 0 }, false);
    }

    /// Ends a file. `is_unfinished`: the last line has no end, so the last entry is truncated.
    pub fn end_file(&mut self, is_unfinished: bool, found: &mut dyn FnMut(Entry)) {
        if !is_unfinished
            && let Some(sender) = self.senders.get_mut(&self.last)
            && sender.unfinished.is_empty()
            && sender.entry.as_ref().is_some_and(Open::may_go_on)
            && let Some(entry) = sender.end_entry(None)
        {
            self.end_entries(u64::MAX, None, found);
            self.pending = Some(entry);
            return;
        }
        self.end_entries(u64::MAX, is_unfinished.then_some(Damage::Truncated), found);
    }

    /// Ends the log.
    pub fn end(&mut self, found: &mut dyn FnMut(Entry)) {
        self.pending.take().into_iter().for_each(found);
    }

    /// Passes the last plan of the file before on. `goes_on`: the first line of this file continues an entry.
    fn end_pending(&mut self, goes_on: bool, found: &mut dyn FnMut(Entry)) {
        if let Some(Entry { place, host, content }) = self.pending.take() {
            found(Entry { place, host, content: if goes_on { Content::Damaged(Damage::Rotated) } else { content } });
        }
    }

    /// Forgets the senders that have sent nothing after a line, and ends their entries.
    fn end_entries(&mut self, last_line: u64, damage: Option<Damage>, found: &mut dyn FnMut(Entry)) {
        let all = std::mem::take(&mut self.senders).into_iter();
        let (ended, others): (BTreeMap<_, _>, _) = all.partition(|(_, sender)| sender.last_line <= last_line);
        self.senders = others;
        let mut entries = Vec::new();
        for mut sender in ended.into_values() {
            let is_cut = json_line::announces(&sender.unfinished);
            let place = Place { line: sender.last_line, ..self.place };
            let host = sender.host_name.clone();
            entries.extend(is_cut.then_some(Entry { place, host, content: Content::Damaged(Damage::Truncated) }));
            let is_in_line = !sender.unfinished.is_empty();
            entries.extend(sender.end_entry(damage.or(is_in_line.then_some(Damage::Truncated))));
            // The next file probably has the same prefix.
            self.process_place = sender.process_place;
        }
        // The numbers of the plans are in the order of the log.
        entries.sort_by_key(|entry| entry.place);
        entries.into_iter().for_each(found);
    }

    fn forget_silent_senders(&mut self, found: &mut dyn FnMut(Entry)) {
        let mut lines: Vec<u64> = self.senders.values().map(|sender| sender.last_line).collect();
        let (_, middle, _) = lines.select_nth_unstable(MAX_SENDERS / 2);
        self.end_entries(*middle, None, found);
    }

    /// Receives the next line of a file.
    pub fn line(&mut self, line: &Line, found: &mut dyn FnMut(Entry)) {
        self.place.line += 1;
        let place = self.place;
        if line.is_cut {
            let text = String::from_utf8_lossy(line.text);
            if json_line::announces(&text) || begins_pasted_plan(&text) {
                found(Entry { place, host: None, content: Content::Damaged(Damage::TooLong) });
            }
            return;
        }
        let text = match str::from_utf8(line.text) {
            Ok(text) => Cow::Borrowed(text),
            // A plan is ASCII, but names and constants may have another encoding.
            Err(_) => String::from_utf8_lossy(line.text),
        };
        if line.has_nul {
            return self.line_with_nul(&text, line.is_unfinished, found);
        }
        self.text(&text, line.is_unfinished, found);
    }

    /// Receives a line with NUL bytes. Nothing shows what they replace, so all open entries are damaged.
    fn line_with_nul(&mut self, text: &str, is_unfinished: bool, found: &mut dyn FnMut(Entry)) {
        let mut parts = text.split('\0').peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            if !part.is_empty() {
                self.text(part, is_unfinished || !is_last, found);
            }
            if !is_last {
                self.end_entries(u64::MAX, Some(Damage::Nul), found);
            }
        }
    }

    fn text(&mut self, text: &str, is_unfinished: bool, found: &mut dyn FnMut(Entry)) {
        if text.starts_with('\t') && !is_unfinished && self.continued_line(text, found) {
            return;
        }
        if text.starts_with('{')
            && let Some(json) = json_line::read(text)
        {
            return self.json_line(json, text, found);
        }
        let sent = self.sent(text, found);
        let is_line = matches!(sent.part, Part::Whole | Part::First { .. });
        let part = if is_unfinished && is_line { Part::Cut } else { sent.part };
        self.sent_line(Sent { part, ..sent }, found);
    }

    /// Receives a line with a tab, as most lines of a text log are, if no other sender is known. This only saves time. Returns
    /// whether the line was received.
    fn continued_line(&mut self, text: &str, found: &mut dyn FnMut(Entry)) -> bool {
        let has_other_sender = self.last != NO_SENDER || self.pending.is_some();
        let Some(sender) = self.senders.get_mut(&NO_SENDER).filter(|_| !has_other_sender) else { return false };
        if !sender.is_in_entry() || !sender.unfinished.is_empty() {
            return false;
        }
        self.is_after_bare = false;
        sender.last_line = self.place.line;
        sender.line(text, Part::Whole, self.place, found);
        true
    }

    /// Returns the line as the server wrote it, with its sender.
    fn sent<'a>(&mut self, text: &'a str, found: &mut dyn FnMut(Entry)) -> Sent<'a> {
        if self.has_no_syslog {
            return sent_by_container(text);
        }
        let line = sent(text);
        if !self.is_after_bare || line.process.is_none() || context(line.text).is_none() {
            return line;
        }
        // A context is never the first line of a message, so syslog would have added its prefix to the line before, too.
        self.has_no_syslog = true;
        if let Some(mut sender) = self.senders.remove(&self.last) {
            sender.become_host();
            self.last = sender.host;
            let replaced = self.senders.insert(sender.host, sender);
            replaced.and_then(|mut sender| sender.end_entry(None)).into_iter().for_each(found);
        }
        sent_by_container(text)
    }

    /// Returns the sender of a line, and the line. A log_line_prefix can look like the prefix of a container or of syslog:
    /// then the lines that continue an entry have no prefix. journalctl writes spaces instead of it.
    fn sender_of<'a>(&mut self, line: Sent<'a>) -> (u64, Sent<'a>) {
        let key = line.sender();
        let text = line.text.trim_start_matches(' ');
        let continues = || continued(text).is_some() || context(text).is_some();
        let last_has_entry = || {
            let is_same_host = |sender: &Sender| line.host.is_none() || sender.host == key;
            self.senders.get(&self.last).is_some_and(|sender| sender.is_in_entry() && is_same_host(sender))
        };
        self.is_after_bare = line.process.is_none() && key != self.last && continues() && last_has_entry();
        if !self.is_after_bare {
            return (key, line);
        }
        // journalctl writes spaces instead of the prefix. All others would have written the host here, too.
        if !line.text.starts_with(' ')
            && let Some(sender) = self.senders.get_mut(&self.last)
        {
            sender.host_name = line.host.map(Arc::from);
        }
        (self.last, Sent { text, ..line })
    }

    fn sent_line(&mut self, line: Sent, found: &mut dyn FnMut(Entry)) {
        let (key, line) = self.sender_of(line);
        self.last = key;
        if self.senders.len() > MAX_SENDERS && !self.senders.contains_key(&key) {
            self.forget_silent_senders(found);
        }
        let place = self.place;
        let is_rest_of_pending = self.pending.is_some() && continued(line.text).is_some();
        self.end_pending(is_rest_of_pending, found);
        let sender = self.senders.entry(key).or_insert_with(|| Sender::new(key, &line, self.process_place));
        sender.last_line = place.line;
        if is_rest_of_pending {
            sender.ignore_rest();
        }
        if line.part == Part::Unfinished {
            if sender.unfinished.len() < MAX_ENTRY_BYTES {
                sender.unfinished.push_str(line.text);
            }
            return;
        }
        let mut whole = std::mem::take(&mut sender.unfinished);
        let line = if whole.is_empty() {
            line
        } else {
            whole.push_str(line.text);
            let part = if line.part == Part::Cut { Part::Cut } else { Part::Whole };
            Sent { text: &whole, part, process: None, ..line }
        };
        if line.text.starts_with('{')
            && let Some(json) = json_line::read(line.text)
        {
            return match json {
                JsonLine::Line { text, .. } => sender.line(&text, line.part, place, found),
                json => {
                    let host = sender.host_name.clone();
                    self.json_entry(json, line.text, host, found);
                }
            };
        }
        if line.process.is_some()
            && let Some(lines) = escaped_lines(line.text)
        {
            return lines.for_each(|text| sender.line(text, Part::Whole, place, found));
        }
        sender.line(line.text, line.part, place, found);
    }
}

/// Returns the lines of a message with a plan, if rsyslog has replaced its line ends: the server sends a message as a whole if
/// syslog_split_messages is off.
fn escaped_lines(text: &str) -> Option<impl Iterator<Item = &str>> {
    /// the octal number of a line end
    const LINE_END: &str = "#012";
    let end = memmem::find(text.as_bytes(), b"plan:#012")? + "plan:".len();
    announced_ms(&text[..end])?;
    Some(text.split(LINE_END).filter(|line| !line.is_empty()))
}
