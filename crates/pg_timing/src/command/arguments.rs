//! The command line: the commands, its help text and its errors.

use super::advise::AdviseArguments;
use super::check::CheckArguments;
use super::clocksource::ClocksourceArguments;
use super::compare::CompareArguments;
use super::explain::ExplainArguments;
use super::monitor::MonitorArguments;
use super::read::ReadArguments;
use super::report::ReportArguments;
use super::test::TestArguments;
use super::{NOT_DONE, finish, print, print_error};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;

/// Measures what reading the clock costs in PostgreSQL, and checks whether the clock can be trusted
#[derive(Debug, Parser)]
#[command(
    name = "pg_timing",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true,
    arg = help().global(true),
    after_help = exit_statuses_of_all()
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    check: CheckArguments,
    /// Print the man pages (man) or completions (bash, zsh, fish); "man pg_test_timing" prints that program's
    #[arg(long, value_name = "KIND", num_args = 1..=2, exclusive = true)]
    generate: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this host's clocks and report problems (the default)
    Check(CheckArguments),
    /// Measure clocks and print the result as pg_test_timing does
    Test(TestArguments),
    /// Interpret the output of pg_test_timing, from any PostgreSQL version
    Read(ReadArguments),
    /// Compare two reports of a host: what changed beyond noise
    Compare(CompareArguments),
    /// List the kernel's clock sources, or switch to another one
    Clocksource(ClocksourceArguments),
    /// Show how much of a statement's EXPLAIN ANALYZE is timing overhead, node by node
    Explain(Box<ExplainArguments>),
    /// Show what each setting that reads the clock costs on a server, and whether to turn it on
    Advise(AdviseArguments),
    /// Watch this host's clocks: a live screen on a terminal, or metrics for Prometheus
    Monitor(MonitorArguments),
    /// Write a web page about this host, or about the hosts and plans in JSON reports
    Report(ReportArguments),
    /// `--generate`
    #[command(skip)]
    Generate(Vec<String>),
}

/// These commands judge clocks or settings, so each can serve as a monitoring plugin.
const JUDGES: &str = "0 ok, 1 warning, 2 critical, 3 not determined or usage error";
const COMPARES: &str = "0 same or better, 1 worse, 2 much worse, 3 not compared or usage error";
const ACTS: &str = "0 done, 3 failed or usage error";
const EXPLAINS: &str = "0 done, 1 the second statement of --against takes more time, 3 failed or usage error";

/// Returns the exit statuses of all commands, for the end of the help text.
fn exit_statuses_of_all() -> String {
    format!(
        "Exit status of check, read and advise: {JUDGES}. Exit status of compare: {COMPARES}. \
         Exit status of explain: {EXPLAINS}. Exit status of test, clocksource, monitor and report: {ACTS}."
    )
}

/// Returns the exit statuses of a command of `pg_timing`, like "0 done, 3 failed". Without a command, `check` runs.
pub fn exit_statuses(command: Option<&str>) -> &'static str {
    match command {
        None | Some("check" | "read" | "advise") => JUDGES,
        Some("compare") => COMPARES,
        Some("explain") => EXPLAINS,
        Some(_) => ACTS,
    }
}

/// Returns PostgreSQL's option for help: -h is the host.
pub fn help() -> Arg {
    Arg::new("help").short('?').long("help").help("Print help").action(ArgAction::Help)
}

/// Returns the definition of the command line, for man pages and completions.
pub fn definition() -> clap::Command {
    Arguments::command()
}

/// Parses the command line. After `--help`, `--version` or a usage error, prints the text and returns the exit status.
pub fn parse(arguments: Vec<OsString>) -> Result<Command, u8> {
    let error = match Arguments::try_parse_from(&arguments) {
        Ok(Arguments { generate: Some(words), .. }) => return Ok(Command::Generate(words)),
        Ok(Arguments { command, check, .. }) => return Ok(command.unwrap_or(Command::Check(check))),
        Err(error) => error,
    };
    if !error.use_stderr() {
        return Err(finish(print(&error.render().to_string()).map(|()| 0)));
    }
    // What clap takes for the intended command or option.
    let similar = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    let similar = similar.into_iter().find_map(|kind| error.get(kind));
    let hint = match (error.kind(), similar, subcommand(&arguments)) {
        (ErrorKind::InvalidSubcommand, None, _) if has_secret(&error.render().to_string()) => {
            "to use a server, type: pg_timing explain CONNECTION, or: pg_timing advise CONNECTION".into()
        }
        (_, Some(similar), _) => format!("did you mean {similar}?"),
        (_, None, Some(name)) => format!("try \"pg_timing {name} --help\""),
        (_, None, None) => "try \"pg_timing --help\"".into(),
    };
    print_error(&message(&error), &hint);
    Err(NOT_DONE)
}

/// Returns the message of a usage error, without values that can contain a password.
fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    // clap's first paragraph is the message. The rest repeats the help text.
    let message = text.split("\n\n").next().unwrap_or_default().replace("\n  ", " ");
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        // The value may be the one of --password.
        (ErrorKind::TooManyValues, Some(option)) => format!("{option} takes no value"),
        (kind, _) if has_secret(&message) => kind.as_str().unwrap_or("invalid arguments").into(),
        _ => message.strip_prefix("error: ").unwrap_or(&message).trim_end().into(),
    }
}

/// Returns whether a text has a part that looks like a connection string.
fn has_secret(text: &str) -> bool {
    ["://", "@", "password=", "password ="].iter().any(|sign| text.contains(sign))
}

fn subcommand(arguments: &[OsString]) -> Option<&str> {
    let name = arguments.get(1)?.to_str()?;
    Arguments::command().find_subcommand(name).is_some().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::pg_test_timing;
    use super::*;

    #[test]
    fn definition_is_valid() {
        definition().debug_assert();
        pg_test_timing::definition("pg_test_timing", false).debug_assert();
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
        check(&pg_test_timing::definition("pg_test_timing", false));
    }

    /// Returns the examples in the help texts of a command and of its commands.
    fn examples(command: &clap::Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = text.lines().filter_map(|line| line.strip_prefix("  ")).map(ToString::to_string);
        own.chain(command.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn each_example_is_valid() {
        let examples = examples(&definition());
        assert!(examples.len() > 15, "{examples:?}");
        for example in examples {
            // A shell runs the parts between | and before >. It takes the text between two quotes as one word.
            let program =
                example.split(" | ").map(|part| part.trim_start_matches("sudo ")).find(|p| p.starts_with("pg_timing"));
            let line = program.unwrap_or_else(|| panic!("{example}")).split(" > ").next().unwrap();
            let parts = line.split('\'').enumerate().flat_map(|(number, part)| match number % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            definition().try_get_matches_from(parts).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }

    #[test]
    fn the_help_text_has_the_exit_status_of_each_command() {
        let text = exit_statuses_of_all();
        for command in definition().get_subcommands() {
            let name = command.get_name();
            let sentence = text.split("Exit status of ").find(|s| s.split(':').next().unwrap().contains(name));
            assert!(sentence.unwrap_or_default().contains(exit_statuses(Some(name))), "{name}: {text}");
        }
    }
}
