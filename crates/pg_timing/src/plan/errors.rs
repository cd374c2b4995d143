//! Errors about captured plans: what failed, and what to do.

use super::MAX_NODES;
use super::text::{MAX_DEPTH, TextError};
use crate::error::Error;
use crate::human::{count, duration};
use crate::report::NS_PER_MS;

/// The formats that `explain --plan` reads.
pub const SUPPORTED: &str =
    "supported: EXPLAIN ANALYZE as text, JSON, YAML or XML, as printed by psql or auto_explain, or quoted in a ticket";

/// The hint if the indentation of a plan is lost.
pub const COPY_IT_AGAIN: &str =
    "copy the plan with the spaces at the beginning of its lines, or take it with EXPLAIN (ANALYZE, FORMAT JSON)";

pub fn no_plan() -> Error {
    Error::new("there is no plan in the input", SUPPORTED)
}

/// Returns the error for a text that has the figures of a node, but no plan. It shows the first line with them: something
/// surrounds it.
pub fn surrounded(text: &str) -> Option<Error> {
    const MAX_CHARS: usize = 100;
    let has_figures = |line: &&str| ["(actual time=", "(actual rows="].iter().any(|figures| line.contains(figures));
    let line: String = text.lines().find(has_figures)?.trim().chars().take(MAX_CHARS).collect();
    Some(Error::new(
        format!("the input has figures of plan nodes, but no line is a plan node's line; the first one is: {line}"),
        "remove what is before and after each line of the plan",
    ))
}

pub fn already_corrected() -> Error {
    Error::new("the plan's times are corrected already", "give pg_timing the plan as the server printed it")
}

pub fn not_executed() -> Error {
    Error::new(
        "the plan was not executed: EXPLAIN without ANALYZE, or auto_explain.log_analyze is off",
        "take it with EXPLAIN (ANALYZE), or set auto_explain.log_analyze = on",
    )
}

pub fn not_timed() -> Error {
    Error::new(
        "the plan's nodes were not timed (TIMING OFF, or auto_explain.log_timing is off), so it has no clock overhead",
        "to see the overhead, take it with EXPLAIN (ANALYZE), or set auto_explain.log_timing = on",
    )
}

pub fn no_execution_time() -> Error {
    Error::new(
        "the plan has no Execution Time",
        "the plan is truncated, or was taken with SUMMARY OFF; from a log, include the line \"duration: ... plan:\"",
    )
}

/// Returns the error for a plan in JSON, YAML or XML that cannot be read.
pub fn damaged(format: &str, why: &str) -> Error {
    Error::new(format!("the plan's {format} is incomplete or damaged: {why}"), SUPPORTED)
}

pub fn too_deep() -> Error {
    Error::new(
        "the plan is nested too deeply",
        format!("pg_timing reads up to {MAX_DEPTH} levels of nodes in text format, and fewer in JSON, YAML and XML"),
    )
}

pub fn too_many_nodes() -> Error {
    let what = format!("the plan has more than {} nodes, more than any real plan", count(MAX_NODES as u64));
    Error::new(what, SUPPORTED)
}

/// Returns the error for a message of the server that announces a plan, if none follows.
pub fn missing() -> Error {
    Error::new("no readable plan follows the log line \"duration: ... plan:\"", "include all of the plan's lines")
}

/// Returns the error for a plan in text format that cannot be read.
pub fn unreadable_text(error: &TextError) -> Error {
    match error {
        TextError::NotRun => not_executed(),
        TextError::NoBeginning => Error::new(
            "the beginning of the plan is missing",
            "include the first line, which names the topmost node and has no arrow",
        ),
        TextError::Cut => Error::new(
            "a line of the plan is truncated or wrapped",
            "give the plan with one line per node (psql: \\pset format aligned)",
        ),
        TextError::LostIndentation => Error::new("the plan has lost its indentation", COPY_IT_AGAIN),
        TextError::NoTree(why) => Error::new(
            format!("the plan has lost its indentation, and its kinds of nodes do not show the tree: {why}"),
            COPY_IT_AGAIN,
        ),
        TextError::TooManyNodes => too_many_nodes(),
        TextError::TooDeep => too_deep(),
    }
}

/// Returns the error for a missing read cost. `is_several`: the plans of a log, which have no common time without EXPLAIN.
pub fn unknown_clock(is_several: bool) -> Error {
    let hint = "give --read-cost NS, or --host-report FILE (pg_timing --format json on the server's host)";
    let plain = if is_several { "" } else { ", or --plain-ms MS (psql's \\timing without EXPLAIN)" };
    Error::new("the read cost of the server's clock is not known", [hint, plain].concat())
}

/// The hint if the read cost of the clock is of no use.
pub const ONLY_PLAIN_TIME: &str =
    "for a single plan (--nth N), give only --plain-ms MS (psql's \\timing without EXPLAIN)";

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
