//! The arguments of `compare`.

use super::Format;
use clap::{Args, ValueHint};
use std::path::PathBuf;

const RULE: &str = "\
A figure changed if the difference exceeds the noise. The column \"noise\" is the largest difference that counts as the same.

An alarm counts only if the figure that it judges changed. Load makes reads longer: on a busy host, the read cost is not compared, \
unless it changed by more than load can explain.

Much worse (exit status 2): a new critical alarm; a clock that PostgreSQL reads went back; or its read cost at least doubled \
beyond noise and is now above 100 ns.
Worse (exit status 1): a new warning; or a read of a clock that PostgreSQL reads costs over 5 ns more, beyond noise; or its \
timed call costs over 10 ns more, its step is at least 1 us, its CPUs differ by more than before, it goes back more often, or the CPU's counter that it reads \
is no longer safe to use.
Only PostgreSQL 19 reads the CPU's counter. The verdict says if a change concerns PostgreSQL 19 only.
Better, same, and other differences: exit status 0. Not compared: exit status 3.
The worst change counts. Alarms about interruptions, and about a restart that will reset the clock source, are neither better \
nor worse.

Compare reports of the same program, measured under the same load, for example before and after a kernel upgrade:
  pg_timing check --format json > before.json
  pg_timing check --format json > after.json
  pg_timing compare before.json after.json";

#[derive(Debug, Args)]
#[command(after_help = RULE)]
pub struct CompareArguments {
    /// JSON report of check, or an output of pg_test_timing, from any PostgreSQL version; - is stdin
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// The same, measured after the change
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}
