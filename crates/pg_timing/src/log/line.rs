//! What a line of a server's log is. A client's text never decides that: the server writes a tab before each further line of
//! a message, and a severity before what it quotes.

use memchr::memmem;

/// How rsyslog writes a tab.
const OCTAL_TAB: &str = "#011";

/// A longer text before a tab is not that of syslog or of a container.
const MAX_SENDER_BYTES: usize = 256;

/// PostgreSQL's translations of `LOG`. Only their lines announce a plan: lines such as `STATEMENT:  ` quote a client, and any client
/// can raise a WARNING, a NOTICE, an INFO or a DEBUG with any text.
const SEVERITIES: [&str; 8] = ["LOG", "LOGG", "PROTOKOLL", "СООБЩЕНИЕ", "ЗАПИСУВАННЯ", "日志", "로그", "ჟურნალი"];

/// Returns the time in a line like `... LOG:  duration: 123.456 ms  plan:`. Only a log line's prefix and a severity may
/// precede.
pub fn announced_ms(line: &str) -> Option<f64> {
    let rest = line.trim_end().strip_suffix("plan:")?.trim_end().strip_suffix(" ms")?;
    let at = memmem::rfind(rest.as_bytes(), b"duration: ")?;
    let number = &rest[at + "duration: ".len()..];
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let before = &rest[..at];
    let is_message = before.trim().is_empty()
        || record(before).is_some_and(|record| SEVERITIES.contains(&record.word) && is_empty_or_state(record.message));
    number.parse().ok().filter(|_| is_number && is_message && !has_tab(before))
}

/// Returns whether nothing is before a message, or only the SQLSTATE of log_error_verbosity = verbose: `00000: `.
fn is_empty_or_state(text: &str) -> bool {
    text.is_empty() || text.strip_suffix(": ").is_some_and(|state| state.len() == 5)
}

fn has_tab(text: &str) -> bool {
    text.contains('\t') || text.contains(OCTAL_TAB)
}

/// A line that begins a part of a log entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
    /// the severity, or the name of a field, in the language of the server
    pub word: &'a str,
    pub message: &'a str,
}

pub const CONTEXT: &str = "CONTEXT";

/// Words that show a record even without a prefix. A word of another language needs one.
const WORDS: &str = "LOG ERROR FATAL PANIC WARNING NOTICE INFO STATEMENT DETAIL HINT CONTEXT QUERY LOCATION";

/// Returns the record that begins with this line: a prefix, a word, a colon and two spaces.
pub fn record(line: &str) -> Option<Record<'_>> {
    // What follows the first word is a client's text. In French, a space precedes the colon.
    let mut colons = memmem::find_iter(line.as_bytes(), b":  ");
    let colon = colons.find(|colon| line[..*colon].trim_end().ends_with(char::is_alphanumeric))?;
    let before = line[..colon].trim_end().trim_end_matches(|c: char| c.is_ascii_digit());
    let prefix = before.trim_end_matches(|c: char| c.is_uppercase() || c.is_alphabetic() && !c.is_ascii());
    let word = &before[prefix.len()..];
    let has_prefix = prefix.bytes().any(|byte| byte.is_ascii_digit()) && !prefix.contains('\'');
    let is_record = !word.is_empty() && (has_prefix || WORDS.split(' ').any(|known| known == word)) && !has_tab(prefix);
    is_record.then_some(Record { word, message: &line[colon + 3..] })
}

/// Splits a line at the tab that the server writes before each further line of a message. What precedes the tab is what
/// syslog or a container has added.
pub fn split_tab(line: &str) -> Option<(&str, &str)> {
    if let Some(rest) = line.strip_prefix('\t') {
        return Some(("", rest));
    }
    let near = &line.as_bytes()[..line.len().min(MAX_SENDER_BYTES)];
    let tab = memchr::memchr(b'\t', near).map(|at| (at, 1));
    let octal = memmem::find(near, OCTAL_TAB.as_bytes()).map(|at| (at, OCTAL_TAB.len()));
    let (at, length) = [tab, octal].into_iter().flatten().min()?;
    Some((&line[..at], &line[at + length..]))
}

/// Adds what the lines of one sender have in common before the server's text to `key`: the host, the process and syslog's
/// number of the message, but no times. Returns syslog's number of the part of the message.
pub fn push_sender(key: &mut String, before: &str) -> Option<u32> {
    let mut number = None;
    for token in before.split_whitespace() {
        // `[7-2]`, or `[2]` without syslog_sequence_numbers.
        let numbers = token.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
        let (message, part) = numbers.split_once('-').unwrap_or(("", numbers));
        if is_number(part) && (message.is_empty() || is_number(message)) {
            key.push_str(&token[..=message.len()]);
            number = number.or(part.parse().ok());
        } else if changes(token) {
            key.push('#');
        } else {
            // Kubernetes marks a part of a line.
            key.push_str(if token == "P" { "F" } else { token });
        }
        key.push(' ');
    }
    number
}

/// Returns whether a word before a line is a time, a day, or a field that numbers the lines.
fn changes(token: &str) -> bool {
    let begins_with_digit = token.starts_with(|c: char| c.is_ascii_digit());
    let is_time = begins_with_digit && token.contains([':', '.']);
    is_time || token.len() <= 2 && is_number(token) || token.contains("=\"")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the name of the host in what [`push_sender`] has written: the first name that another word follows.
pub fn host_of(sender: &str) -> Option<&str> {
    let mut words = sender.split(' ').filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let follows_month = words.peek() == Some(&"#");
        let is_name = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_stream = word == "stdout" || word == "stderr";
        if is_name && !follows_month && !is_stream && !word.ends_with(':') && words.peek().is_some() {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_of_a_plan_has_its_time() {
        for (line, ms) in [
            ("LOG:  duration: 123.456 ms  plan:", Some(123.456)),
            ("2026-11-24 [7] app:[unknown] PROTOKOLL:  duration: 1.000 ms  plan:", Some(1.0)),
            ("2026-11-24 [7] LOG:  00000: duration: 123.456 ms  plan:", Some(123.456)),
            ("2020-10-20 03:00:32 UTC:10.0.0.7(49654):app@shop:[1371]:LOG:  duration: 841.400 ms  plan:", Some(841.4)),
            ("duration: 0.004 ms  plan:", Some(0.004)),
            ("LOG:  duration: 123.456 ms  statement: select 'plan:'", None),
            ("LOG:  statement: select 'duration: 123.456 ms  plan:", None),
            ("ERROR:  no duration: 123.456 ms  plan:", None),
            ("2026-11-24 [7] ANWEISUNG:  LOG:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] INSTRUCTION :  duration: 1.000 ms  plan: x", None),
            ("2026-11-24 [7] STATEMENT:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] ANWEISUNG:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] DEBUG2:  duration: 1.000 ms  plan:", None),
            ("2026-11-24 [7] WARNING:  duration: 1.000 ms  plan:", None),
            ("\tLOG:  duration: 123.456 ms  plan:", None),
            ("LOG:  duration: 123.456 ms", None),
            ("plan:", None),
        ] {
            assert_eq!(announced_ms(line), ms, "{line}");
        }
    }

    #[test]
    fn records_have_a_severity_in_any_language() {
        let word = |line| record(line).map(|record| record.word);
        assert_eq!(word("2026-11-24 [7] LOG:  checkpoint starting"), Some("LOG"));
        assert_eq!(word("[7] u@d FEHLER:  kaputt"), Some("FEHLER"));
        assert_eq!(word("[7] INSTRUCTION :  select"), Some("INSTRUCTION"));
        assert_eq!(word("NOTICE:  x"), Some("NOTICE"));
        for line in ["  Filter: (a ~ 'LOG: x'::text)", "ABC:  x", "a b:  7 LOG:  x", "\tLOG:  x", ""] {
            assert_eq!(word(line), None, "{line}");
        }
    }

    #[test]
    fn lines_of_one_sender_have_the_same_key() {
        for (line, other, host) in [
            ("Nov 22 01:02:03 db1 postgres[123]: [7-2] ", "Nov 22 01:02:04 db1 postgres[123]: [7-3] ", Some("db1")),
            (
                "<134>1 2026-11-24T10:00:00Z db1 pg 123 - [m s=\"1\"] ",
                "<134>1 2026-11-24T10:00:01Z db1 pg 123 - [m s=\"2\"] ",
                Some("db1"),
            ),
            ("2026-11-22T01:02:03.123456789Z stderr F ", "2026-11-22T01:02:04.12Z stderr P ", None),
            (
                "2019-03-14T00:22:56+00:00 app[postgres.4882]: [GREEN] [15-2] ",
                "2019-03-14T00:22:57+00:00 app[postgres.4882]: [GREEN] [15-3] ",
                None,
            ),
            ("<134>Nov 25 01:54:25 pg.main[7]: [2] ", "<134>Nov 25 01:54:26 pg.main[7]: [3] ", None),
            ("db-1  | ", "db-1  | ", Some("db-1")),
        ] {
            let key = |before: &str| {
                let mut key = String::new();
                push_sender(&mut key, before);
                key
            };
            assert_eq!((key(line), host_of(&key(line))), (key(other), host), "{line}");
            assert_eq!(split_tab(&format!("{line}\tResult")), Some((line, "Result")));
            assert_eq!(split_tab(&format!("{line}#011Result")), Some((line, "Result")));
        }
    }
}
