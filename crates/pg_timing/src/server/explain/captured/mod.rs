//! Estimates the overhead in a captured plan. Nothing is run: the cost of a timed call follows from the read cost of the
//! server's clock, or from the statement's time without EXPLAIN.

mod cost;
mod csv_log;
mod errors;
mod extract;
mod host_report;
mod node_line;
mod prefix;
#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;
mod text;
mod validate;

pub use host_report::HostReport;

use super::attribution::{Charge, attribute};
use super::plan::{Explained, Plan};
use crate::error::Error;
use crate::report::{Capture, ExplainReport, ExplainedNode, Range};
use crate::statistics::RUN_TO_RUN_VARIATION;

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
    let (explained, plans, taken) = last_usable_plan(text)?;
    let reported = validate::execution_ms(&explained)?;
    let clock = match inputs.clock {
        Some(_) if explained.uses_fast_timing() => return Err(errors::timed_by_fast_timing()),
        Some(clock_of) => Some(clock_of(&explained)?),
        None => None,
    };
    let buffers_counted = cost::counts_buffers(&explained);
    let plan = Plan::new(explained, reported);
    validate::check_times(&plan)?;
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
    let clock_ms = clock_ms(reported, calls, &baseline, expected.as_ref(), counting_ns);
    let charge = charge(reported, calls, &baseline, clock_ms, inputs.plain_ms.is_some());
    let for_any_run = |range: Range| match inputs.plain_ms {
        Some(_) => range,
        None => widen_by_run_variation(range, run_variation),
    };
    let notes = notes(&plan, (plans, taken), clock.as_ref(), buffers_counted);
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
                .map(|plain| (reported - plain).max(0.0) / calls.estimate.max(1.0) / MS_PER_NS),
            clock_share: clock_ms.times(1.0 / reported.max(f64::MIN_POSITIVE)),
            runs_differ: run_variation,
        }),
        reported_ms: reported,
        corrected_ms: for_any_run(baseline),
        clock_share: if reported > 0.0 { clock_ms.estimate / reported } else { 0.0 },
        notes,
        nodes: nodes
            .into_iter()
            .map(|node| ExplainedNode { corrected_ms: for_any_run(node.corrected_ms), ..node })
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

/// Returns the last usable plan, the number of plans, and the plan's position from 1.
fn last_usable_plan(text: &str) -> Result<(Explained, usize, usize), Error> {
    let mut plans = extract::plans(text);
    let count = plans.len();
    let is_usable = |plan: &Result<Explained, extract::Unreadable>| {
        plan.as_ref().is_ok_and(|plan| validate::execution_ms(plan).is_ok())
    };
    match plans.iter().rposition(is_usable).or(plans.iter().rposition(Result::is_ok)) {
        Some(index) => plans
            .swap_remove(index)
            .map(|plan| (plan, count, index + 1))
            .map_err(|unreadable| errors::unreadable_plan(&unreadable)),
        None => {
            Err(plans.last().and_then(|plan| plan.as_ref().err()).map_or_else(errors::no_plan, errors::unreadable_plan))
        }
    }
}

/// Returns the baseline that the user gave, with the run-to-run variation. The lower bound excludes planning time, because
/// psql's \timing includes it.
fn given_baseline(plain: f64, run_variation: f64, plan: &Plan) -> Result<Range, Error> {
    let low = ((plain - plan.planning_ms.unwrap_or(0.0)) * (1.0 - run_variation)).max(0.0);
    if low > plan.execution_ms {
        return Err(errors::plain_time_too_long(plain, plan.execution_ms));
    }
    Ok(Range { low, estimate: plain, high: plain / (1.0 - run_variation) })
}

/// Returns the bounds of this run's time without timing, from the expected cost of its calls.
fn computed_baseline(plan: &Plan, expected: &ExpectedCall) -> Range {
    // Parallel workers that share a CPU wait for each other's timing.
    let most = plan.max_calls_of_all_processes() * expected.call_ns.high * MS_PER_NS;
    let least = plan.total_calls().low * expected.clock_ns.low * MS_PER_NS;
    Range::between((plan.execution_ms - most).max(0.0), (plan.execution_ms - least).max(0.0))
}

/// Returns the bounds for any run of the statement: this run may have been faster or slower than usual.
fn widen_by_run_variation(range: Range, run_variation: f64) -> Range {
    Range { low: range.low * (1.0 - run_variation), estimate: range.estimate, high: range.high / (1.0 - run_variation) }
}

/// Returns the bounds of the time of all clock reads: at most the whole overhead, and within the expected cost.
fn clock_ms(
    reported: f64,
    calls: Range,
    baseline: &Range,
    expected: Option<&ExpectedCall>,
    counting_ns: Range,
) -> Range {
    let max_counting = calls.high * counting_ns.high * MS_PER_NS;
    let mut low = (reported - baseline.high - max_counting).max(0.0);
    let mut high = (reported - baseline.low).max(0.0);
    if let Some(expected) = expected {
        let expected_low = calls.low * expected.clock_ns.low * MS_PER_NS;
        let expected_high = calls.high * expected.clock_ns.high * MS_PER_NS;
        // If the two intervals do not overlap, the measured one counts.
        if expected_low <= high && expected_high >= low {
            (low, high) = (low.max(expected_low), high.min(expected_high));
        }
    }
    Range::between(low, high)
}

fn charge(reported: f64, calls: Range, baseline: &Range, clock_ms: Range, baseline_is_given: bool) -> Charge {
    let calls = calls.estimate.max(1.0);
    let margin = baseline.high - baseline.estimate;
    // The bounds of the read cost hold for each node's calls. The margin of a given baseline holds for the whole plan.
    let (plan_margin, per_call_bound) = if baseline_is_given { (margin, 0.0) } else { (0.0, margin / calls) };
    Charge {
        reported,
        baseline_margin: plan_margin,
        per_call: (reported - baseline.estimate).max(0.0) / calls,
        per_call_bound,
        calls_margin: plan_margin,
        unexplained: 0.0,
        clock_per_call: clock_ms.estimate / calls,
    }
}

fn notes(
    plan: &Plan,
    (plans, number): (usize, usize),
    clock: Option<&ServerClock>,
    buffers_counted: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if plans > 1 && plans == number {
        notes.push(format!("the input has {plans} plans; this is the last one"));
    } else if plans > number {
        notes.push(format!("the input has {plans} plans; this is number {number}, the last readable one"));
    }
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
