//! The overhead of one captured plan.

use super::expected::Expected;
use super::{Inputs, ServerClock, errors};
use crate::error::Error;
use crate::report::{CallCost, Capture, ExplainReport, ExplainedNode, MS_PER_NS, Range};
use crate::server::explain::attribution::{Charge, attribute, unmeasured_kinds};
use crate::server::explain::plan::validate::check_run;
use crate::server::explain::plan::{Explained, Plan};
use crate::statistics::RUN_TO_RUN_VARIATION;

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
    given_plain_ms: Option<f64>,
    plain_may_include_planning: bool,
    counts_buffers: bool,
}

impl Analysis {
    /// Estimates the overhead of a plan that took `reported_ms`.
    pub fn of(explained: Explained, reported_ms: f64, inputs: &Inputs) -> Result<Analysis, Error> {
        let clock = match inputs.clock {
            Some(_) if explained.uses_fast_timing() => return Err(errors::timed_by_fast_timing()),
            Some(clock_of) => Some(clock_of(&explained)?),
            None => None,
        };
        let counts_buffers = explained.plan.any(&|node| node.buffers.is_some());
        let plan = Plan::new(explained, reported_ms);
        check_run(&plan).map_err(|why| errors::impossible(&why))?;
        let cost = clock
            .as_ref()
            .map(|clock| CallCost::new(clock.read_ns, clock.timed_call_ns, clock.system_read_ns, counts_buffers));
        let expected = match (&clock, &cost) {
            (Some(clock), Some(cost)) => Some(expected(&plan, clock, cost)?),
            _ => None,
        };
        // The user gave the baseline from another run, or it is computed for this run.
        let (corrected_ms, plain_may_include_planning) = match (inputs.plain_ms, &expected) {
            (Some(plain), _) => given_baseline(plain, &plan)?,
            (None, Some(expected)) => (computed_baseline(&plan, expected), false),
            (None, None) => return Err(errors::unknown_clock(false)),
        };
        let unexplained_ms = expected.as_ref().map_or(0.0, |expected| unexplained_ms(&plan, &corrected_ms, expected));
        let clock_ms = clock_ms(&plan, &corrected_ms, expected.as_ref(), unexplained_ms, counts_buffers);
        let given_plain_ms = inputs.plain_ms;
        Ok(Analysis {
            plan,
            corrected_ms,
            clock_ms,
            unexplained_ms,
            clock,
            cost,
            expected,
            given_plain_ms,
            plain_may_include_planning,
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
        let charge = charge(&self.plan, &self.corrected_ms, self.clock_ms, self.unexplained_ms);
        let calls = self.plan.total_calls().estimate;
        attribute(std::slice::from_ref(&self.plan), calls, &charge, self.cost.as_ref(), None)
    }

    /// Returns the report of plan number `taken` of `plans`.
    pub fn report(self, plans: usize, taken: usize, selection_notes: Vec<String>) -> ExplainReport {
        let nodes = self.nodes();
        let mut notes = selection_notes;
        notes.extend(notes_on(&self.plan, self.clock.as_ref(), self.counts_buffers));
        let reported = self.plan.execution_ms;
        let share = |ms: f64| if reported > 0.0 { ms / reported } else { 0.0 };
        let calls = self.plan.total_calls();
        let overhead_ms = (reported - self.corrected_ms.estimate).max(0.0);
        ExplainReport {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            settings: self.plan.settings,
            statement: self.plan.query,
            runs: None,
            capture: Some(Capture {
                plans,
                taken,
                place: None,
                is_nested: false,
                calls,
                read_ns: self.clock.as_ref().map(|clock| clock.read_ns),
                timed_call_ns: self.clock.and_then(|clock| clock.timed_call_ns),
                expected_call_ns: self.expected.map(|expected| expected.per_call_ns),
                given_plain_ms: self.given_plain_ms,
                plain_may_include_planning: self.plain_may_include_planning,
                implied_call_ns: self.given_plain_ms.map(|_| overhead_ms / calls.estimate.max(1.0) / MS_PER_NS),
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
        }
    }
}

/// Returns reported / corrected. `None` if the corrected time could be 0.
fn factor(reported_ms: f64, corrected_ms: Range) -> Option<Range> {
    let Range { low, estimate, high } = corrected_ms;
    (low > 0.0).then(|| Range { low: reported_ms / high, estimate: reported_ms / estimate, high: reported_ms / low })
}

/// Returns the overhead that the cost of a call predicts.
fn expected(plan: &Plan, clock: &ServerClock, cost: &CallCost) -> Result<Expected, Error> {
    let expected = Expected::of(plan, cost, clock.cpus.map(|cpus| cpus as f64));
    match expected.least_clock > plan.execution_ms {
        true => Err(errors::read_cost_too_high(
            plan.total_calls().low,
            clock.read_ns,
            expected.least_clock,
            plan.execution_ms,
        )),
        false => Ok(expected),
    }
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

/// Returns what the user should know about the figures.
fn notes_on(plan: &Plan, clock: Option<&ServerClock>, buffers_counted: bool) -> Vec<String> {
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
