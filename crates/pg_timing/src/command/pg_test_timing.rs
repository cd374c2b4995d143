//! The program under the name `pg_test_timing`: options, messages and exit statuses are PostgreSQL's.

use super::arguments;
use super::interrupt;
use super::test::is_done;
use crate::escape;
use crate::host::pg_test_timing::getopt::{Request, request};
use crate::host::pg_test_timing::{Ended, Format, run as test};
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

/// The variable that selects the format. It is no option, because scripts that call PostgreSQL's program cannot know it.
const FORMAT: &str = "PG_TEST_TIMING_FORMAT";

pub const EXIT_STATUSES: &str = "0 done, 1 failed or usage error; also after Ctrl-C or if a clock went backward";

/// The usage comes first, as in PostgreSQL's program.
const TEMPLATE: &str = "{usage-heading} {usage}\n\n{about}\n\nOptions:\n{options}{after-help}";

/// PostgreSQL's tools exit with 1 after every kind of error.
const FAILED: u8 = 1;

/// Returns whether the program was called as `pg_test_timing`.
pub fn is_called(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|name| Path::new(name).file_stem() == Some("pg_test_timing".as_ref()))
}

/// Runs the program and returns its exit status.
pub fn run(arguments: Vec<OsString>) -> u8 {
    // A write to a closed pipe ends the program, as in C. Rust ignores SIGPIPE.
    // SAFETY: this only restores the default, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let name = arguments.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let format = match format() {
        Ok(format) => format,
        Err(value) => {
            let what = format!("invalid value for environment variable {FORMAT}: \"{value}\"");
            return failed(&name, &what, "hint: set it to 19 or classic, or unset it\n");
        }
    };
    let outcome = match request(&name, arguments, format) {
        Request::Refused => return FAILED,
        Request::Help => {
            print(&definition(&name, format == Format::Classic).render_help().to_string()).map(|()| Ended::Done)
        }
        Request::Version => print(&version(format)).map(|()| Ended::Done),
        Request::Test(options) => interrupt::flag().and_then(|stop| test(&options, &stop, &mut print)),
    };
    match outcome.map(|outcome| is_done(outcome, &format!("{name}: "))) {
        Ok(true) => 0,
        Ok(false) => FAILED,
        Err(error) => failed(&name, &error.to_string(), ""),
    }
}

/// Prints an error, and a hint in another line. Returns the exit status.
fn failed(name: &str, what: &str, hint: &str) -> u8 {
    _ = write!(std::io::stderr(), "{}\n{hint}", escape::line(&format!("{name}: {what}")));
    FAILED
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

/// Scripts read the number after `(PostgreSQL)`. It is the version whose options and output these are. PostgreSQL's
/// packagers add their own version in parentheses, too.
fn version(format: Format) -> String {
    let postgresql = if format == Format::Classic { "18.0" } else { "19.0" };
    format!("pg_test_timing (PostgreSQL) {postgresql} (pg_timing {})\n", env!("CARGO_PKG_VERSION"))
}

/// Prints on stdout. PostgreSQL's program does not notice a full disk or a closed stdout.
#[expect(clippy::unnecessary_wraps, reason = "the test takes functions that can fail")]
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    Ok(())
}

/// Returns the definition of the command line for a program with this name. It makes the help text, the man page and the
/// completions. The C library's getopt_long parses the options, see `host/pg_test_timing/getopt.rs`. The classic format has
/// no cutoff.
pub fn definition(name: &str, is_classic: bool) -> Command {
    let usage = if is_classic { "[-d DURATION]" } else { "[-c CUTOFF] [-d DURATION]" };
    let options =
        if is_classic { vec![test_option("duration")] } else { ["cutoff", "duration"].map(test_option).into() };
    let version = Arg::new("version").short('V').long("version").help("Print version").action(ArgAction::Version);
    Command::new("pg_test_timing")
        .about("Measure what reading the clock costs, with PostgreSQL's options and output")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(options)
        .args([arguments::help(), version])
        .override_usage(format!("{name} {usage}"))
        .help_template(TEMPLATE)
        .after_help(format!(
            "This is pg_timing. With {FORMAT}=classic in the environment, it takes the options\n\
             and prints the output of PostgreSQL 15 to 18 instead of 19."
        ))
}

/// Returns an option of `pg_timing test`. It has the same meaning here, and PostgreSQL's name for its value.
fn test_option(name: &'static str) -> Arg {
    let pg_timing = arguments::definition();
    let test = pg_timing.find_subcommand("test").expect("pg_timing has the command test");
    let option = test.get_arguments().find(|option| option.get_id() == name);
    let value = if name == "cutoff" { "CUTOFF" } else { "DURATION" };
    option.expect("test has the options of pg_test_timing").clone().value_name(value)
}
