//! Finds the messages with plans in the lines of a log. A message is a line that the server logged, with the lines below it
//! that begin with a tab, or any string value in JSON or in a CSV record that begins with `duration: N ms  plan:`. What a
//! message quotes of a client never is one. docs/explain.md has the rule.

use super::entry::{CONTEXT, NOTICES, Record, SEVERITIES, announced_ms, record, sender, split_tab};
use super::entry::{Entry, Format, MAX_BYTES, Message, Open, Outside, State};
use super::input::{Line, Place};
use super::values::{self, Csv, Value};
use crate::json::is_quote;
use crate::plan::Unusable;
use crate::plan::text::names_node;
use memchr::{memchr, memmem};
use std::borrow::Cow;
use std::sync::Arc;

/// More senders never write a message at the same time.
const MAX_OPEN: usize = 16;

/// Keys of the host, container or pod.
const HOSTS: [&str; 6] = ["_HOSTNAME", "hostname", "host", "pod_name", "logging_pod", "container_name"];

/// journald's key of the process.
const PROCESS: &str = "_PID";

/// jsonlog's key of the severity.
const SEVERITY_KEY: &str = "error_severity";

/// Values of JSON that are JSON themselves: a container's runtime around a collector around the server's log.
const MAX_JSON_IN_JSON: usize = 3;

/// Searches the lines of all files.
#[derive(Default)]
pub struct Messages {
    /// what was found since the caller took it
    pub found: Vec<Entry>,
    place: Place,
    open: Vec<Open>,
    /// the line before belongs to the newest open message
    is_in_message: bool,
    outside: Outside,
    /// a record of a log was read in this file
    is_log: bool,
    /// syslog or a container has added something before the lines of this file
    has_senders: bool,
    columns: Option<Columns>,
    record: Option<CsvRecord>,
    csv: Csv,
    /// the key of the values that are lines of the server's text log
    line_key: Option<String>,
    /// the JSON record is an error or a notice, which can quote a client in its message
    is_other_severity: bool,
    /// the line is too long, and only its beginning is known
    is_cut: bool,
    /// a message may end without a line end, because somebody has copied it
    accepts_cut_end: bool,
}

/// What the columns of a CSV file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// those of the server
    Server,
    /// the number of the column with the messages
    Named(usize),
}

/// A record of a CSV log whose lines are read.
struct CsvRecord {
    place: Place,
    text: String,
    is_quoted: bool,
}

/// What a value of JSON or CSV is within.
#[derive(Default)]
struct Origin {
    host: Option<Arc<str>>,
    /// the host and the process
    sender: String,
    is_nested: bool,
    query_id: Option<i64>,
    is_value: bool,
    format: Format,
}

impl Messages {
    pub fn new(accepts_cut_end: bool) -> Messages {
        Messages { accepts_cut_end, ..Messages::default() }
    }

    pub fn begin_file(&mut self, file: usize) {
        self.place = Place { file, line: 0 };
        (self.is_log, self.has_senders, self.is_in_message) = (false, false, false);
        (self.columns, self.line_key, self.is_other_severity) = (None, None, false);
    }

    /// Receives a line of the file.
    pub fn line(&mut self, line: &Line) {
        self.place.line += 1;
        // Nearly all lines are valid, and this check is ten times as fast.
        let valid = str::from_utf8(line.text).map(Cow::Borrowed);
        let text = valid.unwrap_or_else(|_| String::from_utf8_lossy(line.text));
        let mut text = &*text;
        if self.place.line == 1 {
            text = text.trim_start_matches('\u{feff}');
            self.first_line(text);
        }
        if line.has_nul {
            self.open.iter_mut().for_each(|open| open.entry.damage = Some(Unusable::LinesMixed));
            text = text.rsplit('\0').next().unwrap_or_default();
        }
        self.is_cut = line.is_cut;
        // Most lines continue a message, and none of them is JSON or begins a record of CSV.
        let continues = text.starts_with('\t') && self.record.is_none() && self.columns.is_none();
        if continues || !self.read_csv_line(text) && !self.read_json_line(text) {
            self.text_line(text, &Origin::default());
        }
        if line.is_cut && self.is_in_message {
            self.open.iter_mut().for_each(|open| open.entry.damage = Some(Unusable::TooLong));
        }
    }

    /// Receives the end of a file. `is_unfinished`: its last line has no end.
    pub fn end_file(&mut self, is_unfinished: bool) {
        self.end_csv();
        self.found.extend(self.outside.end());
        if is_unfinished && !self.accepts_cut_end {
            let of_plan = self.open.iter_mut().filter(|open| open.has_tabs && open.state == State::Plan);
            of_plan.for_each(|open| open.damage(Unusable::EndMissing));
        }
    }

    /// Receives the end of the last file.
    pub fn end(&mut self) {
        self.found.extend(self.open.drain(..).map(Open::into_entry));
    }

    /// A plan at the end of a file can go on in the next one.
    fn first_line(&mut self, text: &str) {
        if let Some((before, _)) = split_tab(text).filter(|_| !self.open.is_empty()) {
            self.has_senders = !before.trim().is_empty();
            self.open.iter_mut().for_each(|open| open.damage(Unusable::EndMissing));
            (self.is_in_message, self.is_log) = (false, true);
        }
        self.end();
        self.columns = values::message_column(text).map(Columns::Named);
    }

    /// The first record of a file ends the text before it.
    fn begin_log(&mut self, is_csv: bool) {
        let before = if self.is_log { self.outside.end() } else { self.outside.end_before_record(is_csv) };
        self.found.extend(before);
        self.is_log = true;
    }

    fn damaged(&mut self, damage: Unusable) {
        self.found.push(Entry { place: self.place, damage: Some(damage), ..Entry::default() });
    }

    /// Reads the line if it is CSV. Returns whether it was.
    fn read_csv_line(&mut self, text: &str) -> bool {
        let begins_record = values::begins_record(text);
        let is_named = matches!(self.columns, Some(Columns::Named(_)));
        // Another record can begin within a truncated one.
        let is_truncated = begins_record && !is_named && values::has_single_quote(text);
        if self.record.as_ref().is_none_or(|record| !record.is_quoted || is_truncated) {
            self.end_csv();
            if !begins_record && !is_named {
                // The rest of a damaged record, or another format.
                let is_csv = self.columns.is_some();
                if is_csv && announced_ms(text).is_some() {
                    self.damaged(Unusable::LinesMixed);
                }
                return is_csv;
            }
            self.columns = self.columns.or(Some(Columns::Server));
            self.begin_log(true);
            self.record = Some(CsvRecord { place: self.place, text: String::new(), is_quoted: false });
        }
        if let Some(record) = &mut self.record {
            record.is_quoted = values::is_quoted_after(text, record.is_quoted);
            if record.text.len() < MAX_BYTES {
                record.text.push_str(text);
                record.text.push('\n');
            }
            if !record.is_quoted {
                self.end_csv();
            }
        }
        true
    }

    /// Ends the record of CSV, if there is one.
    fn end_csv(&mut self) {
        let (Some(record), Some(columns)) = (self.record.take(), self.columns) else { return };
        if columns == Columns::Server && !announces(&record.text) {
            return;
        }
        let damage = match record.text.len() >= MAX_BYTES {
            true => Some(Unusable::TooLong),
            false => record.is_quoted.then_some(Unusable::EndMissing),
        };
        let place = std::mem::replace(&mut self.place, record.place);
        if let Some(damage) = damage {
            let first = record.text.lines().next().unwrap_or_default();
            if first.rsplit('"').next().is_some_and(|message| announced_ms(message).is_some()) {
                self.damaged(damage);
            }
        } else {
            self.csv_record(&record.text, columns);
        }
        self.place = place;
    }

    fn csv_record(&mut self, record: &str, columns: Columns) {
        let mut origin = Origin { is_value: true, ..Origin::default() };
        match columns {
            Columns::Named(column) => {
                let fields = self.csv.fields(record, [column]);
                fields.into_iter().for_each(|[message]| self.value(&message, &origin));
            }
            Columns::Server => {
                let numbers = [values::MESSAGE, values::SEVERITY, values::CONTEXT, values::QUERY_ID];
                let Some([message, severity, context, query_id]) = self.csv.fields(record, numbers) else { return };
                if !SEVERITIES.contains(&severity.as_str()) {
                    return self.begin_log(true);
                }
                (origin.format, origin.is_nested) = (Format::Csv, is_nested(&context));
                origin.query_id = query_id.parse().ok().filter(|id| *id != 0);
                self.value(&message, &origin);
            }
        }
    }

    /// Reads the line if it is JSON. Returns whether it was.
    fn read_json_line(&mut self, text: &str) -> bool {
        // A stream of events has an empty line after each record.
        if text.is_empty() && self.line_key.is_some() {
            return true;
        }
        let open = self.open.last().filter(|_| self.is_in_message && self.line_key.is_none());
        let is_untabbed = open.is_some_and(|open| !open.has_tabs);
        let json = if is_untabbed { None } else { json_in(text, self.line_key.is_some()) };
        json.is_some_and(|json| self.json_line(json, MAX_JSON_IN_JSON))
    }

    /// Receives a line of JSON. Returns whether it is one of a log.
    fn json_line(&mut self, line: &str, depth: usize) -> bool {
        if ["\"Plan\":", "\"QUERY PLAN\""].iter().any(|key| line.contains(key)) {
            return false;
        }
        let is_object = line.starts_with('{') && line.trim_end().ends_with('}');
        if line.trim_start().starts_with(['{', '}']) {
            self.is_other_severity = false;
        }
        let has_severity = || memmem::find(line.as_bytes(), SEVERITY_KEY.as_bytes()).is_some();
        let needs_values = announces(line) || !is_object && has_severity();
        if !needs_values && self.open.is_empty() {
            if is_object && !has_severity() && is_text_plan(line) {
                return false;
            }
            if is_object {
                self.begin_log(false);
                (self.is_in_message, self.line_key) = (false, self.line_key.take().or(Some(String::new())));
            }
            return is_object || self.line_key.is_some();
        }
        let mut values: Vec<Value> = values::of_json(line).collect();
        let origin = Origin::of_json(line, &values);
        // A collector can write the severity after the message.
        if is_object && values.iter().filter(|value| value.key == SEVERITY_KEY).count() == 1 {
            values.sort_by_key(|value| value.key != SEVERITY_KEY);
        }
        // The short message of Graylog is the beginning of the full one.
        let has_full = values.iter().any(|value| value.key == "full_message");
        let is_message = |value: &&Value| !(is_quote(value.key) || has_full && value.key == "short_message");
        let mut is_log = is_object || self.line_key.is_some() || self.is_other_severity;
        for value in values.iter().filter(is_message) {
            if value.key == SEVERITY_KEY {
                self.begin_log(false);
                (self.is_in_message, is_log) = (false, true);
                self.is_other_severity = !SEVERITIES.contains(&value.text().as_str());
            } else if !self.is_other_severity {
                is_log |= self.json_value(value, &origin, depth);
            }
        }
        is_log
    }

    fn json_value(&mut self, value: &Value, origin: &Origin, depth: usize) -> bool {
        if value.raw.starts_with("{\\\"") && depth > 0 {
            return self.json_line(&value.text(), depth - 1);
        }
        let first = value.raw.split("\\n").next().unwrap_or_default();
        let is_line = self.line_key.as_deref() == Some(value.key);
        let announces = first.ends_with("plan:") && announced_ms(&first.replace("\\t", "\t")).is_some();
        if !announces && !is_line {
            return false;
        }
        if value.is_truncated && announces {
            self.begin_log(false);
            self.damaged(if self.is_cut { Unusable::TooLong } else { Unusable::EndMissing });
            return true;
        }
        self.line_key = Some(value.key.to_string());
        self.value(&value.text(), origin);
        true
    }

    /// Receives a string value: a whole message, or one line of the server's text log.
    fn value(&mut self, text: &str, origin: &Origin) {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        // The server's own CSV and JSON have no prefix and whole messages. An error can quote a client in its message.
        let is_server = origin.format != Format::Text;
        let is_quote = if is_server { !first.starts_with("duration: ") } else { first.contains('"') };
        let ms = announced_ms(first).filter(|_| !is_quote && !rest.trim().is_empty());
        if ms.is_none() && !is_server {
            return self.text_line(first, origin);
        }
        self.begin_log(false);
        self.end();
        self.is_in_message = false;
        let Some(ms) = ms else { return };
        let (text, has_context) = without_tabs(rest);
        let is_nested = origin.is_nested || has_context;
        let message = Some(Message { ms, has_end: true, is_nested, query_id: origin.query_id, format: origin.format });
        self.found.push(Entry { place: self.place, host: origin.host.clone(), text, message, damage: None });
    }

    /// Receives a line of a text log, or of text outside of a log.
    fn text_line(&mut self, text: &str, origin: &Origin) {
        if memchr(b'#', text.as_bytes()).is_some()
            && let Some(lines) = text.split_once("plan:#012")
        {
            // rsyslog writes a message in one line.
            self.text_line(&[lines.0, "plan:"].concat(), origin);
            return lines.1.split("#012").for_each(|line| self.text_line(line, origin));
        }
        if let Some((before, rest)) = split_tab(text)
            && self.tabbed_line(before, rest, text, origin)
        {
            return;
        }
        let ms = announced_ms(text).filter(|_| !origin.is_value || !text.contains('"'));
        // psql shows what a function has printed; with -f, also the place in the file: `psql:a.sql:3: NOTICE:  `.
        let shown = text.strip_prefix("psql:").and_then(|text| text.split_once(": ")).map_or(text, |(_, shown)| shown);
        let is_notice = !self.is_log && NOTICES.iter().any(|notice| shown.starts_with(notice));
        let record = record(text).filter(|_| !is_notice);
        if ms.is_none() && record.is_none() {
            return self.other_line(text, origin);
        }
        self.begin_log(false);
        let sent = if self.has_senders { sender(&origin.sender, text).0 } else { String::new() };
        self.end_before_record(record, &sent);
        if let Some(ms) = ms {
            let message = Some(Message { ms, ..Message::default() });
            let entry = Entry { place: self.place, host: origin.host.clone(), message, ..Entry::default() };
            let first = Some((origin.sender.clone(), text.to_string()));
            self.open.push(Open { entry, first, ..Open::default() });
            self.is_in_message = true;
            self.limit_open(MAX_OPEN);
        }
    }

    /// Ends the oldest messages if there are more than this number.
    fn limit_open(&mut self, most: usize) {
        let more = self.open.len().saturating_sub(most);
        self.found.extend(self.open.drain(..more).map(Open::into_entry));
    }

    /// Receives a line with the server's tab. Returns whether it belongs to the record before it.
    fn tabbed_line(&mut self, before: &str, rest: &str, text: &str, origin: &Origin) -> bool {
        if !before.is_empty() || !origin.sender.is_empty() {
            let (sender, part) = sender(&origin.sender, before);
            self.open.iter_mut().for_each(Open::identify);
            let Some(open) = self.open.iter_mut().rev().find(|open| open.is_from(&sender)) else { return false };
            (self.has_senders, open.sender) = (true, Some(sender));
            open.push_tabbed(rest, part);
            return true;
        }
        // No sender precedes the lines, so the messages before it have ended.
        if self.is_in_message {
            self.limit_open(1);
        }
        match (self.is_in_message, self.open.last_mut()) {
            (true, Some(open)) if open.entry.text.is_empty() || open.has_tabs => open.push_tabbed(rest, None),
            (true, Some(open)) => _ = open.push_untabbed(text),
            _ if self.is_log => {}
            _ => self.found.extend(self.outside.push(text, true, self.place)),
        }
        true
    }

    /// Ends the messages before a record that `sent` begins, except those of other senders. The record can be the context of
    /// the message before it.
    fn end_before_record(&mut self, record: Option<Record>, sent: &str) {
        // A message that has only its first line stays open, because another sender may have written this record in between.
        let has_senders = self.has_senders;
        let is_same = |open: &Open| if has_senders { open.sent(sent) } else { !open.entry.text.is_empty() };
        if let Some(Record { word: CONTEXT, message }) = record {
            let of_plan = |open: &&mut Open| is_same(open) && open.state == State::Plan;
            if let Some(open) = self.open.iter_mut().rev().find(of_plan) {
                (open.is_nested, open.state, open.part) = (is_nested(message), State::Context, None);
                return;
            }
        }
        let (ended, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open).into_iter().partition(is_same);
        self.open = others;
        self.found.extend(ended.into_iter().map(Open::into_entry));
        self.is_in_message = false;
    }

    /// Receives a line that begins no record.
    fn other_line(&mut self, text: &str, origin: &Origin) {
        if self.has_senders && !self.open.is_empty() {
            let (sent, _) = sender(&origin.sender, text);
            if let Some(open) = self.open.iter_mut().find(|open| open.sent(&sent)) {
                return open.damage(Unusable::LinesMixed);
            }
        }
        if let Some(open) = self.open.last_mut().filter(|open| self.is_in_message && open.sender.is_none()) {
            if open.push_untabbed(text) || text.trim().is_empty() {
                return;
            }
            open.state = State::Ended;
        }
        if !origin.is_value && !self.has_senders {
            self.found.extend(self.outside.push(text, split_tab(text).is_some(), self.place));
        }
    }
}

impl Origin {
    fn of_json(line: &str, values: &[Value]) -> Origin {
        let value = |key: &str| values.iter().find(|value| value.key == key && !value.raw.is_empty());
        let host = HOSTS.iter().find_map(|key| value(key)).map(Value::text);
        let process = value(PROCESS).map(|process| process.raw);
        Origin {
            sender: host.as_deref().into_iter().chain(process).flat_map(|part| [part, " "]).collect(),
            host: host.map(Arc::from),
            is_nested: value("context").is_some_and(|context| is_nested(context.raw)),
            query_id: values::number(line, "\"query_id\":"),
            is_value: true,
            format: if values.iter().any(|value| value.key == SEVERITY_KEY) { Format::Json } else { Format::Text },
        }
    }
}

/// Returns whether a text contains the announcement of a plan, or quotes one.
fn announces(text: &str) -> bool {
    memmem::find(text.as_bytes(), b" ms  plan:").is_some()
}

/// Returns whether a line of JSON has a plan in text format as its value, or as several values. A log has one line of a plan
/// in each of its lines.
fn is_text_plan(line: &str) -> bool {
    if memmem::find(line.as_bytes(), b"(actual ").is_none() {
        return false;
    }
    let lines_of_plan = |value: Value| {
        let text = value.text();
        let is_heading = |line: &str| line.is_empty() || line == "QUERY PLAN" || line.bytes().all(|byte| byte == b'-');
        let node = text.lines().map(str::trim).find(|line| !is_heading(line))?;
        let is_node = node.contains("(actual ") && names_node(node.trim_start_matches(['-', '>', ' ']));
        is_node.then(|| text.trim_end().lines().count())
    };
    let mut plans = values::of_json(line).filter(|value| !is_quote(value.key)).filter_map(lines_of_plan);
    plans.next().is_some_and(|lines| lines > 1 || plans.next().is_some())
}

/// Returns the JSON in a line: the whole line, or what follows the prefix of a container, of a collector or of a stream.
/// `is_json_log`: other lines have JSON.
fn json_in(line: &str, is_json_log: bool) -> Option<&str> {
    let start = line.trim_start_matches([' ', '\u{1e}']);
    if start.starts_with(['{', '"']) || start.starts_with("[{") || start.starts_with("[\"") {
        return Some(start);
    }
    let (before, json) = line.split_at(memmem::find(line.as_bytes(), b"{\"")?);
    let is_container = before.ends_with(" F ") || before.ends_with("| ") || is_json_log || announces(json);
    let is_whole = json.trim_end().ends_with(['}', ']']);
    let is_prefix = !before.contains(":  ") && !before.contains('"') && split_tab(before).is_none();
    // A client can begin a string with its application_name in log_line_prefix. Then the server's severity is in the string.
    let announcement = json.find(" ms  plan:").unwrap_or(json.len());
    let is_severity = |at: usize| {
        let word = json[..at].trim_end_matches(' ').trim_end_matches(|c: char| c.is_ascii_digit());
        word.ends_with(|c: char| c.is_uppercase() || c.is_alphabetic() && !c.is_ascii())
    };
    // Only the severity of the announcement itself may be there.
    let announces_plan = |at: usize| {
        let ms = json.get(at + 3..announcement).and_then(|message| message.strip_prefix("duration: "));
        ms.is_some_and(|ms| ms.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    let is_forged =
        announcement < json.len() && json.match_indices(":  ").any(|(at, _)| is_severity(at) && !announces_plan(at));
    (is_container && is_whole && is_prefix && !is_forged).then_some(json)
}

/// Returns whether a context shows that a function or a trigger executed the statement. The parameters of a client's
/// statement are a context, too.
fn is_nested(context: &str) -> bool {
    !context.is_empty() && !context.starts_with("unnamed portal") && !context.starts_with("portal \"")
}

/// Returns a message without the server's tabs, if it has them, and whether the context of a function follows.
fn without_tabs(text: &str) -> (String, bool) {
    if !text.starts_with('\t') && !text.starts_with("#011") {
        return (text.into(), false);
    }
    let mut plan = String::with_capacity(text.len());
    for line in text.lines() {
        let Some(("", line)) = split_tab(line) else {
            let context = record(line).filter(|record| record.word == CONTEXT);
            return (plan, context.is_some_and(|record| is_nested(record.message)));
        };
        plan.push_str(line);
        plan.push('\n');
    }
    (plan, false)
}
