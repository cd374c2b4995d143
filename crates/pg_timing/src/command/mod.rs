//! The commands, one a file: arguments in, exit status out.

mod advise;
mod arguments;
mod check;
mod clocksource;
mod connection;
mod explain;
mod input;
mod interrupt;
mod pg_test_timing;
mod plan;
mod progress;
mod read;
mod test;

use crate::error::Error;
use arguments::{Arguments, Command};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// What a command that did not do its work exits with, usage errors too.
const NOT_DONE: u8 = 3;

/// Runs what the arguments ask for; the first is the name that the program was called by.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    if called_pg_test_timing(&arguments) {
        return ExitCode::from(pg_test_timing::run(arguments));
    }
    let result = match arguments::parse(arguments) {
        Ok(Arguments { command: None, check, .. }) => check::run(check),
        Ok(Arguments { command: Some(Command::Check(check)), .. }) => check::run(check),
        Ok(Arguments { command: Some(Command::Test(test)), .. }) => test::run(test),
        Ok(Arguments { command: Some(Command::Read(read)), .. }) => read::run(read),
        Ok(Arguments { command: Some(Command::Clocksource(arguments)), .. }) => clocksource::run(arguments),
        Ok(Arguments { command: Some(Command::Explain(arguments)), .. }) => explain::run(arguments),
        Ok(Arguments { command: Some(Command::Advise(arguments)), .. }) => advise::run(arguments),
        Err(status) => return ExitCode::from(status),
    };
    ExitCode::from(result.unwrap_or_else(|error| {
        complain(&error);
        NOT_DONE
    }))
}

fn called_pg_test_timing(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|name| Path::new(name).file_stem() == Some("pg_test_timing".as_ref()))
}

/// An error with something that helps.
#[derive(Debug)]
struct Hint(&'static str);

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// What whoever runs it should know meanwhile.
fn note(text: &str) {
    _ = writeln!(std::io::stderr(), "pg_timing: {text}");
}

/// Prints `pg_timing: error: ...`, and the hint if the error carries one.
fn complain(error: &anyhow::Error) {
    let hint = error.downcast_ref::<Hint>().map(|Hint(text)| *text);
    let message: Vec<String> = match hint {
        // The hint is the outermost context, the error itself lies below.
        Some(_) => error.chain().skip(1).map(ToString::to_string).collect(),
        None => error.chain().map(ToString::to_string).collect(),
    };
    let mut stderr = std::io::stderr();
    _ = writeln!(stderr, "pg_timing: error: {}", message.join(": "));
    let own_hint = error.downcast_ref::<Error>().map(|error| error.hint.as_str());
    if let Some(hint) = hint.or(own_hint).filter(|hint| !hint.is_empty()) {
        _ = writeln!(stderr, "hint: {hint}");
    }
}

/// Writes a result to stdout, colours only where they belong. A reader that went away, or a full
/// disk, is an error: what was asked for did not arrive.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|e| anyhow::anyhow!("could not write to stdout: {}", crate::human::reason(&e)))
}
