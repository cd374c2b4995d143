//! Which plans cannot be used, and why: they were not executed, a part is missing, or their figures cannot come from one run. A
//! file may be damaged, and a server's clock may be faulty.

use super::tree::{inputs_of, is_append, is_known};
use super::{Explained, Found, MAX_DEPTH, MAX_NODES, Node, Plan, PlanNode, callees};
use crate::error::Error;
use crate::human::count;

/// Why a plan cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Unusable {
    /// EXPLAIN without ANALYZE
    NotExecuted,
    NotTimed,
    /// the times are not those of the server's clock
    FastTimed,
    /// pg_timing has corrected the times already
    Corrected,
    NoExecutionTime,
    NoPlanAfterAnnouncement,
    /// the first line with figures of a node, if no line is a node's line
    NotANodeLine(String),
    RootMissing,
    /// a node's line is truncated, or wrapped in an unknown way
    NodeLineIncomplete,
    /// the arrows do not show the tree, and neither do the kinds of nodes, with the reason
    LostIndentation(String),
    /// nested deeper than any real plan
    TooDeep,
    TooManyNodes,
    /// the format, and what its parser says
    InvalidSyntax(&'static str, String),
    /// the log or the file ends within the message
    EndMissing,
    /// the log begins within the message
    LogStartsInPlan,
    /// a part of the message is lost, or lines of something else are within it
    LinesMixed,
    TooLong,
    /// a figure, or figures that contradict each other, and the hint
    Impossible(String, &'static str),
    /// what the user knows about the clock does not belong to the plan
    Clock(Error),
}

/// The formats that `explain --plan` reads.
pub const SUPPORTED: &str =
    "supported: EXPLAIN ANALYZE as text, JSON, YAML or XML, as printed by psql or auto_explain, or quoted in a ticket";
const COPY_IT_AGAIN: &str =
    "copy the plan with the spaces at the beginning of its lines, or take it with EXPLAIN (ANALYZE, FORMAT JSON)";
/// The hint if the read cost of the clock is of no use.
pub const ONLY_PLAIN_TIME: &str =
    "for a single plan (--nth N), give only --plain-ms MS (psql's \\timing without EXPLAIN)";
const FAULTY_CLOCK: &str = "the plan is damaged, or the server's clock ran backwards";
const TWO_RUNS: &str = "the plan is damaged, the root's time and the Execution Time are from different runs, or the server's clock ran backwards";

impl Unusable {
    /// Returns whether a part of the plan is missing or wrong. Otherwise it is complete, but has no times of this clock.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Unusable::NotExecuted | Unusable::NotTimed | Unusable::FastTimed)
    }

    /// Returns whether the plan is usable, but what the user gave does not belong to it.
    pub fn contradicts_inputs(&self) -> bool {
        matches!(self, Unusable::FastTimed | Unusable::Clock(_))
    }
}

impl From<Unusable> for Error {
    fn from(unusable: Unusable) -> Error {
        match unusable {
            Unusable::NotExecuted => Error::new(
                "the plan was not executed: EXPLAIN without ANALYZE, or auto_explain.log_analyze is off",
                "take it with EXPLAIN (ANALYZE), or set auto_explain.log_analyze = on",
            ),
            Unusable::NotTimed => Error::new(
                "the plan's nodes were not timed (TIMING OFF, or auto_explain.log_timing is off), so it has no clock overhead",
                "to see the overhead, take it with EXPLAIN (ANALYZE), or set auto_explain.log_timing = on",
            ),
            Unusable::FastTimed => Error::new(
                "pg_fast_timing timed the plan, so the read cost of the server's clock does not apply",
                ONLY_PLAIN_TIME,
            ),
            Unusable::Corrected => {
                Error::new("the plan's times are corrected already", "give the plan as the server printed it")
            }
            Unusable::NoExecutionTime => Error::new(
                "the plan has no Execution Time",
                "the plan is truncated, or was taken with SUMMARY OFF; from a log, include the line \"duration: ... plan:\"",
            ),
            Unusable::NoPlanAfterAnnouncement => {
                Error::new("no readable plan follows the log line \"duration: ... plan:\"", "include all of its lines")
            }
            Unusable::NotANodeLine(line) => Error::new(
                format!("the input has figures of plan nodes, but no line of a node; the first one is: {line}"),
                "remove what is before and after each line of the plan",
            ),
            Unusable::RootMissing => Error::new(
                "the beginning of the plan is missing",
                "include the first line, which names the topmost node and has no arrow",
            ),
            Unusable::NodeLineIncomplete => Error::new(
                "a line of the plan is truncated or wrapped",
                "give the plan with one line per node (psql: \\pset format aligned)",
            ),
            Unusable::LostIndentation(why) => Error::new(
                format!("the plan has lost its indentation, and its kinds of nodes do not show the tree: {why}"),
                COPY_IT_AGAIN,
            ),
            Unusable::TooDeep => Error::new(
                "the plan is nested too deeply",
                format!("pg_timing reads up to {MAX_DEPTH} levels of nodes in text format, and fewer in the others"),
            ),
            Unusable::TooManyNodes => Error::new(
                format!("the plan has more than {} nodes, more than any real plan", count(MAX_NODES as u64)),
                SUPPORTED,
            ),
            Unusable::InvalidSyntax(format, why) => {
                Error::new(format!("the plan's {format} is incomplete or damaged: {why}"), SUPPORTED)
            }
            Unusable::EndMissing => Error::new(
                "the end of the plan is missing: the log or its entry is truncated, or the log was rotated within the plan",
                "include all of the plan's lines; join the files of one log (cat FILE FILE), and give that",
            ),
            Unusable::LogStartsInPlan => Error::new(
                "the log begins in the middle of a plan",
                "join the file before it and this one (cat FILE FILE), and give that",
            ),
            Unusable::LinesMixed => Error::new(
                "a part of the plan is lost, or lines of something else are within it",
                "set logging_collector = on, which writes whole entries; for syslog, set syslog_split_messages = off",
            ),
            Unusable::TooLong => Error::new(
                "the plan is longer than 8 MB",
                "no real plan is that long, except over many thousand partitions",
            ),
            Unusable::Impossible(what, hint) => Error::new(what, hint),
            Unusable::Clock(error) => error,
        }
    }
}

/// Returns the plan if its nodes were executed and timed. Sets its execution time if that is missing.
pub fn executed(mut explained: Explained) -> Found {
    if explained.time_correction.is_some() {
        return Err(Unusable::Corrected);
    }
    let root = &explained.root;
    if root.loops.is_none() || root.rows.is_none() {
        return Err(Unusable::NotExecuted);
    }
    let Some(loop_ms) = root.total_ms else { return Err(Unusable::NotTimed) };
    let loops = root.loops.unwrap_or_default();
    if explained.execution_ms.is_none() {
        // The root's time replaces it: it is the time of all nodes. But a sampled time is only an estimate.
        if loops == 0.0 || explained.uses_fast_timing() {
            return Err(Unusable::NoExecutionTime);
        }
        explained.notes.push(
            "the plan has no Execution Time, so its topmost node's time is used. It excludes triggers, and the start and end of \
             the execution. If lines are missing, the calls of their nodes are missing, too"
                .into(),
        );
        // The calls of triggers, and of SERIALIZE, are not within the root's time.
        (explained.triggers, explained.serialization) = (Vec::new(), None);
        explained.execution_ms = Some(loop_ms * loops);
    }
    Ok(explained)
}

/// No run takes 30 years (in ms), and no table has that many rows.
pub const MAX_FIGURE: f64 = 1e12;
/// A call takes at least 1 ns, so 30 years are not enough for more calls.
const MAX_CALLS: f64 = 1e18;

/// Returns an error for a figure that is negative, not a number, or beyond any real run.
pub fn check_figure(value: Option<f64>, most: f64, name: impl Fn() -> String) -> Result<(), Unusable> {
    match value {
        // The Debug format prints 1e300 with an exponent and not with 300 digits.
        Some(value) if !(0.0..=most).contains(&value) => Err(Unusable::Impossible(
            format!("the plan has an impossible figure: {} is {value:?}", name()),
            FAULTY_CLOCK,
        )),
        _ => Ok(()),
    }
}

fn wrong_inputs(many_or_few: &str, node: &Node) -> Unusable {
    let what = format!("the plan has lost lines or its indentation: {} has too {many_or_few} inputs", node.title());
    Unusable::Impossible(what, COPY_IT_AGAIN)
}

/// Returns whether an Append has more rows than its inputs: lines of the plan are missing. Each of its rows comes from an
/// input. A node of an extension may count its rows in another way.
fn lacks_rows(nodes: &[PlanNode], index: usize) -> bool {
    let node = &nodes[index];
    let below = std::iter::successors(Some(index + 1), |child| Some(nodes.get(*child)?.end));
    let children = below.take_while(|child| *child < node.end).map(|child| &nodes[child].printed);
    let inputs: Vec<&Node> = children.filter(|child| child.subplan.is_none()).collect();
    let rows = inputs.iter().map(|input| input.all_rows());
    let (sum, rounding) = rows.fold((0.0, 0.0), |sum, rows| (sum.0 + rows.per_loop, sum.1 + rows.rounding));
    let own = node.printed.all_rows();
    inputs.iter().all(|input| is_known(&input.kind)) && own.per_loop > sum + rounding + own.rounding
}

/// Checks each figure that EXPLAIN printed, that no node has too few or too many inputs, that the root fits into the Execution
/// Time, and that a node's inputs together take no longer than the node.
///
/// Otherwise the plan has lost its indentation, is truncated, mixes lines of two plans, or the clock ran backwards. Nodes of
/// extensions and of forks of PostgreSQL run their inputs in other ways, also in parallel: a plan with such nodes can
/// have any inputs and any times within them.
pub fn check_run(plan: &Plan) -> Result<(), Unusable> {
    let nodes = &plan.nodes;
    let is_postgresql = nodes.iter().all(|node| is_known(&node.printed.kind));
    for (name, value) in [
        ("Execution Time", Some(plan.execution_ms)),
        ("Planning Time", plan.planning_ms),
        ("Calls of a trigger", Some(plan.other_calls)),
    ] {
        check_figure(value, MAX_FIGURE, || name.into())?;
    }
    for (index, PlanNode { printed, inputs, reported_ms, all_calls, .. }) in nodes.iter().enumerate() {
        for (name, value) in [
            ("Actual Total Time", printed.total_ms),
            ("Actual Rows", printed.rows.map(|rows| rows.per_loop)),
            ("Actual Loops", printed.loops),
        ] {
            check_figure(value, MAX_FIGURE, || format!("{name} of {}", printed.title()))?;
        }
        // Each figure is possible, but their product may not be.
        check_figure(*reported_ms, MAX_FIGURE, || format!("the time of {} in all loops", printed.title()))?;
        check_figure(Some(all_calls.high), MAX_CALLS, || format!("the calls of {}", printed.title()))?;
        let (least, most) = inputs_of(&printed.kind).unwrap_or((0, usize::MAX));
        if *inputs < least || is_append(&printed.kind) && lacks_rows(nodes, index) {
            return Err(wrong_inputs("few", printed));
        }
        if is_postgresql && *inputs > most {
            return Err(wrong_inputs("many", printed));
        }
    }
    // Sampled times of parent and child have independent errors.
    if plan.uses_fast_timing {
        return Ok(());
    }
    let (root_ms, execution_ms) = (nodes[0].reported_or_zero_ms(), plan.execution_ms);
    if root_ms > with_tolerance(execution_ms, nodes[0].rounding_ms) {
        let what = format!("the plan's root took {root_ms} ms, but its Execution Time is {execution_ms} ms");
        return Err(Unusable::Impossible(what, TWO_RUNS));
    }
    if is_postgresql { check_inputs(nodes) } else { Ok(()) }
}

/// Checks that no node took less time than its inputs.
fn check_inputs(nodes: &[PlanNode]) -> Result<(), Unusable> {
    for (parent, callees) in nodes.iter().zip(callees(nodes)) {
        // The times of a parent and its input are comparable if the same processes ran both. Workers run while the leader is elsewhere.
        if parent.printed.is_gather() {
            continue;
        }
        let inputs = || {
            let inputs = callees.iter().map(|&(input, _)| &nodes[input]);
            inputs.filter(|input| input.printed.subplan.is_none() && input.processes == parent.processes)
        };
        let inputs_ms: f64 = inputs().map(PlanNode::reported_or_zero_ms).sum();
        let rounding: f64 = inputs().map(|input| input.rounding_ms).sum();
        let ms = parent.reported_or_zero_ms();
        if inputs_ms > with_tolerance(ms, parent.rounding_ms + rounding) {
            return Err(Unusable::Impossible(
                format!("{} took {ms} ms, but its inputs took {inputs_ms} ms", parent.printed.title()),
                "the plan's lines have lost their indentation, or the server's clock ran backwards",
            ));
        }
    }
    Ok(())
}

/// Returns the longest time that still counts as equal to `ms`: times are rounded, and NTP may adjust the clock
/// meanwhile.
pub fn with_tolerance(ms: f64, rounding: f64) -> f64 {
    ms * 1.01 + rounding + 0.01
}
