//! The overhead of one captured plan. Nothing is run: the cost of a timed call comes from the report of the server's host,
//! from the read cost of its clock, or from the statement's time without EXPLAIN.

use super::attribution::{Charge, attribute};
use super::errors;
use super::node::workers;
use super::tree::Explained;
use super::validate::{Selected, check_run};
use super::{Node, Plan, PlanNode, callees};
use crate::error::Error;
use crate::report::compare::why_busy;
use crate::report::{
    CallCost, Capture, ClockReport, ExplainReport, ExplainedNode, MS_PER_NS, PlanFormat, Range, Report, SYSTEM,
};
use crate::statistics::RUN_TO_RUN_VARIATION;
use std::collections::BTreeSet;

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
pub type ClockOf<'a> = dyn Fn(&Explained) -> Result<ServerClock, Error> + Sync + 'a;

/// A read of the system clock takes longer on any processor that we know.
const FASTEST_SYSTEM_READ_NS: f64 = 14.0;

const TSC_SOURCE: &str = "tsc";
/// The clock of a server with `timing_clock_source` tsc: EXPLAIN reads it without a fence.
const TSC: &str = "rdtsc";
/// The counter of AArch64.
const CNTVCT: &str = "cntvct";

fn clock_source(plan: &Explained) -> Option<&str> {
    plan.settings.get("timing_clock_source").map(String::as_str)
}

impl ServerClock {
    /// Returns whether the server reads the TSC itself. The processor overlaps such a read with other work.
    pub fn is_tsc(&self) -> bool {
        self.read_ns < FASTEST_SYSTEM_READ_NS || self.system_read_ns.is_none_or(|system| system > self.read_ns)
    }

    /// Returns the clock that the server reads, with the read cost that the user gave.
    pub fn given(read_ns: f64, plan: &Explained) -> ServerClock {
        let is_system = clock_source(plan) != Some(TSC_SOURCE);
        ServerClock {
            read_ns,
            timed_call_ns: None,
            system_read_ns: is_system.then_some(read_ns),
            cpus: None,
            note: None,
        }
    }

    /// Returns the clock that the plan's server read, from the report of its host. The plan's settings select it.
    pub fn on_host(host: &Report, plan: &Explained, clock_name: Option<&str>) -> Result<ServerClock, Error> {
        if host.clocks.iter().any(|clock| clock.name == CNTVCT) {
            return Err(Error::new(
                "the host report is from an AArch64 processor, but the costs of timed calls were measured on x86-64 only",
                errors::ONLY_PLAIN_TIME,
            ));
        }
        let source = clock_source(plan);
        let name = clock_name.unwrap_or(if source == Some(TSC_SOURCE) { TSC } else { SYSTEM });
        let read_ns = host.read_cost_ns(name).ok_or_else(|| {
            Error::new(
                format!("the plan's server read {name}, but the host report has no read cost of it"),
                "give --clock NAME for another clock of the report, or --read-cost NS",
            )
        })?;
        let clock = host.clock(name);
        let timed_call_ns = clock.and_then(ClockReport::plausible_timed_call_ns);
        if let Some(call_ns) =
            clock.and_then(|clock| clock.timed_call_ns).filter(|ns| timed_call_ns.is_none() && *ns > read_ns)
        {
            return Err(Error::new(
                format!("in the host report, a read of {name} takes {read_ns} ns, but a timed call {call_ns} ns"),
                "a timed call reads the clock twice; create the report again with pg_timing --format json, or give --read-cost NS",
            ));
        }
        let may_be_tsc = clock_name.is_none() && source.is_none() && host.tsc.used_by_default == Some(true);
        let note = may_be_tsc.then(|| {
            "assumed: the server reads the system clock. PostgreSQL 19 reads the TSC on this host by default: for such a \
             server, give --clock rdtsc"
                .into()
        });
        // Load makes reads longer, so the cost is at most the reported one.
        let busy = why_busy(host)
            .map(|why| format!("the read cost in the host report is uncertain ({why}): measure it on a quiet host"));
        let notes: Vec<String> = busy.into_iter().chain(note).collect();
        let note = (!notes.is_empty()).then(|| notes.join(". "));
        // In a container, pg_timing sees the same limit as the server, except for a CPU quota.
        let cpus = [&host.cpus.online, &host.cpus.allowed];
        let cpus = cpus.into_iter().filter_map(|cpus| cpus.known().map(Vec::len)).min().filter(|cpus| *cpus > 0);
        Ok(ServerClock { read_ns, timed_call_ns, system_read_ns: host.read_cost_ns(SYSTEM), cpus, note })
    }
}

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
    expected: Option<Expected>,
    given: Option<Given>,
    is_contradiction: bool,
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
        let expected = clock.map(|clock| Expected::of(&plan, clock, counts_buffers)).transpose()?;
        let given = inputs.plain_ms.map(|plain_ms| Given::of(plain_ms, &plan)).transpose()?;
        let without = |overhead_ms: f64| (reported_ms - overhead_ms).max(0.0);
        let computed = expected.as_ref().map(|expected| {
            let Range { low, estimate, high } = expected.overhead;
            Range { low: without(high), estimate: without(estimate), high: without(low) }
        });
        let (corrected_ms, is_contradiction) = match (given.as_ref().map(|given| given.baseline), computed) {
            (Some(given), Some(computed)) => both(given, computed),
            (Some(one), None) | (None, Some(one)) => (one, false),
            (None, None) => return Err(errors::unknown_clock(false)),
        };
        // The calls cannot explain it. The given baseline may be from a faster run.
        let unexplained_ms =
            expected.as_ref().map_or(0.0, |expected| without(corrected_ms.estimate + expected.overhead.high));
        let clock_ms = clock_ms(&plan, &corrected_ms, expected.as_ref(), unexplained_ms, counts_buffers);
        Ok(Analysis { plan, corrected_ms, clock_ms, unexplained_ms, expected, given, is_contradiction })
    }

    /// Returns the relative error that the overhead of all plans of the server has in common.
    pub fn common_error(&self) -> f64 {
        self.expected.as_ref().map_or(0.0, |expected| expected.cost.common_error())
    }

    /// Returns what the user should know about the clock.
    pub fn clock_note(&self) -> Option<&str> {
        self.expected.as_ref()?.clock.note.as_deref()
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
        let report = ExplainReport::of(reported, self.corrected_ms, self.clock_ms.estimate, self.unexplained_ms);
        let per_call_ns =
            report.overhead_share * reported / self.plan.calls_per_process().estimate.max(1.0) / MS_PER_NS;
        let (given, clock) = (self.given.as_ref(), self.expected.as_ref().map(|expected| &expected.clock));
        let capture = Capture {
            plans,
            taken,
            place: None,
            is_nested: false,
            calls: self.plan.all_calls(),
            read_ns: clock.map(|clock| clock.read_ns),
            timed_call_ns: clock.and_then(|clock| clock.timed_call_ns),
            expected_call_ns: self.expected.as_ref().map(|expected| expected.per_call_ns),
            given_plain_ms: given.map(|given| given.plain_ms),
            plain_may_include_planning: given.is_some_and(|given| given.may_include_planning),
            inputs_contradict: self.is_contradiction,
            implied_call_ns: given.map(|_| per_call_ns),
            clock_share: self.clock_ms.times(1.0 / reported.max(f64::MIN_POSITIVE)),
        };
        ExplainReport {
            statement: self.plan.query,
            capture: Some(capture),
            notes,
            nodes,
            settings: self.plan.settings,
            ..report
        }
    }

    /// Returns what the user should know about the figures.
    fn notes(&self) -> Vec<String> {
        let plan = &self.plan;
        let mut notes: Vec<String> = self.clock_note().map(String::from).into_iter().collect();
        notes.extend(other_nodes(plan));
        let hidden: u32 = plan.nodes.iter().filter_map(|node| node.node.hidden_tasks).sum();
        if hidden > 0 {
            notes.push(format!(
                "Citus does not show all tasks: {hidden} tasks are not in the plan, and neither are their calls"
            ));
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

/// Returns the baseline that the user gave, and whether it contradicts the one that the clock's cost predicts. Then its interval
/// covers both: the given time may be from a faster or slower run, or the cost from another clock.
fn both(given: Range, computed: Range) -> (Range, bool) {
    match given.low > computed.high || given.high < computed.low {
        true => (Range { low: given.low.min(computed.low), high: given.high.max(computed.high), ..given }, true),
        false => (given, false),
    }
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
        high = high.min(expected.clock_ms.high);
        // Overhead beyond the highest cost of the reads is not clock time, so it does not raise the lower bound.
        low = if low <= high { low.max(expected.clock_ms.low) } else { expected.clock_ms.low };
        estimate = Some(expected.clock_ms.estimate);
    }
    low = low.min(high);
    let explained = (plan.execution_ms - baseline.estimate - unexplained).max(0.0);
    let estimate = estimate.unwrap_or((low + high) / 2.0).clamp(low, high).min(explained);
    Range { low: low.min(estimate), estimate, high }
}

/// The overhead that the cost of a timed call predicts.
struct Expected {
    clock: ServerClock,
    cost: CallCost,
    /// time of the clock reads
    clock_ms: Range,
    /// time of the clock reads, row counting and buffer counting
    overhead: Range,
    /// overhead of one call
    per_call_ns: Range,
}

/// The processor overlaps the reads of the TSC with other work. A published plan of PostgreSQL 19 shows 3.3 ns per call, where
/// two reads alone take 23: 0.14 of it. With the counting of rows it was 0.22.
const LEAST_TSC_READS: f64 = 0.2 * 2.0;

impl Expected {
    /// Returns the overhead that the calls of all processes predict, within the limits that the plan sets.
    fn of(plan: &Plan, clock: ServerClock, counts_buffers: bool) -> Result<Expected, Error> {
        let cost = CallCost::new(clock.read_ns, clock.timed_call_ns, clock.system_read_ns, counts_buffers);
        let per_process = plan.calls_per_process().low;
        let least_ms = per_process * cost.least_clock_ns() * MS_PER_NS;
        if least_ms > plan.execution_ms {
            return Err(errors::read_cost_too_high(per_process, clock.read_ns, least_ms, plan.execution_ms));
        }
        let cpus = clock.cpus.map(|cpus| cpus as f64);
        let on_a_cpu = plan.nodes.iter().map(|node| calls_on_a_cpu(node, cpus));
        let calls = on_a_cpu.fold(Range::exactly(plan.other_calls), |sum, calls| sum + calls);
        let per_call = cost.clock_ns() + cost.counting_ns();
        let in_plan = |ns: f64| {
            let range = calls.times(ns * MS_PER_NS);
            with_margin(range, cost.error_ms(range.estimate, plan.execution_ms))
        };
        let (clock_ms, overhead) = (in_plan(cost.clock_ns()), in_plan(per_call));
        let most = longest_overhead_ms(plan, &cost);
        let least_call_ns = if clock.is_tsc() { LEAST_TSC_READS * clock.read_ns } else { f64::INFINITY };
        // If the plan allows less overhead than the estimate, its calls were cheaper than usual.
        let least_tsc = if clock.is_tsc() { per_process * least_call_ns * MS_PER_NS } else { f64::INFINITY };
        let low = overhead.low.min(most * (1.0 - cost.error()).max(0.0)).min(least_tsc);
        // A normal distribution that ends at its mean has its median a third of the 95% margin below the mean.
        let estimate = overhead.estimate.min(most - (most - low) / 3.0);
        let high = overhead.high.min(most);
        // If the plan limits the overhead, the clock reads keep their share of it.
        let share = |clock: f64, overhead: f64| if overhead > 0.0 { clock / overhead } else { 0.0 };
        let per_call_ns = with_margin(Range::exactly(per_call), cost.error() * per_call);
        Ok(Expected {
            clock_ms: Range {
                low: low * share(clock_ms.low, overhead.low),
                estimate: estimate * share(clock_ms.estimate, overhead.estimate),
                high: high.min(clock_ms.high),
            },
            overhead: Range { low, estimate, high },
            per_call_ns: Range { low: per_call_ns.low.min(least_call_ns), ..per_call_ns },
            clock,
            cost,
        })
    }
}

/// Returns the range, wider by the margin of an independent error.
fn with_margin(range: Range, margin: f64) -> Range {
    Range {
        low: (range.estimate - (range.estimate - range.low).hypot(margin)).max(0.0),
        high: range.estimate + (range.high - range.estimate).hypot(margin),
        ..range
    }
}

/// Some processes make more calls than the average, because workers start late. The estimate assumes half of this, and the
/// upper bound all of it. Measured with two processes on two CPUs: the overhead was up to 30% larger than with equal parts,
/// and 6% in the median of 12 statements. The rest of the 30% is the error of a call.
const UNEVEN: f64 = 0.2;

/// Returns how many calls of a node one CPU makes while the plan runs.
///
/// Parallel processes share the calls. If there are more processes than CPUs, they also wait for each other's calls. If the
/// number of CPUs is not known, all processes may share one.
fn calls_on_a_cpu(node: &PlanNode, cpus: Option<f64>) -> Range {
    let Range { low, estimate, high } = node.calls;
    let (processes, workers) = (node.processes, workers(node.processes));
    if processes <= 1.0 {
        return node.calls;
    }
    let waiting = cpus.map_or(1.0, |cpus| (processes / cpus).max(1.0));
    // `calls.high` allows for a leader that only collects the workers' rows. The leader took part in all measured plans.
    let all = high * workers;
    let most = all / processes * waiting * (1.0 + UNEVEN);
    Range {
        low,
        estimate: estimate * (waiting * (1.0 + UNEVEN / 2.0)).min(processes),
        high: if cpus.is_some() { most.min(all) } else { all },
    }
}

/// Returns the longest overhead for which no node's self time is below zero. A plan in which several processes run has no
/// such limit, because only the average over the processes is known.
///
/// Between a quarter and three quarters of a call's overhead may fall into the node's own time. The rest falls into its
/// caller's time.
fn longest_overhead_ms(plan: &Plan, cost: &CallCost) -> f64 {
    if plan.nodes.iter().any(|node| node.processes > 1.0 || !node.rows_are_calls) {
        return plan.execution_ms;
    }
    const LARGEST_PART: f64 = 0.75;
    let call_ms = (cost.clock_ns() + cost.counting_ns()) * (1.0 + cost.error()) * MS_PER_NS;
    let most_ms = |index: usize| plan.nodes[index].calls.high * call_ms * LARGEST_PART;
    let mut longest = plan.other_calls * call_ms;
    for (index, children) in callees(&plan.nodes).iter().enumerate() {
        let children_ms: f64 =
            children.iter().map(|&(child, part)| part * plan.nodes[child].reported_or_zero_ms()).sum();
        let all = || children.iter().map(|(child, _)| *child).chain([index]);
        let rounding: f64 = all().map(|each| plan.nodes[each].rounding_ms).sum();
        let self_ms = (plan.nodes[index].reported_or_zero_ms() - children_ms).max(0.0) + rounding;
        longest += self_ms.min(all().map(most_ms).sum());
    }
    // The start and the end of the execution do not belong to any node.
    let outside = plan.execution_ms - plan.nodes.first().map_or(0.0, PlanNode::reported_or_zero_ms);
    (longest + outside.max(0.0)).min(plan.execution_ms)
}
