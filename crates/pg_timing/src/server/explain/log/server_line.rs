//! What a line of a server's text log shows.

use crate::server::explain::captured::announcement::announced_ms;
use memchr::memmem;

/// Begins the functions that the server was executing. Only English messages are recognized.
const CONTEXT: &str = "CONTEXT:  ";

/// The severities with the two spaces that follow, in English. If lc_messages is another language, only the announcement of
/// a plan shows that a line begins an entry.
const SEVERITIES: [&str; 13] = [
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
    CONTEXT,
    "QUERY:  ",
    "LOCATION:  ",
];

/// Returns whether a line begins an entry of the server's log, so that it cannot belong to a plan.
pub fn is_log_line(line: &str) -> bool {
    // A line of a plan rarely has such a colon, so most lines end the search here.
    memmem::find(line.as_bytes(), b":  ").is_some()
        && (SEVERITIES.iter().any(|severity| line.contains(severity)) || announced_ms(line).is_some())
}

/// Returns the context in a line of a text log: what the server was executing. Only English messages are recognized.
pub fn context(line: &str) -> Option<&str> {
    let at = memmem::find(line.as_bytes(), CONTEXT.as_bytes())?;
    Some(&line[at + CONTEXT.len()..])
}

/// Returns whether a line shows that the client's statement has failed. A function's own handler for errors does not log them.
pub fn is_failure(line: &str) -> bool {
    let Some(end) = memmem::find(line.as_bytes(), b":  ") else { return false };
    ["ERROR", "FATAL", "PANIC"].iter().any(|severity| line[..end].ends_with(severity))
}

/// Returns what the server wrote before the message of a line.
pub fn prefix(line: &str) -> &str {
    memmem::find(line.as_bytes(), b"duration: ").map_or("", |end| &line[..end])
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
    fn the_context_follows_its_name() {
        assert_eq!(context("[7] CONTEXT:  SQL function \"f\" statement 1"), Some("SQL function \"f\" statement 1"));
        assert_eq!(context("[7] LOG:  x"), None);
    }

    #[test]
    fn errors_are_failures() {
        assert!(is_failure("2026-11-25 [7] ERROR:  no") && is_failure("FATAL:  terminating connection"));
        for line in ["LOG:  statement: select 'ERROR:  '", "WARNING:  ERROR:  x", "\tERROR: x", ""] {
            assert!(!is_failure(line), "{line}");
        }
    }
}
