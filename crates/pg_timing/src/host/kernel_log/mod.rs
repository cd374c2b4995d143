//! The messages about clocks in a kernel log.
//!
//! | file | what it does |
//! |---|---|
//! | `table` | each message: pattern, kind, meaning |
//! | `frame` | the text before a message: times, the names of a host and of a file |
//! | `demotion` | how the TSC lost the kernel's trust |
//!
//! Logs come from dmesg, journals, mails and containers, and can be cut anywhere. A message is recognized wherever it
//! stands in a line, and a number counts only if it is complete.

mod demotion;
mod frame;
mod table;

#[cfg(test)]
mod tests;

use super::facts::parameters_about_clocks;
use super::pattern::Fields;
use crate::json::is_quote;
use crate::report::KernelMessage;
use anstream::adapter::strip_str;
use serde_json::{Map, Value};
use std::borrow::Cow;

pub use crate::report::MessageLevel as Level;
pub use table::{Kind, TSC_RATES};

/// One message about clocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub kind: Kind,
    pub fields: Fields,
    /// what a screen can show of it
    pub shown: KernelMessage,
}

impl Message {
    /// Returns the clock source that the message is about. A message without a name is about the TSC: on a PC the
    /// kernel watches no other clock source.
    pub fn source(&self) -> &str {
        self.fields.text("source").unwrap_or("tsc")
    }

    /// Returns the message as dmesg prints it.
    pub fn line(&self) -> String {
        let text = &self.shown.text;
        self.shown.seconds.map_or_else(|| text.clone(), |seconds| format!("[{seconds:12.6}] {text}"))
    }
}

/// The messages about clocks in a log, in the order of the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KernelClockLog {
    pub messages: Vec<Message>,
    /// The log may lack the beginning of this boot: the kernel overwrote it, or someone cleared or filtered the log.
    /// Then a missing message proves nothing.
    pub truncated: bool,
}

/// The kernel's time starts near zero. A log that starts later than this lacks its beginning.
const BOOT_S: f64 = 1.0;

/// Parses a log of any kind.
pub fn parse(text: &str) -> KernelClockLog {
    let text = as_lines(text);
    let (mut log, mut first) = (KernelClockLog::default(), None);
    for line in text.lines() {
        // `dmesg --color=always`, `grep --color=always`
        let line = if line.contains('\u{1b}') { strip_str(line).to_string().into() } else { Cow::from(line) };
        // the source of a page
        let line = html_escape::decode_html_entities(&line);
        let found = message(&line);
        first = first.or_else(|| match &found {
            Some(message) => message.shown.seconds,
            None => frame::of(line.get(..line.find(']')? + 1)?)?.seconds,
        });
        log.messages.extend(found);
    }
    let boot = log.messages.iter().any(|message| message.kind == Kind::Boot);
    log.truncated = !boot && first.is_none_or(|first| first > BOOT_S);
    log
}

/// Returns a log in JSON as the lines that dmesg prints: records of journalctl and dmesg, and texts of any other program that
/// exports logs. Another text is returned as it is.
fn as_lines(text: &str) -> Cow<'_, str> {
    // journalctl -o json-seq, and json-sse
    let marked = |text: &str| text.starts_with('\u{1e}') || text.starts_with("data: {");
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let is_marked = text.lines().any(marked);
    let text = if is_marked { text.replace('\u{1e}', "").replace("data: {", "{").into() } else { Cow::from(text) };
    // A line of dmesg begins with a bracket, too.
    let is_list = text.strip_prefix('[').is_some_and(|list| list.trim_start().starts_with(['{', '"', '[']));
    if !is_list && !text.starts_with(['{', '"']) {
        return text;
    }
    let mut lines = String::new();
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut read = 0;
    while let Some(Ok(value)) = values.next() {
        read = values.byte_offset();
        add(value, &mut lines);
    }
    // What follows is searched as text.
    lines.push_str(&text[read..]);
    Cow::Owned(lines)
}

/// Adds the lines in a value.
fn add(value: Value, lines: &mut String) {
    match value {
        Value::String(text) => text.lines().for_each(|line| lines.extend([line, "\n"])),
        Value::Array(values) => values.into_iter().for_each(|value| add(value, lines)),
        Value::Object(fields) if is_of_another_program(&fields) => {}
        Value::Object(fields) => match fields.get("MESSAGE").or(fields.get("msg")) {
            Some(message) => {
                let message = message.as_str().and_then(|message| message.lines().next()).unwrap_or("");
                let time = seconds(&fields).map(|seconds| format!("[{seconds:.6}] ")).unwrap_or_default();
                lines.extend([&time, message, "\n"]);
            }
            None => fields.into_iter().filter(|(key, _)| !is_quote(key)).for_each(|(_, value)| add(value, lines)),
        },
        _ => {}
    }
}

/// Returns whether a record of the journal has another program's name, or did not come from the kernel: a program cannot write
/// the second field. A name is null if it is long, and a list if there are several.
fn is_of_another_program(record: &Map<String, Value>) -> bool {
    ["SYSLOG_IDENTIFIER", "_TRANSPORT"].iter().any(|key| record.get(*key).is_some_and(|name| name != "kernel"))
}

/// Returns the seconds since boot in a record: of journalctl in microseconds, the kernel's time or the one at which the journal
/// got the message, and of dmesg in seconds.
fn seconds(record: &Map<String, Value>) -> Option<f64> {
    let number = |key: &str| {
        let value = record.get(key)?;
        value.as_f64().or_else(|| value.as_str()?.parse().ok())
    };
    let micros = number("_SOURCE_MONOTONIC_TIMESTAMP").or_else(|| number("__MONOTONIC_TIMESTAMP"));
    micros.map(|micros| micros / 1e6).or_else(|| number("time"))
}

/// Longer lines are not the kernel's: its records have at most 1024 bytes.
const MAX_LINE: usize = 4096;

/// Returns the kernel's message about clocks in a line.
fn message(line: &str) -> Option<Message> {
    if line.len() > MAX_LINE {
        return None;
    }
    let (row, start, fields) = table::message(line)?;
    let &table::Row(kind, level, ..) = row;
    let frame = frame::of(&line[..start])?;
    let text = line[frame.begin..].trim_end();
    let text = match kind {
        // The rest of the line names the person who built the kernel.
        Kind::Boot => text.split(" (").next().unwrap_or("").to_string(),
        // Other parameters can contain addresses and keys.
        Kind::CommandLine => match parameters_about_clocks(fields.text("line")?) {
            none if none.is_empty() => return None,
            parameters => format!("Kernel command line: {}", parameters.join(" ")),
        },
        _ => text.to_string(),
    };
    let shown = KernelMessage {
        seconds: frame.seconds,
        stamp: frame.stamp,
        text: text.replace('\t', " ").chars().filter(|c| !c.is_control()).collect(),
        meaning: row.meaning(&fields).into(),
        level,
        times: 1,
        last_seconds: None,
    };
    Some(Message { kind, fields, shown })
}

impl KernelClockLog {
    /// Returns the messages since the last boot, because a journal can contain several.
    pub fn this_boot(&self) -> &[Message] {
        let boot = self.messages.iter().rposition(|message| message.kind == Kind::Boot);
        &self.messages[boot.unwrap_or(0)..]
    }

    /// Returns the messages of a kind since the last boot.
    pub fn of(&self, kind: Kind) -> impl DoubleEndedIterator<Item = &Message> {
        self.this_boot().iter().filter(move |message| message.kind == kind)
    }

    /// Returns what the last message of a kind has in a hole of its pattern.
    pub fn field(&self, kind: Kind, name: &str) -> Option<&str> {
        self.of(kind).next_back()?.fields.text(name)
    }

    /// Returns the lines about clocks as dmesg prints them. A prefix of syslog would identify the host.
    pub fn lines_about_clocks(&self) -> Vec<String> {
        self.messages.iter().map(Message::line).collect()
    }

    /// Returns whether the kernel marked a clock source unstable.
    pub fn demoted(&self, name: &str) -> bool {
        let is_demotion = |kind: Kind| matches!(kind, Kind::Unstable | Kind::Skew | Kind::CpuSkew | Kind::ReadBack);
        self.this_boot().iter().any(|message| is_demotion(message.kind) && message.source() == name)
    }

    /// Returns the last rate of these kinds, in MHz.
    pub fn mhz(&self, kinds: &[Kind]) -> Option<f64> {
        let rates = self.this_boot().iter().rev().filter(|message| kinds.contains(&message.kind));
        rates.filter_map(|message| message.fields.number("mhz")).find(|mhz: &f64| *mhz > 0.0 && mhz.is_finite())
    }
}

/// Returns whether a text has a line of a kernel log about clocks.
pub fn is_kernel_log(text: &str) -> bool {
    parse(text).messages.iter().any(|message| message.kind != Kind::Boot)
}
