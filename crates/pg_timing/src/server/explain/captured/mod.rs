//! Estimates the overhead in a captured plan. Nothing is run: the cost of a timed call follows from the read cost of the
//! server's clock, or from the statement's time without EXPLAIN.

mod cost;
mod csv_log;
mod errors;
mod extract;
mod frame;
mod host_report;
mod json_values;
mod node_line;
mod prefix;
#[cfg(test)]
mod proptests;
mod select;
#[cfg(test)]
mod tests;
mod text;
mod unreadable;

pub use host_report::HostReport;

use super::attribution::{Charge, attribute};
use super::plan::validate::check_run;
use super::plan::{Explained, Plan};
use crate::error::Error;
use crate::report::{Capture, ExplainReport, ExplainedNode, Range};
use crate::statistics::RUN_TO_RUN_VARIATION;
use select::{Selected, last_usable_plan};

/// The clock of the plan's server.
#[derive(Clone, Debug)]
pub struct ServerClock {
    pub read_ns: f64,
    /// read cost of the system clock, if known: it shows how fast the processor is
    pub system_read_ns: Option<f64>,
    /// relative run-to-run variation on the server's host, 0 if unknown
    pub run_variation: f64,
    /// what the user should know about this figure
    pub note: Option<String>,
}

/// Returns the clock that timed a plan; the plan's settings select it.
pub type ClockOf<'a> = dyn Fn(&Explained) -> Result<ServerClock, Error> + 'a;

/// What the user knows about the plan's server.
pub struct Inputs<'a> {
    pub clock: Option<&'a ClockOf<'a>>,
    /// the statement's time without EXPLAIN
    pub plain_ms: Option<f64>,
}

/// Estimates the time without overhead of the last plan in a text.
pub fn captured(text: &str, inputs: &Inputs) -> Result<ExplainReport, Error> {
    let Selected { explained, execution_ms: reported, plans, taken, notes: selection_notes } = last_usable_plan(text)?;
    let clock = match inputs.clock {
        Some(_) if explained.uses_fast_timing() => return Err(errors::timed_by_fast_timing()),
        Some(clock_of) => Some(clock_of(&explained)?),
        None => None,
    };
    let buffers_counted = cost::counts_buffers(&explained);
    let plan = Plan::new(explained, reported);
    check_run(&plan).map_err(|why| errors::impossible(&why))?;
    let calls = plan.total_calls();
    let counting_ns = cost::counting_ns(buffers_counted, clock.as_ref().and_then(|clock| clock.system_read_ns));
    let expected = clock.as_ref().map(|clock| ExpectedCall::new(clock.read_ns, counting_ns));
    if let (Some(clock), Some(expected)) = (&clock, &expected)
        && calls.low * expected.clock_ns.low * MS_PER_NS > reported
    {
        return Err(errors::read_cost_too_high(calls.low, clock.read_ns, expected.clock_ns.low, reported));
    }
    let run_variation = clock.as_ref().map_or(0.0, |clock| clock.run_variation).max(RUN_TO_RUN_VARIATION);
    // The user gave the baseline from another run, or it is computed for this run.
    let baseline = match (inputs.plain_ms, &expected) {
        (Some(plain), _) => given_baseline(plain, run_variation, &plan)?,
        (None, Some(expected)) => computed_baseline(&plan, expected),
        (None, None) => return Err(errors::unknown_clock()),
    };
    let clock_ms = clock_ms(&plan, &baseline, expected.as_ref(), counting_ns);
    let unexplained = expected.as_ref().map_or(0.0, |expected| unexplained_ms(&plan, &baseline, expected));
    let charge = charge(&plan, &baseline, clock_ms, unexplained, inputs.plain_ms.is_some());
    let for_any_run = |range: Range| match inputs.plain_ms {
        Some(_) => range,
        None => widen_by_run_variation(range, run_variation),
    };
    let mut notes = selection_notes;
    notes.extend(self::notes(&plan, clock.as_ref(), buffers_counted));
    let nodes = attribute(std::slice::from_ref(&plan), calls.estimate, &charge, None);
    Ok(ExplainReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        settings: plan.settings,
        statement: plan.query,
        runs: None,
        capture: Some(Capture {
            plans,
            taken,
            calls,
            read_ns: clock.map(|clock| clock.read_ns),
            expected_call_ns: expected.map(|expected| expected.call_ns),
            given_plain_ms: inputs.plain_ms,
            implied_call_ns: inputs
                .plain_ms
                .map(|_| (reported - baseline.estimate).max(0.0) / calls.estimate.max(1.0) / MS_PER_NS),
            clock_share: clock_ms.times(1.0 / reported.max(f64::MIN_POSITIVE)),
            runs_differ: run_variation,
        }),
        reported_ms: reported,
        corrected_ms: for_any_run(baseline),
        clock_share: if reported > 0.0 { clock_ms.estimate / reported } else { 0.0 },
        unexplained_share: if reported > 0.0 { unexplained / reported } else { 0.0 },
        notes,
        nodes: nodes
            .into_iter()
            .map(|node| ExplainedNode {
                corrected_ms: for_any_run(node.corrected_ms),
                self_ms: for_any_run(node.self_ms),
                ..node
            })
            .collect(),
    })
}

const MS_PER_NS: f64 = 1e-6;

/// What one call is expected to cost, from the read cost.
struct ExpectedCall {
    /// clock reads
    clock_ns: Range,
    /// clock reads, row counting and buffer counting
    call_ns: Range,
}

impl ExpectedCall {
    fn new(read_ns: f64, counting_ns: Range) -> ExpectedCall {
        let clock_ns = cost::clock_reads_ns(read_ns);
        ExpectedCall { clock_ns, call_ns: clock_ns + counting_ns }
    }
}

/// Returns the baseline that the user gave, with the run-to-run variation.
///
/// psql's \timing includes planning, and the execution time does not. But a prepared statement may have been planned
/// before. If planning exceeds the variation, both are possible.
fn given_baseline(plain: f64, run_variation: f64, plan: &Plan) -> Result<Range, Error> {
    let planning = plan.planning_ms.unwrap_or(0.0);
    // A shorter time cannot include planning.
    let least = if planning < plain { plain - planning } else { plain };
    let (low, high) = (least * (1.0 - run_variation), plain / (1.0 - run_variation));
    if low > plan.execution_ms {
        return Err(errors::plain_time_too_long(plain, plan.execution_ms));
    }
    match planning < plain && planning > run_variation * plain {
        true => Ok(Range::between(low, high)),
        false => Ok(Range { low, estimate: least, high }),
    }
}

/// Returns the bounds of this run's time without timing, from the expected cost of its calls.
fn computed_baseline(plan: &Plan, expected: &ExpectedCall) -> Range {
    let most = max_overhead_ms(plan, expected);
    let least = plan.total_calls().low * expected.clock_ns.low * MS_PER_NS;
    Range::between((plan.execution_ms - most).max(0.0), (plan.execution_ms - least).max(0.0))
}

/// Returns the most that all calls can cost. Parallel workers that share a CPU wait for each other's timing.
fn max_overhead_ms(plan: &Plan, expected: &ExpectedCall) -> f64 {
    plan.max_calls_of_all_processes() * expected.call_ns.high * MS_PER_NS
}

/// Returns the overhead that the calls cannot explain. The given baseline may be from a faster run.
fn unexplained_ms(plan: &Plan, baseline: &Range, expected: &ExpectedCall) -> f64 {
    (plan.execution_ms - baseline.estimate - max_overhead_ms(plan, expected)).max(0.0)
}

/// Returns the bounds for any run of the statement: this run may have been faster or slower than usual.
fn widen_by_run_variation(range: Range, run_variation: f64) -> Range {
    Range { low: range.low * (1.0 - run_variation), estimate: range.estimate, high: range.high / (1.0 - run_variation) }
}

/// Returns the bounds of the time of all clock reads: at most the whole overhead, and at most what the reads can cost.
fn clock_ms(plan: &Plan, baseline: &Range, expected: Option<&ExpectedCall>, counting_ns: Range) -> Range {
    let calls = plan.total_calls();
    let max_counting = calls.high * counting_ns.high * MS_PER_NS;
    let mut low = (plan.execution_ms - baseline.high - max_counting).max(0.0);
    let mut high = (plan.execution_ms - baseline.low).max(0.0);
    if let Some(expected) = expected {
        high = high.min(plan.max_calls_of_all_processes() * expected.clock_ns.high * MS_PER_NS);
        // More overhead than the reads can cost is not the clock, so it does not raise the lower bound.
        let least = calls.low * expected.clock_ns.low * MS_PER_NS;
        low = if low <= high { low.max(least) } else { least };
    }
    Range::between(low.min(high), high)
}

fn charge(plan: &Plan, baseline: &Range, clock_ms: Range, unexplained: f64, baseline_is_given: bool) -> Charge {
    let calls = plan.total_calls().estimate.max(1.0);
    let margin = baseline.high - baseline.estimate;
    // The bounds of the read cost hold for each node's calls. The margin of a given baseline holds for the whole plan.
    let (plan_margin, per_call_bound) = if baseline_is_given { (margin, 0.0) } else { (0.0, margin / calls) };
    Charge {
        reported: plan.execution_ms,
        baseline_margin: plan_margin,
        per_call: (plan.execution_ms - baseline.estimate - unexplained).max(0.0) / calls,
        per_call_bound,
        calls_margin: plan_margin,
        unexplained,
        clock_per_call: clock_ms.estimate / calls,
    }
}

fn notes(plan: &Plan, clock: Option<&ServerClock>, buffers_counted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(clock.and_then(|clock| clock.note.clone()));
    if buffers_counted {
        notes.push("BUFFERS was on: buffer counting costs a few ns per call, in addition to the clock reads".into());
    }
    if plan.uses_jit {
        notes.push("JIT compilation ran; all figures include its time".into());
    }
    if plan.any(|node| node.io_ms.is_some()) {
        notes.push(
            "track_io_timing was on: it reads the clock for each block read or written; that overhead is not included"
                .into(),
        );
    }
    notes
}
