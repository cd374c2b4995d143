//! Estimates the overhead in a captured plan. Nothing is run: the cost of a timed call comes from the report of the
//! server's host, from the read cost of its clock, or from the statement's time without EXPLAIN.

mod csv_log;
mod errors;
mod expected;
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

use super::attribution::{Charge, attribute, unmeasured_kinds};
use super::plan::validate::check_run;
use super::plan::{Explained, Plan};
use crate::error::Error;
use crate::report::{CallCost, Capture, ExplainReport, MS_PER_NS, Range};
use crate::statistics::RUN_TO_RUN_VARIATION;
use expected::Expected;
use select::{Selected, last_usable_plan};

/// The clock of the plan's server.
#[derive(Clone, Debug)]
pub struct ServerClock {
    pub read_ns: f64,
    /// what timing adds to a call of a small function, if it was measured
    pub timed_call_ns: Option<f64>,
    /// read cost of the system clock, if known: it shows how fast the processor is
    pub system_read_ns: Option<f64>,
    /// number of CPUs of the server's host, if known
    pub cpus: Option<usize>,
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
    let buffers_counted = explained.plan.any(&|node| node.buffers.is_some());
    let plan = Plan::new(explained, reported);
    check_run(&plan).map_err(|why| errors::impossible(&why))?;
    let calls = plan.total_calls();
    let cost = clock
        .as_ref()
        .map(|clock| CallCost::new(clock.read_ns, clock.timed_call_ns, clock.system_read_ns, buffers_counted));
    let expected = match (&clock, &cost) {
        (Some(clock), Some(cost)) => {
            let expected = Expected::of(&plan, cost, clock.cpus.map(|cpus| cpus as f64));
            if expected.least_clock > reported {
                return Err(errors::read_cost_too_high(calls.low, clock.read_ns, expected.least_clock, reported));
            }
            Some(expected)
        }
        _ => None,
    };
    // The user gave the baseline from another run, or it is computed for this run.
    let (baseline, may_include_planning) = match (inputs.plain_ms, &expected) {
        (Some(plain), _) => given_baseline(plain, &plan)?,
        (None, Some(expected)) => (computed_baseline(&plan, expected), false),
        (None, None) => return Err(errors::unknown_clock()),
    };
    let unexplained = expected.as_ref().map_or(0.0, |expected| unexplained_ms(&plan, &baseline, expected));
    let clock_ms = clock_ms(&plan, &baseline, expected.as_ref(), unexplained, buffers_counted);
    let charge = charge(&plan, &baseline, clock_ms, unexplained);
    let mut notes = selection_notes;
    notes.extend(self::notes(&plan, clock.as_ref(), buffers_counted));
    let nodes = attribute(std::slice::from_ref(&plan), calls.estimate, &charge, cost.as_ref(), None);
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
            read_ns: clock.as_ref().map(|clock| clock.read_ns),
            timed_call_ns: clock.and_then(|clock| clock.timed_call_ns),
            expected_call_ns: expected.map(|expected| expected.per_call_ns),
            given_plain_ms: inputs.plain_ms,
            plain_may_include_planning: may_include_planning,
            implied_call_ns: inputs
                .plain_ms
                .map(|_| (reported - baseline.estimate).max(0.0) / calls.estimate.max(1.0) / MS_PER_NS),
            clock_share: clock_ms.times(1.0 / reported.max(f64::MIN_POSITIVE)),
        }),
        reported_ms: reported,
        corrected_ms: baseline,
        clock_share: if reported > 0.0 { clock_ms.estimate / reported } else { 0.0 },
        unexplained_share: if reported > 0.0 { unexplained / reported } else { 0.0 },
        notes,
        nodes,
    })
}

/// Returns the baseline that the user gave, with the run-to-run variation, and whether its interval allows for planning.
///
/// psql's \timing includes planning, and the execution time does not. But a prepared statement may have been planned
/// before. If planning exceeds the variation, both are possible.
fn given_baseline(plain: f64, plan: &Plan) -> Result<(Range, bool), Error> {
    let planning = plan.planning_ms.unwrap_or(0.0);
    // A shorter time cannot include planning.
    let least = if planning < plain { plain - planning } else { plain };
    let (low, high) = (least * (1.0 - RUN_TO_RUN_VARIATION), plain / (1.0 - RUN_TO_RUN_VARIATION));
    if low > plan.execution_ms {
        return Err(errors::plain_time_too_long(plain, plan.execution_ms));
    }
    let may_include_planning = planning < plain && planning > RUN_TO_RUN_VARIATION * plain;
    let baseline = match may_include_planning {
        true => Range::between(low, high),
        false => Range { low, estimate: least, high },
    };
    Ok((baseline, may_include_planning))
}

/// Returns this run's time without its timing.
fn computed_baseline(plan: &Plan, expected: &Expected) -> Range {
    let without = |overhead: f64| (plan.execution_ms - overhead).max(0.0);
    let Range { low, estimate, high } = expected.overhead;
    Range { low: without(high), estimate: without(estimate), high: without(low) }
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
    let calls = plan.total_calls();
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

fn charge(plan: &Plan, baseline: &Range, clock_ms: Range, unexplained: f64) -> Charge {
    let calls = plan.total_calls().estimate.max(1.0);
    let margin = baseline.half_width();
    Charge {
        reported: plan.execution_ms,
        whole: *baseline,
        baseline_margin: margin,
        per_call: (plan.execution_ms - baseline.estimate - unexplained).max(0.0) / calls,
        calls_margin: margin,
        unexplained,
        clock_per_call: clock_ms.estimate / calls,
        of_any_session: 0.0,
    }
}

fn notes(plan: &Plan, clock: Option<&ServerClock>, buffers_counted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(clock.and_then(|clock| clock.note.clone()));
    notes.extend(clock.and_then(|_| unmeasured_kinds(plan)));
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
