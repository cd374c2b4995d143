//! The program under the name `pg_test_timing`: options, messages and exit statuses are PostgreSQL's.

use super::interrupt;
use crate::host::pg_test_timing::getopt::{Request, request};
use crate::host::pg_test_timing::{Ended, run as test};
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
    let name = arguments.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let outcome = match request(&name, arguments) {
        Request::Refused => return FAILED,
        Request::Help => super::print(&format!("Usage: {name} [-c CUTOFF] [-d DURATION]\n")).map(|()| Ended::Done),
        Request::Version => {
            super::print(&format!("pg_test_timing (pg_timing) {}\n", env!("CARGO_PKG_VERSION"))).map(|()| Ended::Done)
        }
        Request::Test(options) => interrupt::flag().and_then(|stop| test(&options, &stop, &mut super::print)),
    };
    match outcome {
        Ok(Ended::Done) => 0,
        Ok(Ended::Warning(text) | Ended::Warp(text)) => {
            _ = write!(std::io::stderr(), "{text}");
            FAILED
        }
        Ok(Ended::Interrupted) => {
            _ = writeln!(std::io::stderr(), "{name}: {}", super::test::INTERRUPTED);
            FAILED
        }
        Err(error) => {
            _ = writeln!(std::io::stderr(), "{name}: {error}");
            FAILED
        }
    }
}
