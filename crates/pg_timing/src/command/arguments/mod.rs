//! The command line, as typed and as the program needs it.

mod explain;
mod values;

pub use explain::{AdviseArguments, ConnectionArguments, ExplainArguments};

use crate::command::NOT_DONE;
use crate::host::facts::LogSource;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use timing_clock::Nanos;
use values::{log_source, percent, seconds, trial_seconds, whole_seconds};

/// Measures what reading the clock costs PostgreSQL, and whether to trust it
#[derive(Debug, Parser)]
#[command(
    name = "pg_timing",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true,
    after_help = "Exit status of check, read and advise: 0 ok, 1 warning, 2 critical, 3 could not tell; of test, clocksource and explain: 0 done, 3 not done."
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
    /// Say what each setting that reads the clock costs on a server, and whether to turn it on
    Advise(AdviseArguments),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    Text,
    Json,
    /// a page that stands alone
    Html,
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
    Arguments::try_parse_from(&arguments).map_err(|error| {
        if !error.use_stderr() {
            return match crate::command::print(&error.render().to_string()) {
                Ok(()) => 0,
                Err(error) => {
                    crate::command::complain(&error);
                    NOT_DONE
                }
            };
        }
        // clap's first paragraph says what is wrong; the rest repeats the help.
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default().replace("\n  ", " ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let help = match subcommand(&arguments) {
            Some(name) => format!("pg_timing {name} --help"),
            None => "pg_timing --help".into(),
        };
        _ = writeln!(std::io::stderr(), "pg_timing: error: {}\nhint: try \"{help}\"", message.trim_end());
        NOT_DONE
    })
}

fn subcommand(arguments: &[OsString]) -> Option<&str> {
    let name = arguments.get(1)?.to_str()?;
    Arguments::command().find_subcommand(name).is_some().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }
}
