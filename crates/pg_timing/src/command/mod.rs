//! The commands, one per file. Each takes its arguments, prints its result and returns the exit status.

pub mod advise;
pub mod arguments;
pub mod check;
pub mod clocksource;
pub mod compare;
mod connection;
pub mod explain;
mod input;
mod interrupt;
pub mod monitor;
pub mod pg_test_timing;
mod progress;
pub mod read;
pub mod report;
pub mod test;
mod values;

use crate::document::Document;
use crate::document::text::{Output, text};
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

/// Returns whether terminals show UTF-8 in the user's locale, which has a name like `en_US.UTF-8`.
fn is_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    names.iter().filter_map(|name| std::env::var(name).ok()).find(|l| !l.is_empty()).is_some_and(|l| is_utf8_locale(&l))
}

fn is_utf8_locale(name: &str) -> bool {
    // A modifier may follow, as in `de_DE.UTF-8@euro`.
    let encoding = name.split_once('.').map_or("", |(_, encoding)| encoding).split('@').next().unwrap_or("");
    encoding.eq_ignore_ascii_case("utf-8") || encoding.eq_ignore_ascii_case("utf8")
}

/// Returns what a result on stdout is for.
fn output() -> Output {
    let stdout = std::io::stdout();
    match stdout.is_terminal() {
        true => {
            Output::terminal(rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col.into()), is_utf8())
        }
        false => Output::PIPE,
    }
}

/// Prints a document on stdout.
fn show(document: &Document) -> anyhow::Result<()> {
    print(&text(document, output()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf8_locales_have_the_sign() {
        for (locale, expected) in [
            ("en_US.UTF-8", true),
            ("C.UTF-8", true),
            ("de_DE.utf8@euro", true),
            ("C", false),
            ("de_DE.ISO-8859-1", false),
            ("UTF-8", false),
        ] {
            assert_eq!(is_utf8_locale(locale), expected, "{locale}");
        }
    }
}
