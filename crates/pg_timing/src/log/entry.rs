//! What the reader of a log finds: messages with plans, and pasted text. It also says what a line of a server's log is: a
//! client's text never decides that. The server writes a tab before each further line of a message, and a severity before
//! what it quotes.

use super::input::{MAX_LINE_BYTES, Place};
use crate::plan::Unusable;
use memchr::memmem;
use std::sync::Arc;

/// A longer message is not read. A plan over a thousand partitions has a few MB.
pub const MAX_BYTES: usize = MAX_LINE_BYTES;

/// A text with plans. It is parsed later, by several threads.
#[derive(Debug, Default, PartialEq)]
pub struct Entry {
    pub place: Place,
    /// the host, container or pod that wrote it, if the log names it
    pub host: Option<Arc<str>>,
    pub text: String,
    /// what the server logged with the text. Other text was pasted, and can have any number of plans
    pub message: Option<Message>,
    /// why the text cannot be read
    pub damage: Option<Unusable>,
}

/// `duration: ... ms  plan:`, which precedes the text.
#[derive(Debug, Default, PartialEq)]
pub struct Message {
    pub ms: f64,
    /// the end of the text is known; otherwise other text can follow the plan
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

/// A message of a text log while its lines are read.
#[derive(Default)]
pub struct Open {
    pub entry: Entry,
    /// the sender of the value and the line with the announcement, until [`Open::identify`] needs them
    pub first: Option<(String, String)>,
    /// the announcement, without what changes from line to line
    pub announcement: String,
    /// the sender of the lines, as the first line after the announcement shows it
    pub sender: Option<String>,
    /// syslog's number of the last part, if it has one
    pub part: Option<u32>,
    /// its lines begin with tabs
    pub has_tabs: bool,
    pub state: State,
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
    /// Finds who sent the announcement. Most logs have no senders.
    pub fn identify(&mut self) {
        if let Some((of_value, line)) = self.first.take() {
            (self.announcement, self.part) = sender(&of_value, &line);
        }
    }

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
    pub fn damage(&mut self, damage: Unusable) {
        self.entry.damage.get_or_insert(damage);
    }

    /// Adds a line with a tab, without the tab. `part` is its number in a message for syslog.
    pub fn push_tabbed(&mut self, line: &str, part: Option<u32>) {
        if self.part.zip(part).is_some_and(|(last, part)| part != last.saturating_add(1)) {
            self.damage(Unusable::LinesMixed);
        }
        self.part = part;
        match self.state {
            State::Plan => {
                self.has_tabs |= self.entry.text.is_empty();
                self.push(line);
            }
            State::Context => {}
            State::Ended => self.damage(Unusable::LinesMixed),
        }
    }

    /// Adds a line that has lost its tab. Returns false if it cannot belong to the message.
    pub fn push_untabbed(&mut self, line: &str) -> bool {
        if self.state != State::Plan || self.has_tabs && sign_of_plan(&self.entry.text).is_some() {
            return false;
        }
        self.has_tabs = false;
        self.push(line);
        true
    }

    fn push(&mut self, line: &str) {
        let Entry { text, damage, .. } = &mut self.entry;
        if text.len() + line.len() >= MAX_BYTES {
            (*damage, *text) = (Some(Unusable::TooLong), String::new());
        }
        if damage.is_none() {
            text.push_str(line);
            text.push('\n');
        }
    }

    pub fn into_entry(self) -> Entry {
        let of_sender = self.sender.as_deref().and_then(host_of).map(Arc::from);
        let Entry { host, message, .. } = self.entry;
        let message = message.map(|message| Message { has_end: self.has_tabs, is_nested: self.is_nested, ..message });
        Entry { host: host.or(of_sender), message, ..self.entry }
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
    /// Adds a line. Returns the text if it is long enough.
    pub fn push(&mut self, line: &str, has_tab: bool, place: Place) -> Option<Entry> {
        if self.text.is_empty() {
            self.place = place;
        }
        self.lines += 1;
        self.tabs += usize::from(has_tab);
        self.text.push_str(line);
        self.text.push('\n');
        if self.text.len() > PIECE_BYTES && line.trim().is_empty() {
            return self.end();
        }
        if self.text.len() > MAX_BYTES {
            self.is_too_long |= sign_of_plan(&self.text).is_some();
            self.text = String::from("\n");
        }
        None
    }

    /// Ends the text. Returns it if it can have a plan.
    pub fn end(&mut self) -> Option<Entry> {
        let Outside { text, mut place, is_too_long, .. } = std::mem::take(self);
        if is_too_long {
            return Some(Entry { place, damage: Some(Unusable::TooLong), ..Entry::default() });
        }
        let sign = sign_of_plan(&text)?;
        place.line += text[..sign].matches('\n').count() as u64;
        Some(Entry { place, text, ..Entry::default() })
    }

    /// Ends the text before the first record of a file. It is the rest of a message if all lines except the first one have
    /// the server's tab, or if the record is one of a CSV log.
    pub fn end_before_record(&mut self, is_csv: bool) -> Option<Entry> {
        let is_rest = self.tabs > 0 && self.tabs + 1 >= self.lines;
        let is_notice = NOTICES.iter().any(|notice| self.text.contains(notice));
        if is_notice {
            // A client can raise a notice with any text. Its further lines have the server's tab.
            let is_of_notice = |line: &str| NOTICES.iter().any(|notice| line.contains(notice)) || has_tab(line);
            self.text = self.text.lines().flat_map(|line| [if is_of_notice(line) { "" } else { line }, "\n"]).collect();
        }
        if !is_csv && !is_rest || self.is_too_long {
            return self.end();
        }
        let Outside { text, place, .. } = std::mem::take(self);
        let has_part = PARTS.iter().any(|part| text.contains(part));
        (has_part && !is_notice).then(|| Entry { place, damage: Some(Unusable::LogStartsInPlan), ..Entry::default() })
    }
}

/// What at least one line of every plan contains, in any format and however it was copied. `Plan` is a key in JSON, YAML and XML.
const SIGNS: [&str; 5] = ["rows=", "cost=", "Plan", "never executed", "<explain"];

/// Returns where the first sign of a plan is. Without one, there is no plan.
pub fn sign_of_plan(text: &str) -> Option<usize> {
    SIGNS.iter().filter_map(|sign| memmem::find(text.as_bytes(), sign.as_bytes())).min()
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

/// How rsyslog writes a tab.
const OCTAL_TAB: &str = "#011";

/// A longer text before a tab is not that of syslog or of a container.
const MAX_SENDER_BYTES: usize = 256;

/// PostgreSQL's translations of `LOG`. Only their lines announce a plan: lines such as `STATEMENT:  ` quote a client, and any client
/// can raise a WARNING, a NOTICE, an INFO or a DEBUG with any text.
pub const SEVERITIES: [&str; 8] = ["LOG", "LOGG", "PROTOKOLL", "СООБЩЕНИЕ", "ЗАПИСУВАННЯ", "日志", "로그", "ჟურნალი"];

/// Returns the time in a line like `... LOG:  duration: 123.456 ms  plan:`. Only a log line's prefix and a severity may
/// precede.
pub fn announced_ms(line: &str) -> Option<f64> {
    let rest = line.trim_end().strip_suffix("plan:")?.trim_end().strip_suffix(" ms")?;
    let at = memmem::rfind(rest.as_bytes(), b"duration: ")?;
    let number = &rest[at + "duration: ".len()..];
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let before = &rest[..at];
    let is_message = before.trim().is_empty()
        || record(before).is_some_and(|record| SEVERITIES.contains(&record.word) && is_empty_or_state(record.message));
    number.parse().ok().filter(|_| is_number && is_message && !has_tab(before))
}

/// Returns whether nothing is before a message, or only the SQLSTATE of log_error_verbosity = verbose: `00000: `.
fn is_empty_or_state(text: &str) -> bool {
    text.is_empty() || text.strip_suffix(": ").is_some_and(|state| state.len() == 5)
}

fn has_tab(text: &str) -> bool {
    text.contains('\t') || text.contains(OCTAL_TAB)
}

/// A line that begins a part of a log entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
    /// the severity, or the name of a field, in the language of the server
    pub word: &'a str,
    pub message: &'a str,
}

pub const CONTEXT: &str = "CONTEXT";

/// Before any record of a log, these are lines of psql.
pub const NOTICES: [&str; 2] = ["NOTICE:  ", "INFO:  "];

/// Words that show a record even without a prefix. A word of another language needs one.
const WORDS: &str = "LOG ERROR FATAL PANIC WARNING NOTICE INFO STATEMENT DETAIL HINT CONTEXT QUERY LOCATION";

/// Returns the record that begins with this line: a prefix, a word, a colon and two spaces.
pub fn record(line: &str) -> Option<Record<'_>> {
    // What follows the first word is a client's text. In French, a space precedes the colon.
    let mut colons = memmem::find_iter(line.as_bytes(), b":  ");
    let colon = colons.find(|colon| line[..*colon].trim_end().ends_with(char::is_alphanumeric))?;
    let before = line[..colon].trim_end().trim_end_matches(|c: char| c.is_ascii_digit());
    let prefix = before.trim_end_matches(|c: char| c.is_uppercase() || c.is_alphabetic() && !c.is_ascii());
    let word = &before[prefix.len()..];
    let has_prefix = prefix.bytes().any(|byte| byte.is_ascii_digit()) && !prefix.contains('\'');
    let is_record = !word.is_empty() && (has_prefix || WORDS.split(' ').any(|known| known == word)) && !has_tab(prefix);
    is_record.then_some(Record { word, message: &line[colon + 3..] })
}

/// Splits a line at the tab that the server writes before each further line of a message. What precedes the tab is what
/// syslog or a container has added.
pub fn split_tab(line: &str) -> Option<(&str, &str)> {
    if let Some(rest) = line.strip_prefix('\t') {
        return Some(("", rest));
    }
    let near = &line.as_bytes()[..line.len().min(MAX_SENDER_BYTES)];
    let tab = memchr::memchr(b'\t', near).map(|at| (at, 1));
    let octal = memmem::find(near, OCTAL_TAB.as_bytes()).map(|at| (at, OCTAL_TAB.len()));
    let (at, length) = [tab, octal].into_iter().flatten().min()?;
    Some((&line[..at], &line[at + length..]))
}

/// Returns the sender of a line: who sent the value that contains it, and what the lines of one sender have in common before the
/// server's text. That is the host, the process and syslog's number of the message, but no times. Also returns syslog's number of
/// the part of the message.
pub fn sender(of_value: &str, before: &str) -> (String, Option<u32>) {
    let (mut key, mut number) = (of_value.to_string(), None);
    for token in before.split_whitespace() {
        // `[7-2]`, or `[2]` without syslog_sequence_numbers.
        let numbers = token.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
        let (message, part) = numbers.split_once('-').unwrap_or(("", numbers));
        if is_number(part) && (message.is_empty() || is_number(message)) {
            key.push_str(&token[..=message.len()]);
            number = number.or(part.parse().ok());
        } else if changes(token) {
            key.push('#');
        } else {
            // Kubernetes marks a part of a line.
            key.push_str(if token == "P" { "F" } else { token });
        }
        key.push(' ');
    }
    (key, number)
}

/// Returns whether a word before a line is a time, a day, or a field that numbers the lines.
fn changes(token: &str) -> bool {
    let begins_with_digit = token.starts_with(|c: char| c.is_ascii_digit());
    let is_time = begins_with_digit && token.contains([':', '.']);
    is_time || token.len() <= 2 && is_number(token) || token.contains("=\"")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the name of the host in what [`sender`] returns: the first name that another word follows.
pub fn host_of(sender: &str) -> Option<&str> {
    let mut words = sender.split(' ').filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let follows_month = words.peek() == Some(&"#");
        let is_name = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_stream = word == "stdout" || word == "stderr";
        if is_name && !follows_month && !is_stream && !word.ends_with(':') && words.peek().is_some() {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_of_a_plan_has_its_time() {
        for (line, ms) in [
            ("LOG:  duration: 123.456 ms  plan:", Some(123.456)),
            ("2026-11-24 [7] app:[unknown] PROTOKOLL:  duration: 1.000 ms  plan:", Some(1.0)),
            ("2026-11-24 [7] LOG:  00000: duration: 123.456 ms  plan:", Some(123.456)),
            ("2020-10-20 03:00:32 UTC:10.0.0.7(49654):app@shop:[1371]:LOG:  duration: 841.400 ms  plan:", Some(841.4)),
            ("duration: 0.004 ms  plan:", Some(0.004)),
            ("LOG:  duration: 123.456 ms  statement: select 'plan:'", None),
            ("LOG:  statement: select 'duration: 123.456 ms  plan:", None),
            ("ERROR:  no duration: 123.456 ms  plan:", None),
            ("2026-11-24 [7] ANWEISUNG:  LOG:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] INSTRUCTION :  duration: 1.000 ms  plan: x", None),
            ("2026-11-24 [7] STATEMENT:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] ANWEISUNG:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] DEBUG2:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] WARNING:  duration: 1.000 ms  plan:", None),
            ("\tLOG:  duration: 123.456 ms  plan:", None),
            ("LOG:  duration: 123.456 ms", None),
            ("plan:", None),
        ] {
            assert_eq!(announced_ms(line), ms, "{line}");
        }
    }

    #[test]
    fn records_have_a_severity_in_any_language() {
        let word = |line| record(line).map(|record| record.word);
        assert_eq!(word("2026-11-24 [7] LOG:  checkpoint starting"), Some("LOG"));
        assert_eq!(word("[7] u@d FEHLER:  kaputt"), Some("FEHLER"));
        assert_eq!(word("[7] INSTRUCTION :  select"), Some("INSTRUCTION"));
        assert_eq!(word("NOTICE:  x"), Some("NOTICE"));
        for line in ["  Filter: (a ~ 'LOG: x'::text)", "ABC:  x", "a b:  7 LOG:  x", "\tLOG:  x", ""] {
            assert_eq!(word(line), None, "{line}");
        }
    }

    #[test]
    fn lines_of_one_sender_have_the_same_key() {
        for (line, other, host) in [
            ("Nov 22 01:02:03 db1 postgres[123]: [7-2] ", "Nov 22 01:02:04 db1 postgres[123]: [7-3] ", Some("db1")),
            (
                "<134>1 2026-11-24T10:00:00Z db1 pg 123 - [m s=\"1\"] ",
                "<134>1 2026-11-24T10:00:01Z db1 pg 123 - [m s=\"2\"] ",
                Some("db1"),
            ),
            ("2026-11-22T01:02:03.123456789Z stderr F ", "2026-11-22T01:02:04.12Z stderr P ", None),
            (
                "2019-03-14T00:22:56+00:00 app[postgres.4882]: [GREEN] [15-2] ",
                "2019-03-14T00:22:57+00:00 app[postgres.4882]: [GREEN] [15-3] ",
                None,
            ),
            ("<134>Nov 25 01:54:25 pg.main[7]: [2] ", "<134>Nov 25 01:54:26 pg.main[7]: [3] ", None),
            ("db-1  | ", "db-1  | ", Some("db-1")),
        ] {
            let key = |before: &str| sender("", before).0;
            assert_eq!((key(line), host_of(&key(line))), (key(other), host), "{line}");
            assert_eq!(split_tab(&format!("{line}\tResult")), Some((line, "Result")));
            assert_eq!(split_tab(&format!("{line}#011Result")), Some((line, "Result")));
        }
    }
}
