//! The line of a server's log that announces a plan.

use super::node_line::number;
use memchr::memmem;

/// PostgreSQL's translations of `LOG`. Only their lines announce a plan: lines such as `STATEMENT:  ` quote a client in every
/// language, and any client can raise a WARNING with any text.
const SEVERITIES: [&str; 8] = ["LOG", "LOGG", "PROTOKOLL", "СООБЩЕНИЕ", "ЗАПИСУВАННЯ", "日志", "로그", "ჟურნალი"];

/// Returns the time in a line like `... LOG:  duration: 123.456 ms  plan:`.
pub fn announced_ms(line: &str) -> Option<f64> {
    let (before, rest) = line.trim_end().strip_suffix("plan:")?.rsplit_once("duration: ")?;
    number(rest.trim_end().strip_suffix(" ms")?).filter(|_| begins_message(before))
}

/// Returns whether a message begins after this text.
fn begins_message(before: &str) -> bool {
    let Some((word, after)) = severity(before) else {
        // Without a severity, it is the message of a CSV or JSON log, perhaps in a frame. A message can quote the same text.
        let is_frame = |c: char| c.is_whitespace() || "\"|│>".contains(c);
        return before.ends_with(",\"") || before.trim_matches(is_frame).is_empty();
    };
    // Verbose messages have an error code.
    let is_code = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    SEVERITIES.contains(&word) && (after.is_empty() || after.strip_suffix(": ").is_some_and(is_code))
}

/// The severities with the two spaces that follow, in English. If lc_messages is another language, only the announcement of
/// a plan shows that a line begins an entry.
const WORDS: [&str; 13] = [
    "LOG:  ",
    "ERROR:  ",
    "FATAL:  ",
    "PANIC:  ",
    "WARNING:  ",
    "NOTICE:  ",
    "INFO:  ",
    "STATEMENT:  ",
    "DETAIL:  ",
    "HINT:  ",
    "CONTEXT:  ",
    "QUERY:  ",
    "LOCATION:  ",
];

/// Returns whether a line begins an entry of the server's log, so that it cannot belong to a plan.
pub fn is_log_line(line: &str) -> bool {
    // A line of a plan rarely has such a colon, so most lines end the search here.
    memmem::find(line.as_bytes(), b":  ").is_some()
        && (WORDS.iter().any(|severity| line.contains(severity)) || announced_ms(line).is_some())
}

/// Returns whether this can be the first line of a record in any language: a word, a colon and two spaces precede the message.
pub fn begins_record(line: &str) -> bool {
    severity(line).is_some()
}

/// Returns the first word of a line that a colon and two spaces follow, and the text after them.
fn severity(line: &str) -> Option<(&str, &str)> {
    memmem::find_iter(line.as_bytes(), b":  ").find_map(|at| {
        // French has a space before the colon.
        let before = line[..at].strip_suffix(' ').unwrap_or(&line[..at]);
        let begin = before.trim_end_matches(char::is_alphanumeric).len();
        (begin < before.len()).then(|| (&before[begin..], &line[at + ":  ".len()..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_have_a_severity() {
        assert!(is_log_line("2026-11-24 [7] LOG:  checkpoint starting"));
        assert!(is_log_line("PROTOKOLL:  duration: 1.000 ms  plan:"));
        assert!(!is_log_line("  Filter: (a ~ 'LOG: x'::text)"));
    }

    #[test]
    fn the_announcement_of_a_plan_has_its_time() {
        for (line, ms) in [
            ("LOG:  duration: 123.456 ms  plan:", Some(123.456)),
            ("2026-11-21 UTC,,\"duration: 0.004 ms  plan:", Some(0.004)),
            ("LOG:  duration: 123.456 ms  statement: select 'plan:'", None),
            ("LOG:  00000: duration: 123.456 ms  plan:", Some(123.456)),
            ("[7]:  user=a СООБЩЕНИЕ:  duration: 123.456 ms  plan:", Some(123.456)),
            ("LOG:  statement: select 'duration: 123.456 ms  plan:", None),
            ("invalid input syntax: \"duration: 123.456 ms  plan:", None),
            ("STATEMENT:  select / LOG:  duration: 123.456 ms  plan:", None),
            ("ANWEISUNG:  duration: 123.456 ms  plan:", None),
            ("INSTRUCTION :  duration: 123.456 ms  plan:", None),
            ("ERROR:  no duration: 123.456 ms  plan:", None),
            ("LOG:  duration: 123.456 ms", None),
            ("plan:", None),
        ] {
            assert_eq!(announced_ms(line), ms, "{line}");
        }
    }
}
