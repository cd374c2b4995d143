//! Reads a server's log in CSV format, where a plan is one field of a record.

use super::announcement::announced_ms;
use super::csv_record::{Message, begins_with_message, begins_within_field, is_quoted_after, message, message_at};
use super::transport::continued;
use std::borrow::Cow;

/// Replaces each record that contains a plan with its message, as a plain log would show it, and removes other records: a
/// statement can contain what looks like a plan.
pub fn expand_records(text: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if continued(rest).is_some() {
            at += first_line(rest).len();
        } else if let Some((message, length)) = plan_message(rest) {
            plain.push_str(&text[copied..at]);
            plain.push_str(&as_record(&message));
            plain.push('\n');
            at += length;
            copied = at;
        } else if message_at(first_line(rest)).is_some() {
            plain.push_str(&text[copied..at]);
            at += other_record(rest);
            copied = at;
        } else {
            at += first_line(rest).len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    plain.push_str(&text[copied..]);
    Cow::Owned(plain)
}

/// Returns a message as the text log has it: a tab precedes each further line.
pub fn as_record(message: &str) -> String {
    let mut lines = message.split('\n');
    let mut record = lines.next().unwrap_or_default().to_string();
    for line in lines {
        record.push_str(if continued(line).is_some() { "\n" } else { "\n\t" });
        record.push_str(line);
    }
    record
}

/// Returns the message of the record that begins here, if it contains a plan, and the record's length in bytes.
fn plan_message(text: &str) -> Option<(String, usize)> {
    let line = first_line(text).trim_end();
    if announced_ms(line).is_none() || !begins_with_message(line) {
        return None;
    }
    let Message { text, length, .. } = message(text)?;
    Some((text, length))
}

/// Returns the length in bytes of the record that begins here. It ends with its quotation marks, or where another one begins.
fn other_record(text: &str) -> usize {
    let (mut length, mut is_quoted) = (0, false);
    for line in text.split_inclusive('\n') {
        if length > 0 && begins_within_field(line) {
            return length;
        }
        length += line.len();
        is_quoted = is_quoted_after(line, is_quoted);
        if !is_quoted {
            return length;
        }
    }
    // The record is truncated. What follows may be something else.
    first_line(text).len()
}

/// Returns the first line with its line end.
fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{expand_records, plan_message};

    const RECORD: &str = "2026-11-21 22:20:13 UTC,,,7,\"[local]\",1,1,,,,0,LOG,00000,\"duration: 5.100 ms  plan:\nQuery Text: SELECT \"\"a\"\"\nSeq Scan on t\",,,\n";

    #[test]
    fn a_record_with_a_plan_becomes_its_message() {
        let (message, length) = plan_message(&format!("{RECORD}{RECORD}")).unwrap();
        assert_eq!(message, "duration: 5.100 ms  plan:\nQuery Text: SELECT \"a\"\nSeq Scan on t");
        assert_eq!(length, RECORD.len());
        // The last record of a log may be truncated.
        assert!(plan_message(&RECORD[..RECORD.len() - 7]).unwrap().0.ends_with("Seq Scan on"));
        assert_eq!(plan_message("LOG:  duration: 5.100 ms  plan:\n"), None);
        assert_eq!(plan_message("a,\"duration: 5.1 ms\",\n"), None);
        let other = RECORD.replace("\"duration", "\"error\",\"duration");
        assert_eq!(
            expand_records(&format!("{other}{RECORD}{other}a")),
            format!("{}\na", expand_records(RECORD).trim_end())
        );
        let log = expand_records(RECORD).into_owned();
        assert_eq!(expand_records(&format!("a\n{RECORD}b\n{RECORD}c")), format!("a\n{log}b\n{log}c"));
        assert!(matches!(expand_records("a\nb"), std::borrow::Cow::Borrowed("a\nb")));
    }
}
