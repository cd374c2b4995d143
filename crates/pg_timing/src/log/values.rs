//! The strings of JSON and the fields of CSV.

use csv_core::ReadRecordResult;
use memchr::memchr2;

/// A string of JSON that is a value, and the key before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value<'a> {
    pub key: &'a str,
    /// with its escapes
    pub raw: &'a str,
    /// the line ends within the string
    pub is_truncated: bool,
}

impl Value<'_> {
    /// Returns the string without its escapes. A damaged escape remains as it is.
    pub fn text(&self) -> String {
        decoded(self.raw).unwrap_or_else(|| self.repaired())
    }

    /// Decodes each escape alone. A program that cuts messages leaves half of an escape.
    fn repaired(&self) -> String {
        const LENGTHS: [usize; 3] = ["\\ud83d\\ude00".len(), "\\u00e4".len(), "\\n".len()];
        let (mut text, mut rest) = (String::with_capacity(self.raw.len()), self.raw);
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let escape = LENGTHS.iter().find_map(|&length| Some((decoded(rest.get(..length)?)?, length)));
            let (decoded, length) = escape.unwrap_or_else(|| ("\\".into(), 1));
            text.push_str(&decoded);
            rest = &rest[length..];
        }
        text + rest
    }
}

fn decoded(raw: &str) -> Option<String> {
    serde_json::from_str(&["\"", raw, "\""].concat()).ok()
}

/// Returns the strings in a line of JSON, at any depth, without recursion. A line can be a whole value or a part of one: a
/// string never has a line end.
pub fn of_json(line: &str) -> impl Iterator<Item = Value<'_>> {
    let (mut at, mut key) = (0, "");
    std::iter::from_fn(move || {
        loop {
            let begin = at + memchr::memchr(b'"', &line.as_bytes()[at..])? + 1;
            let end = end_of_string(line, begin);
            let raw = &line[begin..end.unwrap_or(line.len())];
            at = end.map_or(line.len(), |end| end + 1);
            // Ruby programs, such as fluentd, write `"key"=>"value"`.
            let rest = line[at..].trim_start();
            if !rest.starts_with(':') && !rest.starts_with("=>") {
                return Some(Value { key, raw, is_truncated: end.is_none() });
            }
            key = raw;
        }
    })
}

/// Returns where the quotation mark is that ends a string.
fn end_of_string(line: &str, begin: usize) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut at = begin;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Returns the number after a key of JSON, also within quotation marks.
pub fn number(line: &str, key: &str) -> Option<i64> {
    let at = memchr::memmem::find(line.as_bytes(), key.as_bytes())? + key.len();
    let rest = line[at..].trim_start_matches([' ', '"', ':']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok().filter(|number| *number != 0)
}

/// The columns of the server's csvlog, from 0. PostgreSQL 14 and later write the query's identifier.
pub const SEVERITY: usize = 11;
const SQL_STATE: usize = 12;
pub const MESSAGE: usize = 13;
pub const CONTEXT: usize = 18;
pub const QUERY_ID: usize = 25;

/// The time with milliseconds and the name of a time zone.
const LONGEST_TIME: usize = 40;

/// Names of the column with the server's messages in exports of log services. Other columns are identifiers and labels.
const MESSAGE_COLUMNS: &str = "message @message log line textpayload content body _raw log_message";

/// Returns the column of the messages that the first line of a file names, if it is the header of an export.
pub fn message_column(line: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_@. \"-,".contains(c);
    if !line.contains(',') && !line.starts_with(['"', '_', '@']) || !line.chars().all(is_name) {
        return None;
    }
    let mut names = line.split(',').map(|name| name.trim_matches(['"', ' ']).to_ascii_lowercase());
    names.position(|name| MESSAGE_COLUMNS.split(' ').any(|column| column == name))
}

/// Returns whether a record of the server's log begins on this line:
/// `2026-11-21 22:20:13.123 UTC,"user","database",7,"[local]",1,2,"SELECT",,,0,LOG,00000,"message"`.
pub fn begins_record(line: &str) -> bool {
    const PATTERN: &[u8] = b"0000-00-00 00:00:00";
    let bytes = line.as_bytes();
    let is_equal =
        |(expected, byte): (&u8, &u8)| if *expected == b'0' { byte.is_ascii_digit() } else { expected == byte };
    let has_time = bytes.len() > PATTERN.len() && PATTERN.iter().zip(bytes).all(is_equal);
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

/// No version of the server, and hardly any service, writes more fields.
const MAX_FIELDS: usize = 100;

/// Parses records of CSV. Its tables take longer to build than a record takes to parse.
pub struct Csv {
    reader: csv_core::Reader,
    text: Vec<u8>,
}

impl Default for Csv {
    fn default() -> Csv {
        Csv { reader: csv_core::Reader::new(), text: Vec::new() }
    }
}

impl Csv {
    /// Returns the fields of a record with these numbers, or `None` if the record is damaged or has not the first one.
    pub fn fields<const N: usize>(&mut self, record: &str, numbers: [usize; N]) -> Option<[String; N]> {
        self.reader.reset();
        // A field is never longer than its text with quotation marks.
        self.text.resize(record.len() + 1, 0);
        let mut ends = [0; MAX_FIELDS];
        let (mut read, mut written, mut count) = (0, 0, 0);
        loop {
            let input = &record.as_bytes()[read..];
            let (result, bytes, out, ended) =
                self.reader.read_record(input, &mut self.text[written..], &mut ends[count..]);
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
            if number < count {
                String::from_utf8_lossy(&self.text[begin..ends[number]]).into_owned()
            } else {
                String::new()
            }
        };
        (numbers[0] < count).then(|| numbers.map(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_at_any_depth_and_in_parts() {
        let found = |line| of_json(line).map(|value| (value.key, value.text())).collect::<Vec<_>>();
        let of = |key, text: &str| (key, text.to_string());
        assert_eq!(
            found(r#"{"a": {"b": ["x", "y\"\n"]}, "c" : 7, "d":"z"}"#),
            [of("b", "x"), of("b", "y\"\n"), of("d", "z")]
        );
        assert_eq!(found(r#"    "x","#), [of("", "x")]);
        let truncated = of_json(r#"{"a":"x\""#).next();
        assert_eq!(truncated, Some(Value { key: "a", raw: "x\\\"", is_truncated: true }));
        let damaged = r#"["\ud83d plan:\n\qa\ud83d\ude00\t\\\u00e4\ud8"]"#;
        assert_eq!(found(damaged), [of("", "\\ud83d plan:\n\\qa\u{1f600}\t\\ä\\ud8")]);
        assert!(found(&"[".repeat(1 << 20)).is_empty());
        assert_eq!(number(r#"{"query_id":-7,"a":1}"#, "\"query_id\":"), Some(-7));
        assert_eq!(number(r#"{"query_id": "12"}"#, "\"query_id\":"), Some(12));
        assert_eq!(number(r#"{"query_id":0}"#, "\"query_id\":"), None);
    }

    const RECORD: &str = "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,3/7,0,LOG,00000,\"duration: 5.100 ms  plan:\nQuery Text: SELECT \"\"a\"\"\nSeq Scan on t\",,,,,\"SQL function f\nline 2\",,,,\"psql\",\"client backend\",,-77\n";

    #[test]
    fn fields_of_the_servers_records_are_read() {
        let first = RECORD.lines().next().unwrap();
        assert!(begins_record(first) && is_quoted_after(first, false));
        let fields = Csv::default().fields(RECORD, [MESSAGE, CONTEXT, QUERY_ID]).unwrap();
        let text = "duration: 5.100 ms  plan:\nQuery Text: SELECT \"a\"\nSeq Scan on t";
        assert_eq!(fields, [text, "SQL function f\nline 2", "-77"]);
        for line in ["", "2026-11-21 22:20:13 UTC [7] LOG:  a, b", "2026-11-21 22:20:13.123 UTC,1,2,3"] {
            assert!(!begins_record(line), "{line}");
        }
        assert_eq!(Csv::default().fields("a,b\n", [MESSAGE]), None);
    }

    #[test]
    fn a_header_names_the_column_with_the_messages() {
        assert_eq!(message_column("@timestamp,@message"), Some(1));
        assert_eq!(message_column("\"Date\",\"Host\",\"Service\",\"Message\""), Some(3));
        assert_eq!(message_column("#,QUERY PLAN"), None);
        assert_eq!(message_column("\"_raw\""), Some(0));
        assert_eq!(message_column("Message"), None);
    }
}
