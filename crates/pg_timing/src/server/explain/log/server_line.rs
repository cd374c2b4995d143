//! What a line of a server's text log shows.

use memchr::memmem;

/// Begins the functions that the server was executing. Only English messages are recognized.
const CONTEXT: &str = "CONTEXT:  ";

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
