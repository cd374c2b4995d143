//! Errors about captured plans: what failed, and what to do.

use super::MAX_NODES;
use super::node_line::FIGURES;
use super::text::TextError;
use super::tree::Explained;
use super::validate::Impossible;
use crate::error::Error;
use crate::human::{count, duration};
use crate::report::NS_PER_MS;

/// A plan, or why something that looks like a plan cannot be read.
pub type Found = Result<Explained, Unreadable>;

/// Why a plan cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Unreadable {
    Text(TextError),
    /// the JSON parser's message
    Json(String),
    /// the JSON has more levels than the parser accepts
    TooDeep,
    TooManyNodes,
    /// the line that EXPLAIN does not write
    Yaml(String),
    /// the XML parser's message
    Xml(String),
    /// a log line announces a plan, and none follows
    Missing,
}

/// The formats that `explain --plan` reads.
pub const SUPPORTED: &str =
    "supported: EXPLAIN ANALYZE as text, JSON, YAML or XML, as printed by psql or auto_explain, or quoted in a ticket";

const COPY_IT_AGAIN: &str =
    "copy the plan with the spaces at the beginning of its lines, or take it with EXPLAIN (ANALYZE, FORMAT JSON)";

pub fn no_plan() -> Error {
    Error::new("there is no plan in the input", SUPPORTED)
}

/// Returns the error for a text without a plan. It shows the first line with a node's figures: something surrounds it.
pub fn no_plan_in(text: &str) -> Error {
    const MAX_CHARS: usize = 100;
    let has_figures = |line: &&str| FIGURES[1..].iter().any(|figures| line.contains(figures));
    let Some(line) = text.lines().find(has_figures) else { return no_plan() };
    let line: String = line.trim().chars().take(MAX_CHARS).collect();
    Error::new(
        format!("the input has figures of plan nodes, but no line is a plan node's line; the first one is: {line}"),
        "remove what is before and after each line of the plan",
    )
}

pub fn already_corrected() -> Error {
    Error::new("the plan's times are corrected already", "give pg_timing the plan as the server printed it")
}

/// What a plan comes from. The settings that it needs have other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBy {
    Explain,
    AutoExplain,
}

pub fn not_executed(by: TakenBy) -> Error {
    match by {
        TakenBy::Explain => {
            Error::new("the plan was not executed (EXPLAIN without ANALYZE)", "take it with EXPLAIN (ANALYZE)")
        }
        TakenBy::AutoExplain => Error::new(
            "the plan has no actual times (auto_explain.log_analyze is off)",
            "set auto_explain.log_analyze = on",
        ),
    }
}

pub fn not_timed(by: TakenBy) -> Error {
    match by {
        TakenBy::Explain => Error::new(
            "the plan was taken with TIMING OFF: its nodes were not timed, so it has no clock overhead",
            "take it with EXPLAIN (ANALYZE), which times the nodes",
        ),
        TakenBy::AutoExplain => Error::new(
            "the plan was taken with auto_explain.log_timing = off: its nodes were not timed, so it has no clock overhead",
            "to see the overhead, set auto_explain.log_timing = on",
        ),
    }
}

pub fn no_execution_time() -> Error {
    Error::new(
        "the plan has no Execution Time",
        "the plan is truncated, or was taken with SUMMARY OFF; from a log, include the line \"duration: ... plan:\"",
    )
}

/// Returns the error for a plan whose figures cannot come from one run.
pub fn impossible(why: &Impossible) -> Error {
    let hint = match why {
        Impossible::Figure { .. } | Impossible::TooManyCalls { .. } | Impossible::TooLong { .. } => {
            "the plan is damaged, or the server's clock ran backwards"
        }
        Impossible::TooFewInputs { .. } | Impossible::TooManyInputs { .. } => COPY_IT_AGAIN,
        Impossible::RootTookLonger { .. } => {
            "the root's time and the Execution Time are from different runs, or the server's clock ran backwards"
        }
        Impossible::InputsTookLonger { .. } => {
            "the plan's lines have lost their indentation, or the server's clock ran backwards"
        }
    };
    Error::new(why.to_string(), hint)
}

/// Returns the error for a plan that could not be read.
pub fn unreadable_plan(unreadable: &Unreadable) -> Error {
    match unreadable {
        Unreadable::Yaml(why) => Error::new(format!("the plan's YAML is incomplete or damaged: {why}"), SUPPORTED),
        Unreadable::Xml(why) => Error::new(format!("the plan's XML is incomplete or damaged: {why}"), SUPPORTED),
        Unreadable::Json(why) => Error::new(format!("the plan's JSON is incomplete or damaged: {why}"), SUPPORTED),
        Unreadable::Text(TextError::NotRun) => not_executed(TakenBy::Explain),
        Unreadable::Text(TextError::NoBeginning) => Error::new(
            "the beginning of the plan is missing",
            "include the first line, which names the topmost node and has no arrow",
        ),
        Unreadable::Text(TextError::Cut) => Error::new(
            "a line of the plan is truncated or wrapped",
            "give the plan as it was printed, with one line per node",
        ),
        Unreadable::Text(TextError::LostIndentation) => Error::new("the plan has lost its indentation", COPY_IT_AGAIN),
        Unreadable::Text(TextError::NoTree(why)) => Error::new(
            format!("the plan has lost its indentation, and its kinds of nodes do not show the tree: {why}"),
            COPY_IT_AGAIN,
        ),
        Unreadable::TooManyNodes | Unreadable::Text(TextError::TooManyNodes) => Error::new(
            format!("the plan has more than {} nodes, more than any real plan", count(MAX_NODES as u64)),
            SUPPORTED,
        ),
        Unreadable::Missing => Error::new(
            "no readable plan follows the log line \"duration: ... plan:\"",
            "include all of the plan's lines",
        ),
        Unreadable::TooDeep => Error::new(
            "the plan is nested too deeply for this format",
            "take the plan in text format: EXPLAIN (ANALYZE, FORMAT TEXT)",
        ),
        Unreadable::Text(TextError::TooDeep) => Error::new("the plan is nested deeper than any real plan", SUPPORTED),
    }
}

/// Returns the error for a missing read cost. `is_several`: the plans of a log, which have no common time without EXPLAIN.
pub fn unknown_clock(is_several: bool) -> Error {
    let mut hint =
        "give --read-cost NS, or --host-report FILE (pg_timing --format json on the server's host)".to_string();
    if !is_several {
        hint += ", or --plain-ms MS (psql's \\timing without EXPLAIN)";
    }
    Error::new("the read cost of the server's clock is not known", hint)
}

/// The hint if the read cost of the clock is of no use.
pub const ONLY_PLAIN_TIME: &str = "give only --plain-ms MS (psql's \\timing without EXPLAIN)";

/// The same hint if several plans were read. Each has its own time without EXPLAIN.
pub const ONLY_PLAIN_TIME_OF_ONE: &str =
    "for a single plan, give --nth N and only --plain-ms MS (psql's \\timing without EXPLAIN)";

pub fn timed_by_fast_timing() -> Error {
    Error::new("pg_fast_timing timed the plan, so the read cost of the server's clock does not apply", ONLY_PLAIN_TIME)
}

/// Returns the error for a read cost with which the clock reads alone would take longer than the plan.
pub fn read_cost_too_high(calls: f64, read_ns: f64, least_ms: f64, reported_ms: f64) -> Error {
    Error::new(
        format!(
            "{} {} with clock reads of {} take at least {}, but the plan took {}",
            count(calls as u64),
            if calls == 1.0 { "call" } else { "calls" },
            duration(read_ns),
            duration(least_ms * NS_PER_MS),
            duration(reported_ms * NS_PER_MS)
        ),
        "this read cost does not belong to the clock that timed the plan",
    )
}

pub fn plain_time_too_long(plain_ms: f64, reported_ms: f64) -> Error {
    Error::new(
        format!("--plain-ms says {plain_ms} ms without EXPLAIN, but EXPLAIN ANALYZE took only {reported_ms} ms"),
        "the plain time may be from another run, or include sending rows; time it with \\o /dev/null or SELECT count(*) FROM (...)",
    )
}
