//! The commands, one per file. Each takes its arguments, prints its result and returns the exit status.

pub mod advise;
pub mod arguments;
pub mod check;
pub mod clocksource;
pub mod compare;
mod connection;
pub mod explain;
mod explain_arguments;
mod input;
mod interrupt;
pub mod monitor;
pub mod pg_test_timing;
mod plan;
mod progress;
pub mod read;
pub mod report;
pub mod test;
mod values;

use crate::error::Error;
use crate::escape;
use std::io::{ErrorKind, IsTerminal, Write};

/// The exit status after a usage error, and of a command that did not do its work.
const NOT_DONE: u8 = 3;

/// The hint that is attached to an error.
#[derive(Debug)]
struct Hint(&'static str);

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Selects the characters that the terminal can show.
pub fn prepare_terminal() {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| std::env::var(name).ok()).find(|l| !l.is_empty());
    crate::render::plus_minus::select(std::io::stdout().is_terminal(), locale.as_deref());
}

/// Prints a note on stderr while a command runs.
fn note(text: &str) {
    _ = writeln!(std::io::stderr(), "pg_timing: {}", escape::line(text));
}

/// Prints the error of a command. Returns the exit status.
pub fn finish(result: anyhow::Result<u8>) -> u8 {
    result.unwrap_or_else(|error| report_error(&error))
}

/// Prints `pg_timing: error: ...` and the error's hint on stderr. Returns the exit status.
fn report_error(error: &anyhow::Error) -> u8 {
    let attached_hint = error.downcast_ref::<Hint>().map(|Hint(text)| *text);
    let own_hint = error.downcast_ref::<Error>().map(|error| error.hint.as_str());
    print_error(&message(error), attached_hint.or(own_hint).unwrap_or_default());
    NOT_DONE
}

/// Returns the error with its causes, without its hint.
fn message(error: &anyhow::Error) -> String {
    // The hint is the outermost context. The error itself follows it in the chain.
    let hints = usize::from(error.downcast_ref::<Hint>().is_some());
    error.chain().skip(hints).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Prints an error in one line, and its hint in another one if it has any.
fn print_error(what: &str, hint: &str) {
    _ = std::io::stderr().write_all(error_text(what, hint).as_bytes());
}

/// Returns the lines of an error. Both texts can come from outside.
fn error_text(what: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("hint: {}\n", escape::line(hint)) };
    format!("pg_timing: error: {}\n{hint}", escape::line(what))
}

/// Prints a result on stdout, with colors only on a terminal. A full disk is an error, because the user
/// did not get the result. A pipe whose reader has ended is no error: `head` has read what it wanted.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("could not write to stdout: {}", crate::human::reason(&error)))
        }
        _ => Ok(()),
    }
}
