//! Lines that are JSON objects: entries of the server's JSON log, and lines of a log collector.

use super::Splitter;
use crate::server::explain::captured::transport::{Part, Sent, numbered};
use crate::server::explain::log::entry::{Content, Damage, Entry};
use crate::server::explain::log::json_line::{self, JsonLine};
use std::sync::Arc;

impl Splitter {
    /// Receives an entry of the server's JSON log.
    pub fn json_entry(&mut self, json: JsonLine, line: &str, host: Option<Arc<str>>, found: &mut dyn FnMut(Entry)) {
        self.end_pending(false, found);
        match json {
            JsonLine::Entry => {
                self.has_json_plans = true;
                found(Entry { place: self.place, host, content: Content::Json(line.into()) });
            }
            JsonLine::Failed => {
                if self.has_json_plans
                    && let Ok(message) = json_line::message(line)
                {
                    found(Entry { place: self.place, host, content: Content::Failed(message.session) });
                }
            }
            JsonLine::Truncated => {
                found(Entry { place: self.place, host, content: Content::Damaged(Damage::Truncated) });
            }
            JsonLine::Line { .. } | JsonLine::Other => {}
        }
    }

    /// Receives a line that is a JSON object.
    pub fn json_line(&mut self, json: JsonLine, line: &str, found: &mut dyn FnMut(Entry)) {
        match json {
            // Log collectors write each line of a server as one JSON object.
            JsonLine::Line { text, host, process, is_unfinished } => {
                let part = if is_unfinished { Part::Unfinished } else { Part::Whole };
                let line = self.sent(&text, found);
                let line = Sent { host: line.host.or(host.as_deref()), process: process.as_deref(), part, ..line };
                // The server sent the message to journald as to syslog.
                let numbered = line.process.and_then(|_| numbered(line.text));
                let (text, part) = numbered.filter(|_| !is_unfinished).unwrap_or((line.text, part));
                self.sent_line(Sent { text, part, ..line }, found);
            }
            json => self.json_entry(json, line, None, found),
        }
    }
}
