//! The results of a statement's runs.

use super::plan_mode::PlanMode;
use super::timing::Timing;
use crate::error::Error;
use crate::plan::Plan;
use crate::report::run_mode::{BASELINE, REPORTED, ROWS_ONLY, WITHOUT_BUFFERS};
use crate::report::{PlanSource, RunSample};
use crate::statistics::undisturbed::{Machine, ProbedRun};
use crate::statistics::{deviation, median};
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

/// A run without EXPLAIN.
#[derive(Clone, Copy, Debug)]
pub struct BaselineRun {
    /// client-side time
    pub client_ms: f64,
    /// rows that it sent to the client
    pub rows: u64,
    /// the part of `client_ms` in which the server planned the statement; `None` if it used an existing plan
    pub planning_ms: Option<f64>,
}

/// The results of all runs, in the order of the rounds. Times are in ms.
#[derive(Debug, Default)]
pub struct Runs {
    /// all counted runs with the probes around them, in their order. A baseline run is timed by the client, without the
    /// round trip. It runs twice per round, or once if the statement is long
    pub samples: Vec<RunSample>,
    /// duration of all counted rounds
    pub time: Duration,
    /// time that the user allowed for them
    pub allowed: Duration,
    /// plans of EXPLAIN ANALYZE as people type it
    pub reported: Vec<Plan>,
    /// the plan as EXPLAIN printed it, if the report needs it
    pub document: Option<PlanSource>,
    /// plans by each timing method that the server offers
    pub timed: Vec<(Timing, Vec<Plan>)>,
    /// upper limit of the overhead of one call, from a loop of bare calls; `None` if noise hides it
    pub bare_call_ms: Option<f64>,
    /// time of an empty statement
    pub round_trip_ms: f64,
    /// planning time of each baseline run, if it is a part of the client's time
    pub planning_ms: Vec<f64>,
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
    /// Adds a baseline run. Returns its time in ms, without the round trip and without the planning.
    pub fn add_baseline(&mut self, run: BaselineRun) -> f64 {
        self.rows_sent = run.rows;
        self.planning_ms.extend(run.planning_ms);
        (run.client_ms - self.round_trip_ms - run.planning_ms.unwrap_or(0.0)).max(0.0)
    }

    /// Sets the margin of what is subtracted from a baseline run. Each run's planning is measured next to that run, so its
    /// error is the scatter of the planning times.
    pub fn set_round_trip_margin(&mut self, round_trips_ms: f64) {
        self.round_trip_margin_ms = round_trips_ms.hypot(deviation(&self.planning_ms));
    }

    /// Returns the median planning time, if baseline runs include it.
    pub fn median_planning_ms(&self) -> Option<f64> {
        (!self.planning_ms.is_empty()).then(|| median(&self.planning_ms))
    }

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
    pub fn name(&self, mode: RunMode) -> String {
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
    pub fn checked(&self, plan: Plan) -> Result<Plan, Error> {
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
    fn each_baseline_run_is_reduced_by_its_own_planning_time() {
        let mut runs = Runs { round_trip_ms: 0.5, ..Runs::default() };
        let run = |client_ms, planning_ms| BaselineRun { client_ms, rows: 3, planning_ms };
        // The machine plans and executes more slowly in the second run.
        assert_eq!([run(12.5, Some(2.0)), run(24.5, Some(4.0))].map(|run| runs.add_baseline(run)), [10.0, 20.0]);
        assert_eq!((runs.median_planning_ms(), runs.rows_sent), (Some(3.0), 3));
        assert_eq!(runs.add_baseline(run(0.25, None)), 0.0);
        assert_eq!(Runs::default().median_planning_ms(), None);
    }

    #[test]
    fn the_margin_of_the_planning_is_its_scatter() {
        let margin = |planning_ms: [f64; 9]| {
            let mut runs = Runs { planning_ms: planning_ms.into(), ..Runs::default() };
            runs.set_round_trip_margin(3.0);
            runs.round_trip_margin_ms
        };
        assert_eq!(margin([40.0; 9]), 3.0);
        let scattered = [40.0, 41.0, 39.0, 42.0, 38.0, 43.0, 37.0, 44.0, 36.0];
        assert_eq!(margin(scattered), 3.0f64.hypot(deviation(&scattered)));
    }

    #[test]
    fn a_plan_of_another_shape_is_refused() {
        let runs = Runs { reported: vec![plan("Seq Scan")], ..Runs::default() };
        assert_eq!(runs.checked(plan("Seq Scan")).unwrap().execution_ms, 7.0);
        assert_eq!(runs.checked(plan("Index Scan")).unwrap_err().what, "the plan changes from run to run");
    }
}
