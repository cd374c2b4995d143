//! `pg_timing test`: what pg_test_timing prints.

use super::arguments::{TestArguments, TestFormat};
use super::{NOT_DONE, interrupt};
use crate::pg_test_timing::{Ended, Format, Options, run as test};
use std::io::Write;

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
        Ended::Warning(text) | Ended::Warp(text) => {
            _ = write!(std::io::stderr(), "{text}");
            Ok(NOT_DONE)
        }
        Ended::Interrupted => Ok(NOT_DONE),
    }
}
