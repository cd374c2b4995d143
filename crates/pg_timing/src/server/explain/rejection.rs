//! Why a text cannot be run.

use crate::error::Error;
use crate::human::count;

/// A hint for statements without a plan.
pub const SUPPORTED_STATEMENTS: &str = "pg_timing supports statements that have a plan: SELECT, VALUES, TABLE, INSERT, \
     UPDATE, DELETE, MERGE, EXECUTE, CREATE TABLE AS, CREATE MATERIALIZED VIEW";

/// Why a text is not one statement that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    Empty,
    Several,
    /// there are settings or PREPARE lines, but no statement
    OnlyLeadingLines,
    /// the text begins with EXPLAIN
    Explain,
    /// a command of psql, like `\timing`
    Backslash(String),
    /// `$1`, as pg_stat_statements and logs show it
    Parameter,
    /// another number of values than of parameters
    Values {
        needed: usize,
        given: usize,
    },
    /// values for a statement that takes none from us
    ValuesFor(&'static str),
    /// EXECUTE without the PREPARE
    NotPrepared(String),
    /// a PREPARE line that is not understood, like PREPARE TRANSACTION
    Prepare(&'static str),
    /// CREATE TABLE AS ... WITH NO DATA
    NoData,
    /// a setting that would make the figures or the promises of the program false
    Setting {
        name: String,
        why: &'static str,
        hint: &'static str,
    },
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Error {
        match rejection {
            Rejection::Empty => Error::new("there is no statement", "give one with -c, with -f, or on stdin"),
            Rejection::Several => Error::new(
                "there are several statements",
                "give one statement; only SET, RESET and PREPARE may come before it, and nothing after it",
            ),
            Rejection::OnlyLeadingLines => {
                Error::new("there is no statement after SET, RESET and PREPARE", "add the statement as the last one")
            }
            Rejection::Explain => Error::new(
                "the statement is an EXPLAIN",
                "give the statement without EXPLAIN and its options; pg_timing runs EXPLAIN itself",
            ),
            Rejection::Backslash(command) => Error::new(
                format!("psql's backslash commands are not supported: {command}"),
                "remove the command; for settings use SET, and for values $1 with --param",
            ),
            Rejection::Parameter => Error::new(
                "the statement has a parameter, like $1",
                "give the values of $1, $2, ... with --param VALUE; pg_stat_statements and logs show parameters instead of \
                 values",
            ),
            Rejection::Values { needed, given } => {
                let what = |number: usize, name: &str| {
                    format!("{} {name}{}", count(number as u64), if number == 1 { "" } else { "s" })
                };
                Error::new(
                    format!(
                        "the statement has {}, but {}",
                        what(needed, "parameter"),
                        match given {
                            1 => "1 value was given".into(),
                            _ => format!("{} were given", what(given, "value")),
                        }
                    ),
                    "give one --param VALUE for each of $1, $2, ..., in this order",
                )
            }
            Rejection::ValuesFor(statement) => Error::new(
                format!("--param does not support {statement}"),
                "put its query into PREPARE name AS ...; and use EXECUTE name(...), or CREATE TABLE ... AS EXECUTE name(...)",
            ),
            Rejection::NotPrepared(name) => Error::new(
                format!("EXECUTE of a statement that is not prepared: {name}"),
                "put PREPARE name AS ...; before EXECUTE, in the same file or -c: pg_timing uses a session of its own",
            ),
            Rejection::Prepare(what) => Error::new(
                what,
                "pg_timing supports PREPARE name [(types)] AS with SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE",
            ),
            Rejection::NoData => Error::new(
                "WITH NO DATA runs no query, so there is nothing to measure",
                "remove WITH NO DATA; each run is rolled back",
            ),
            Rejection::Setting { name, why, hint } => Error::new(format!("{name} cannot be set: {why}"), hint),
        }
    }
}
