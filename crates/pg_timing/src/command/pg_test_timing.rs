//! The program under the name `pg_test_timing`: options, messages and exit statuses are PostgreSQL's.

use super::arguments::drop_in::{self, FORMAT};
use super::interrupt;
use crate::escape;
use crate::host::pg_test_timing::getopt::{Request, request};
use crate::host::pg_test_timing::{Ended, Format, run as test};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

/// PostgreSQL's tools exit with 1 after every kind of error.
const FAILED: u8 = 1;

/// Returns whether the program was called as `pg_test_timing`.
pub fn is_called(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|name| Path::new(name).file_stem() == Some("pg_test_timing".as_ref()))
}

/// Runs the program and returns its exit status.
pub fn run(arguments: Vec<OsString>) -> u8 {
    end_with_the_pipe();
    let name = arguments.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let format = match format() {
        Ok(format) => format,
        Err(value) => {
            let mut stderr = std::io::stderr();
            let message = format!("{name}: invalid value for environment variable {FORMAT}: \"{value}\"");
            _ = writeln!(stderr, "{}", escape::line(&message));
            _ = writeln!(stderr, "hint: set it to 19 or classic, or unset it");
            return FAILED;
        }
    };
    let outcome = match request(&name, arguments, format) {
        Request::Refused => return FAILED,
        Request::Help => print(&help(&name, format)).map(|()| Ended::Done),
        Request::Version => print(&version(format)).map(|()| Ended::Done),
        Request::Test(options) => interrupt::flag().and_then(|stop| test(&options, &stop, &mut print)),
    };
    match outcome {
        Ok(Ended::Done) => 0,
        Ok(Ended::Warning(None)) => FAILED,
        Ok(Ended::Warning(Some(text)) | Ended::Warp(text)) => {
            _ = write!(std::io::stderr(), "{text}");
            FAILED
        }
        Ok(Ended::Interrupted) => {
            _ = writeln!(std::io::stderr(), "{name}: {}", super::test::INTERRUPTED);
            FAILED
        }
        Err(error) => {
            _ = writeln!(std::io::stderr(), "{}", escape::line(&format!("{name}: {error}")));
            FAILED
        }
    }
}

/// Returns the format that the environment selects, or the invalid value.
fn format() -> Result<Format, String> {
    match std::env::var_os(FORMAT) {
        None => Ok(Format::Nineteen),
        Some(value) if value == "19" || value.is_empty() => Ok(Format::Nineteen),
        Some(value) if value == "classic" => Ok(Format::Classic),
        Some(value) => Err(value.to_string_lossy().into_owned()),
    }
}

fn help(name: &str, format: Format) -> String {
    drop_in::definition(name, format == Format::Classic).render_help().to_string()
}

/// Scripts read the number after `(PostgreSQL)`. It is the version whose options and output these are. PostgreSQL's
/// packagers add their own version in parentheses, too.
fn version(format: Format) -> String {
    let postgresql = if format == Format::Classic { "18.0" } else { "19.0" };
    format!("pg_test_timing (PostgreSQL) {postgresql} (pg_timing {})\n", env!("CARGO_PKG_VERSION"))
}

/// Makes a write to a closed pipe end the program, as in C. Rust ignores SIGPIPE.
fn end_with_the_pipe() {
    // SAFETY: this only restores the default, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Prints on stdout. PostgreSQL's program does not notice a full disk or a closed stdout.
#[expect(clippy::unnecessary_wraps, reason = "the test takes functions that can fail")]
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    Ok(())
}
