//! Runs a statement in all modes, in rounds, and rolls every run back.
//!
//! A round is: baseline, reported, baseline, TIMING OFF, and other timing methods. `statistics.rs` compares each run with
//! the baseline runs of its round, and decides when the rounds are enough.

use super::script::explain_analyze;
use super::session::{Baseline, RunSession, executed, parse};
use super::subject::Subject;
use crate::error::Error;
use crate::human::duration;
use crate::plan::Plan;
use crate::report::{NS_PER_MS, Range, RunSample};
use crate::server::own_sql;
use crate::server::settings::FAST_TIMING_METHOD;
use crate::statistics::{CHECKED_AFTER_ROUNDS, Round, ratio};
use std::time::{Duration, Instant};

/// Fewer rounds give no interval.
pub const LEAST_ROUNDS: usize = CHECKED_AFTER_ROUNDS[0];
/// Most rounds in the default time of 20 s. A statement with outside effects repeats them in each run.
pub const MOST_ROUNDS: f64 = 40.0;
const DEFAULT_TIME: Duration = Duration::from_secs(20);
pub const ROUND_TRIPS: usize = 15;
pub const ROUND_TRIPS_OF_A_ROUND: usize = 5;
/// Loops of bare calls before the first round. Each round adds one, so that they see the same speeds as the runs.
const BARE_CALLS: usize = 7;
/// The warm-up's share of the progress bar.
const WARM_UP_SHARE: f64 = 0.1;
/// A statement that takes longer than this needs no warm-up in each mode: the first run in a mode costs some ms more at most.
const SHORT_MS: f64 = 50.0;
/// The user hears beforehand how long three rounds of a statement take that takes longer than this.
const LONG_MS: f64 = 3000.0;
// Names of the modes in a report.
/// Without EXPLAIN.
pub const BASELINE: &str = "baseline";
/// EXPLAIN ANALYZE, TIMING OFF.
pub const ROWS_ONLY: &str = "rows_only";
/// EXPLAIN ANALYZE as people type it.
pub const REPORTED: &str = "reported";
/// Options of EXPLAIN ANALYZE as people type it.
pub const TIMED: &str = "TIMING ON";

/// PostgreSQL 19's setting of the clock, and pg_fast_timing's, with their values: they select the timing method.
pub const METHODS: [(&str, &[&str]); 2] =
    [("timing_clock_source", &["system", "tsc"]), (FAST_TIMING_METHOD, &["off", "tsc", "auto"])];

/// How a statement is run.
#[derive(Clone, Debug, Default)]
pub struct RunMode {
    /// in a report
    pub name: String,
    /// of EXPLAIN ANALYZE; `None` is a run without EXPLAIN
    options: Option<&'static str>,
    /// SQL that selects the timing method until the end of the transaction
    pub settings: Vec<String>,
    /// pg_fast_timing times the nodes, or does not; `None`: as in other sessions
    pub fast_timing: Option<bool>,
}

impl RunMode {
    /// Returns a mode without settings. `options`: of EXPLAIN ANALYZE; `None` is a run without EXPLAIN.
    pub fn new(name: &str, options: Option<&'static str>) -> RunMode {
        RunMode { name: name.into(), options, ..RunMode::default() }
    }

    /// Returns the mode in which a setting selects the timing method. `has_fast_timing`: pg_fast_timing has to be switched off, or it
    /// would time the nodes instead of the server.
    pub fn timed_by(setting: &str, value: &str, has_fast_timing: bool) -> RunMode {
        let is_fast_timing = setting == FAST_TIMING_METHOD;
        let mut settings = vec![own_sql::set_local(setting, value)];
        settings.extend((has_fast_timing && !is_fast_timing).then(|| own_sql::set_local(FAST_TIMING_METHOD, "off")));
        let fast_timing = Some(is_fast_timing && value != "off");
        RunMode { settings, fast_timing, ..RunMode::new(&format!("{setting}={value}"), Some("TIMING ON")) }
    }
}

/// Returns the modes of one round.
pub fn modes(timings: &[RunMode]) -> Vec<RunMode> {
    let baseline = RunMode::new(BASELINE, None);
    let (reported, rows_only) = (RunMode::new(REPORTED, Some(TIMED)), RunMode::new(ROWS_ONLY, Some("TIMING OFF")));
    [&[baseline.clone(), reported, baseline, rows_only], timings].concat()
}

/// The results of all complete rounds. Times are in ms.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// all runs of all rounds, in their order. A baseline run is timed by the client, without the round trip
    pub samples: Vec<RunSample>,
    /// plans of EXPLAIN ANALYZE as people type it
    pub reported: Vec<Plan>,
    /// what timing adds to a call in a loop of bare calls, each measured at another moment
    pub bare_calls_ms: Vec<f64>,
    /// time of an empty statement
    pub round_trip_ms: Range,
    /// planning time of each baseline run, if it is a part of the client's time
    pub planning_ms: Vec<f64>,
    /// rows that each baseline run sent to the client
    pub rows_sent: u64,
    /// `None` if another round can follow: the interval is then checked again
    pub end: Option<End>,
}

/// Why no round follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// the time is up, or there are enough rounds
    TimeUp,
    /// the user stopped the runs
    Stopped,
}

impl Runs {
    /// Returns the times of all runs in a mode.
    pub fn ms_of(&self, mode: &str) -> Vec<f64> {
        self.samples.iter().filter(|sample| sample.mode == mode).map(|sample| sample.ms).collect()
    }

    /// Returns the number of complete rounds.
    pub fn rounds(&self) -> usize {
        self.reported.len()
    }

    /// Returns how many times longer the runs in a mode take than the baseline runs of their round. `None` if there are too few
    /// rounds.
    pub fn ratio(&self, mode: &str) -> Option<Range> {
        let mut runs = self.ms_of(mode).into_iter();
        let baseline = self.ms_of(BASELINE);
        let round = |pair: &[f64]| Some(Round { before_ms: pair[0], run_ms: runs.next()?, after_ms: pair[1] });
        let rounds: Vec<Round> = baseline.chunks_exact(2).filter_map(round).collect();
        (rounds.len() >= LEAST_ROUNDS).then(|| ratio(&rounds, self.end.is_some()))
    }

    /// Adds the runs of one round.
    pub fn add(&mut self, round: Runs) {
        self.samples.extend(round.samples);
        // The first plan stands for all. It has the median number of calls.
        self.reported.extend(round.reported);
        self.reported.sort_by(|a, b| a.calls_per_process().estimate.total_cmp(&b.calls_per_process().estimate));
        let middle = self.reported.len().div_ceil(2);
        self.reported[..middle].rotate_right(middle.min(1));
        self.planning_ms.extend(round.planning_ms);
        self.bare_calls_ms.extend(round.bare_calls_ms);
        self.rows_sent = round.rows_sent;
    }
}

/// The time of a measurement.
pub struct Course {
    start: Instant,
    time_s: f64,
}

impl Course {
    pub fn new(time: Duration) -> Course {
        Course { start: Instant::now(), time_s: time.as_secs_f64() }
    }

    /// Runs a round after this number of complete ones. Returns the round, and why none follows. If the user stops it, the complete
    /// rounds remain; without one, it is an error. `progress` receives the completed fraction.
    pub fn round<'a, T>(
        &self,
        complete: usize,
        session: &mut RunSession<'a>,
        progress: &mut dyn FnMut(f64),
        round: impl FnOnce(&mut RunSession<'a>) -> Result<T, Error>,
    ) -> Result<(Option<T>, Option<End>), Error> {
        let round = match round(session) {
            Ok(round) => Some(round),
            Err(_) if session.connection.is_stopped() && complete > 0 => None,
            Err(error) => return Err(error),
        };
        let share = self.start.elapsed().as_secs_f64() / self.time_s;
        progress(WARM_UP_SHARE + (1.0 - WARM_UP_SHARE) * share.min(1.0));
        let most_rounds = MOST_ROUNDS * (self.time_s / DEFAULT_TIME.as_secs_f64()).max(1.0);
        let is_late = share >= 1.0 && complete + 1 >= LEAST_ROUNDS || complete + 1 >= most_rounds as usize;
        let end = if round.is_none() { Some(End::Stopped) } else { is_late.then_some(End::TimeUp) };
        Ok((round, end))
    }
}

/// Returns what timing adds to a call in loops of bare calls, in ms.
pub fn bare_calls_ms(session: &mut RunSession, round_trip_ms: Range, options: &str) -> Result<Vec<f64>, Error> {
    (0..BARE_CALLS).map(|_| session.bare_call_ms(round_trip_ms.estimate, options)).collect()
}

/// Tells the user how long the least number of rounds takes, if that is long.
pub fn say_how_long(session: &RunSession, run_ms: f64, runs_of_a_round: usize) {
    if run_ms > LONG_MS {
        let least_ms = run_ms * (LEAST_ROUNDS * runs_of_a_round) as f64;
        (session.options.note)(&format!(
            "one run takes {}; {LEAST_ROUNDS} rounds of {runs_of_a_round} runs take at least {}; Ctrl-C shows what is known until then",
            duration(run_ms * NS_PER_MS),
            duration(least_ms * NS_PER_MS),
        ));
    }
}

/// Fills the caches. These runs are not counted. Of a long statement, one run is enough.
pub fn warm_up(session: &mut RunSession, subject: &Subject, runs: &Runs, modes: &[RunMode]) -> Result<(), Error> {
    let first_ms = run(session, subject, &modes[0], &mut Runs::default())?;
    if first_ms <= SHORT_MS {
        round(session, subject, runs, modes)?;
    }
    say_how_long(session, first_ms, modes.len());
    Ok(())
}

/// Runs one round, after the rounds in `known`.
pub fn round(session: &mut RunSession, subject: &Subject, known: &Runs, modes: &[RunMode]) -> Result<Runs, Error> {
    // The machine can be slower than in the last round.
    let mut round = Runs { round_trip_ms: session.round_trip_ms(ROUND_TRIPS_OF_A_ROUND)?, ..Runs::default() };
    for mode in modes {
        run(session, subject, mode, &mut round)?;
    }
    round.bare_calls_ms.push(session.bare_call_ms(known.round_trip_ms.estimate, TIMED)?);
    Ok(round)
}

/// Runs the statement once, and adds the run to this round. Returns its time in ms. Another plan than before is an error.
pub fn run(session: &mut RunSession, subject: &Subject, mode: &RunMode, round: &mut Runs) -> Result<f64, Error> {
    let ms = if let Some(options) = mode.options {
        let json = session.explain(&explain_analyze(options, &subject.explained), &mode.settings)?;
        let explained = parse(&json)?;
        subject.check_shape(&explained.root)?;
        let plan = executed(explained, mode.fast_timing.unwrap_or(session.has_fast_timing))?;
        let ms = plan.execution_ms;
        round.reported.extend((mode.name == REPORTED).then_some(plan));
        ms
    } else {
        let Baseline { ms, planning_ms, rows } =
            session.baseline(&subject.baseline, subject.is_planned, round.round_trip_ms.estimate)?;
        round.rows_sent = rows;
        round.planning_ms.extend(planning_ms);
        ms
    };
    round.samples.push(RunSample { mode: mode.name.clone(), ms });
    Ok(ms)
}

#[cfg(test)]
mod tests {
    use super::super::proptests::runs_with_times;
    use super::*;
    use crate::plan::Node;
    use crate::plan::tests::plan_of_json;

    fn plan(kind: &str, ms: f64) -> Plan {
        plan_of_json(&format!(r#"{{"Plan": {{"Node Type": "{kind}"}}}}"#), ms)
    }

    #[test]
    fn each_run_is_compared_with_the_baseline_runs_of_its_round() {
        // The machine is slower by two in the second round.
        let runs = runs_with_times(
            &[10.0, 20.0, 10.0],
            &[11.0, 22.0, 11.0],
            [15.0, 30.0, 15.0].map(|ms| plan("Sort", ms)).into(),
        );
        let ratio = |mode| (1e6 * runs.ratio(mode).unwrap().estimate).round() / 1e6;
        assert_eq!([ratio(REPORTED), ratio(ROWS_ONLY), ratio(BASELINE)], [1.5, 1.1, 1.0]);
        assert_eq!(runs_with_times(&[10.0; 2], &[11.0; 2], vec![plan("Sort", 15.0); 2]).ratio(REPORTED), None);
    }

    #[test]
    fn the_servers_clock_is_measured_without_pg_fast_timing() {
        let timed_by = |setting, value, has_fast_timing| {
            let RunMode { settings, fast_timing, .. } = RunMode::timed_by(setting, value, has_fast_timing);
            (settings.join("; "), fast_timing)
        };
        let alone = "SET LOCAL /* pg_timing */ timing_clock_source = tsc";
        let off = "SET LOCAL /* pg_timing */ pg_fast_timing.method = off";
        assert_eq!(timed_by("timing_clock_source", "tsc", false), (alone.into(), Some(false)));
        assert_eq!(timed_by("timing_clock_source", "tsc", true), (format!("{alone}; {off}"), Some(false)));
        assert_eq!(timed_by(FAST_TIMING_METHOD, "off", true), (off.into(), Some(false)));
        assert_eq!(timed_by(FAST_TIMING_METHOD, "tsc", true).1, Some(true));
    }

    #[test]
    fn a_plan_of_another_shape_is_refused() {
        let node = |name: &str| Node { name: name.into(), ..Node::default() };
        let subject = Subject { shape: node("Seq Scan").shape(), ..Subject::default() };
        assert_eq!(subject.check_shape(&node("Seq Scan")), Ok(()));
        assert_eq!(subject.check_shape(&node("Index Scan")).unwrap_err().what, "the plan changes from run to run");
    }

    /// The help text and the guide show how often a statement runs: in the fewest rounds, and in the most rounds,
    /// without and with all timing methods. The warm-up is one more run, and one more round of a short statement.
    #[test]
    fn the_documented_numbers_of_runs_are_correct() {
        let help = include_str!("../../command/help/explain.txt");
        let guide = include_str!("../../../../../docs/touches.md");
        let of_round = modes(&[]).len();
        let most = |timings: usize| 1 + (MOST_ROUNDS as usize + 1) * (of_round + timings);
        let all_timings = METHODS.iter().map(|(_, values)| values.len()).sum();
        let numbers =
            format!("{} to {} times, or up to {} times if", 1 + LEAST_ROUNDS * of_round, most(0), most(all_timings));
        for text in [help, guide] {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&numbers), "{numbers}");
        }
    }
}
