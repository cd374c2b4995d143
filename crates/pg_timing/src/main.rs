//! The program `pg_timing`, which is also installed as `pg_test_timing`: arguments, command, exit status.

use pg_timing::command::arguments::{self, Command};
use pg_timing::command::{
    advise, check, clocksource, compare, explain, finish, generate, monitor, pg_test_timing, read, report, test,
};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if pg_test_timing::is_called(&arguments) {
        return ExitCode::from(pg_test_timing::run(arguments));
    }
    let command = match arguments::parse(arguments) {
        Ok(command) => command,
        // The help text, the version or the usage error is printed already.
        Err(exit_status) => return ExitCode::from(exit_status),
    };
    let result = match command {
        Command::Check(arguments) => check::run(arguments),
        Command::Test(arguments) => test::run(arguments),
        Command::Read(arguments) => read::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Clocksource(arguments) => clocksource::run(arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Advise(arguments) => advise::run(arguments),
        Command::Monitor(arguments) => monitor::run(&arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Generate(words) => generate::run(&words),
    };
    ExitCode::from(finish(result))
}
