//! How much of a captured plan is the clock: there is nothing to run, so the cost of a timed call is
//! what one read of the server's clock tells, or what the plain time that its taker knows implies.

mod cost;
mod csv_log;
mod extract;
mod node_line;
mod prefix;
#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;
mod text;
mod validate;

use super::attribution::charge::{Charge, nodes};
use super::plan::Explained;
use super::plan::calls::{all_calls, calls_of_all_processes, flat};
use crate::error::Error;
use crate::human::duration;
use crate::report::{Capture, ExplainReport, ExplainedNode, Range};
use crate::statistics::ANOTHER_TIME;
use extract::{Trouble, plans};
use text::Problem;
use validate::{fits_together, usable};

/// One read of the server's clock.
#[derive(Clone, Debug)]
pub struct Read {
    pub ns: f64,
    /// the cost of one of the system's clock, as far as that is known: how fast the processor is
    pub system_ns: Option<f64>,
    /// the share by which one run differs from another on the server's host, as far as that is known
    pub differ: f64,
    /// what to know about it
    pub note: Option<String>,
}

/// Finds the read that timed a plan.
pub type ReadOf<'a> = dyn Fn(&Explained) -> Result<Read, Error> + 'a;

/// What its taker knows of a plan's server.
pub struct Known<'a> {
    /// the cost of a read, by the settings printed with the plan
    pub read: Option<&'a ReadOf<'a>>,
    /// ms without EXPLAIN
    pub plain_ms: Option<f64>,
}

/// Says what the plan in a text takes without being timed.
pub fn captured(text: &str, known: &Known) -> Result<ExplainReport, Error> {
    let (explained, plans, taken) = last(text)?;
    let reported = usable(&explained)?;
    let all = flat(&explained.plan);
    fits_together(&all, &explained, reported)?;
    let calls = all_calls(&all, &explained);
    if known.read.is_some() && explained.timed_fast() {
        return Err(Error::new(
            "pg_fast_timing timed the plan: what a read of the server's clock costs has no part in it",
            "give --plain-ms MS alone",
        ));
    }
    let read = known.read.map(|read| read(&explained)).transpose()?;
    let counting = cost::counting(&explained, read.as_ref().and_then(|read| read.system_ns));
    let expected =
        read.as_ref().map(|read| Expected { clock: cost::clock(read.ns), call: cost::clock(read.ns) + counting });
    if let (Some(read), Some(expected)) = (&read, &expected)
        && calls.low * expected.clock.low * MS > reported
    {
        return Err(Error::new(
            format!(
                "{} calls with reads of {} take {} ms at least, and the plan took {reported} ms",
                crate::human::count(calls.low as u64),
                duration(read.ns),
                (calls.low * expected.clock.low * MS).round()
            ),
            "this read cost is not that of the clock that timed the plan",
        ));
    }
    let runs_differ = read.as_ref().map_or(0.0, |read| read.differ).max(ANOTHER_TIME);
    // Without being timed: this very run, or one that its taker has timed.
    let run = match (known.plain_ms, &expected) {
        (Some(plain), _) => given(plain, runs_differ, &explained, reported)?,
        (None, Some(expected)) => {
            // Parallel workers without a CPU of their own wait for the timing of each other.
            let most = calls_of_all_processes(&all, &explained) * expected.call.high * MS;
            let least = calls.low * expected.clock.low * MS;
            Range::between((reported - most).max(0.0), (reported - least).max(0.0))
        }
        (None, None) => return Err(unknown()),
    };
    let implied_call_ns = known.plain_ms.map(|plain| (reported - plain).max(0.0) / calls.estimate.max(1.0) / MS);
    let clock = clock_ms(reported, calls, &run, expected.as_ref(), counting);
    let charge = charge(reported, calls, &run, clock, known.plain_ms.is_some());
    let any_run = |run: Range| if known.plain_ms.is_some() { run } else { another(run, runs_differ) };
    let notes = notes(&explained, (plans, taken), read.as_ref());
    Ok(ExplainReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION"),
        settings: explained.settings.clone(),
        statement: explained.query.clone(),
        runs: None,
        capture: Some(Capture {
            plans,
            taken,
            calls,
            read_ns: read.map(|read| read.ns),
            expected_call_ns: expected.map(|expected| expected.call),
            given_plain_ms: known.plain_ms,
            implied_call_ns,
            clock_share: clock.times(1.0 / reported.max(f64::MIN_POSITIVE)),
            runs_differ,
        }),
        reported_ms: reported,
        corrected_ms: any_run(run),
        clock_share: if reported > 0.0 { clock.estimate / reported } else { 0.0 },
        notes,
        nodes: nodes(all, calls.estimate, &charge)
            .into_iter()
            .map(|node| ExplainedNode { corrected_ms: any_run(node.corrected_ms), ..node })
            .collect(),
    })
}

/// What one run tells of any other: either may be the one that took longer by that share.
fn another(run: Range, differ: f64) -> Range {
    Range { low: run.low * (1.0 - differ), estimate: run.estimate, high: run.high / (1.0 - differ) }
}

/// ns in ms.
const MS: f64 = 1e-6;

/// By the read cost, in ns a call.
struct Expected {
    clock: Range,
    /// with what counting takes
    call: Range,
}

/// The last plan that can be used, how many there are, and which it is.
fn last(text: &str) -> Result<(Explained, usize, usize), Error> {
    let mut plans = plans(text);
    let count = plans.len();
    let can_be_used = |plan: &Result<Explained, Trouble>| plan.as_ref().is_ok_and(|plan| usable(plan).is_ok());
    match plans.iter().rposition(can_be_used).or(plans.iter().rposition(Result::is_ok)) {
        Some(at) => plans.swap_remove(at).map(|plan| (plan, count, at + 1)).map_err(|trouble| refused(&trouble)),
        None => Err(plans.last().and_then(|plan| plan.as_ref().err()).map_or_else(nothing, refused)),
    }
}

const UNDERSTOOD: &str =
    "what is understood: the text or JSON of EXPLAIN ANALYZE, as psql, auto_explain or a ticket shows it";

fn nothing() -> Error {
    Error::new("there is no plan in it", UNDERSTOOD)
}

fn unknown() -> Error {
    Error::new(
        "what the clock costs the plan's server is not known",
        "give --read-cost NS or --host-report FILE (pg_timing --format json, on that server's host), or --plain-ms MS (psql's \\timing without EXPLAIN)",
    )
}

fn refused(trouble: &Trouble) -> Error {
    match trouble {
        Trouble::Yaml => Error::new("the plan is YAML", UNDERSTOOD),
        Trouble::Xml => Error::new("the plan is XML", UNDERSTOOD),
        Trouble::Json(why) => Error::new(format!("the plan's JSON is not whole: {why}"), UNDERSTOOD),
        Trouble::Text(Problem::NotRun) => not_run(),
        Trouble::Text(Problem::TooOld) => Error::new(
            "the plan is of PostgreSQL 9.3 or older, by its \"Total runtime\"",
            "plans of 9.4 and later are understood",
        ),
        Trouble::Text(Problem::NoBeginning) => {
            Error::new("the plan has no beginning", "its first line names the topmost node, and has no arrow")
        }
        Trouble::Text(Problem::Cut) => Error::new(
            "a line of the plan is cut off, or goes on in the next one",
            "give it as it was printed, one line for each node",
        ),
        Trouble::TooDeep => Error::new("the plan's JSON nests deeper than can be read", "take the plan as text"),
        Trouble::Text(Problem::TooDeep) => Error::new("the plan nests deeper than any plan", UNDERSTOOD),
    }
}

fn not_run() -> Error {
    Error::new("the plan was not run", "take it with EXPLAIN (ANALYZE)")
}

/// psql's \timing holds planning, which the plan's own time does not.
fn given(plain: f64, differ: f64, explained: &Explained, reported: f64) -> Result<Range, Error> {
    let planning = explained.planning_ms.unwrap_or(0.0);
    let low = ((plain - planning) * (1.0 - differ)).max(0.0);
    if low > reported {
        return Err(Error::new(
            format!("without EXPLAIN it took {plain} ms, says --plain-ms, and with it {reported} ms"),
            "the first holds what the plan does not, such as sending rows (\\o /dev/null, or SELECT count(*) FROM (...)), or is of another run",
        ));
    }
    Ok(Range { low, estimate: plain, high: plain / (1.0 - differ) })
}

/// What of the reported time is the clock: what its reads take, and no more than timing added.
fn clock_ms(reported: f64, calls: Range, run: &Range, expected: Option<&Expected>, counting: Range) -> Range {
    let added = (reported - run.high).max(0.0)..=(reported - run.low).max(0.0);
    let counted = calls.high * counting.high * MS;
    let (mut low, mut high) = ((added.start() - counted).max(0.0), *added.end());
    if let Some(expected) = expected {
        let reads = (calls.low * expected.clock.low * MS, calls.high * expected.clock.high * MS);
        // Where the two do not meet, what was measured counts.
        if reads.0 <= high && reads.1 >= low {
            (low, high) = (low.max(reads.0), high.min(reads.1));
        }
    }
    Range::between(low, high)
}

fn charge(reported: f64, calls: Range, run: &Range, clock: Range, measured: bool) -> Charge {
    let calls = calls.estimate.max(1.0);
    let off = run.high - run.estimate;
    let call = (reported - run.estimate).max(0.0) / calls;
    Charge {
        reported,
        off: if measured { off } else { 0.0 },
        call,
        // The bounds of a read's cost are those of any node's calls.
        call_off: if measured { 0.0 } else { off / calls },
        calls_off: if measured { off } else { 0.0 },
        rest: 0.0,
        clock: clock.estimate / calls,
    }
}

fn notes(explained: &Explained, (plans, taken): (usize, usize), read: Option<&Read>) -> Vec<String> {
    let mut notes = Vec::new();
    if plans > 1 && plans == taken {
        notes.push(format!("there are {plans} plans in it; this is the last"));
    } else if plans > taken {
        notes.push(format!("there are {plans} plans in it; this is number {taken}, the last that can be read"));
    }
    notes.extend(read.and_then(|read| read.note.clone()));
    if cost::buffers(explained) {
        notes.push("BUFFERS were counted, too: that takes some ns a call, and is not the clock".into());
    }
    if explained.jit.is_some() {
        notes.push("JIT compiled, and its time is in all figures".into());
    }
    if explained.plan.any(&|node| node.io_ms.is_some()) {
        notes.push("track_io_timing was on: the clock was read for each block that was read or written, too, which is not in these figures".into());
    }
    notes
}
