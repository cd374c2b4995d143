//! The overhead of one captured plan. Nothing is run: the cost of a timed call comes from the report of the server's host,
//! from the read cost of its clock, or from the statement's time without EXPLAIN.

use super::attribution::{Overhead, attribute};
use super::tree::Explained;
use super::unusable::{ONLY_PLAIN_TIME, Unusable, check_run};
use super::{Node, Plan, PlanNode, callees, workers};
use crate::error::{Error, require};
use crate::human::{count, duration};
use crate::report::compare::why_busy;
use crate::report::{
    CallCost, Capture, ClockReport, ExplainReport, ExplainedNode, MS_PER_NS, NS_PER_MS, PlanFormat, Range, Report,
    SYSTEM,
};
use crate::statistics::RUN_TO_RUN_VARIATION;
use std::collections::BTreeSet;

/// The clock of the plan's server.
#[derive(Clone, Debug, Default)]
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
const MAY_BE_TSC: &str = "assumed: the server reads the system clock. PostgreSQL 19 reads the TSC on this host by default: for such a \
    server, give --clock rdtsc";
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
        ServerClock { read_ns, system_read_ns: is_system.then_some(read_ns), ..ServerClock::default() }
    }

    /// Returns the clock that the plan's server read, from the report of its host. The plan's settings select it.
    pub fn on_host(host: &Report, plan: &Explained, clock_name: Option<&str>) -> Result<ServerClock, Error> {
        require(
            host.clocks.iter().all(|clock| clock.name != CNTVCT),
            "the host report is from an AArch64 processor, but the costs of timed calls were measured on x86-64 only",
            ONLY_PLAIN_TIME,
        )?;
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
        let call_ns = clock.and_then(|clock| clock.timed_call_ns).unwrap_or(0.0);
        if timed_call_ns.is_none() && call_ns > read_ns {
            let what =
                format!("in the host report, a read of {name} takes {read_ns} ns, but a timed call {call_ns} ns");
            let hint = "a timed call reads the clock twice; create the report again with pg_timing --format json, or give --read-cost NS";
            return Err(Error::new(what, hint));
        }
        let may_be_tsc = clock_name.is_none() && source.is_none() && host.tsc.used_by_default == Some(true);
        // Load makes reads longer, so the cost is at most the reported one.
        let busy = why_busy(host)
            .map(|why| format!("the read cost in the host report is uncertain ({why}): measure it on a quiet host"));
        let notes: Vec<String> = busy.into_iter().chain(may_be_tsc.then(|| MAY_BE_TSC.into())).collect();
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

/// No clock is slower: the slowest known one takes 7400 ns per read.
const MOST_CALL_NS: f64 = 20_000.0;

/// The report on a plan, and what its nodes need.
#[derive(Debug)]
pub struct Estimate {
    /// without the nodes: most plans of a log need none
    pub report: ExplainReport,
    /// what the user should know about the clock, which is also one of the notes
    pub clock_note: Option<String>,
    plan: Plan,
    overhead: Overhead,
}

impl Estimate {
    /// Returns the nodes with their corrected times.
    pub fn nodes(&self) -> Vec<ExplainedNode> {
        attribute(std::slice::from_ref(&self.plan), &self.overhead)
    }

    pub fn with_nodes(self) -> ExplainReport {
        ExplainReport { nodes: self.nodes(), ..self.report }
    }
}

/// Estimates the time without overhead of a plan whose execution time is known.
pub fn estimate(mut explained: Explained, inputs: &Inputs) -> Result<Estimate, Unusable> {
    let clock = match inputs.clock {
        Some(_) if explained.uses_fast_timing() => return Err(Unusable::FastTimed),
        Some(clock_of) => Some(clock_of(&explained).map_err(Unusable::Clock)?),
        None => None,
    };
    let counts_buffers = explained.root.any(&|node| node.has_buffers);
    let (source, mut notes) = (explained.source.take(), std::mem::take(&mut explained.notes));
    let mut plan = Plan::new(explained);
    check_run(&plan)?;
    let reported = plan.execution_ms;
    let expected = clock.as_ref().map(|clock| Expected::of(&plan, clock, counts_buffers)).transpose()?;
    if expected.as_ref().is_some_and(|expected| expected.exceeds_the_plan) {
        notes.push(
            "with this read cost, the calls would take longer than the plan: it may be that of another clock".into(),
        );
    }
    let measured = inputs.plain_ms.map(|plain_ms| measured(plain_ms, &plan, &mut notes)).transpose()?;
    let by_any_clock = Range::between(0.0, (plan.all_calls().high * MOST_CALL_NS * MS_PER_NS).min(reported));
    let by_calls = expected.as_ref().map_or(by_any_clock, |expected| expected.overhead);
    let measured = measured.unwrap_or(by_calls);
    let is_too_long = measured.estimate > by_calls.high;
    let inputs_contradict = is_too_long || measured.high < by_calls.low;
    let (overhead, unexplained) = match inputs_contradict {
        // The given time may be from a faster or slower run, or the cost from another clock. What the calls cannot cost is not
        // overhead.
        true => {
            notes.push("the given time contradicts the expected cost of the calls: the interval covers both".into());
            let estimate = if is_too_long { by_calls.estimate } else { measured.estimate };
            let both = Range { low: measured.low.min(by_calls.low), estimate, high: measured.high.max(by_calls.high) };
            (both, (measured.estimate - by_calls.high).max(0.0))
        }
        false => (measured, 0.0),
    };
    let calls = plan.calls_per_process();
    let of_calls = overhead.clamp(0.0, by_calls.high);
    let clock_ms = match &expected {
        Some(Expected { cost, .. }) => of_calls.times(cost.clock_ns() / (cost.clock_ns() + cost.counting_ns)),
        None => {
            let counting_ms = calls.high * CallCost::max_counting_ns(counts_buffers) * MS_PER_NS;
            Range::between((of_calls.low - counting_ms).max(0.0), of_calls.high)
        }
    };
    let clock_ms = Range { estimate: clock_ms.estimate.min(overhead.estimate), ..clock_ms };
    let corrected = overhead.subtracted_from(reported);
    let overhead = Overhead { reported, corrected, calls: calls.estimate, clock: clock_ms.estimate, unexplained };
    let clock_note = clock.as_ref().and_then(|clock| clock.note.clone());
    notes.extend(clock_note.clone());
    notes.extend(plan_notes(&plan));
    let capture = Capture {
        calls: plan.all_calls(),
        read_ns: clock.as_ref().map(|clock| clock.read_ns),
        timed_call_ns: clock.as_ref().and_then(|clock| clock.timed_call_ns),
        expected_call_ns: expected.map(|expected| expected.per_call_ns),
        given_plain_ms: inputs.plain_ms,
        inputs_contradict,
        clock_share: clock_ms.times(1.0 / reported.max(f64::MIN_POSITIVE)),
        ..Capture::default()
    };
    let report = ExplainReport {
        statement: plan.query.take(),
        clock_share: capture.clock_share.estimate,
        capture: Some(capture),
        notes,
        settings: std::mem::take(&mut plan.settings),
        document: source,
        ..overhead.report()
    };
    Ok(Estimate { report, clock_note, plan, overhead })
}

/// Returns what the user should know about the plan.
fn plan_notes(plan: &Plan) -> Vec<String> {
    let mut notes: Vec<String> = other_nodes(plan).into_iter().collect();
    let hidden: u32 = plan.nodes.iter().filter_map(|node| node.printed.hidden_tasks).sum();
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

/// Returns a note about nodes whose rows may not be calls. It names the topmost of them.
fn other_nodes(plan: &Plan) -> Option<String> {
    const MAX_NAMED: usize = 3;
    let is_above = |node: &&PlanNode| !node.rows_are_calls && !super::tree::is_known(&node.printed.kind);
    let names: BTreeSet<&str> = plan.nodes.iter().filter(is_above).map(|node| short_name(&node.printed)).collect();
    let more = if names.len() > MAX_NAMED { " and others" } else { "" };
    let named = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| {
        format!("rows of {named}{more}, and of the nodes below, may not be calls: the overhead of these nodes can be 0")
    })
}

/// Returns the name of an extension's node, or the kind of a node of a fork of PostgreSQL.
fn short_name(node: &Node) -> &str {
    if node.kind == "Custom Scan" { node.name.split(" on ").next().unwrap_or_default() } else { &node.kind }
}

/// Returns the overhead in ms, from the time without EXPLAIN that the user gave, with the run-to-run variation.
///
/// psql's \timing includes planning, and the execution time does not. But a prepared statement may have been planned before,
/// so both are possible.
fn measured(plain_ms: f64, plan: &Plan, notes: &mut Vec<String>) -> Result<Range, Unusable> {
    // A shorter time cannot include planning.
    let planning = plan.planning_ms.filter(|planning| *planning < plain_ms).unwrap_or(0.0);
    let least = (plain_ms - planning) * (1.0 - RUN_TO_RUN_VARIATION);
    require(
        least <= plan.execution_ms,
        format!("--plain-ms says {plain_ms} ms without EXPLAIN, but EXPLAIN ANALYZE took only {} ms", plan.execution_ms),
        "the plain time may be from another run, or include sending rows; time it with \\o /dev/null or SELECT count(*) FROM (...)",
    )
    .map_err(Unusable::Clock)?;
    let may_include_planning = planning > RUN_TO_RUN_VARIATION * plain_ms;
    if may_include_planning {
        notes.push(format!("the given {plain_ms} ms may include planning, which is not in the reported time"));
    }
    // This run without its timing took no longer than with it.
    let most = (plain_ms / (1.0 - RUN_TO_RUN_VARIATION)).min(plan.execution_ms);
    let usual = if may_include_planning { plain_ms - planning / 2.0 } else { plain_ms };
    Ok(Range { low: least, estimate: usual.clamp(least, most), high: most }.subtracted_from(plan.execution_ms))
}

/// The overhead that the cost of a timed call predicts.
struct Expected {
    cost: CallCost,
    /// time of the clock reads, row counting and buffer counting, in ms
    overhead: Range,
    /// overhead of one call
    per_call_ns: Range,
    /// even the least cost of the calls is more than the plan allows
    exceeds_the_plan: bool,
}

impl Expected {
    /// Returns the overhead that the calls of all processes predict, within the limits that the plan sets.
    fn of(plan: &Plan, clock: &ServerClock, counts_buffers: bool) -> Result<Expected, Unusable> {
        let cost = CallCost::new(clock.read_ns, clock.timed_call_ns, clock.system_read_ns, counts_buffers);
        let per_process = plan.calls_per_process().low;
        // Workers make their calls while the leader makes its own.
        let of_leader =
            plan.nodes.iter().filter(|node| node.processes <= 1.0).map(|node| node.calls.estimate).sum::<f64>();
        let of_workers = plan.calls_per_process().estimate - plan.other_calls - of_leader;
        let at_once = of_leader.min(of_workers) / (of_leader + of_workers).max(1.0);
        let least_ms = per_process * (1.0 - at_once) * cost.least_clock_ns() * MS_PER_NS;
        if least_ms > plan.execution_ms {
            return Err(read_cost_too_high(per_process, clock.read_ns, least_ms, plan.execution_ms));
        }
        let cpus = clock.cpus.map(|cpus| cpus as f64);
        let on_a_cpu = plan.nodes.iter().map(|node| calls_on_a_cpu(node, cpus));
        let calls = on_a_cpu.fold(Range::exactly(plan.other_calls), |sum, calls| sum + calls);
        let per_call = cost.clock_ns() + cost.counting_ns;
        let range = calls.times(per_call * MS_PER_NS);
        let overhead = with_margin(range, cost.error_ms(range.estimate, plan.execution_ms));
        let most = longest_overhead_ms(plan, &cost);
        let least_call_ns = if clock.is_tsc() { cost.least_tsc_ns() } else { f64::INFINITY };
        // If the plan allows less overhead than the estimate, its calls were cheaper than usual.
        let least_tsc = if clock.is_tsc() { per_process * least_call_ns * MS_PER_NS } else { f64::INFINITY };
        let low = overhead.low.min(most * (1.0 - cost.error()).max(0.0)).min(least_tsc);
        // No value above `most` is possible. Half of a normal distribution remains. Its median is 0.67 standard deviations below the
        // limit, one third of the 95% margin (1.96).
        let estimate = overhead.estimate.min(most - (most - low) / 3.0);
        let per_call_ns = with_margin(Range::exactly(per_call), cost.error() * per_call);
        Ok(Expected {
            overhead: Range { low, estimate, high: overhead.high.min(most) },
            per_call_ns: Range { low: per_call_ns.low.min(least_call_ns), ..per_call_ns },
            exceeds_the_plan: overhead.low * (1.0 - at_once) > most,
            cost,
        })
    }
}

fn read_cost_too_high(calls: f64, read_ns: f64, least_ms: f64, reported_ms: f64) -> Unusable {
    let what = format!(
        "{} {} with clock reads of {} take at least {}, but the plan took {}",
        count(calls as u64),
        if calls == 1.0 { "call" } else { "calls" },
        duration(read_ns),
        duration(least_ms * NS_PER_MS),
        duration(reported_ms * NS_PER_MS)
    );
    Unusable::Clock(Error::new(what, "this read cost does not belong to the clock that timed the plan"))
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
    if plan.nodes.iter().any(|node| node.processes > 1.0 || node.printed.is_gather() || !node.rows_are_calls) {
        return plan.execution_ms;
    }
    const LARGEST_PART: f64 = 0.75;
    let call_ms = (cost.clock_ns() + cost.counting_ns) * (1.0 + cost.error()) * MS_PER_NS;
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
