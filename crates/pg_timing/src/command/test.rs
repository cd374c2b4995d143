//! `pg_timing test`: prints what pg_test_timing prints.

use super::arguments::{TestArguments, TestFormat};
use super::{NOT_DONE, interrupt};
use crate::host::pg_test_timing::{Ended, Format, Options, run as test};
use std::io::Write;

/// The message on stderr after an interrupt. stdout alone looks like the output of a complete run.
pub(super) const INTERRUPTED: &str = "interrupted: the output shows what was measured until then";

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
