//! The program that measured a report.

use crate::report::{ClockReport, Origin, Report};
use serde::{Deserialize, Serialize};

/// The program that measured. It decides what its figures mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// `pg_timing check`
    Check,
    /// pg_test_timing of PostgreSQL 9.2 to 18: it cuts each reading to microseconds
    PgTestTimingClassic,
    /// pg_test_timing of PostgreSQL 19: it counts in nanoseconds
    #[serde(rename = "pg_test_timing_19")]
    PgTestTiming19,
    /// pg_test_timing, but without a table, which would show the version
    PgTestTiming,
}

impl Program {
    pub fn of(report: &Report) -> Program {
        let rows = |clock: &ClockReport| clock.histogram.iter().any(|row| row.ge_ns.is_some());
        match report.origin {
            Origin::Measured | Origin::Captured => Program::Check,
            Origin::PgTestTiming if report.clocks.iter().any(rows) => Program::PgTestTimingClassic,
            Origin::PgTestTiming if report.clocks.iter().any(|clock| !clock.histogram.is_empty()) => {
                Program::PgTestTiming19
            }
            Origin::PgTestTiming => Program::PgTestTiming,
        }
    }

    /// Returns the name for a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Program::Check => "pg_timing check",
            Program::PgTestTimingClassic => "pg_test_timing 9.2 to 18",
            Program::PgTestTiming19 => "pg_test_timing 19",
            Program::PgTestTiming => "pg_test_timing",
        }
    }
}
