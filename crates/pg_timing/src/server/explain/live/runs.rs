//! Runs a statement in all modes, interleaved, and rolls every run back.

use super::bare_call;
use super::options::RunOptions;
use super::probe::probe_ms;
use super::run_results::{RunMode, Runs};
use super::script::Script;
use super::session::RunSession;
use super::stopping_rule::StoppingRule;
use super::subject::Subject;
use super::times::precision;
use super::timing::Timing;
use crate::error::Error;
use crate::report::{PlanFormat, PlanSource, RunSample};
use crate::server::connection::Connection;
use crate::statistics::{deviation, median};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Most rounds in the default time of 20 s. A statement with outside effects repeats them in each run.
const MOST_ROUNDS: f64 = 40.0;
const DEFAULT_TIME: Duration = Duration::from_secs(20);
const ROUND_TRIPS: usize = 15;
/// The warm-up's share of the progress bar.
const WARM_UP_SHARE: f64 = 0.1;
/// A statement that takes longer than this gets fewer runs, so that the answer comes sooner.
const LONG_MS: f64 = 1000.0;

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
    // The warm-up is not counted. It fills the caches. For a long statement, one run is enough.
    let warm_up_ms = run(&mut session, &subject, RunMode::Baseline, &mut empty())?;
    let modes = modes(session.connection.server_version(), timings.len(), warm_up_ms > LONG_MS);
    for &mode in modes.iter().filter(|_| warm_up_ms <= LONG_MS) {
        run(&mut session, &subject, mode, &mut empty())?;
    }
    let round_trips = session.round_trips_ms(ROUND_TRIPS)?;
    runs.round_trip_ms = median(&round_trips);
    runs.bare_call_ms = bare_call::max_overhead_ms(&mut session, runs.round_trip_ms)?;
    let mut before = probe_ms(&mut session)?;
    let mut rule = StoppingRule::new(options.time);
    runs.allowed = options.time;
    let most_rounds = MOST_ROUNDS * (options.time.as_secs_f64() / DEFAULT_TIME.as_secs_f64()).max(1.0);
    for round in 0..most_rounds as usize {
        for n in 0..modes.len() {
            // Each round begins with another mode.
            let mode = modes[(n + round) % modes.len()];
            let ms = run(&mut session, &subject, mode, &mut runs)?;
            let after = probe_ms(&mut session)?;
            runs.samples.push(RunSample { mode: runs.name(mode), ms, before_ms: before, after_ms: after });
            before = after;
            progress(WARM_UP_SHARE + (1.0 - WARM_UP_SHARE) * rule.used());
        }
        runs.set_round_trip_margin(deviation(&round_trips));
        runs.time = rule.elapsed();
        if rule.stop(round + 1, || precision(&runs)) {
            break;
        }
    }
    if session.document() == Some(PlanFormat::Text) {
        runs.document = Some(PlanSource::Text(session.plan_text(subject.explain_as_text())?));
    }
    Ok(runs)
}

/// Returns the modes of one round.
fn modes(server_version: i32, timings: usize, is_long: bool) -> Vec<RunMode> {
    // The baseline usually runs twice per round: all other modes are compared with it, and it is the fastest.
    let mut modes = vec![RunMode::Baseline, RunMode::RowsOnly, RunMode::Baseline, RunMode::Reported];
    if is_long {
        modes.remove(0);
    }
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
            let run = session.baseline(subject.baseline(), subject.planning())?;
            runs.add_baseline(run)
        }
        RunMode::RowsOnly => explain("TIMING OFF", None)?.0.execution_ms,
        RunMode::WithoutBuffers => explain("TIMING OFF, BUFFERS OFF", None)?.0.execution_ms,
        RunMode::Reported => {
            let (plan, json) = explain("TIMING ON", None)?;
            let plan = runs.checked(plan)?;
            if session.document() == Some(PlanFormat::Json) && runs.reported.is_empty() {
                runs.document = Some(PlanSource::Json(json));
            }
            let ms = plan.execution_ms;
            runs.reported.push(plan);
            ms
        }
        RunMode::Timed(index) => {
            let timing = runs.timed[index].0;
            let plan = runs.checked(explain("TIMING ON", Some(&timing))?.0)?;
            let ms = plan.execution_ms;
            runs.timed[index].1.push(plan);
            ms
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::stopping_rule::LEAST_ROUNDS;
    use super::super::timing::METHODS;
    use super::*;

    #[test]
    fn only_servers_that_count_buffers_by_default_run_without_them() {
        let count = |version, timings| modes(version, timings, false).len();
        assert_eq!((count(170_004, 0), count(180_000, 0), count(190_000, 2)), (4, 5, 7));
    }

    #[test]
    fn the_baseline_of_a_long_statement_runs_once_per_round() {
        assert_eq!(modes(170_004, 0, true), [RunMode::RowsOnly, RunMode::Baseline, RunMode::Reported]);
    }

    /// The help text and the guide show how often a statement runs: in the fewest rounds, and in the most rounds,
    /// without and with all timing methods. The warm-up is one more run, and one more round of a short statement.
    #[test]
    fn the_documented_numbers_of_runs_are_correct() {
        let help = include_str!("../../../command/explain_arguments.rs");
        let guide = include_str!("../../../../../../docs/touches.md");
        let least = 1 + LEAST_ROUNDS * modes(170_000, 0, true).len();
        let most = |timings: usize| 1 + (MOST_ROUNDS as usize + 1) * modes(190_000, timings, false).len();
        let all_timings = METHODS.iter().map(|(_, values)| values.len()).sum();
        let numbers = format!("{least} to {} times, or up to {} times if", most(0), most(all_timings));
        for text in [help, guide] {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&numbers), "{numbers}");
        }
    }
}
