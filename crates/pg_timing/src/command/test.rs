//! `pg_timing test`: prints what pg_test_timing prints.

use super::values::{count, number};
use super::{NOT_DONE, interrupt};
use crate::host::pg_test_timing::{Ended, Format, Options, run as test};
use clap::Args;
use clap::builder::TypedValueParser;
use std::io::Write;

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/test.txt").trim_end())]
pub struct TestArguments {
    /// Measuring time per clock, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "3", value_parser = count(u64::from(u32::MAX)).map(|seconds| seconds as u32), allow_negative_numbers = true)]
    pub duration: u32,
    /// Percentage of the observed durations to list
    #[arg(short, long, value_name = "PERCENT", default_value = "99.99", value_parser = number(0.0..=100.0), allow_negative_numbers = true)]
    pub cutoff: f64,
    /// Output format
    #[arg(long, value_enum, default_value = "19")]
    pub format: Format,
}

pub fn run(arguments: TestArguments) -> anyhow::Result<u8> {
    let stop = interrupt::flag()?;
    let TestArguments { duration, cutoff, format } = arguments;
    let options = Options { duration_s: duration, cutoff, format };
    let outcome = test(&options, &stop, &mut super::print)?;
    Ok(if is_done(outcome, "") { 0 } else { NOT_DONE })
}

/// Prints why a test ended early, if it did. `name` comes before our own message. Returns whether the test is complete and has no
/// warning.
pub(super) fn is_done(outcome: Ended, name: &str) -> bool {
    let text = match outcome {
        Ended::Done => return true,
        Ended::Failed(text) => text,
        // stdout alone looks like the output of a complete run.
        Ended::Interrupted => format!("{name}interrupted: the output shows what was measured until then\n"),
    };
    _ = std::io::stderr().write_all(text.as_bytes());
    false
}
