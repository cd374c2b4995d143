//! The command line, as typed and as the program needs it.

use super::NOT_DONE;
use crate::host::LogSource;
use clap::builder::TypedValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use timing_clock::Nanos;

/// Measures what reading the clock costs PostgreSQL, and whether to trust it
#[derive(Debug, Parser)]
#[command(
    name = "pg_timing",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true,
    after_help = "Exit status of check and read: 0 ok, 1 warning, 2 critical, 3 could not tell; of test, clocksource and explain: 0 done, 3 not done."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub check: CheckArguments,
    /// Print help
    #[arg(short = '?', long, action = ArgAction::Help, global = true)]
    help: (),
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this host's clocks and judge them (the default)
    Check(CheckArguments),
    /// Print what pg_test_timing prints
    Test(TestArguments),
    /// Interpret the output of any version's pg_test_timing
    Read(ReadArguments),
    /// List the kernel's clock sources, or switch to another one
    Clocksource(ClocksourceArguments),
    /// Say how much of a statement's EXPLAIN ANALYZE is the clock, node by node
    Explain(ExplainArguments),
}

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Measuring time in all, in seconds [default: 4, or 300 with --long]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub duration: Option<Nanos>,
    /// Watch for minutes how the clocks run against each other
    #[arg(long)]
    pub long: bool,
    /// Read a captured tree instead of this machine; nothing is measured then
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Take the kernel log from FILE, or from stdin (-)
    #[arg(long, value_name = "FILE|-", value_parser = log_source())]
    pub kernel_log: Option<LogSource>,
    /// Write the facts and figures of this machine into DIR, for --root elsewhere; host names, serial
    /// numbers and addresses are left out
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    pub capture: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// One line and performance data, as monitoring plugins print
    #[arg(long, conflicts_with = "format")]
    pub nagios: bool,
}

impl CheckArguments {
    /// The measuring time in all: minutes show a drift that seconds do not.
    pub fn limit(&self) -> Nanos {
        self.duration.unwrap_or(Nanos::from_secs(if self.long { 300.0 } else { 4.0 }))
    }
}

#[derive(Debug, Args)]
pub struct TestArguments {
    /// Time to measure each clock, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "3", value_parser = whole_seconds, allow_negative_numbers = true)]
    pub duration: u32,
    /// Share of the observed durations to list, in percent
    #[arg(short, long, value_name = "PERCENT", default_value = "99.99", value_parser = percent, allow_negative_numbers = true)]
    pub cutoff: f64,
    #[arg(long, value_enum, default_value = "19")]
    pub format: TestFormat,
}

#[derive(Debug, Args)]
pub struct ReadArguments {
    /// The output, or - for stdin
    #[arg(value_name = "FILE|-")]
    pub file: PathBuf,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct ClocksourceArguments {
    #[command(subcommand)]
    pub command: Option<ClocksourceCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ClocksourceCommand {
    /// Show what there is, what it costs, and what the kernel thinks of it (the default)
    List {
        /// Read a captured tree instead of this machine
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
    /// Switch to another one, measure it beside the old one, and put the old one back
    Use(UseArguments),
}

#[derive(Debug, Args)]
pub struct UseArguments {
    /// One of those that the list shows as offered
    pub name: String,
    /// How long to use it before the old one is put back
    #[arg(long = "for", value_name = "SECONDS", default_value = "10", value_parser = trial_seconds, allow_negative_numbers = true)]
    pub seconds: Nanos,
    /// Do not put the old one back
    #[arg(long, conflicts_with = "seconds")]
    pub keep: bool,
    /// Even one that can make a large host stall
    #[arg(long)]
    pub force: bool,
}

/// psql's, with its meanings.
#[derive(Debug, Args)]
pub struct ConnectionArguments {
    /// Database server's host, or the directory of its socket
    #[arg(short = 'h', long, value_name = "HOST")]
    pub host: Option<String>,
    /// Database server's port
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<String>,
    /// Database user
    #[arg(short = 'U', long, value_name = "NAME")]
    pub username: Option<String>,
    /// Database, or a connection string or URI
    #[arg(short, long, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Never ask for a password
    #[arg(short = 'w', long, conflicts_with = "password")]
    pub no_password: bool,
    /// Ask for a password before connecting
    #[arg(short = 'W', long)]
    pub password: bool,
    /// Database, or a connection string or URI
    #[arg(value_name = "DBNAME|CONNINFO|URI", conflicts_with = "dbname")]
    pub database: Option<String>,
}

/// The last one counts, as in psql, where an alias has set some of them.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ExplainArguments {
    /// The statement; without -c and -f it is read from stdin
    #[arg(short, long, value_name = "SQL")]
    pub command: Option<String>,
    /// A file with the statement
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// Run a statement that writes, too; everything is rolled back, but for sequences and what its
    /// functions do outside of the database
    #[arg(long)]
    pub allow_writes: bool,
    /// The longest that one run may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub limit: u64,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    #[command(flatten, next_help_heading = "Connection options")]
    pub connection: ConnectionArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// as PostgreSQL 19: nanoseconds, every clock
    #[value(name = "19")]
    Nineteen,
    /// as PostgreSQL 9.2 to 18: microseconds, the system clock
    Classic,
    Json,
}

/// Parses the command line. An error has been printed, and its exit status is returned: 0 after
/// `--help` and `--version`.
pub fn parse(arguments: Vec<OsString>) -> Result<Arguments, u8> {
    Arguments::try_parse_from(arguments).map_err(|error| {
        if !error.use_stderr() {
            return match super::print(&error.render().to_string()) {
                Ok(()) => 0,
                Err(error) => {
                    super::complain(&error);
                    NOT_DONE
                }
            };
        }
        // clap's first paragraph says what is wrong; the rest repeats the help.
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default().replace("\n  ", " ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        _ = writeln!(std::io::stderr(), "pg_timing: error: {}\nhint: try \"pg_timing --help\"", message.trim_end());
        NOT_DONE
    })
}

fn log_source() -> impl TypedValueParser<Value = LogSource> {
    clap::builder::PathBufValueParser::new().map(|path| match path.as_os_str() == "-" {
        true => LogSource::Stdin,
        false => LogSource::File(path),
    })
}

/// A day: beyond, a typing error is likelier than a wish.
const MOST_SECONDS: f64 = 86_400.0;
/// Less leaves no time to read each clock a few times.
const LEAST_SECONDS: f64 = 0.1;

/// Less is over before the other clock source is measured.
const LEAST_TRIAL_SECONDS: f64 = 1.0;

fn seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(LEAST_SECONDS, text)
}

fn trial_seconds(text: &str) -> Result<Nanos, String> {
    seconds_from(LEAST_TRIAL_SECONDS, text)
}

fn seconds_from(least: f64, text: &str) -> Result<Nanos, String> {
    match text.trim().parse::<f64>() {
        Ok(s) if (least..=MOST_SECONDS).contains(&s) => Ok(Nanos::from_secs(s)),
        Ok(s) if s.is_nan() => Err("not a number".into()),
        Ok(_) => Err(format!("must be between {least} and {MOST_SECONDS} seconds")),
        Err(_) => Err("not a number".into()),
    }
}

/// PostgreSQL's own range.
fn whole_seconds(text: &str) -> Result<u32, String> {
    match text.trim().parse::<u32>() {
        Ok(s @ 1..) => Ok(s),
        _ => Err(format!("must be a whole number in range 1..{}", u32::MAX)),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(p) if (0.0..=100.0).contains(&p) => Ok(p),
        _ => Err("must be a number in range 0..100".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations() {
        assert_eq!(seconds("4"), Ok(Nanos::from_secs(4.0)));
        for bad in ["0", "-1", "1e300", "inf", "NaN", "x", "", "4s", "86401"] {
            assert!(seconds(bad).is_err(), "{bad}");
            assert!(trial_seconds(bad).is_err(), "{bad}");
        }
        assert!(trial_seconds("0.9").is_err() && trial_seconds("86400").is_ok());
        for bad in ["0", "-1", "4294967296", "1.5", "x", ""] {
            assert!(whole_seconds(bad).is_err(), "{bad}");
        }
        for bad in ["-0.1", "100.1", "nan", "x", ""] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }
}
