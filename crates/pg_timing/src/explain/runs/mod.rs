//! Runs a statement in every way that tells something, interleaved, and puts everything back.

mod bare_call;

use super::figures::{deviation, median};
use super::timing::Timing;
use super::{Explained, Statement};
use crate::postgres::{Connection, Error, Output, Rows, SqlState};
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Runs the statement; `progress` is told how much is done, of 1.
pub fn runs(
    connection: &mut Connection,
    statement: &Statement,
    timings: &[Timing],
    wishes: Wishes,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Runs, Error> {
    let mut session = Session { connection, limit: wishes.limit, wishes, stop, began: Instant::now() };
    session.keep_limit()?;
    let empty = || Runs { timed: timings.iter().map(|&timing| (timing, Vec::new())).collect(), ..Runs::default() };
    let mut runs = empty();
    let plan = session.planned(statement)?;
    let quiet = statement.without_output();
    // What may stand in a subquery returns nothing to us; the plan below has to be the same one.
    let same = session
        .planned(&quiet)
        .is_ok_and(|wrapped| wrapped.plan.plans.iter().any(|below| below.shape() == plan.plan.shape()));
    session.prepare(if same { &quiet } else { statement })?;

    // Twice, for it is what all else is held against, and takes the least.
    let mut ways = vec![Way::Plain, Way::RowsOnly, Way::Plain, Way::Reported];
    if session.connection.server_version() >= 180_000 {
        ways.push(Way::WithoutBuffers);
    }
    ways.extend((0..timings.len()).map(Way::Timed));
    // One of each that does not count finds its tables in the cache, and says how long it takes.
    let start = Instant::now();
    for &way in &ways {
        session.round(way, statement, &mut empty())?;
    }
    let round = start.elapsed();
    let trips = session.round_trips()?;
    runs.round_trip_ms = median(&trips);
    runs.round_trip_off_ms = deviation(&trips);
    runs.bare_call_ms = session.bare_call(runs.round_trip_ms)?;
    let wanted = (ENOUGH.as_secs_f64() / round.as_secs_f64()).ceil() as u32;
    let rounds = wanted.clamp(*ROUNDS.start(), *ROUNDS.end());
    for number in 0..rounds {
        // Each has its turn to be the first.
        for n in 0..ways.len() {
            session.round(ways[(n + number as usize) % ways.len()], statement, &mut runs)?;
        }
        progress(f64::from(number + 1) / f64::from(rounds));
    }
    session.forget()?;
    for ms in &mut runs.plain_ms {
        *ms = (*ms - runs.round_trip_ms).max(0.0);
    }
    Ok(runs)
}

struct Session<'a> {
    connection: &'a mut Connection,
    wishes: Wishes,
    /// for one run
    limit: Duration,
    stop: &'a AtomicBool,
    /// the run at hand
    began: Instant,
}

const PLAIN: &str = "pg_timing_plain";
const NOTHING: &str = "pg_timing_nothing";
const BARE: &str = "pg_timing_bare";

impl Session<'_> {
    fn run(&mut self, sql: &str, output: Output) -> Result<Rows, Error> {
        self.connection.run(sql, output, self.stop)
    }

    /// A shorter limit that the server has for this user stays.
    fn keep_limit(&mut self) -> Result<(), Error> {
        let asked = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'statement_timeout'";
        let set = self.run(asked, Output::Keep)?.value().and_then(|ms| ms.parse().ok()).filter(|&ms: &u64| ms > 0);
        self.limit = set.map_or(self.limit, |ms| self.limit.min(Duration::from_millis(ms)));
        Ok(())
    }

    /// In a transaction that is rolled back, whatever comes of it.
    fn undone<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let mode = if self.wishes.allow_writes { "READ WRITE" } else { "READ ONLY" };
        // A standby refuses READ WRITE even for a statement that only reads.
        self.run(&format!("BEGIN {mode}"), Output::Discard)?;
        let limit = self.limit.as_millis();
        self.began = Instant::now();
        let done = self
            .run(&format!("SET LOCAL statement_timeout = {limit}"), Output::Discard)
            .and_then(|_| work(self))
            .map_err(|error| self.explained(error));
        let back = self.run("ROLLBACK", Output::Discard);
        done.and_then(|value| back.map(|_| value))
    }

    /// Errors that we know more about than the server.
    fn explained(&self, error: Error) -> Error {
        let Error { what, hint, state } = error;
        let (what, hint) = match &state {
            state if state.is(SqlState::READ_ONLY) => (
                what,
                "a statement that writes is run with --allow-writes, and rolled back; sequences, and what its functions do outside of the database, stay as they are then".into(),
            ),
            state if state.is(SqlState::QUERY_CANCELED) && self.stop.load(Ordering::Relaxed) => {
                ("stopped; the statement was cancelled on the server".into(), "nothing was changed".into())
            }
            // Somebody else may have cancelled it.
            state if state.is(SqlState::QUERY_CANCELED) && self.began.elapsed() >= self.limit => (
                format!("one run takes longer than {} s", self.limit.as_secs_f64()),
                match self.limit < self.wishes.limit {
                    true => "that is the server's statement_timeout for this user".into(),
                    false => "--limit SECONDS gives it more".into(),
                },
            ),
            state if state.is(SqlState::NO_SUCH_STATEMENT) || state.is(SqlState::STATEMENT_EXISTS) => {
                (what, "a pooler in between gives each transaction another session: connect to the server itself".into())
            }
            _ => (what, hint),
        };
        Error { what, hint, state }
    }

    fn planned(&mut self, statement: &Statement) -> Result<Explained, Error> {
        let sql = statement.explained("FORMAT JSON");
        let plan = self.undone(|session| session.run(&sql, Output::Keep))?;
        explained(&plan.lines())
    }

    fn prepare(&mut self, statement: &Statement) -> Result<(), Error> {
        let bare = bare_call::statement()?.prepared_as(BARE);
        let all = [statement.prepared_as(PLAIN), format!("PREPARE {NOTHING} AS SELECT"), bare];
        all.iter().try_for_each(|sql| self.run(sql, Output::Discard).map(|_| ())).map_err(|error| self.explained(error))
    }

    /// What was prepared: another statement may follow.
    fn forget(&mut self) -> Result<(), Error> {
        [PLAIN, NOTHING, BARE]
            .iter()
            .try_for_each(|name| self.run(&format!("DEALLOCATE {name}"), Output::Discard).map(|_| ()))
    }

    /// ms that it takes to have an empty statement run, each time.
    fn round_trips(&mut self) -> Result<Vec<f64>, Error> {
        // Planned by the first.
        self.executed(NOTHING)?;
        (0..ROUND_TRIPS).map(|_| Ok(self.executed(NOTHING)?.0)).collect()
    }

    /// ms, and rows that were sent; planned before, so that it is only run.
    fn executed(&mut self, name: &str) -> Result<(f64, u64), Error> {
        let sql = format!("EXECUTE {name}");
        self.undone(|session| {
            let start = Instant::now();
            let rows = session.run(&sql, Output::Discard)?;
            Ok((start.elapsed().as_secs_f64() * 1e3, rows.count))
        })
    }

    fn round(&mut self, way: Way, statement: &Statement, runs: &mut Runs) -> Result<(), Error> {
        match way {
            Way::Plain => {
                let (ms, rows) = self.executed(PLAIN)?;
                runs.plain_ms.push(ms);
                runs.rows_sent = rows;
            }
            Way::RowsOnly => runs.rows_only_ms.push(self.explain(statement, "TIMING OFF", None)?.1),
            Way::WithoutBuffers => {
                runs.without_buffers_ms.push(self.explain(statement, "TIMING OFF, BUFFERS OFF", None)?.1);
            }
            Way::Reported => add(&mut runs.reported, self.explain(statement, "TIMING ON", None)?.0)?,
            Way::Timed(at) => {
                let (timing, plans) = &mut runs.timed[at];
                add(plans, self.explain(statement, "TIMING ON", Some(timing))?.0)?;
            }
        }
        Ok(())
    }

    /// EXPLAIN ANALYZE: the plan, and the ms that it says.
    fn explain(
        &mut self,
        statement: &Statement,
        options: &str,
        timing: Option<&Timing>,
    ) -> Result<(Explained, f64), Error> {
        let sql = statement.explained(&format!("ANALYZE, {options}, FORMAT JSON"));
        let plan = self.undone(|session| {
            if let Some(timing) = timing {
                session.run(&timing.chosen(), Output::Discard)?;
            }
            session.run(&sql, Output::Keep)
        })?;
        let plan = explained(&plan.lines())?;
        let ms = plan.execution_ms.ok_or_else(|| no_plan("it has no Execution Time"))?;
        Ok((plan, ms))
    }
}

/// What is compared has to be one plan.
fn add(plans: &mut Vec<Explained>, plan: Explained) -> Result<(), Error> {
    if plans.first().is_some_and(|before| before.plan.shape() != plan.plan.shape()) {
        return Err(Error::new(
            "the plan changes from run to run",
            "what is compared has to be one plan: run ANALYZE on the tables, or wait for autovacuum",
        ));
    }
    plans.push(plan);
    Ok(())
}

/// EXPLAIN's JSON is a list of one.
fn explained(json: &str) -> Result<Explained, Error> {
    if serde_json::from_str::<Vec<String>>(json).is_ok() {
        return Err(Error::new(
            "the statement has no plan: it is a utility statement",
            "give a SELECT, VALUES, INSERT, UPDATE, DELETE or MERGE",
        ));
    }
    let plans: Vec<Explained> = serde_json::from_str(json).map_err(|error| match error.to_string() {
        said if said.contains("recursion limit") => {
            Error::new("the plan nests more than 60 nodes", "that is deeper than can be read")
        }
        said => no_plan(&said),
    })?;
    plans.into_iter().next().ok_or_else(|| no_plan("it is empty"))
}

fn no_plan(why: &str) -> Error {
    Error::new(format!("the server's EXPLAIN is not understood: {why}"), "this knows PostgreSQL 15 to 19")
}
