//! Runs a statement in all modes, interleaved, and rolls every run back.

use super::bare_call;
use super::looks::Looks;
use super::options::RunOptions;
use super::plan_mode::PlanMode;
use super::probe::probe_ms;
use super::script::Script;
use super::session::RunSession;
use super::subject::Subject;
use super::times::precision;
use super::timing::Timing;
use crate::error::Error;
use crate::report::RunSample;
use crate::server::connection::Connection;
use crate::server::explain::plan::Plan;
use crate::statistics::undisturbed::{Machine, ProbedRun};
use crate::statistics::{deviation, median};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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

// The names of the modes in a report.
pub const BASELINE: &str = "baseline";
pub const ROWS_ONLY: &str = "rows_only";
pub const WITHOUT_BUFFERS: &str = "without_buffers";
pub const REPORTED: &str = "reported";

/// The results of all runs, in the order of the rounds. Times are in ms.
#[derive(Debug, Default)]
pub struct Runs {
    /// all counted runs with the probes around them, in their order. A baseline run is timed by the client, without the
    /// round trip. It runs twice per round
    pub samples: Vec<RunSample>,
    /// duration of all counted rounds
    pub time: Duration,
    /// time that the user allowed for them
    pub allowed: Duration,
    /// plans of EXPLAIN ANALYZE as people type it
    pub reported: Vec<Plan>,
    /// plans by each timing method that the server offers
    pub timed: Vec<(Timing, Vec<Plan>)>,
    /// upper limit of the overhead of one call, from a loop of bare calls; `None` if noise hides it, or after a timeout
    pub bare_call_ms: Option<f64>,
    /// time of an empty statement
    pub round_trip_ms: f64,
    /// planning time of the baseline, if it is a part of the client's time
    pub planning_ms: Option<f64>,
    /// the server's choice of a plan for the values of the parameters
    pub plan_mode: Option<PlanMode>,
    /// the statement stores its rows in a new table
    pub fills_table: bool,
    /// margin of `round_trip_ms` and `planning_ms`, which is a part of each baseline run's margin
    pub round_trip_margin_ms: f64,
    /// rows that each baseline run sent to the client
    pub rows_sent: u64,
}

impl Runs {
    /// Returns the execution time of each EXPLAIN ANALYZE.
    pub fn reported_ms(&self) -> Vec<f64> {
        execution_ms(&self.reported)
    }

    /// Returns the times of all runs in a mode.
    pub fn ms_of(&self, mode: &str) -> Vec<f64> {
        self.samples.iter().filter(|sample| sample.mode == mode).map(|sample| sample.ms).collect()
    }

    pub fn has(&self, mode: &str) -> bool {
        self.samples.iter().any(|sample| sample.mode == mode)
    }

    /// Returns the runs in a mode, with their probes.
    pub fn probed(&self, mode: &str) -> Vec<ProbedRun> {
        self.samples.iter().filter(|sample| sample.mode == mode).map(probed).collect()
    }

    /// Returns what the probes say about the machine. `None` without runs.
    pub fn machine(&self) -> Option<Machine> {
        Machine::of(&self.samples.iter().map(probed).collect::<Vec<_>>())
    }

    /// Returns the mean of the runs in a mode, for each round.
    pub fn by_round(&self, mode: &str) -> Vec<f64> {
        let times = self.ms_of(mode);
        let per_round = (times.len() / self.reported.len().max(1)).max(1);
        times.chunks(per_round).map(|round| round.iter().sum::<f64>() / round.len() as f64).collect()
    }

    /// Returns the plans that were timed by sampling.
    pub fn sampled(&self) -> Option<&[Plan]> {
        self.timed.iter().find(|(timing, _)| timing.is_sampling()).map(|(_, plans)| plans.as_slice())
    }

    /// Returns the name of a mode in a report.
    fn name(&self, mode: RunMode) -> String {
        match mode {
            RunMode::Baseline => BASELINE.into(),
            RunMode::RowsOnly => ROWS_ONLY.into(),
            RunMode::WithoutBuffers => WITHOUT_BUFFERS.into(),
            RunMode::Reported => REPORTED.into(),
            RunMode::Timed(index) => self.timed[index].0.to_string(),
        }
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

/// Three runs give a scatter.
const LEAST_ROUNDS: usize = 3;
/// Most rounds in the default time of 20 s. A statement with outside effects repeats them in each run.
const MOST_ROUNDS: f64 = 40.0;
const DEFAULT_TIME: Duration = Duration::from_secs(20);
const ROUND_TRIPS: usize = 15;
/// Shared machines become up to 1.9 times slower, for seconds. Half of that is the usual deviation.
const PLANNING_VARIES: f64 = 0.25;
/// The warm-up round's share of the progress bar. A long statement has only three more rounds.
const WARM_UP_SHARE: f64 = 0.25;

/// Runs the statement in all modes. `progress` receives the completed fraction, from 0 to 1.
pub fn runs(
    connection: &mut Connection,
    script: &Script,
    timings: &[Timing],
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Runs, Error> {
    progress(0.0);
    let mut session = RunSession::new(connection, options, script.settings(), stop)?;
    let empty = || Runs { timed: timings.iter().map(|&timing| (timing, Vec::new())).collect(), ..Runs::default() };
    let mut runs = empty();
    let subject = Subject::prepare(&mut session, script)?;
    session.prepare_own()?;
    runs.plan_mode = subject.plan_mode();
    runs.fills_table = script.statement().creates_table();
    let modes = modes(session.connection.server_version(), timings.len());
    // The warm-up round is not counted. It fills the caches and shows how long a round takes.
    for (done, &mode) in modes.iter().enumerate() {
        progress(WARM_UP_SHARE * done as f64 / modes.len() as f64);
        run(&mut session, &subject, mode, &mut empty())?;
    }
    let round_trips = session.round_trips_ms(ROUND_TRIPS)?;
    runs.round_trip_ms = median(&round_trips);
    runs.round_trip_margin_ms = deviation(&round_trips);
    if let Some(explain) = subject.planning() {
        let planning = session.planning_ms(&explain, ROUND_TRIPS)?;
        let ms = median(&planning);
        // It is measured at one moment, and the machine may be slower or faster at another.
        let margin = deviation(&planning).max(PLANNING_VARIES * ms);
        runs.planning_ms = Some(ms);
        runs.round_trip_margin_ms = runs.round_trip_margin_ms.hypot(margin);
    }
    runs.bare_call_ms = bare_call::max_overhead_ms(&mut session, runs.round_trip_ms)?;
    let mut before = probe_ms(&mut session)?;
    let mut looks = Looks::new(options.time);
    runs.allowed = options.time;
    let most_rounds = MOST_ROUNDS * (options.time.as_secs_f64() / DEFAULT_TIME.as_secs_f64()).max(1.0);
    for round in 0..most_rounds as usize {
        for n in 0..modes.len() {
            // Each round begins with another mode.
            let mode = modes[(n + round) % modes.len()];
            let ms = run(&mut session, &subject, mode, &mut runs)?;
            let after = probe_ms(&mut session)?;
            // The round trip is a part of the client's time, and so is the planning.
            let other_ms = runs.round_trip_ms + runs.planning_ms.unwrap_or(0.0);
            let ms = if mode == RunMode::Baseline { (ms - other_ms).max(0.0) } else { ms };
            runs.samples.push(RunSample { mode: runs.name(mode), ms, before_ms: before, after_ms: after });
            before = after;
            progress(WARM_UP_SHARE + (1.0 - WARM_UP_SHARE) * looks.used());
        }
        runs.time = looks.elapsed();
        if round + 1 >= LEAST_ROUNDS && looks.stop(|| precision(&runs)) {
            break;
        }
    }
    session.deallocate(subject.prepared())?;
    session.deallocate_own()?;
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

/// Runs the statement once and keeps its plan. Returns its time in ms.
fn run(session: &mut RunSession, subject: &Subject, mode: RunMode, runs: &mut Runs) -> Result<f64, Error> {
    let mut explain =
        |options, timing: Option<&Timing>| session.explain_analyze(subject.explain_analyze(options), timing);
    Ok(match mode {
        RunMode::Baseline => {
            let (ms, rows) = session.baseline(subject.baseline())?;
            runs.rows_sent = rows;
            ms
        }
        RunMode::RowsOnly => explain("TIMING OFF", None)?.execution_ms,
        RunMode::WithoutBuffers => explain("TIMING OFF, BUFFERS OFF", None)?.execution_ms,
        RunMode::Reported => {
            let plan = runs.checked(explain("TIMING ON", None)?)?;
            let ms = plan.execution_ms;
            runs.reported.push(plan);
            ms
        }
        RunMode::Timed(index) => {
            let timing = runs.timed[index].0;
            let plan = runs.checked(explain("TIMING ON", Some(&timing))?)?;
            let ms = plan.execution_ms;
            runs.timed[index].1.push(plan);
            ms
        }
    })
}

fn probed(sample: &RunSample) -> ProbedRun {
    ProbedRun { ms: sample.ms, before_ms: sample.before_ms, after_ms: sample.after_ms }
}

#[cfg(test)]
impl Runs {
    /// Returns runs with these times on a machine of constant speed.
    pub fn with_times(times: &[(&str, &[f64])], reported: Vec<Plan>) -> Runs {
        let explained = reported.iter().map(|plan| (REPORTED, plan.execution_ms));
        let others = times.iter().flat_map(|(mode, times)| times.iter().map(|&ms| (*mode, ms)));
        let sample = |(mode, ms): (&str, f64)| RunSample { mode: mode.into(), ms, before_ms: 3.0, after_ms: 3.0 };
        Runs { samples: others.chain(explained).map(sample).collect(), reported, ..Runs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(kind: &str) -> Plan {
        Plan::new(serde_json::from_str(&format!(r#"{{"Plan": {{"Node Type": "{kind}"}}}}"#)).unwrap(), 7.0)
    }

    #[test]
    fn the_baseline_is_averaged_per_round() {
        let runs = Runs::with_times(&[(BASELINE, &[1.0, 3.0, 5.0, 7.0])], vec![plan("Sort"), plan("Sort")]);
        assert_eq!(runs.by_round(BASELINE), [2.0, 6.0]);
        assert_eq!(runs.by_round(REPORTED), [7.0, 7.0]);
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
