//! Reads a server's log in CSV format, where a plan is one field of a record.

use super::csv_record::{Message, message};
use std::borrow::Cow;

/// Replaces each record that contains a plan with its message, as a plain log would show it.
pub fn expand_records(text: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < text.len() {
        match plan_message(&text[at..]) {
            Some((message, length)) => {
                plain.push_str(&text[copied..at]);
                plain.push_str(&message);
                plain.push('\n');
                at += length;
                copied = at;
            }
            None => at = text[at..].find('\n').map_or(text.len(), |end| at + end + 1),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    plain.push_str(&text[copied..]);
    Cow::Owned(plain)
}

/// Returns the message of the record that begins here, if it contains a plan, and the record's length in bytes.
fn plan_message(text: &str) -> Option<(String, usize)> {
    let line = text.lines().next().filter(|line| !line.is_empty())?;
    if !line.contains(",\"duration: ") || !line.trim_end().ends_with("plan:") {
        return None;
    }
    let Message { text, length, .. } = message(text)?;
    Some((text, length))
}

#[cfg(test)]
mod tests {
    use super::{expand_records, plan_message};

    const RECORD: &str = "2026-11-21 22:20:13 UTC,,,7,\"[local]\",1,,,,0,LOG,00000,\"duration: 5.100 ms  plan:\nQuery Text: SELECT \"\"a\"\"\nSeq Scan on t\",,,\n";

    #[test]
    fn a_record_with_a_plan_becomes_its_message() {
        let (message, length) = plan_message(&format!("{RECORD}{RECORD}")).unwrap();
        assert_eq!(message, "duration: 5.100 ms  plan:\nQuery Text: SELECT \"a\"\nSeq Scan on t");
        assert_eq!(length, RECORD.len());
        // The last record of a log may be truncated.
        assert!(plan_message(&RECORD[..RECORD.len() - 7]).unwrap().0.ends_with("Seq Scan on"));
        assert_eq!(plan_message("LOG:  duration: 5.100 ms  plan:\n"), None);
        assert_eq!(plan_message("a,\"duration: 5.1 ms\",\n"), None);
        let log = expand_records(RECORD).into_owned();
        assert_eq!(expand_records(&format!("a\n{RECORD}b\n{RECORD}c")), format!("a\n{log}b\n{log}c"));
        assert!(matches!(expand_records("a\nb"), std::borrow::Cow::Borrowed("a\nb")));
    }
}
