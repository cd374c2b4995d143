//! Runs a statement in every way that tells something, interleaved, and puts everything back.

use super::session::Session;
use super::timing::Timing;
use super::{Statement, plans};
use crate::error::Error;
use crate::server::connection::Connection;
use crate::server::explain::Explained;
use crate::statistics::{deviation, median};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What the runs may do and take.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// the statement may write; it is rolled back in any case
    pub allow_writes: bool,
    /// for one run of the statement
    pub limit: Duration,
}

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// no EXPLAIN at all
    Plain,
    /// EXPLAIN ANALYZE but for the clock
    RowsOnly,
    /// and but for buffers, where it counts them unasked (18)
    WithoutBuffers,
    /// what people type: EXPLAIN ANALYZE
    Reported,
    /// the same, timed in another way: an index into what was tried
    Timed(usize),
}

/// What came of it, in the order of the rounds.
#[derive(Debug, Default)]
pub struct Runs {
    /// by our clock, less the way to the server and back; some in each round
    pub plain_ms: Vec<f64>,
    pub rows_only_ms: Vec<f64>,
    /// none where EXPLAIN ANALYZE does not count buffers
    pub without_buffers_ms: Vec<f64>,
    pub reported: Vec<Explained>,
    /// by each way to time that the server offers
    pub timed: Vec<(Timing, Vec<Explained>)>,
    /// what a timed call takes more in a loop that does nothing else, at most; `None` if noise hides it
    pub bare_call_ms: Option<f64>,
    /// of an empty statement
    pub round_trip_ms: f64,
    /// how far a plain run may be off because of that
    pub round_trip_off_ms: f64,
    /// by each plain run, to us
    pub rows_sent: u64,
}

impl Runs {
    /// ms as EXPLAIN ANALYZE says, of each run.
    pub fn reported_ms(&self) -> Vec<f64> {
        execution_ms(&self.reported)
    }

    /// ms of the plain runs of each round, on average.
    pub fn plain_by_round(&self) -> Vec<f64> {
        let each = (self.plain_ms.len() / self.rows_only_ms.len().max(1)).max(1);
        self.plain_ms.chunks(each).map(|round| round.iter().sum::<f64>() / round.len() as f64).collect()
    }

    /// Plans whose nodes were timed by sampling.
    pub fn sampled(&self) -> Option<&[Explained]> {
        self.timed.iter().find(|(timing, _)| timing.is_sampling()).map(|(_, plans)| plans.as_slice())
    }
}

pub fn execution_ms(plans: &[Explained]) -> Vec<f64> {
    plans.iter().filter_map(|plan| plan.execution_ms).collect()
}

/// As few as give a spread, as many as a median needs.
const ROUNDS: std::ops::RangeInclusive<u32> = 3..=15;
/// More rounds are begun until then.
const ENOUGH: Duration = Duration::from_secs(4);
const ROUND_TRIPS: usize = 15;
/// The share of the time that the runs take which do not count; a statement that takes long is run as seldom as may be.
const FIRST: f64 = 0.25;

/// Runs the statement; `progress` is told how much is done, of 1.
pub fn runs(
    connection: &mut Connection,
    statement: &Statement,
    timings: &[Timing],
    wishes: Wishes,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Runs, Error> {
    progress(0.0);
    let mut session = Session::new(connection, wishes, stop)?;
    let empty = || Runs { timed: timings.iter().map(|&timing| (timing, Vec::new())).collect(), ..Runs::default() };
    let mut runs = empty();
    session.prepare(statement)?;
    let ways = ways(session.connection.server_version(), timings.len());
    // One of each that does not count finds its tables in the cache, and says how long it takes.
    let start = Instant::now();
    for (done, &way) in ways.iter().enumerate() {
        progress(FIRST * done as f64 / ways.len() as f64);
        round(&mut session, way, statement, &mut empty())?;
    }
    let first = start.elapsed();
    let trips = session.round_trips(ROUND_TRIPS)?;
    runs.round_trip_ms = median(&trips);
    runs.round_trip_off_ms = deviation(&trips);
    runs.bare_call_ms = session.bare_call(runs.round_trip_ms)?;
    let wanted = (ENOUGH.as_secs_f64() / first.as_secs_f64()).ceil() as u32;
    let rounds = wanted.clamp(*ROUNDS.start(), *ROUNDS.end()) as usize;
    for number in 0..rounds {
        // Each has its turn to be the first.
        for n in 0..ways.len() {
            round(&mut session, ways[(n + number) % ways.len()], statement, &mut runs)?;
            let done = (number * ways.len() + n + 1) as f64;
            progress(FIRST + (1.0 - FIRST) * done / (ways.len() * rounds) as f64);
        }
    }
    session.forget()?;
    for ms in &mut runs.plain_ms {
        *ms = (*ms - runs.round_trip_ms).max(0.0);
    }
    Ok(runs)
}

fn ways(server_version: i32, timings: usize) -> Vec<Way> {
    // Plain runs twice, for they are what all else is held against, and take the least.
    let mut ways = vec![Way::Plain, Way::RowsOnly, Way::Plain, Way::Reported];
    if server_version >= 180_000 {
        ways.push(Way::WithoutBuffers);
    }
    ways.extend((0..timings).map(Way::Timed));
    ways
}

fn round(session: &mut Session, way: Way, statement: &Statement, runs: &mut Runs) -> Result<(), Error> {
    match way {
        Way::Plain => {
            let (ms, rows) = session.plain()?;
            runs.plain_ms.push(ms);
            runs.rows_sent = rows;
        }
        Way::RowsOnly => runs.rows_only_ms.push(session.explain(statement, "TIMING OFF", None)?.1),
        Way::WithoutBuffers => {
            runs.without_buffers_ms.push(session.explain(statement, "TIMING OFF, BUFFERS OFF", None)?.1);
        }
        Way::Reported => plans::add(&mut runs.reported, session.explain(statement, "TIMING ON", None)?.0)?,
        Way::Timed(at) => {
            let (timing, plans) = &mut runs.timed[at];
            plans::add(plans, session.explain(statement, "TIMING ON", Some(timing))?.0)?;
        }
    }
    Ok(())
}
