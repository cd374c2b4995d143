//! Records in CSV: the server's csvlog, and exports of log services, whose first line names the columns.

use csv_core::ReadRecordResult;

/// The columns of the server's csvlog, from 0. PostgreSQL 14 and later write the query's identifier.
const SQL_STATE: usize = 12;
const MESSAGE: usize = 13;
const CONTEXT: usize = 18;
const QUERY_ID: usize = 25;

/// The time with milliseconds and the name of a time zone.
const LONGEST_TIME: usize = 40;

/// Names of the column with the server's messages in exports. Other columns are identifiers and labels.
const MESSAGE_COLUMNS: [&str; 9] =
    ["message", "@message", "log", "line", "textpayload", "content", "body", "_raw", "log_message"];

/// What the columns of a file are.
#[derive(Clone, Debug, PartialEq)]
pub enum Columns {
    /// those of the server
    Server,
    /// the number of the column with the messages
    Named(usize),
}

impl Columns {
    /// Returns the columns that the first line of a file names, if one of them has the messages of a log.
    pub fn of_header(line: &str) -> Option<Columns> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_@. \"-,".contains(c);
        if !line.contains(',') || !line.chars().all(is_name) {
            return None;
        }
        let mut names = line.split(',').map(|name| name.trim_matches(['"', ' ']).to_ascii_lowercase());
        names.position(|name| MESSAGE_COLUMNS.contains(&name.as_str())).map(Columns::Named)
    }

    fn message(&self) -> usize {
        match self {
            Columns::Server => MESSAGE,
            Columns::Named(column) => *column,
        }
    }
}

/// Returns whether a record of the server's log begins on this line:
/// `2026-11-21 22:20:13.123 UTC,"user","database",7,"[local]",1,2,"SELECT",,,0,LOG,00000,"message"`.
pub fn begins_record(line: &str) -> bool {
    const PATTERN: &[u8] = b"0000-00-00 00:00:00";
    let bytes = line.as_bytes();
    let has_time = bytes.len() > PATTERN.len()
        && PATTERN.iter().zip(bytes).all(|(expected, byte)| match expected {
            b'0' => byte.is_ascii_digit(),
            other => other == byte,
        });
    if !has_time || memchr::memchr(b',', &bytes[..bytes.len().min(LONGEST_TIME)]).is_none() {
        return false;
    }
    let (mut is_quoted, mut field, mut begin) = (false, 0, 0);
    for at in memchr::memchr2_iter(b',', b'"', bytes) {
        match bytes[at] {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            _ if field == SQL_STATE => {
                let code = &bytes[begin..at];
                return code.len() == 5 && code.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
            }
            _ => (field, begin) = (field + 1, at + 1),
        }
    }
    false
}

/// Returns whether a line has a quotation mark that begins or ends a field. Within a field, the server doubles each one that a
/// client wrote.
pub fn has_single_quote(line: &str) -> bool {
    line.as_bytes().chunk_by(|one, other| one == other).any(|run| run[0] == b'"' && run.len() % 2 == 1)
}

/// Returns whether a quoted field is open after this line, if `is_quoted` says so for the line before. A quotation mark
/// within a field is doubled.
pub fn is_quoted_after(line: &str, is_quoted: bool) -> bool {
    is_quoted != (memchr::memchr_iter(b'"', line.as_bytes()).count() % 2 == 1)
}

/// What a record contains.
#[derive(Debug, Default, PartialEq)]
pub struct Message {
    pub text: String,
    pub context: String,
    pub query_id: Option<i64>,
}

/// No version of the server, and hardly any service, writes more fields.
const MAX_FIELDS: usize = 100;

/// Parses records. Its tables take longer to build than a record takes to parse.
pub struct Parser {
    reader: csv_core::Reader,
    fields: Vec<u8>,
}

impl Default for Parser {
    fn default() -> Parser {
        Parser { reader: csv_core::Reader::new(), fields: Vec::new() }
    }
}

impl Parser {
    /// Returns the message of a record, or `None` if it is damaged.
    pub fn message(&mut self, record: &str, columns: &Columns) -> Option<Message> {
        self.reader.reset();
        // A field is never longer than its text with quotation marks.
        self.fields.resize(record.len() + 1, 0);
        let mut ends = [0; MAX_FIELDS];
        let (mut read, mut written, mut count) = (0, 0, 0);
        loop {
            let input = &record.as_bytes()[read..];
            let (result, bytes, out, ended) =
                self.reader.read_record(input, &mut self.fields[written..], &mut ends[count..]);
            (read, written, count) = (read + bytes, written + out, count + ended);
            match result {
                // The next call, without input, ends the record.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record => break,
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull | ReadRecordResult::End => return None,
            }
        }
        let field = |number: usize| {
            let begin = if number == 0 { 0 } else { ends[number - 1] };
            let is_there = number < count;
            is_there.then(|| String::from_utf8_lossy(&self.fields[begin..ends[number]]).into_owned())
        };
        let text = field(columns.message())?;
        Some(match columns {
            Columns::Server => Message {
                text,
                context: field(CONTEXT).unwrap_or_default(),
                query_id: field(QUERY_ID).and_then(|id| id.parse().ok()).filter(|id| *id != 0),
            },
            Columns::Named(_) => Message { text, ..Message::default() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,3/7,0,LOG,00000,\"duration: 5.100 ms  plan:\nQuery Text: SELECT \"\"a\"\"\nSeq Scan on t\",,,,,\"SQL function f\nline 2\",,,,\"psql\",\"client backend\",,-77\n";

    #[test]
    fn the_message_its_context_and_the_query_id_are_read() {
        let first = RECORD.lines().next().unwrap();
        assert!(begins_record(first) && is_quoted_after(first, false));
        let message = Parser::default().message(RECORD, &Columns::Server).unwrap();
        let text = "duration: 5.100 ms  plan:\nQuery Text: SELECT \"a\"\nSeq Scan on t".into();
        assert_eq!(message, Message { text, context: "SQL function f\nline 2".into(), query_id: Some(-77) });
        for line in ["", "2026-11-21 22:20:13 UTC [7] LOG:  a, b", "2026-11-21 22:20:13.123 UTC,1,2,3"] {
            assert!(!begins_record(line), "{line}");
        }
        assert_eq!(Parser::default().message("a,b\n", &Columns::Server), None);
    }

    #[test]
    fn a_header_names_the_column_with_the_messages() {
        assert_eq!(Columns::of_header("@timestamp,@message"), Some(Columns::Named(1)));
        assert_eq!(Columns::of_header("\"Date\",\"Host\",\"Service\",\"Message\""), Some(Columns::Named(3)));
        assert_eq!(Columns::of_header("#,QUERY PLAN"), None);
        assert_eq!(Columns::of_header("Message"), None);
        let message = Parser::default().message("2026,\"LOG:  x\ny\"\n", &Columns::Named(1));
        assert_eq!(message.unwrap().text, "LOG:  x\ny");
    }
}
