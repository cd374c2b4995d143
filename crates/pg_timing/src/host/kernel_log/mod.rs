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

use super::facts::about_clocks;
use super::pattern::Fields;
use crate::report::{Demoted, KernelMessage};
use anstream::adapter::strip_str;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

pub use crate::report::MessageLevel as Level;
pub use table::{Kind, RateSource};

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

/// A record of journalctl, or dmesg's document or one of its records.
#[derive(Deserialize)]
struct Record {
    #[serde(default)]
    dmesg: Vec<Record>,
    #[serde(rename = "MESSAGE", alias = "msg")]
    message: Option<Value>,
    /// seconds since boot, of dmesg
    time: Option<f64>,
    /// microseconds since boot, of journalctl: the kernel's time, and the time at which the journal got the message
    #[serde(rename = "_SOURCE_MONOTONIC_TIMESTAMP")]
    micros: Option<String>,
    #[serde(rename = "__MONOTONIC_TIMESTAMP")]
    received_micros: Option<String>,
    /// the program that wrote the message; it is null if the name is long, and a list if there are several
    #[serde(rename = "SYSLOG_IDENTIFIER", default = "kernel")]
    program: Value,
    /// how the journal got the message; a program cannot write this field
    #[serde(rename = "_TRANSPORT", default = "kernel")]
    transport: Value,
}

fn kernel() -> Value {
    "kernel".into()
}

/// Returns a log in JSON as the lines that dmesg prints. Another text is returned as it is.
fn as_lines(text: &str) -> Cow<'_, str> {
    if !text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).starts_with('{') {
        return Cow::Borrowed(text);
    }
    let mut lines = String::new();
    let text = text.trim_start_matches('\u{feff}');
    let mut records = serde_json::Deserializer::from_str(text).into_iter::<Record>();
    let mut read = 0;
    while let Some(Ok(record)) = records.next() {
        read = records.byte_offset();
        record.dmesg.iter().chain([&record]).for_each(|record| record.add_to(&mut lines));
    }
    // What follows, or a file without such records, is searched as text.
    lines.push_str(&text[read..]);
    Cow::Owned(lines)
}

impl Record {
    fn add_to(&self, lines: &mut String) {
        let is_kernel = self.program == "kernel" && self.transport == "kernel";
        let Some(message) = self.message.as_ref().and_then(Value::as_str).filter(|_| is_kernel) else { return };
        let micros = self.micros.as_ref().or(self.received_micros.as_ref());
        let micros = micros.and_then(|micros| micros.parse::<f64>().ok());
        if let Some(seconds) = micros.map(|micros| micros / 1e6).or(self.time) {
            lines.push_str(&format!("[{seconds:.6}] "));
        }
        lines.push_str(message.lines().next().unwrap_or(""));
        lines.push('\n');
    }
}

/// Longer lines are not the kernel's: its records have at most 1024 bytes.
const MAX_LINE: usize = 4096;

/// Returns the kernel's message about clocks in a line.
fn message(line: &str) -> Option<Message> {
    if line.len() > MAX_LINE {
        return None;
    }
    let (row, found) = table::message(line)?;
    let frame = frame::of(&line[..found.start])?;
    let text = line[frame.begin..].trim_end();
    let text = match row.kind {
        // The rest of the line names the person who built the kernel.
        Kind::Boot => text.split(" (").next().unwrap_or("").to_string(),
        Kind::CommandLine => command_line(found.fields.text("line")?)?,
        _ => text.to_string(),
    };
    let shown = KernelMessage {
        seconds: frame.seconds,
        stamp: frame.stamp,
        text: text.replace('\t', " ").chars().filter(|c| !c.is_control()).collect(),
        meaning: row.meaning(&found.fields).into(),
        level: row.level,
        times: 1,
        last_seconds: None,
    };
    Some(Message { kind: row.kind, fields: found.fields, shown })
}

/// Returns the boot parameters about clocks, if there are any. Others can contain addresses and keys.
fn command_line(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| about_clocks(word)).collect();
    (!words.is_empty()).then(|| format!("Kernel command line: {}", words.join(" ")))
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

    /// Returns the lines about clocks as dmesg prints them. A prefix of syslog would identify the host.
    pub fn lines_about_clocks(&self) -> Vec<String> {
        self.messages.iter().map(Message::line).collect()
    }

    /// Returns whether the kernel marked a clock source unstable.
    pub fn demoted(&self, name: &str) -> bool {
        let is_demotion = |kind: Kind| matches!(kind, Kind::Unstable | Kind::Skew | Kind::CpuSkew | Kind::ReadBack);
        self.this_boot().iter().any(|message| is_demotion(message.kind) && message.source() == name)
    }

    /// Returns the last demotion of the TSC.
    pub fn demotion(&self) -> Option<Demoted> {
        demotion::last(self)
    }

    /// Returns the rates in MHz, in the order of the log.
    pub fn rates(&self) -> impl Iterator<Item = (RateSource, f64)> {
        self.this_boot().iter().filter_map(|message| match message.kind {
            Kind::Rate(source) => Some((source, mhz(message)?)),
            _ => None,
        })
    }

    /// Returns the clock source of a Linux before 2.6.21 for x86-64, which had no list of clock sources.
    ///
    /// "WALL ... GTOD" names the timer of the tick, and then the one that gettimeofday reads. Without GTOD, older
    /// kernels name only the timer of the tick.
    pub fn old_clocksource(&self) -> Option<&'static str> {
        let timer = self.of(Kind::OldTimer).next_back()?;
        timer.fields.text("wall")?;
        match timer.fields.text("timer")? {
            "PIT/TSC" | "HPET/TSC" => Some("tsc"),
            "HPET" | "PIT/HPET" => Some("hpet"),
            "PM" => Some("acpi_pm"),
            "PIT" => Some("pit"),
            _ => None,
        }
    }
}

/// Returns the rate that a message prints.
fn mhz(message: &Message) -> Option<f64> {
    message.fields.number("mhz").filter(|mhz: &f64| *mhz > 0.0 && mhz.is_finite())
}

/// Returns whether a text has a line of a kernel log about clocks.
pub fn is_kernel_log(text: &str) -> bool {
    parse(text).messages.iter().any(|message| message.kind != Kind::Boot)
}
