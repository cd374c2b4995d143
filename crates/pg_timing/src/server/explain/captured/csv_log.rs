//! A server's log in CSV: a plan is one field of a record.

use std::borrow::Cow;

/// The text with messages that have a plan in the place of their records, as another log has them.
pub fn unfolded(text: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < text.len() {
        match message(&text[at..]) {
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

/// The message with a plan of the record that begins here, and the record's length.
fn message(text: &str) -> Option<(String, usize)> {
    let line = text.lines().next()?;
    if !line.contains(",\"duration: ") || !line.trim_end().ends_with("plan:") {
        return None;
    }
    // How many fields there are depends on the version.
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    if !reader.read_record(&mut record).ok()? {
        return None;
    }
    let message = record.iter().find(|field| field.starts_with("duration: "))?;
    Some((message.to_string(), reader.position().byte() as usize))
}

#[cfg(test)]
mod tests {
    use super::{message, unfolded};

    const RECORD: &str = "2026-11-21 22:20:13 UTC,,,7,\"[local]\",1,,,,0,LOG,00000,\"duration: 5.100 ms  plan:\nQuery Text: SELECT \"\"a\"\"\nSeq Scan on t\",,,\n";

    #[test]
    fn a_record() {
        let (said, length) = message(&format!("{RECORD}{RECORD}")).unwrap();
        assert_eq!(said, "duration: 5.100 ms  plan:\nQuery Text: SELECT \"a\"\nSeq Scan on t");
        assert_eq!(length, RECORD.len());
        // The last one of a log may be cut off.
        assert!(message(&RECORD[..RECORD.len() - 7]).unwrap().0.ends_with("Seq Scan on"));
        assert_eq!(message("LOG:  duration: 5.100 ms  plan:\n"), None);
        assert_eq!(message("a,\"duration: 5.1 ms\",\n"), None);
        let log = unfolded(RECORD).into_owned();
        assert_eq!(unfolded(&format!("a\n{RECORD}b\n{RECORD}c")), format!("a\n{log}b\n{log}c"));
        assert!(matches!(unfolded("a\nb"), std::borrow::Cow::Borrowed("a\nb")));
    }
}
