//! The command line: commands, options, help texts and their parser.

mod compare;
pub mod drop_in;
mod examples;
pub mod exit_status;
mod explain;
mod monitor;
mod report;
mod thresholds;
mod values;

pub use compare::CompareArguments;
pub use explain::{AdviseArguments, ConnectionArguments, ExplainArguments, ExplainFormat};
pub use monitor::MonitorArguments;
pub use report::ReportArguments;

use super::{NOT_DONE, print, print_error, report_error};
use crate::host::facts::LogSource;
use crate::report::thresholds::{Limits, Thresholds};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use thresholds::limits;
use timing_clock::Nanos;
use values::{log_source, percent, seconds, trial_seconds, whole_seconds};

/// Measures what reading the clock costs in PostgreSQL, and checks whether the clock can be trusted
#[derive(Debug, Parser)]
#[command(
    name = "pg_timing",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true,
    arg = help().global(true),
    after_help = exit_status::of_all()
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    check: CheckArguments,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this host's clocks and report problems (the default)
    #[command(after_help = examples::CHECK)]
    Check(CheckArguments),
    /// Measure clocks and print the result as pg_test_timing does
    #[command(after_help = examples::TEST)]
    Test(TestArguments),
    /// Interpret the output of pg_test_timing, from any PostgreSQL version
    #[command(after_help = examples::READ)]
    Read(ReadArguments),
    /// Compare two reports of a host: what changed beyond noise
    Compare(CompareArguments),
    /// List the kernel's clock sources, or switch to another one
    #[command(after_help = examples::CLOCKSOURCE)]
    Clocksource(ClocksourceArguments),
    /// Show how much of a statement's EXPLAIN ANALYZE is timing overhead, node by node
    Explain(Box<ExplainArguments>),
    /// Show what each setting that reads the clock costs on a server, and whether to turn it on
    #[command(after_help = examples::ADVISE)]
    Advise(AdviseArguments),
    /// Watch this host's clocks: a live screen on a terminal, or metrics for Prometheus
    #[command(after_help = examples::MONITOR)]
    Monitor(MonitorArguments),
    /// Write a web page about this host, or about the hosts and plans in JSON reports
    #[command(after_help = examples::REPORT)]
    Report(ReportArguments),
}

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Total measuring time, in seconds [default: 4, or 300 with --long]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub duration: Option<Nanos>,
    /// Measure for minutes, to detect clocks that drift apart
    #[arg(long)]
    pub long: bool,
    /// Check the captured tree in DIR instead of this machine; nothing is measured
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Read the kernel log from FILE, or from stdin (-)
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, value_parser = log_source())]
    pub kernel_log: Option<LogSource>,
    /// Write the facts and measurements of this machine to DIR, for --root on another host; the host's name, serial
    /// numbers and addresses are left out
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "root")]
    pub capture: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Print one line with performance data, as monitoring plugins do
    #[arg(long, conflicts_with = "format")]
    pub nagios: bool,
    /// With --nagios, also warn above these limits, like read=100ns,lost=5%,skew=1us: the cost of a read of PostgreSQL's
    /// clock (ns, us, ms, s; default ns), the time that interruptions took (%), the certain offset between the clocks of two
    /// CPUs (as read). The worst of the limits and the verdict counts
    #[arg(short, long, value_name = "LIMITS", value_parser = limits, requires = "nagios")]
    pub warning: Option<Limits>,
    /// The same for the status critical
    #[arg(short, long, value_name = "LIMITS", value_parser = limits, requires = "nagios")]
    pub critical: Option<Limits>,
}

impl CheckArguments {
    /// Returns the limits of both severities.
    pub fn thresholds(&self) -> Thresholds {
        Thresholds { warning: self.warning.unwrap_or_default(), critical: self.critical.unwrap_or_default() }
    }
    /// The measuring time in seconds that no option changes. It gives each clock some hundred thousand reads or more.
    pub const DEFAULT_S: f64 = 4.0;

    /// Returns the total measuring time.
    pub fn time_limit(&self) -> Nanos {
        self.duration.unwrap_or(Nanos::from_secs(if self.long { 300.0 } else { CheckArguments::DEFAULT_S }))
    }
}

#[derive(Debug, Args)]
pub struct TestArguments {
    /// Measuring time per clock, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "3", value_parser = whole_seconds, allow_negative_numbers = true)]
    pub duration: u32,
    /// Percentage of the observed durations to list
    #[arg(short, long, value_name = "PERCENT", default_value = "99.99", value_parser = percent, allow_negative_numbers = true)]
    pub cutoff: f64,
    /// Output format
    #[arg(long, value_enum, default_value = "19")]
    pub format: TestFormat,
}

#[derive(Debug, Args)]
pub struct ReadArguments {
    /// File with the output of pg_test_timing, or - for stdin
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
pub struct ClocksourceArguments {
    #[command(subcommand)]
    pub command: Option<ClocksourceCommand>,
    #[command(flatten)]
    pub list: ListArguments,
}

#[derive(Debug, Subcommand)]
pub enum ClocksourceCommand {
    /// List the clock sources with their read costs and states (the default)
    List(ListArguments),
    /// Switch to another clock source, compare the two, and restore the old one (not with --keep)
    #[command(after_help = examples::USE)]
    Use(UseArguments),
}

#[derive(Debug, Args)]
pub struct ListArguments {
    /// List the clock sources of the captured tree in DIR instead of this machine's
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct UseArguments {
    /// A clock source that the list shows as available
    pub name: String,
    /// Time until the old clock source is restored, in seconds
    #[arg(long = "for", value_name = "SECONDS", default_value = "10", value_parser = trial_seconds, allow_negative_numbers = true)]
    pub seconds: Nanos,
    /// Keep the new clock source until the next restart
    #[arg(long, conflicts_with = "seconds")]
    pub keep: bool,
    /// Switch even if the clock source has faults or can stall a large host
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// as in PostgreSQL 19: nanoseconds, every clock
    #[value(name = "19")]
    Nineteen,
    /// as in PostgreSQL 15 to 18: microseconds, the system clock
    Classic,
    Json,
}

/// Returns PostgreSQL's option for help: -h is the host.
fn help() -> Arg {
    Arg::new("help").short('?').long("help").help("Print help").action(ArgAction::Help)
}

/// Returns the definition of the command line, for man pages and completions.
pub fn definition() -> clap::Command {
    Arguments::command()
}

/// Parses the command line. After `--help`, `--version` or a usage error, prints the text and returns the exit status.
pub fn parse(arguments: Vec<OsString>) -> Result<Command, u8> {
    let error = match Arguments::try_parse_from(&arguments) {
        Ok(Arguments { command, check, .. }) => return Ok(command.unwrap_or(Command::Check(check))),
        Err(error) => error,
    };
    let text = without_connection_strings(error.render().to_string(), &arguments);
    if !error.use_stderr() {
        return Err(print(&text).map_or_else(|error| report_error(&error), |()| 0));
    }
    // clap's first paragraph is the message. The rest repeats the help text.
    let message = text.split("\n\n").next().unwrap_or_default().replace("\n  ", " ");
    let message = match message.strip_prefix("error: ").unwrap_or(&message) {
        // The value may be the password.
        value if value.starts_with("unexpected value") && value.contains("'--password") => "--password takes no value",
        message => message,
    };
    let help = match subcommand(&arguments) {
        Some(name) => format!("pg_timing {name} --help"),
        None => "pg_timing --help".into(),
    };
    let hint = match error.kind() {
        ErrorKind::InvalidSubcommand if message.contains(OMITTED) => {
            "to use a server, type: pg_timing explain CONNECTION, or: pg_timing advise CONNECTION".into()
        }
        _ => format!("try \"{help}\""),
    };
    print_error(message.trim_end(), &hint);
    Err(NOT_DONE)
}

const OMITTED: &str = "'...'";

/// Returns clap's text without the arguments that can be connection strings. They can contain a password.
fn without_connection_strings(text: String, arguments: &[OsString]) -> String {
    // clap can show the value of an option without the option.
    let values = arguments.iter().map(|argument| argument.to_string_lossy()).flat_map(|argument| {
        let value = argument.split_once('=').map(|(_, value)| value.to_string());
        let attached = argument.strip_prefix('-').map(|rest| rest.chars().skip(1).collect());
        [Some(argument.to_string()), value, attached]
    });
    let mut secret: Vec<String> = values.flatten().filter(|text| is_connection_string(text)).collect();
    secret.sort_by_key(|text| std::cmp::Reverse(text.len()));
    secret.iter().fold(text, |text, secret| text.replace(secret, "..."))
}

fn is_connection_string(text: &str) -> bool {
    let has_signs = text.contains("://") || text.contains('@') || text.contains('=') && !text.starts_with("--");
    // Such short texts are also in clap's own words.
    text.len() > 3 && has_signs
}

fn subcommand(arguments: &[OsString]) -> Option<&str> {
    let name = arguments.get(1)?.to_str()?;
    Arguments::command().find_subcommand(name).is_some().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_is_valid() {
        definition().debug_assert();
        drop_in::definition("pg_test_timing", false).debug_assert();
    }

    /// The man pages and completions show these texts.
    #[test]
    fn each_command_and_option_has_a_text() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for option in command.get_arguments() {
                assert!(option.get_help().is_some(), "{} {option}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        let mut pg_timing = definition();
        pg_timing.build();
        check(&pg_timing);
        check(&drop_in::definition("pg_test_timing", false));
    }

    #[test]
    fn short_arguments_do_not_change_the_text_of_clap() {
        let arguments = ["=", "@", "u:hunter2@h"].map(OsString::from);
        let text = "unexpected '=' after --format=json: u:hunter2@h".to_string();
        assert_eq!(without_connection_strings(text, &arguments), "unexpected '=' after --format=json: ...");
    }
}
