//! Lines of logs in JSON format: the server's own jsonlog, and what containers, journald and log collectors write.

mod keys;

use super::evidence::Evidence;
use super::message::Message;
use super::nesting::Session;
use crate::server::explain::captured::announcement::announced_ms;
use keys::{Keys, TextOrOther};
use memchr::memmem;
use std::borrow::Cow;

/// What a line of JSON is.
#[derive(Debug, PartialEq)]
pub enum JsonLine<'a> {
    /// a whole entry with a plan
    Entry,
    /// the beginning of an entry with a plan
    Truncated,
    /// an entry of the server: the client's statement has failed
    Failed,
    /// one line of the server's text log
    Line {
        text: Cow<'a, str>,
        host: Option<Cow<'a, str>>,
        process: Option<Cow<'a, str>>,
        is_unfinished: bool,
    },
    Other,
}

/// Returns whether the message in this line announces a plan, and the plan follows in the same message. Other values, such as
/// the statement of an error, can contain the same text.
pub fn announces(line: &str) -> bool {
    /// the keys of [`Keys`]; the server's own is the last one
    const KEYS: [&str; 4] = ["log", "MESSAGE", "textPayload", SERVER_KEY];
    /// the end of the first line of a message
    const END: &str = "plan:\\n";
    if memmem::find(line.as_bytes(), END.as_bytes()).is_none() {
        return false;
    }
    let is_of_server = line.contains(SEVERITY_KEY);
    let is_message = |key: &str, text: &str| {
        let Some((first, rest)) = text.split_once("\\n") else { return false };
        let is_key =
            if is_of_server { key == SERVER_KEY && first.starts_with("duration: ") } else { KEYS.contains(&key) };
        is_key && !rest.is_empty() && announced_ms(first).is_some()
    };
    let mut rest = line;
    let mut key = "";
    while let Some((before, text)) = rest.split_once('"') {
        let end = string_length(text);
        let (text, after) = text.split_at(end);
        if before.trim() == ":" && is_message(key, text) {
            return true;
        }
        (key, rest) = (text, after.strip_prefix('"').unwrap_or(after));
    }
    false
}

/// Returns the length of a string of JSON up to its quotation mark, or up to the end of the line.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

const SEVERITY_KEY: &str = "\"error_severity\":";

/// The key of the message in the server's jsonlog.
const SERVER_KEY: &str = "message";

/// Returns what a line of JSON is, or `None` if it is not a line of a log.
pub fn read(line: &str) -> Option<JsonLine<'_>> {
    let is_whole = line.trim_end().ends_with('}');
    let announces_plan = announces(line);
    if !is_whole && !announces_plan || ["\"Plan\":", "\"QUERY PLAN\":"].iter().any(|key| line.contains(key)) {
        return None;
    }
    if announces_plan {
        return Some(if is_whole { JsonLine::Entry } else { JsonLine::Truncated });
    }
    // The server's own format: each line is one entry.
    if let Some(at) = memmem::find(line.as_bytes(), SEVERITY_KEY.as_bytes()) {
        let severity = line[at + SEVERITY_KEY.len()..].trim_start();
        let is_failure = ["\"ERROR\"", "\"FATAL\"", "\"PANIC\""].iter().any(|failure| severity.starts_with(failure));
        return Some(if is_failure { JsonLine::Failed } else { JsonLine::Other });
    }
    let mut keys: Keys = serde_json::from_str(line).ok()?;
    let is_unfinished = keys.is_unfinished();
    let (host, process) = (keys.host(), keys.pid.clone());
    let Some(text) = keys.text() else { return Some(JsonLine::Other) };
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end_matches('\n')),
        Cow::Owned(text) => Cow::Owned(text.trim_end_matches('\n').to_string()),
    };
    Some(JsonLine::Line { text, host, process, is_unfinished })
}

/// Returns the message of an entry.
pub fn message(line: &str) -> Result<Message, serde_json::Error> {
    let mut keys: Keys = serde_json::from_str(line)?;
    let host = keys.host();
    let pid = keys.pid.take();
    // The server's keys may be in a record within the record.
    let mut server = &mut keys;
    while server.record.is_some() && server.session_id.is_none() {
        server = server.record.as_mut().expect("it is there");
    }
    let session = server.session_id.take().and_then(TextOrOther::text);
    let session = session.or(pid);
    let session = session.map_or_else(Session::default, |session| Session::of(host.as_deref(), &session));
    let query_id = server.query_id();
    let context = server.context.take().and_then(TextOrOther::text).unwrap_or_default().into_owned();
    let fields = [server.ps.take(), server.vxid.take(), server.timestamp.take()];
    let [command, transaction, time] = fields.map(|field| field.and_then(TextOrOther::text));
    let evidence = Evidence::of_fields(command.as_deref(), transaction.as_deref(), time.as_deref());
    let host = host.map(Cow::into_owned);
    Ok(Message { text: keys.text().unwrap_or_default().into_owned(), query_id, host, session, context, evidence })
}

#[cfg(test)]
mod tests {
    use super::keys::DOCKER_PART_BYTES;
    use super::*;

    fn line(text: &str) -> JsonLine<'_> {
        read(text).unwrap()
    }

    #[test]
    fn entries_and_lines_are_told_apart() {
        let entry = r#"{"timestamp":"2026","error_severity":"LOG","message":"duration: 5.1 ms  plan:\nQuery Text: select \"a\"\nResult","query_id":-7}"#;
        assert_eq!(line(entry), JsonLine::Entry);
        let text = "duration: 5.1 ms  plan:\nQuery Text: select \"a\"\nResult".into();
        assert_eq!(message(entry).unwrap(), Message { text, query_id: Some(-7), ..Message::default() });
        assert_eq!(line(&entry[..entry.len() - 20]), JsonLine::Truncated);
        assert_eq!(line(r#"{"error_severity":"LOG","message":"checkpoint"}"#), JsonLine::Other);
        assert_eq!(line(r#"{"record":{"error_severity":"ERROR","message":"x"}}"#), JsonLine::Failed);
        let docker = |text: &str| format!(r#"{{"log":"{text}","stream":"stderr","time":"2026"}}"#);
        let half = "x".repeat(DOCKER_PART_BYTES);
        for (text, expected, is_unfinished) in [
            ("LOG:  duration: 5.1 ms  plan:\\n", "LOG:  duration: 5.1 ms  plan:", false),
            ("\\tQuery Text: select 1\\n", "\tQuery Text: select 1", false),
            ("without a line end", "without a line end", false),
            (&half, &half, true),
        ] {
            let text = docker(text);
            assert_eq!(line(&text), JsonLine::Line { text: expected.into(), host: None, process: None, is_unfinished });
        }
        for (tag, is_unfinished) in [("P", true), ("F", false)] {
            let text = format!(r#"{{"log":"x","logtag":"{tag}"}}"#);
            assert_eq!(line(&text), JsonLine::Line { text: "x".into(), host: None, process: None, is_unfinished });
        }
        let journald = r#"{"_PID":"12","MESSAGE":"\tResult"}"#;
        let process = Some("12".into());
        assert_eq!(
            line(journald),
            JsonLine::Line { text: "\tResult".into(), host: None, process, is_unfinished: false }
        );
        let bytes = r#"{"MESSAGE":[9,97,228]}"#;
        assert_eq!(
            line(bytes),
            JsonLine::Line { text: "\ta\u{fffd}".into(), host: None, process: None, is_unfinished: false }
        );
        assert_eq!(line(r#"{"MESSAGE":null}"#), JsonLine::Other);
        assert_eq!(line(r#"{"level":"info"}"#), JsonLine::Other);
        for text in ["{", r#"{"Plan": {}}"#, "{x}"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_collector_may_use_the_servers_keys() {
        let line = r#"{"message":"x","context":{"a":[1]},"ps":7,"session_id":null,"logging_pod":false}"#;
        assert_eq!(message(line).unwrap(), Message { text: "x".into(), ..Message::default() });
    }

    #[test]
    fn only_the_message_announces_a_plan() {
        let line = |key: &str, before: &str, rest: &str| {
            format!(r#"{{"error_severity":"ERROR","{key}":"{before}duration: 5.1 ms  plan:\nSort"{rest}}}"#)
        };
        assert!(announces(&line("message", "", "")));
        let message = r#","message":"syntax error""#;
        for (key, before) in [("statement", ""), ("message", "ERROR:  "), ("message", "x\\n"), ("message", "a \\\"")] {
            assert!(!announces(&line(key, before, message)), "{key} {before}");
        }
        assert!(announces(r#"{"statement":"duration: 1 ms  plan:\nx","log":"LOG:  duration: 1.0 ms  plan:\n\tSort"}"#));
        assert!(!announces(r#"{"log":"LOG:  statement: select 'duration: 1.0 ms  plan:\n\tSort"}"#));
        assert_eq!(read(&line("statement", "", message)), Some(JsonLine::Failed));
    }

    #[test]
    fn a_record_within_a_record_is_read() {
        let record = r#"{"error_severity":"LOG","message":"duration: 1 ms  plan:\nx","query_id":"12","session_id":"6b0630d2.32b2","command_tag":"CALL","virtual_transaction_id":"3/7","log_time":"2026-11-25 07:40:27.191 UTC","context":"f 1\ng 2"}"#;
        let within = format!(r#"{{"logger":"postgres","logging_pod":"db-1","msg":"record","record":{record}}}"#);
        for (text, host) in [(record, None), (&within, Some("db-1"))] {
            assert_eq!(line(text), JsonLine::Entry);
            let expected = Message {
                text: "duration: 1 ms  plan:\nx".into(),
                query_id: Some(12),
                host: host.map(String::from),
                session: Session::of(host, "6b0630d2.32b2"),
                context: "f 1\ng 2".into(),
                evidence: Evidence::of_fields(Some("CALL"), Some("3/7"), Some("2026-11-25 07:40:27.191")),
            };
            assert_eq!(message(text).unwrap(), expected);
        }
    }
}
