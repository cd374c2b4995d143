//! What the reader of a log finds: messages with plans, and text that somebody pasted.

use super::input::MAX_LINE_BYTES;
use super::line::host_of;
use std::sync::Arc;

/// A longer message is not read. A plan over a thousand partitions has a few MB.
pub const MAX_BYTES: usize = MAX_LINE_BYTES;

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
    /// the log or the file ends within the message
    Truncated,
    /// the log begins within the message
    NoBeginning,
    /// a part is lost, or lines of something else are within the message
    Broken,
    TooLong,
}

/// A message of a text log while its lines are read.
#[derive(Default)]
pub struct Open {
    pub place: Place,
    pub ms: f64,
    /// the announcement, without what changes from line to line
    pub announcement: String,
    /// the sender of the lines, as the first line after the announcement shows it
    pub sender: Option<String>,
    /// syslog's number of the last part, if it has one
    pub part: Option<u32>,
    /// the host, if the log names it
    pub host: Option<Arc<str>>,
    pub text: String,
    /// its lines begin with tabs
    pub has_tabs: bool,
    pub state: State,
    pub damage: Option<Damage>,
    pub is_nested: bool,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Plan,
    /// in the context below the plan
    Context,
    /// another line followed
    Ended,
}

impl Open {
    /// Returns whether a line with a tab belongs to this message. `sender` is what precedes the tab.
    pub fn is_from(&self, sender: &str) -> bool {
        match &self.sender {
            Some(known) => known == sender,
            None => self.announcement.starts_with(sender),
        }
    }

    /// Returns whether a line without a tab is from the same sender.
    pub fn sent(&self, line: &str) -> bool {
        self.sender.as_ref().is_some_and(|sender| line.starts_with(sender.as_str()))
    }

    /// Sets the first damage. It hides those that follow from it.
    pub fn damage(&mut self, damage: Damage) {
        self.damage = self.damage.or(Some(damage));
    }

    /// Adds a line with a tab, without the tab. `part` is its number in a message for syslog.
    pub fn push_tabbed(&mut self, line: &str, part: Option<u32>) {
        if self.part.zip(part).is_some_and(|(last, part)| part != last.saturating_add(1)) {
            self.damage(Damage::Broken);
        }
        self.part = part;
        match self.state {
            State::Plan => {
                self.has_tabs |= self.text.is_empty();
                self.push(line);
            }
            State::Context => {}
            State::Ended => self.damage(Damage::Broken),
        }
    }

    /// Adds a line that has lost its tab. Returns false if it cannot belong to the message.
    pub fn push_untabbed(&mut self, line: &str) -> bool {
        if self.state != State::Plan || self.has_tabs && sign_of_plan(&self.text).is_some() {
            return false;
        }
        self.has_tabs = false;
        self.push(line);
        true
    }

    fn push(&mut self, line: &str) {
        if self.text.len() + line.len() >= MAX_BYTES {
            self.damage = Some(Damage::TooLong);
            self.text = String::new();
        }
        if self.damage.is_none() {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    pub fn into_entry(self) -> Entry {
        let of_sender = || self.sender.as_deref().and_then(host_of).map(Arc::from);
        let host = self.host.clone().or_else(of_sender);
        let Open { place, ms, text, has_tabs: has_end, damage, is_nested, .. } = self;
        let message = Message { ms, text, has_end, is_nested, query_id: None, format: Format::Text };
        Entry { place, host, content: damage.map_or(Content::Message(message), Content::Damaged) }
    }
}

/// Text outside of messages: it can have plans that somebody pasted, or the rest of a message at the beginning of a file.
#[derive(Default)]
pub struct Outside {
    text: String,
    /// where the text begins
    place: Place,
    lines: usize,
    /// lines with the server's tab
    tabs: usize,
    is_too_long: bool,
}

/// An empty line ends a text of this length.
const PIECE_BYTES: usize = 1 << 20;

impl Outside {
    /// Adds a line. `found` receives the text if it is long enough.
    pub fn push(&mut self, line: &str, has_tab: bool, place: Place, found: &mut dyn FnMut(Entry)) {
        if self.text.is_empty() {
            self.place = place;
        }
        self.lines += 1;
        self.tabs += usize::from(has_tab);
        self.text.push_str(line);
        self.text.push('\n');
        if self.text.len() > PIECE_BYTES && line.trim().is_empty() {
            self.end(found);
        } else if self.text.len() > MAX_BYTES {
            self.is_too_long |= sign_of_plan(&self.text).is_some();
            self.text = String::from("\n");
        }
    }

    /// Ends the text. It is passed on if it can have a plan.
    pub fn end(&mut self, found: &mut dyn FnMut(Entry)) {
        let Outside { text, mut place, is_too_long, .. } = std::mem::take(self);
        if is_too_long {
            found(Entry { place, host: None, content: Content::Damaged(Damage::TooLong) });
        } else if let Some(sign) = sign_of_plan(&text) {
            place.line += text[..sign].matches('\n').count() as u64;
            found(Entry { place, host: None, content: Content::Pasted(text) });
        }
    }

    /// Ends the text before the first record of a file. It is the rest of a message if all lines except the first one have
    /// the server's tab, or if the record is one of a CSV log.
    pub fn end_before_record(&mut self, is_csv: bool, found: &mut dyn FnMut(Entry)) {
        let has_tabs = self.tabs > 0 && self.tabs + 1 >= self.lines;
        if !is_csv && !has_tabs || self.is_too_long {
            return self.end(found);
        }
        let Outside { text, place, .. } = std::mem::take(self);
        if PARTS.iter().any(|part| text.contains(part)) {
            found(Entry { place, host: None, content: Content::Damaged(Damage::NoBeginning) });
        }
    }
}

/// What at least one line of every plan contains, in any format and however it was copied. `Plan` is a key in JSON, YAML and XML.
const SIGNS: [&str; 5] = ["rows=", "cost=", "Plan", "never executed", "<explain"];

/// Returns where the first sign of a plan is. Without one, there is no plan.
fn sign_of_plan(text: &str) -> Option<usize> {
    SIGNS.iter().filter_map(|sign| memchr::memmem::find(text.as_bytes(), sign.as_bytes())).min()
}

/// Parts of executed plans in text, JSON, YAML and XML. A plan without its beginning has at least one of them.
const PARTS: [&str; 8] = [
    "(actual ",
    "(never executed)",
    "Actual Loops",
    "Actual-Loops",
    "Shared Hit Blocks",
    "Shared-Hit-Blocks",
    "Buffers: ",
    "Rows Removed by ",
];
