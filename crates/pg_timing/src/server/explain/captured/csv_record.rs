//! Records of a server's log in CSV format.

use csv_core::ReadRecordResult;
use memchr::memmem;
use std::cell::RefCell;

/// Returns whether a plan's announcement begins the message of a CSV record on this line, and the message goes on. The
/// caller has checked that the line ends with an announcement.
pub fn begins_with_message(line: &str) -> bool {
    const MESSAGE: &str = "\"duration: ";
    let begins = |at: usize| line[at..].starts_with(MESSAGE);
    let is_message = match message_at(line) {
        Some(at) => begins(at),
        // Another program may have changed the fields before the message.
        None => memmem::rfind(line.as_bytes(), b",\"duration: ").is_some_and(|at| !is_quoted_after(&line[..at], false)),
    };
    is_message && is_quoted_after(line, false)
}

/// Returns where the message begins, if a record of the server's log begins on this line:
/// `2026-11-21 22:20:13.123 UTC,"user","database",7,"[local]",1,2,"SELECT",,,0,LOG,00000,"message"`.
pub fn message_at(line: &str) -> Option<usize> {
    const PATTERN: &[u8] = b"0000-00-00 00:00:00";
    let bytes = line.as_bytes();
    let has_time = bytes.len() > PATTERN.len()
        && PATTERN.iter().zip(bytes).all(|(expected, byte)| match expected {
            b'0' => byte.is_ascii_digit(),
            other => other == byte,
        });
    if !has_time || memchr::memchr(b',', &bytes[..bytes.len().min(LONGEST_TIME)]).is_none() {
        return None;
    }
    let (mut is_quoted, mut field, mut begin) = (false, 0, 0);
    for at in memchr::memchr2_iter(b',', b'"', bytes) {
        match bytes[at] {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            _ if field == SQL_STATE => {
                let code = &bytes[begin..at];
                let is_code = code.len() == 5 && code.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
                return is_code.then_some(at + 1);
            }
            _ => (field, begin) = (field + 1, at + 1),
        }
    }
    None
}

/// Returns whether a record begins on this line within a quoted field, because the end of the record before is missing. The field
/// itself can have such a line, with doubled quotation marks.
pub fn begins_within_field(line: &str) -> bool {
    let quotes = |at: usize| line[at..].bytes().take_while(|byte| *byte == b'"').count();
    message_at(line).is_some_and(|at| quotes(at) % 2 == 1)
}

/// Returns the session of the record that begins on this line, if it shows that the client's statement has failed. `message` is
/// where its message begins.
pub fn failed_session(line: &str, message: usize) -> Option<&str> {
    let before = line[..message].strip_suffix(',')?;
    let (before, _) = before.rsplit_once(',')?;
    ["ERROR", "FATAL", "PANIC"].iter().find(|severity| before.ends_with(**severity))?;
    let mut is_quoted = false;
    let is_end = |c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    };
    before.split(is_end).nth(SESSION).filter(|session| !session.is_empty())
}

/// The time with milliseconds and the name of a time zone.
const LONGEST_TIME: usize = 40;

/// The numbers of fields, from 0. The message is the first field that can have several lines. PostgreSQL 14 and later write
/// the query's identifier.
const TIME: usize = 0;
const SESSION: usize = 5;
const COMMAND: usize = 7;
const TRANSACTION: usize = 9;
const SQL_STATE: usize = 12;
const MESSAGE: usize = 13;
const CONTEXT: usize = 18;
const QUERY_ID: usize = 25;

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
    /// the session's identifier, or its process
    pub session: Option<String>,
    /// the client's command, like `SELECT`
    pub command: Option<String>,
    /// the virtual transaction identifier
    pub transaction: Option<String>,
    pub time: Option<String>,
    /// what the server was executing; empty for a statement of the client
    pub context: String,
    /// length of the record in bytes
    pub length: usize,
}

/// No version of the server writes more fields.
const MAX_FIELDS: usize = 40;

thread_local! {
    /// Its tables take longer to build than a record takes to parse.
    static PARSER: RefCell<csv_core::Reader> = RefCell::new(csv_core::Reader::new());
}

/// Returns the message of the record at the beginning of a text.
pub fn message(text: &str) -> Option<Message> {
    PARSER.with_borrow_mut(|parser| {
        parser.reset();
        parsed(parser, text)
    })
}

fn parsed(parser: &mut csv_core::Reader, text: &str) -> Option<Message> {
    let mut ends = [0; MAX_FIELDS];
    let mut fields = vec![0; FIRST_BYTES];
    let (mut read, mut written, mut count) = (0, 0, 0);
    loop {
        let input = &text.as_bytes()[read..];
        let (result, bytes, out, ended) = parser.read_record(input, &mut fields[written..], &mut ends[count..]);
        (read, written, count) = (read + bytes, written + out, count + ended);
        match result {
            // The next call, without input, ends the record.
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::OutputFull => fields.resize(2 * fields.len(), 0),
            ReadRecordResult::OutputEndsFull | ReadRecordResult::End => return None,
            ReadRecordResult::Record => break,
        }
    }
    let field = |number: usize| {
        let begin = if number == 0 { 0 } else { ends[number - 1] };
        str::from_utf8(&fields[begin..ends[number]]).ok()
    };
    let is_plan = |number: &usize| field(*number).is_some_and(|field| field.starts_with("duration: "));
    let message = match message_at(text) {
        Some(_) => Some(MESSAGE).filter(is_plan)?,
        None => (0..count).find(is_plan)?,
    };
    let other = |number: usize| (message == MESSAGE && number < count).then(|| field(number)).flatten();
    let filled = |number: usize| other(number).filter(|field| !field.is_empty()).map(String::from);
    let query_id = other(QUERY_ID).and_then(|id| id.parse().ok()).filter(|id| *id != 0);
    let [session, command, transaction, time] = [SESSION, COMMAND, TRANSACTION, TIME].map(filled);
    let context = filled(CONTEXT).unwrap_or_default();
    // A plan can have several MB, so its text is not copied.
    fields.truncate(ends[message]);
    fields.drain(..message.checked_sub(1).map_or(0, |before| ends[before]));
    fields.shrink_to_fit();
    let text = String::from_utf8(fields).ok()?;
    Some(Message { text, query_id, session, command, transaction, time, context, length: read })
}

/// The fields of most records fit into this many bytes.
const FIRST_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,3/7,0,LOG,00000,\"duration: 5.100 ms  plan:";
    const REST: &str = "\nQuery Text: SELECT \"\"a\"\"\nSeq Scan on t\",,,,,\"SQL function f\nline 2\",,,,\"psql\",\"client backend\",,";

    #[test]
    fn the_message_and_the_query_id_are_read() {
        let message_of = |end: &str| message(&format!("{FIRST}{REST}{end}")).unwrap();
        let text = "duration: 5.100 ms  plan:\nQuery Text: SELECT \"a\"\nSeq Scan on t";
        let length = FIRST.len() + REST.len() + "-77\n".len();
        let message_of_all = Message {
            text: text.into(),
            query_id: Some(-77),
            session: Some("1".into()),
            command: Some("SELECT".into()),
            transaction: Some("3/7".into()),
            time: Some("2026-11-21 22:20:13.123 UTC".into()),
            context: "SQL function f\nline 2".into(),
            length,
        };
        assert_eq!(message_of("-77\n"), message_of_all);
        assert_eq!(message_of("0\n").query_id, None);
        assert_eq!((message("a,b\n"), message(""), message(&",".repeat(99))), (None, None, None));
        // The last record of a log may be truncated, and a field may be long.
        let long = "x".repeat(100_000);
        assert_eq!(message(&format!("a,\"duration: 1 ms\n{long}")).unwrap().text, format!("duration: 1 ms\n{long}"));
    }

    #[test]
    fn only_the_message_can_announce_a_plan() {
        let fields = FIRST.split_once("\"duration").unwrap().0;
        // A user's name can contain commas.
        let named = fields.replace("\"u\"", "\"u,\"\"v\"\",,\"");
        assert!(begins_with_message(&format!("{named}\"duration: 5.100 ms  plan:")));
        let statement = format!("{fields}\"syntax error\",,,,,,\"duration: 5.100 ms  plan:");
        assert!(!begins_with_message(&statement));
        assert_eq!(message(&format!("{statement}{REST}\n")), None);
        // Fewer fields: another program wrote the record.
        assert!(begins_with_message("a,\"duration: 5.100 ms  plan:"));
        assert!(!begins_with_message("a,\"b,\"\"duration: 5.100 ms  plan:"));
    }

    #[test]
    fn a_failed_statement_names_its_session() {
        let session = |line: &str| failed_session(line, message_at(line).unwrap()).map(String::from);
        let line = FIRST.replace("LOG", "ERROR").replace("\"u\"", "\"u,\"\"v\"\",,\"");
        assert_eq!((session(&line).as_deref(), session(FIRST)), (Some("1"), None));
        assert_eq!(failed_session("ERROR,0,x", 8), None);
    }

    #[test]
    fn the_end_of_a_record_is_found() {
        assert!(
            begins_with_message(FIRST) && message_at(FIRST).is_some_and(|at| FIRST[at..].starts_with("\"duration"))
        );
        assert!(!begins_with_message("LOG:  duration: 5.100 ms  plan:"));
        for other in
            ["2026-11-21 22:20:13.123 UTC [7] LOG:  a,b", "\tQuery Text: select 1", "2026-11-21 22:20:13.123 UTC"]
        {
            assert_eq!(message_at(other), None, "{other}");
        }
        let mut is_quoted = is_quoted_after(FIRST, false);
        let after_each = REST.trim_start().lines().map(|line| {
            is_quoted = is_quoted_after(line, is_quoted);
            is_quoted
        });
        assert_eq!(after_each.collect::<Vec<_>>(), [true, true, false]);
    }
}
