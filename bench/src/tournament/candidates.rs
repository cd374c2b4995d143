//! The estimators. To try another one, add it to `CANDIDATES`.

use super::Match;
use pg_timing::statistics::undisturbed::{LogEstimate, Machine, ProbedRun, Response};
use pg_timing::statistics::{median, quantile, uncertainty};

pub struct Candidate {
    pub name: &'static str,
    /// the arguments are the runs of one mode, all runs of the session, and the statement's response
    estimate: fn(&[ProbedRun], &[ProbedRun], Response) -> Option<LogEstimate>,
}

pub const CANDIDATES: [Candidate; 6] = [
    Candidate { name: "median (before 1.0)", estimate: median_of_runs },
    Candidate { name: "minimum", estimate: minimum },
    Candidate { name: "median of the faster half", estimate: faster_half },
    Candidate { name: "fast runs", estimate: fast_runs },
    Candidate { name: "mean slowness", estimate: slowness },
    Candidate { name: "both, weighted (in use)", estimate: both },
];

impl Candidate {
    pub fn plain(&self, case: &Match) -> Option<LogEstimate> {
        (self.estimate)(&case.plain, &case.all, Response::PLAIN)
    }

    pub fn timed(&self, case: &Match) -> Option<LogEstimate> {
        (self.estimate)(&case.timed, &case.all, Response::TIMED)
    }
}

fn sorted(runs: &[ProbedRun]) -> Vec<f64> {
    let mut times: Vec<f64> = runs.iter().map(|run| run.ms.ln()).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn median_of_runs(runs: &[ProbedRun], _: &[ProbedRun], _: Response) -> Option<LogEstimate> {
    let times: Vec<f64> = runs.iter().map(|run| run.ms).collect();
    Some(LogEstimate { ln_ms: median(&times).ln(), error: (uncertainty(&times) / median(&times)).ln_1p(), common: 0.0 })
}

fn minimum(runs: &[ProbedRun], _: &[ProbedRun], _: Response) -> Option<LogEstimate> {
    let times = sorted(runs);
    Some(LogEstimate { ln_ms: times[0] + 0.01, error: (times.get(2)? - times[0]).max(0.01), common: 0.0 })
}

fn faster_half(runs: &[ProbedRun], _: &[ProbedRun], _: Response) -> Option<LogEstimate> {
    let times = sorted(runs);
    let ln_ms = quantile(&times, 0.25);
    Some(LogEstimate { ln_ms, error: (quantile(&times, 0.5) - times[0]).max(0.01), common: 0.0 })
}

fn fast_runs(runs: &[ProbedRun], all: &[ProbedRun], response: Response) -> Option<LogEstimate> {
    Some(Machine::of(all)?.from_fast_runs(runs, response))
}

fn slowness(runs: &[ProbedRun], all: &[ProbedRun], response: Response) -> Option<LogEstimate> {
    Some(Machine::of(all)?.from_slowness(runs, response))
}

fn both(runs: &[ProbedRun], all: &[ProbedRun], response: Response) -> Option<LogEstimate> {
    Machine::of(all)?.undisturbed(runs, response)
}
