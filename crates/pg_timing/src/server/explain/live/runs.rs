//! Runs a statement in all modes, interleaved, and rolls every run back.

use super::bare_call;
use super::session::{RunOptions, Session};
use super::statement::Statement;
use super::timing::Timing;
use crate::error::Error;
use crate::server::connection::Connection;
use crate::server::explain::plan::Plan;
use crate::statistics::{deviation, median};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// without EXPLAIN
    Baseline,
    /// EXPLAIN ANALYZE, TIMING OFF
    RowsOnly,
    /// EXPLAIN ANALYZE, TIMING OFF, BUFFERS OFF; only on servers where BUFFERS is on by default (18 and later)
    WithoutBuffers,
    /// EXPLAIN ANALYZE as people type it
    Reported,
    /// EXPLAIN ANALYZE with another timing method; the value is its index in [`Runs::timed`]
    Timed(usize),
}

/// The results of all runs, in the order of the rounds. Times are in ms.
#[derive(Debug, Default)]
pub struct Runs {
    /// client-side time without the round trip; two runs per round
    pub baseline_ms: Vec<f64>,
    pub rows_only_ms: Vec<f64>,
    /// empty where BUFFERS is off by default
    pub without_buffers_ms: Vec<f64>,
    pub reported: Vec<Plan>,
    /// plans by each timing method that the server offers
    pub timed: Vec<(Timing, Vec<Plan>)>,
    /// upper limit of the overhead of one call, from a loop of bare calls; `None` if noise hides it, or after a timeout
    pub bare_call_ms: Option<f64>,
    /// time of an empty statement
    pub round_trip_ms: f64,
    /// margin of `round_trip_ms`, which is a part of each baseline run's margin
    pub round_trip_margin_ms: f64,
    /// rows that each baseline run sent to the client
    pub rows_sent: u64,
}

impl Runs {
    /// Returns the execution time of each EXPLAIN ANALYZE.
    pub fn reported_ms(&self) -> Vec<f64> {
        execution_ms(&self.reported)
    }

    /// Returns the mean of the baseline runs of each round.
    pub fn baseline_by_round(&self) -> Vec<f64> {
        let per_round = (self.baseline_ms.len() / self.rows_only_ms.len().max(1)).max(1);
        self.baseline_ms.chunks(per_round).map(|round| round.iter().sum::<f64>() / round.len() as f64).collect()
    }

    /// Returns the plans that were timed by sampling.
    pub fn sampled(&self) -> Option<&[Plan]> {
        self.timed.iter().find(|(timing, _)| timing.is_sampling()).map(|(_, plans)| plans.as_slice())
    }

    fn has_other_shape(&self, plan: &Plan) -> bool {
        let timed = self.timed.iter().filter_map(|(_, plans)| plans.first());
        self.reported.first().into_iter().chain(timed).any(|first| first.shape != plan.shape)
    }

    /// Returns the plan, or an error if it differs from the plans of the other runs: only equal plans can be compared.
    fn checked(&self, plan: Plan) -> Result<Plan, Error> {
        if self.has_other_shape(&plan) {
            return Err(Error::new(
                "the plan changes from run to run",
                "only runs of the same plan can be compared: run ANALYZE on the tables, or wait for autovacuum",
            ));
        }
        Ok(plan)
    }
}

/// Returns the execution time of each plan.
pub fn execution_ms(plans: &[Plan]) -> Vec<f64> {
    plans.iter().map(|plan| plan.execution_ms).collect()
}

/// Three runs give a spread. More than fifteen do not improve a median much.
const ROUNDS: std::ops::RangeInclusive<u32> = 3..=15;
/// The rounds together take about this long, if the statement is short enough.
const TARGET: Duration = Duration::from_secs(4);
const ROUND_TRIPS: usize = 15;
/// The warm-up round's share of the progress bar. A long statement has only three more rounds.
const WARM_UP_SHARE: f64 = 0.25;

/// Runs the statement in all modes. `progress` receives the completed fraction, from 0 to 1.
pub fn runs(
    connection: &mut Connection,
    statement: &Statement,
    timings: &[Timing],
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Runs, Error> {
    progress(0.0);
    let mut session = Session::new(connection, options, stop)?;
    let empty = || Runs { timed: timings.iter().map(|&timing| (timing, Vec::new())).collect(), ..Runs::default() };
    let mut runs = empty();
    session.prepare(statement, &bare_call::statement()?)?;
    let modes = modes(session.connection.server_version(), timings.len());
    // The warm-up round is not counted. It fills the caches and shows how long a round takes.
    let start = Instant::now();
    for (done, &mode) in modes.iter().enumerate() {
        progress(WARM_UP_SHARE * done as f64 / modes.len() as f64);
        run(&mut session, mode, statement, &mut empty())?;
    }
    let warm_up = start.elapsed();
    let round_trips = session.round_trips_ms(ROUND_TRIPS)?;
    runs.round_trip_ms = median(&round_trips);
    runs.round_trip_margin_ms = deviation(&round_trips);
    runs.bare_call_ms = bare_call::max_overhead_ms(&mut session, runs.round_trip_ms)?;
    let wanted = (TARGET.as_secs_f64() / warm_up.as_secs_f64()).ceil() as u32;
    let rounds = wanted.clamp(*ROUNDS.start(), *ROUNDS.end()) as usize;
    for round in 0..rounds {
        for n in 0..modes.len() {
            // Each round begins with another mode.
            run(&mut session, modes[(n + round) % modes.len()], statement, &mut runs)?;
            let done = (round * modes.len() + n + 1) as f64;
            progress(WARM_UP_SHARE + (1.0 - WARM_UP_SHARE) * done / (modes.len() * rounds) as f64);
        }
    }
    session.deallocate()?;
    for ms in &mut runs.baseline_ms {
        *ms = (*ms - runs.round_trip_ms).max(0.0);
    }
    Ok(runs)
}

fn modes(server_version: i32, timings: usize) -> Vec<RunMode> {
    // The baseline runs twice per round: all other modes are compared with it, and it is the fastest.
    let mut modes = vec![RunMode::Baseline, RunMode::RowsOnly, RunMode::Baseline, RunMode::Reported];
    if server_version >= 180_000 {
        modes.push(RunMode::WithoutBuffers);
    }
    modes.extend((0..timings).map(RunMode::Timed));
    modes
}

/// Runs the statement once and adds the result to `runs`.
fn run(session: &mut Session, mode: RunMode, statement: &Statement, runs: &mut Runs) -> Result<(), Error> {
    match mode {
        RunMode::Baseline => {
            let (ms, rows) = session.baseline()?;
            runs.baseline_ms.push(ms);
            runs.rows_sent = rows;
        }
        RunMode::RowsOnly => runs.rows_only_ms.push(session.explain(statement, "TIMING OFF", None)?.execution_ms),
        RunMode::WithoutBuffers => {
            let plan = session.explain(statement, "TIMING OFF, BUFFERS OFF", None)?;
            runs.without_buffers_ms.push(plan.execution_ms);
        }
        RunMode::Reported => {
            let plan = runs.checked(session.explain(statement, "TIMING ON", None)?)?;
            runs.reported.push(plan);
        }
        RunMode::Timed(index) => {
            let timing = runs.timed[index].0;
            let plan = runs.checked(session.explain(statement, "TIMING ON", Some(&timing))?)?;
            runs.timed[index].1.push(plan);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(kind: &str) -> Plan {
        Plan::new(serde_json::from_str(&format!(r#"{{"Plan": {{"Node Type": "{kind}"}}}}"#)).unwrap(), 7.0)
    }

    #[test]
    fn the_baseline_is_averaged_per_round() {
        let runs = Runs { baseline_ms: vec![1.0, 3.0, 5.0, 7.0], rows_only_ms: vec![9.0, 9.0], ..Runs::default() };
        assert_eq!(runs.baseline_by_round(), [2.0, 6.0]);
    }

    #[test]
    fn a_plan_of_another_shape_is_refused() {
        let runs = Runs { reported: vec![plan("Seq Scan")], ..Runs::default() };
        assert_eq!(runs.checked(plan("Seq Scan")).unwrap().execution_ms, 7.0);
        assert_eq!(runs.checked(plan("Index Scan")).unwrap_err().what, "the plan changes from run to run");
    }

    #[test]
    fn only_servers_that_count_buffers_by_default_run_without_them() {
        let count = |version, timings| modes(version, timings).len();
        assert_eq!((count(170_004, 0), count(180_000, 0), count(190_000, 2)), (4, 5, 7));
    }
}
