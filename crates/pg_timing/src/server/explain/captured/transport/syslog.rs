//! The prefixes of syslog and journald.

use super::{Part, Sent, is_name, is_number, is_timestamp};
use memchr::memmem;

/// Returns the message of a line that syslog or journald wrote:
///
/// | example | written by |
/// |---|---|
/// | `Nov 22 01:02:03 host postgres[123]: message` | rsyslog and syslog-ng, `journalctl` |
/// | `2026-11-22T01:02:03.123456+00:00 host postgres[123]: message` | rsyslog; the caller has removed the time |
/// | `Sun 2026-11-22 01:02:03 UTC host postgres[123]: message` | `journalctl -o short-full` |
/// | `<134>1 2026-11-22T01:02:03.123456+00:00 host postgres 123 - - message` | RFC 5424 |
/// | `<134>Nov 22 01:02:03 postgres[123]: message` | RFC 3164, as the server sends it |
///
/// The program is the server's syslog_ident, so it can have any name.
pub fn message(line: Sent, has_time: bool) -> Option<Sent> {
    let (is_raw, text) = match without_priority(line.text) {
        Some(text) => match text.strip_prefix("1 ") {
            Some(text) => return rfc_5424(line, text),
            None => (true, text),
        },
        None => (false, line.text),
    };
    let text = match has_time && !is_raw {
        true => text,
        false => without_date(text)?,
    };
    let end = memmem::find(&text.as_bytes()[..text.len().min(LONGEST_SENDER)], b"]: ")?;
    let (words, process) = text[..end].rsplit_once('[')?;
    let mut words = words.split(' ').filter(|word| !word.is_empty());
    let first = words.next()?;
    let (host, program) = match (words.next(), words.next()) {
        (Some(program), None) => (Some(first), program),
        // busybox writes the facility: `local0.info`.
        (Some(facility), Some(program)) if facility.contains('.') && words.next().is_none() => (Some(first), program),
        (None, _) => (None, first),
        _ => return None,
    };
    if !is_number(process) || !is_program(program) || !host.is_none_or(is_name) {
        return None;
    }
    let (text, part) = numbered(&text[end + "]: ".len()..]).unwrap_or((&text[end + "]: ".len()..], line.part));
    Some(Sent { host: line.host.or(host), process: Some(process), text, part })
}

/// Bytes of the longest host, program and process number.
const LONGEST_SENDER: usize = 400;

/// Returns the text after `<134>`.
fn without_priority(text: &str) -> Option<&str> {
    let (priority, rest) = text.strip_prefix('<')?.split_once('>')?;
    (priority.len() <= 3 && is_number(priority)).then_some(rest)
}

/// Reads what follows the priority and the version: time, host, program, process, message identifier, structured data.
fn rfc_5424<'a>(line: Sent<'a>, text: &'a str) -> Option<Sent<'a>> {
    let mut words = text.splitn(6, ' ');
    let mut word = || words.next();
    let (time, host, _, process, _, rest) = (word()?, word()?, word()?, word()?, word()?, word()?);
    if time != NONE && !is_timestamp(time) {
        return None;
    }
    let text = without_structured_data(rest)?.trim_start_matches('\u{feff}');
    // rsyslog keeps the space that was before the message in the older format.
    let text = text.strip_prefix(' ').unwrap_or(text);
    let (text, part) = numbered(text).unwrap_or((text, line.part));
    let known = |word: &'a str| (word != NONE).then_some(word);
    Some(Sent { host: line.host.or(known(host)), process: Some(process), text, part })
}

/// What RFC 5424 writes for a missing value.
const NONE: &str = "-";

/// Returns the text after `-`, or after elements like `[meta sequenceId="1"]`.
fn without_structured_data(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix(NONE) {
        return rest.strip_prefix(' ');
    }
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.bytes().enumerate().find_map(|(at, byte)| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b']' if !is_quoted && !text[at + 1..].starts_with('[') => return Some(at + 1),
            _ => {}
        }
        None
    })?;
    text.starts_with('[').then(|| text[end..].strip_prefix(' '))?
}

/// Returns the text after `Nov 22 01:02:03 ` or `Sun 2026-11-22 01:02:03 UTC `.
fn without_date(text: &str) -> Option<&str> {
    let is_word = text.as_bytes().get(..4).is_some_and(|w| w[..3].iter().all(u8::is_ascii_alphabetic) && w[3] == b' ');
    if !is_word {
        return None;
    }
    let (day, rest) = text[4..].trim_start().split_once(' ')?;
    let (time, rest) = rest.split_once(' ')?;
    let is_time = time.matches(':').count() == 2 && time.bytes().all(|b| b.is_ascii_digit() || b":.".contains(&b));
    match day.len() {
        _ if !is_time => None,
        1 | 2 if is_number(day) => Some(rest),
        10 if day.bytes().all(|b| b.is_ascii_digit() || b == b'-') => rest.split_once(' ').map(|(_, rest)| rest),
        _ => None,
    }
}

/// Returns whether a text can be the name of a program. journald can write the unit: `postgresql@17-main.service`.
fn is_program(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-/@:\\".contains(&b))
}

/// Returns the text after the number that the server writes before a message for syslog.
///
/// | setting | `syslog_split_messages` on: part 2 of message 4 | off: message 4 |
/// |---|---|---|
/// | `syslog_sequence_numbers` on | `[4-2] text` | `[4] LOG:  text` |
/// | `syslog_sequence_numbers` off | `[2] text` | `LOG:  text` |
pub fn numbered(message: &str) -> Option<(&str, Part)> {
    let (number, text) = message.strip_prefix('[')?.split_once("] ")?;
    let (message, part) = match number.split_once('-') {
        Some((message, part)) => (Some(parsed(message)?), part),
        None => (None, number),
    };
    let number = parsed(part)?;
    let part = match (message, number) {
        (None, number) if begins_message(text) => Part::Begins { number },
        (Some(message), 0 | 1) => Part::First { message },
        (None, 0 | 1) => Part::Whole,
        (message, number) => Part::Next { message, number },
    };
    Some((text, part))
}

fn parsed<T: std::str::FromStr>(number: &str) -> Option<T> {
    is_number(number).then(|| number.parse().ok())?
}

/// Returns whether a severity is near the beginning. Its word depends on lc_messages.
fn begins_message(text: &str) -> bool {
    let start = &text.as_bytes()[..text.len().min(LONGEST_SENDER)];
    super::continued(text).is_none() && memmem::find(start, b":  ").is_some()
}
