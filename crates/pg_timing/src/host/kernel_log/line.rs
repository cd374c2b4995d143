//! The lines of a log, and what stands before a message: times, the names of a host and of a file, marks of mails and
//! containers. Logs in JSON (`dmesg --json`, journalctl's json and json-pretty) become lines first.

use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// A record of journalctl, or dmesg's document or one of its records.
#[derive(Deserialize)]
struct Record {
    #[serde(default)]
    dmesg: Vec<Record>,
    #[serde(rename = "MESSAGE", alias = "msg")]
    message: Option<Value>,
    /// seconds since boot, of dmesg
    time: Option<Value>,
    /// microseconds since boot, of journalctl
    #[serde(rename = "_SOURCE_MONOTONIC_TIMESTAMP", alias = "__MONOTONIC_TIMESTAMP")]
    micros: Option<Value>,
    /// the program that wrote the message
    #[serde(rename = "SYSLOG_IDENTIFIER")]
    program: Option<String>,
}

/// Returns a log in JSON as the lines that dmesg prints. Another text is returned as it is.
pub fn as_lines(text: &str) -> Cow<'_, str> {
    if !text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).starts_with('{') {
        return Cow::Borrowed(text);
    }
    let mut lines = String::new();
    let mut records = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}')).into_iter::<Record>();
    let mut read = 0;
    while let Some(Ok(record)) = records.next() {
        read = records.byte_offset();
        add(&record, &mut lines);
    }
    // What follows, or a file without such records, is searched as text.
    lines.push_str(text.get(read..).unwrap_or(""));
    Cow::Owned(lines)
}

fn add(record: &Record, lines: &mut String) {
    for nested in &record.dmesg {
        add(nested, lines);
    }
    let is_kernel = record.program.as_deref().is_none_or(|program| program == "kernel");
    let Some(message) = record.message.as_ref().and_then(Value::as_str).filter(|_| is_kernel) else { return };
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let micros = record.micros.as_ref().and_then(number).map(|micros| micros / 1e6);
    if let Some(seconds) = micros.or_else(|| record.time.as_ref().and_then(number)).filter(|s| (0.0..1e12).contains(s))
    {
        lines.push_str(&format!("[{seconds:.6}] "));
    }
    lines.push_str(message.lines().next().unwrap_or(""));
    lines.push('\n');
}

/// Returns the line without colors (`dmesg --color=always`).
pub fn plain(line: &str) -> Cow<'_, str> {
    let Some((first, escaped)) = line.split_once('\u{1b}') else { return Cow::Borrowed(line) };
    let mut plain = first.to_string();
    for part in escaped.split('\u{1b}') {
        // ESC [ parameters and a letter
        let rest = part.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        match rest {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => plain.push_str(&rest[1..]),
            Some(rest) => plain.push_str(rest),
            None => plain.push_str(part),
        }
    }
    Cow::Owned(plain)
}

/// The times before a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    /// seconds since boot
    pub seconds: Option<f64>,
    /// wall-clock time, as printed
    pub stamp: Option<String>,
    /// the position at which the kernel's text begins
    pub begin: usize,
}

/// Subsystems whose names begin a message.
const SUBSYSTEMS: &[&str] = &[
    "clocksource:",
    "tsc:",
    "time.c:",
    "timekeeping:",
    "vmware:",
    "arch_timer:",
    "PM:",
    "ACPI:",
    "printk:",
    "hibernation:",
    "random:",
    "smp:",
    "smpboot:",
    "sched_clock:",
    "[Firmware Bug]:",
    "x86:",
    "checking",
];

/// A line of another text has more words before a message that it quotes. A log has the names of a file and a host, and
/// a time zone.
const MAX_WORDS: usize = 2;

/// No frame is longer. The limit keeps long lines cheap.
const MAX_BYTES: usize = 300;

/// Returns the frame in the text before a message, or `None` if the line is not the kernel's.
pub fn frame(before: &str) -> Option<Frame> {
    if before.len() > MAX_BYTES {
        return None;
    }
    let begin = kernel_text(before);
    let prefix = &before[..begin];
    let brackets = brackets(prefix);
    let seconds = brackets.iter().rev().find_map(|(_, inner)| seconds(inner)).or_else(|| kmsg_seconds(prefix));
    let (stamp, end) = match stamp(prefix) {
        Some((stamp, end)) => (Some(stamp.to_string()), end),
        None => (None, 0),
    };
    let bracket_end = brackets.iter().rev().find(|(_, inner)| seconds_or_delta(inner)).map_or(0, |(end, _)| *end);
    is_kernels(prefix, end.max(bracket_end)).then_some(Frame { seconds, stamp, begin })
}

/// Returns where the kernel's own text begins: at the first name of a subsystem right before the message.
fn kernel_text(before: &str) -> usize {
    let mut begin = before.len();
    let is_edge = |c: char| c.is_whitespace() || ";]>".contains(c);
    while let Some(word) = before[..begin].trim_end().rsplit(is_edge).next() {
        let word = if word == ":" { "[Firmware Bug]:" } else { word };
        if !SUBSYSTEMS.contains(&word) || !before[..begin].trim_end().ends_with(word) {
            break;
        }
        begin = before[..begin].trim_end().len() - word.len();
    }
    begin
}

/// Returns whether the words before a message are those of a kernel log. `times_end`: the end of the last time.
fn is_kernels(prefix: &str, times_end: usize) -> bool {
    let is_kernel = |word: &str| matches!(word.split(['[', ':']).next(), Some("kernel"));
    let is_tag = |word: &str| word.ends_with("]:") && word.contains('[') && !word.starts_with('[');
    if prefix.split_whitespace().any(|word| is_tag(word) && !is_kernel(word)) {
        return false;
    }
    let gap = prefix.get(times_end..).unwrap_or("");
    let mut names = 0;
    let syslog = times_end > 0 && !prefix[..times_end].ends_with(']');
    for word in gap.split(|c: char| c.is_whitespace() || ">|\u{feff}".contains(c)) {
        if is_kernel(word) {
            return names <= MAX_WORDS;
        }
        if word.starts_with(['"', '{']) {
            continue; // a key of JSON that was cut off
        }
        // `kern  :warn  :` of dmesg --decode, `12:` and `file:` of grep, `kernel - - -` of RFC 5424
        let is_place = word.starts_with(':')
            || word.contains(['/', '.'])
            || word.trim_end_matches([':', '-']).parse::<u64>().is_ok();
        if word.ends_with(':') && syslog && !is_place {
            return false;
        }
        names += usize::from(word.contains(char::is_alphabetic));
    }
    names <= MAX_WORDS
}

/// Returns the texts in brackets, each with the position after its bracket.
fn brackets(prefix: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = prefix[from..].find('[').map(|at| from + at + 1) {
        let Some(close) = prefix[open..].find(']').map(|at| open + at) else { break };
        found.push((close + 1, prefix[open..close].trim()));
        from = close + 1;
    }
    found
}

/// Returns seconds since boot: `12345.678901`, also with a difference (`dmesg --show-delta`).
fn seconds(inner: &str) -> Option<f64> {
    let text = inner.split_whitespace().next()?;
    let (whole, fraction) = text.split_once('.')?;
    let digits = |part: &str, most| (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    (digits(whole, 12) && digits(fraction, 9)).then(|| text.parse().ok())?
}

/// `[T1]`, `[C11]` and `[+0.000123]` stand between the time and the message.
fn seconds_or_delta(inner: &str) -> bool {
    let caller = inner.strip_prefix(['T', 'C']).is_some_and(|id| id.parse::<u32>().is_ok());
    caller || seconds(inner.trim_start_matches('+')).is_some()
}

/// Returns the time of /dev/kmsg's form `6,342,10301420,-;`.
fn kmsg_seconds(prefix: &str) -> Option<f64> {
    let fields: Vec<&str> = prefix.split_once(';')?.0.split(',').collect();
    let [level, _, micros, _, ..] = fields.as_slice() else { return None };
    level.parse::<u32>().ok()?;
    Some(micros.parse::<u64>().ok()? as f64 / 1e6)
}

/// Returns the wall-clock time in the text, as printed in any language, and the position after it.
fn stamp(prefix: &str) -> Option<(&str, usize)> {
    let bytes = prefix.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    // `12:` before a year is the number of a line.
    let is_time = |at: &usize| {
        let digits = [0, 1, 3, 4].iter().all(|nth| is_digit(at + nth));
        digits && bytes[at + 2] == b':' && !is_digit(at + 5) && !(*at > 0 && is_digit(at - 1))
    };
    let time = (0..bytes.len()).find(is_time)?;
    let is_edge = |c: char| c.is_whitespace() || "[](){}\"".contains(c);
    let word_start =
        prefix[..time].rfind(is_edge).map_or(0, |at| at + prefix[at..].chars().next().map_or(1, char::len_utf8));
    let word_start = prefix[word_start..time].rfind(':').map_or(word_start, |at| word_start + at + 1);
    let word_end = prefix[time..].find(is_edge).map_or(prefix.len(), |at| time + at);
    let mut start = word_start;
    // The day, the month and the day of the week stand before the time.
    let has_date = time > word_start;
    while let Some(word) = prefix[..start].split([' ', '\t', '[']).rfind(|word| !word.is_empty()) {
        let at = prefix[..start].rfind(word).unwrap_or(0);
        let part = word.rsplit([':', '>', '|']).next().unwrap_or("");
        if has_date || !is_date(part) || prefix[at + word.len()..start].contains('[') {
            break;
        }
        start = at + word.len() - part.len();
        if part.len() < word.len() {
            break;
        }
    }
    let mut end = word_end;
    let year = prefix[end..].trim_start();
    if year.get(..4).is_some_and(|year| year.bytes().all(|b| b.is_ascii_digit())) && year[4..].starts_with(']') {
        end = prefix.len() - year.len() + 4;
    }
    let stamp = prefix[start..end].trim_end_matches(':');
    Some((stamp, if prefix[end..].starts_with(']') { end + 1 } else { end }))
}

/// Returns whether a word can be a part of a date: `2026-11-20`, `20`, `Nov`, `Nov20`, `déc.`, `12月`.
fn is_date(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.contains(|c: char| c.is_alphanumeric());
    let short = word.chars().count() <= 5 && (digits <= 2 || word.contains('月'));
    let numeric = word.len() == 10 && digits == 8;
    letters && (numeric || short) && word.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '-')
}
