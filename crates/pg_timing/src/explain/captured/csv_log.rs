//! A server's log in CSV: a plan is one field of a record.

/// The message with a plan of the record that begins here, and the record's length.
pub fn message(text: &str) -> Option<(String, usize)> {
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
    use super::message;

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
    }
}
