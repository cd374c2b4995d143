//! `pg_timing test`: prints what pg_test_timing prints.

use super::values::number;
use super::{NOT_DONE, interrupt};
use crate::host::pg_test_timing::{Ended, Format, Options, run as test};
use clap::{Args, ValueEnum};
use std::io::Write;

/// The message on stderr after an interrupt. stdout alone looks like the output of a complete run.
pub(super) const INTERRUPTED: &str = "interrupted: the output shows what was measured until then";

const EXAMPLES: &str = "\
Print what pg_test_timing of PostgreSQL 15 to 18 prints:
  pg_timing test --format classic";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TestArguments {
    /// Measuring time per clock, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "3", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub duration: u32,
    /// Percentage of the observed durations to list
    #[arg(short, long, value_name = "PERCENT", default_value = "99.99", value_parser = number(0.0..=100.0), allow_negative_numbers = true)]
    pub cutoff: f64,
    /// Output format
    #[arg(long, value_enum, default_value = "19")]
    pub format: TestFormat,
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

pub fn run(arguments: TestArguments) -> anyhow::Result<u8> {
    let stop = interrupt::flag()?;
    let options = Options {
        duration_s: arguments.duration,
        cutoff: arguments.cutoff,
        format: match arguments.format {
            TestFormat::Nineteen => Format::Nineteen,
            TestFormat::Classic => Format::Classic,
            TestFormat::Json => Format::Json,
        },
    };
    match test(&options, &stop, &mut super::print)? {
        Ended::Done => Ok(0),
        Ended::Warning(None) => Ok(NOT_DONE),
        Ended::Warning(Some(text)) | Ended::Warp(text) => {
            _ = write!(std::io::stderr(), "{text}");
            Ok(NOT_DONE)
        }
        Ended::Interrupted => {
            _ = writeln!(std::io::stderr(), "{INTERRUPTED}");
            Ok(NOT_DONE)
        }
    }
}
