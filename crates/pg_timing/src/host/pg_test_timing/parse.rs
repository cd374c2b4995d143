//! Parses the output of every version of pg_test_timing, also within other text.
//!
//! | version | output |
//! |---|---|
//! | 9.2 to 18 | one clock; a table in microseconds with exclusive bounds (`< us`, older `< usec`) |
//! | 19 in development | one clock; a table in nanoseconds with inclusive bounds (`<= ns`), later also exact durations |
//! | 19 | up to three such clocks, and lines about the TSC |
//!
//! The text can come from mails, tickets and terminals, with quoting, prompts and cuts, and without its line breaks. So
//! sentences and rows are recognized wherever they stand in a line. What is missing or damaged sets `cut_off`: each share
//! of a table must be that of its count.

use super::output::Output;
use super::reader::{Reader, unquote};
use crate::host::kernel_log;

#[cfg(test)]
mod tests;

/// The reason why a text has no output of pg_test_timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// no text, or only white space
    Empty,
    /// NUL bytes, or too many control characters for a text
    NotText,
    /// lines of a kernel log about clocks
    KernelLog,
    /// another text
    NothingFound,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ParseError::Empty => "the text is empty",
            ParseError::NotText => "the input is not text: it has NUL bytes or many control characters",
            ParseError::KernelLog => "this is a kernel log, and not the output of pg_test_timing",
            ParseError::NothingFound => {
                "found no output of pg_test_timing: neither a loop time nor a table (run pg_test_timing with LC_ALL=C)"
            }
        })
    }
}

impl std::error::Error for ParseError {}

/// Returns all outputs in a text, in their order. Each has a loop time, a table with rows, or a clock that went back.
pub fn parse(text: &str) -> Result<Vec<Output>, ParseError> {
    if text.contains('\0') {
        return Err(ParseError::NotText);
    }
    let mut reader = Reader::default();
    for line in text.split_inclusive(['\n', '\r']) {
        let position = line.as_ptr().addr() - text.as_ptr().addr();
        reader.line(line, position);
    }
    let outputs = reader.finish();
    if !outputs.is_empty() {
        return Ok(outputs);
    }
    Err(match () {
        () if unquote(text).is_empty() => ParseError::Empty,
        () if is_binary(text) => ParseError::NotText,
        () if kernel_log::is_kernel_log(text) => ParseError::KernelLog,
        () => ParseError::NothingFound,
    })
}

/// Returns whether more than a third of the characters are control characters or invalid UTF-8.
///
/// Text has almost none, even with a terminal's escapes. Random bytes have more than half.
fn is_binary(text: &str) -> bool {
    let junk = |c: &char| (c.is_control() && !c.is_whitespace()) || *c == char::REPLACEMENT_CHARACTER;
    text.chars().filter(junk).count() * 3 > text.chars().count()
}
