//! The definition of the command line under the name `pg_test_timing`. It makes the help text, the man page and the
//! completions. The C library's getopt_long parses the options, see `host/pg_test_timing/getopt.rs`.

use super::{Arguments, help};
use clap::{Arg, ArgAction, Command, CommandFactory};

/// The variable that selects the format. It is no option, because scripts that call PostgreSQL's program cannot know it.
pub const FORMAT: &str = "PG_TEST_TIMING_FORMAT";

/// PostgreSQL's tools exit with 1 after every kind of error.
pub const EXIT_STATUSES: &str = "0 done, 1 failed or usage error; also after Ctrl-C or if a clock went backward";

/// The usage comes first, as in PostgreSQL's program.
const TEMPLATE: &str = "{usage-heading} {usage}\n\n{about}\n\nOptions:\n{options}{after-help}";

/// Returns the definition for a program with this name. The classic format has no cutoff.
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
        .args([help(), version])
        .override_usage(format!("{name} {usage}"))
        .help_template(TEMPLATE)
        .after_help(format!(
            "This is pg_timing. With {FORMAT}=classic in the environment, it takes the options\n\
             and prints the output of PostgreSQL 15 to 18 instead of 19."
        ))
}

/// Returns an option of `pg_timing test`. It has the same meaning here, and PostgreSQL's name for its value.
fn test_option(name: &'static str) -> Arg {
    let pg_timing = Arguments::command();
    let test = pg_timing.find_subcommand("test").expect("pg_timing has the command test");
    let option = test.get_arguments().find(|option| option.get_id() == name);
    let value = if name == "cutoff" { "CUTOFF" } else { "DURATION" };
    option.expect("test has the options of pg_test_timing").clone().value_name(value)
}
