//! `pg_timing`, and by that name `pg_test_timing`: see [`pg_timing::command`].

use std::process::ExitCode;

fn main() -> ExitCode {
    pg_timing::command::run(std::env::args_os().collect())
}
