//! Kernel logs in JSON: `dmesg --json`, and journalctl's json and json-pretty.

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
