//! The overhead of one captured plan. Nothing is run: the cost of a timed call comes from the report of the server's host,
//! from the read cost of its clock, or from the statement's time without EXPLAIN.

mod expected;

use super::attribution::{Charge, attribute};
use super::errors;
use super::server_clock::{ClockOf, ServerClock};
use super::tree::Explained;
use super::validate::{Selected, check_run};
use super::{Node, Plan, PlanNode};
use crate::error::Error;
use crate::report::{CallCost, Capture, ExplainReport, ExplainedNode, MS_PER_NS, PlanFormat, Range};
use crate::statistics::RUN_TO_RUN_VARIATION;
use expected::Expected;
use std::collections::BTreeSet;

/// What the user knows about the plan's server.
pub struct Inputs<'a> {
    pub clock: Option<&'a ClockOf<'a>>,
    /// the statement's time without EXPLAIN
    pub plain_ms: Option<f64>,
    /// the report must contain the plan, for this format
    pub document: Option<PlanFormat>,
}

/// Estimates the time without overhead of a plan.
pub fn report(selected: Selected, inputs: &Inputs) -> Result<ExplainReport, Error> {
    let Selected { explained, execution_ms, plans, taken, source, notes } = selected;
    let report = Analysis::of(explained, execution_ms, inputs)?.report(plans, taken, notes);
    Ok(ExplainReport { document: source.filter(|_| inputs.document.is_some()), ..report })
}

/// A plan, and the parts of its time.
pub struct Analysis {
    pub plan: Plan,
    /// this run's time without its timing
    pub corrected_ms: Range,
    /// time of the clock reads
    pub clock_ms: Range,
    unexplained_ms: f64,
    clock: Option<ServerClock>,
    cost: Option<CallCost>,
    expected: Option<Expected>,
    given: Option<Given>,
    is_contradiction: bool,
    counts_buffers: bool,
}

/// The statement's time without EXPLAIN, as the user gave it.
struct Given {
    plain_ms: f64,
    baseline: Range,
    may_include_planning: bool,
}

impl Analysis {
    /// Estimates the overhead of a plan that took `reported_ms`.
    pub fn of(explained: Explained, reported_ms: f64, inputs: &Inputs) -> Result<Analysis, Error> {
        let clock = match inputs.clock {
            Some(_) if explained.uses_fast_timing() => return Err(errors::timed_by_fast_timing()),
            Some(clock_of) => Some(clock_of(&explained)?),
            None => None,
        };
        let counts_buffers = explained.plan.any(&|node| node.has_buffers);
        let plan = Plan::new(explained, reported_ms);
        check_run(&plan)?;
        let cost = clock
            .as_ref()
            .map(|clock| CallCost::new(clock.read_ns, clock.timed_call_ns, clock.system_read_ns, counts_buffers));
        let expected = match (&clock, &cost) {
            (Some(clock), Some(cost)) => Some(expected(&plan, clock, cost)?),
            _ => None,
        };
        let given = inputs.plain_ms.map(|plain_ms| Given::of(plain_ms, &plan)).transpose()?;
        let computed = expected.as_ref().map(|expected| computed_baseline(&plan, expected));
        let (corrected_ms, is_contradiction) = match (given.as_ref().map(|given| given.baseline), computed) {
            (Some(given), Some(computed)) => both(given, computed),
            (Some(one), None) | (None, Some(one)) => (one, false),
            (None, None) => return Err(errors::unknown_clock(false)),
        };
        let unexplained_ms = expected.as_ref().map_or(0.0, |expected| unexplained_ms(&plan, &corrected_ms, expected));
        let clock_ms = clock_ms(&plan, &corrected_ms, expected.as_ref(), unexplained_ms, counts_buffers);
        Ok(Analysis {
            plan,
            corrected_ms,
            clock_ms,
            unexplained_ms,
            clock,
            cost,
            expected,
            given,
            is_contradiction,
            counts_buffers,
        })
    }

    /// Returns the relative error that the overhead of all plans of the server has in common.
    pub fn common_error(&self) -> f64 {
        self.cost.as_ref().map_or(0.0, CallCost::common_error)
    }

    /// Returns what the user should know about the clock.
    pub fn clock_note(&self) -> Option<&str> {
        self.clock.as_ref()?.note.as_deref()
    }

    /// Returns every node with its corrected time, in the order of the tree.
    pub fn nodes(&self) -> Vec<ExplainedNode> {
        let charge = Charge {
            reported: self.plan.execution_ms,
            whole: self.corrected_ms,
            calls: self.plan.calls_per_process().estimate,
            clock: self.clock_ms.estimate,
            unexplained: self.unexplained_ms,
        };
        attribute(std::slice::from_ref(&self.plan), &charge)
    }

    /// Returns the report of plan number `taken` of `plans`.
    pub fn report(self, plans: usize, taken: usize, selection_notes: Vec<String>) -> ExplainReport {
        let nodes = self.nodes();
        let notes = selection_notes.into_iter().chain(self.notes()).collect();
        let reported = self.plan.execution_ms;
        let share = |ms: f64| if reported > 0.0 { ms / reported } else { 0.0 };
        let overhead_ms = (reported - self.corrected_ms.estimate).max(0.0);
        let per_call_ns = overhead_ms / self.plan.calls_per_process().estimate.max(1.0) / MS_PER_NS;
        ExplainReport {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            statement: self.plan.query.clone(),
            runs: None,
            capture: Some(Capture {
                plans,
                taken,
                place: None,
                is_nested: false,
                calls: self.plan.all_calls(),
                read_ns: self.clock.as_ref().map(|clock| clock.read_ns),
                timed_call_ns: self.clock.and_then(|clock| clock.timed_call_ns),
                expected_call_ns: self.expected.map(|expected| expected.per_call_ns),
                given_plain_ms: self.given.as_ref().map(|given| given.plain_ms),
                plain_may_include_planning: self.given.as_ref().is_some_and(|given| given.may_include_planning),
                inputs_contradict: self.is_contradiction,
                implied_call_ns: self.given.map(|_| per_call_ns),
                clock_share: self.clock_ms.times(1.0 / reported.max(f64::MIN_POSITIVE)),
            }),
            reported_ms: reported,
            corrected_ms: self.corrected_ms,
            overhead_factor: factor(reported, self.corrected_ms),
            overhead_share: share(overhead_ms),
            clock_share: share(self.clock_ms.estimate),
            unexplained_share: share(self.unexplained_ms),
            notes,
            nodes,
            document: None,
            settings: self.plan.settings,
        }
    }

    /// Returns what the user should know about the figures.
    fn notes(&self) -> Vec<String> {
        let plan = &self.plan;
        let mut notes: Vec<String> = self.clock.iter().filter_map(|clock| clock.note.clone()).collect();
        notes.extend(other_nodes(plan));
        let hidden: u32 = plan.nodes.iter().filter_map(|node| node.node.hidden_tasks).sum();
        if hidden > 0 {
            notes.push(format!(
                "Citus does not show all tasks: {hidden} tasks are not in the plan, and neither are their calls"
            ));
        }
        if self.counts_buffers {
            notes
                .push("BUFFERS was on: buffer counting costs a few ns per call, in addition to the clock reads".into());
        }
        if plan.uses_jit {
            notes.push("JIT compilation ran; all figures include its time".into());
        }
        if plan.any(|node| node.has_io_times) {
            let why = "it reads the clock for each block read or written; that overhead is not included";
            notes.push(format!("track_io_timing was on: {why}"));
        }
        notes
    }
}

/// Returns a note about nodes whose rows may not be calls. It names the topmost of them.
fn other_nodes(plan: &Plan) -> Option<String> {
    const MAX_NAMED: usize = 3;
    let is_above = |node: &&PlanNode| !node.rows_are_calls && !super::tree::is_known(&node.node.kind);
    let names: BTreeSet<&str> = plan.nodes.iter().filter(is_above).map(|node| short_name(&node.node)).collect();
    let more = if names.len() > MAX_NAMED { " and others" } else { "" };
    let named = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| {
        format!("rows of {named}{more}, and of the nodes below, may not be calls: the overhead of these nodes can be 0")
    })
}

/// Returns the name of an extension's node, or the kind of a node of PostgreSQL's relatives.
fn short_name(node: &Node) -> &str {
    if node.kind == "Custom Scan" { node.name.split(" on ").next().unwrap_or_default() } else { &node.kind }
}

/// Returns reported / corrected. `None` if the corrected time could be 0.
fn factor(reported_ms: f64, corrected_ms: Range) -> Option<Range> {
    let Range { low, estimate, high } = corrected_ms;
    (low > 0.0).then(|| Range { low: reported_ms / high, estimate: reported_ms / estimate, high: reported_ms / low })
}

/// Returns the overhead that the cost of a call predicts.
fn expected(plan: &Plan, clock: &ServerClock, cost: &CallCost) -> Result<Expected, Error> {
    let expected = Expected::of(plan, cost, clock);
    match expected.least_clock > plan.execution_ms {
        true => {
            let calls = plan.calls_per_process().low;
            Err(errors::read_cost_too_high(calls, clock.read_ns, expected.least_clock, plan.execution_ms))
        }
        false => Ok(expected),
    }
}

impl Given {
    /// Returns the baseline that the user gave, with the run-to-run variation.
    ///
    /// psql's \timing includes planning, and the execution time does not. But a prepared statement may have been planned
    /// before. If planning exceeds the variation, both are possible.
    fn of(plain_ms: f64, plan: &Plan) -> Result<Given, Error> {
        let planning = plan.planning_ms.unwrap_or(0.0);
        // A shorter time cannot include planning.
        let least = if planning < plain_ms { plain_ms - planning } else { plain_ms };
        let (low, high) = (least * (1.0 - RUN_TO_RUN_VARIATION), plain_ms / (1.0 - RUN_TO_RUN_VARIATION));
        if low > plan.execution_ms {
            return Err(errors::plain_time_too_long(plain_ms, plan.execution_ms));
        }
        let may_include_planning = planning < plain_ms && planning > RUN_TO_RUN_VARIATION * plain_ms;
        // This run without its timing took no longer than with it.
        let at_most = |ms: f64| ms.min(plan.execution_ms);
        let baseline = match may_include_planning {
            true => Range::between(low, at_most(high)),
            false => Range { low, estimate: at_most(least), high: at_most(high) },
        };
        Ok(Given { plain_ms, baseline, may_include_planning })
    }
}

/// Returns this run's time without its timing.
fn computed_baseline(plan: &Plan, expected: &Expected) -> Range {
    let without = |overhead: f64| (plan.execution_ms - overhead).max(0.0);
    let Range { low, estimate, high } = expected.overhead;
    Range { low: without(high), estimate: without(estimate), high: without(low) }
}

/// Returns the baseline that the user gave, and whether it contradicts the one that the clock's cost predicts. Then its interval
/// covers both: the given time may be from a faster or slower run, or the cost from another clock.
fn both(given: Range, computed: Range) -> (Range, bool) {
    match given.low > computed.high || given.high < computed.low {
        true => (Range { low: given.low.min(computed.low), high: given.high.max(computed.high), ..given }, true),
        false => (given, false),
    }
}

/// Returns the overhead that the calls cannot explain. The given baseline may be from a faster run.
fn unexplained_ms(plan: &Plan, baseline: &Range, expected: &Expected) -> f64 {
    (plan.execution_ms - baseline.estimate - expected.overhead.high).max(0.0)
}

/// Returns the time of all clock reads. If the user gave the baseline, it is at most the whole overhead, and at most
/// the highest cost of the reads.
fn clock_ms(
    plan: &Plan,
    baseline: &Range,
    expected: Option<&Expected>,
    unexplained: f64,
    buffers_counted: bool,
) -> Range {
    let calls = plan.calls_per_process();
    let max_counting = calls.high * CallCost::max_counting_ns(buffers_counted) * MS_PER_NS;
    let mut low = (plan.execution_ms - baseline.high - max_counting).max(0.0);
    let mut high = (plan.execution_ms - baseline.low).max(0.0);
    let mut estimate = None;
    if let Some(expected) = expected {
        high = high.min(expected.clock.high);
        // Overhead beyond the highest cost of the reads is not clock time, so it does not raise the lower bound.
        low = if low <= high { low.max(expected.clock.low) } else { expected.clock.low };
        estimate = Some(expected.clock.estimate);
    }
    low = low.min(high);
    let explained = (plan.execution_ms - baseline.estimate - unexplained).max(0.0);
    let estimate = estimate.unwrap_or((low + high) / 2.0).clamp(low, high).min(explained);
    Range { low: low.min(estimate), estimate, high }
}
