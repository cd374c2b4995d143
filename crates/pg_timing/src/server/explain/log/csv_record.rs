//! Records of a server's log in CSV format.

/// Returns whether the message of a CSV record begins on this line, and has not ended.
pub fn begins_with_message(line: &str) -> bool {
    line.contains(",\"duration: ") && is_quoted_after(line, false)
}

/// Returns whether a record of the server's log begins on this line: `2026-11-21 22:20:13.123 UTC,`.
pub fn begins(line: &str) -> bool {
    let bytes = line.as_bytes();
    const PATTERN: &[u8] = b"0000-00-00 00:00:00";
    bytes.len() > PATTERN.len()
        && PATTERN.iter().zip(bytes).all(|(expected, byte)| match expected {
            b'0' => byte.is_ascii_digit(),
            other => other == byte,
        })
        && line.split(',').next().is_some_and(|time| time.len() <= LONGEST_TIME && !time.contains('"'))
        && line.matches(',').count() >= FIELDS_BEFORE_MESSAGE
}

/// The time with milliseconds and the name of a time zone.
const LONGEST_TIME: usize = 40;
/// The message is field 14, and it is the first one that can have several lines.
const FIELDS_BEFORE_MESSAGE: usize = 13;

/// Returns whether a quoted field is open after this line, if `is_quoted` says so for the line before. A quotation mark
/// within a field is doubled.
pub fn is_quoted_after(line: &str, is_quoted: bool) -> bool {
    is_quoted != (memchr::memchr_iter(b'"', line.as_bytes()).count() % 2 == 1)
}

/// What pg_timing needs of a record.
#[derive(Debug, PartialEq)]
pub struct Message {
    pub text: String,
    pub query_id: Option<i64>,
}

/// The number of the field `query_id`, from 0. PostgreSQL 14 and later write it.
const QUERY_ID: usize = 25;

/// Returns the message of a record.
pub fn message(record: &str) -> Option<Message> {
    // The number of fields depends on the server's version.
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        // The default of 8 kB would be copied again for each of many short records.
        .buffer_capacity(record.len())
        .from_reader(record.as_bytes());
    let mut fields = csv::StringRecord::new();
    if !reader.read_record(&mut fields).ok()? {
        return None;
    }
    let text = fields.iter().find(|field| field.starts_with("duration: "))?.to_string();
    let query_id = fields.get(QUERY_ID).and_then(|id| id.parse().ok()).filter(|id| *id != 0);
    Some(Message { text, query_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,,0,LOG,00000,\"duration: 5.100 ms  plan:";
    const REST: &str = "\nQuery Text: SELECT \"\"a\"\"\nSeq Scan on t\",,,,,\"SQL function f\nline 2\",,,,\"psql\",\"client backend\",,";

    #[test]
    fn the_message_and_the_query_id_are_read() {
        let message_of = |end: &str| message(&format!("{FIRST}{REST}{end}")).unwrap();
        let text = "duration: 5.100 ms  plan:\nQuery Text: SELECT \"a\"\nSeq Scan on t";
        assert_eq!(message_of("-77\n"), Message { text: text.into(), query_id: Some(-77) });
        assert_eq!(message_of("0\n").query_id, None);
        assert_eq!(message("a,b\n"), None);
    }

    #[test]
    fn the_end_of_a_record_is_found() {
        assert!(begins_with_message(FIRST) && begins(FIRST));
        assert!(!begins_with_message("LOG:  duration: 5.100 ms  plan:"));
        assert!(!begins("2026-11-21 22:20:13.123 UTC [7] LOG:  a,b") && !begins("\tQuery Text: select 1"));
        let mut is_quoted = is_quoted_after(FIRST, false);
        let after_each = REST.trim_start().lines().map(|line| {
            is_quoted = is_quoted_after(line, is_quoted);
            is_quoted
        });
        assert_eq!(after_each.collect::<Vec<_>>(), [true, true, false]);
    }
}
