//! The overhead of EXPLAIN ANALYZE from live runs, its report, and the notes.
//!
//! Two figures limit each other. The pairs of runs show how much longer EXPLAIN ANALYZE takes. The calls of the plan, and the cost
//! of a call in a loop of bare calls, show how much of that can be overhead. What the calls cannot cost is not overhead: the
//! machine was slower during the timed runs, or the caches were cold. But if the runs with TIMING ON take longer than those with
//! TIMING OFF by more than that, the calls of this plan cost more than bare calls, and only the pairs count. The calls alone give
//! the overhead of a statement that is too short to measure.

use super::runs::{BASELINE, End, REPORTED, ROWS_ONLY, RunMode, Runs};
use super::script::Script;
use super::server::LiveServer;
use super::session::{CUSTOM, GENERIC};
use super::subject::Subject;
use crate::human::duration;
use crate::plan::Plan;
use crate::plan::attribution::{Overhead, attribute};
use crate::report::{ExplainReport, LiveRuns, Range, Spread, Timed, is_too_short};
use crate::report::{LEAST_PART, MOST_PART, MS_PER_NS, NS_PER_MS, OVERLAP_NS, WORK_ERROR};
use crate::statistics::{ERROR, median, median_interval, quantile, sorted};

/// Clock reads are about this part of a call's overhead. The rest is the counting of rows and buffers.
const CLOCK_PART: f64 = 0.85;

/// Computes the overhead of the whole plan, at the speed that the machine had during the reported runs. Combines the overhead that the
/// pairs of runs show, if there is one, with the cost of the calls.
pub fn overhead(runs: &Runs, measured: Option<Range>) -> Overhead {
    let reported = median(&runs.ms_of(REPORTED));
    let calls = calls(runs);
    let at_once = runs.reported.first().map_or(1.0, Plan::concurrent_processes);
    let possible = possible_overhead(runs, reported, calls.times(at_once))
        .filter(|possible| measured.is_none() || !reads_cost_more(runs, reported, *possible));
    let (overhead, unexplained) = match (measured, possible) {
        (Some(measured), Some(possible)) => limit_by_calls(measured, possible),
        (Some(one), None) | (None, Some(one)) => (one, 0.0),
        (None, None) => (Range { low: 0.0, estimate: 0.0, high: reported }, 0.0),
    };
    let clock = match measured {
        Some(_) => extra_share(runs, REPORTED, ROWS_ONLY).estimate * reported,
        None => CLOCK_PART * overhead.estimate,
    };
    let clock = clock.clamp(0.0, overhead.estimate);
    Overhead { reported, corrected: overhead.subtracted_from(reported), clock, unexplained, calls: calls.estimate }
}

/// Returns by how much one mode takes longer than another, as a fraction of the reported time. Runs of the same round are compared.
fn extra_share(runs: &Runs, longer: &str, shorter: &str) -> Range {
    let baseline: Vec<f64> = runs.ms_of(BASELINE).chunks_exact(2).map(|pair| (pair[0] * pair[1]).sqrt()).collect();
    let times = |mode| if mode == BASELINE { baseline.clone() } else { runs.ms_of(mode) };
    let differences = times(longer).into_iter().zip(times(shorter)).zip(runs.ms_of(REPORTED));
    // EXPLAIN prints microseconds.
    let shares: Vec<f64> =
        differences.map(|((longer, shorter), reported)| (longer - shorter) / reported.max(0.001)).collect();
    median_interval(&shares, ERROR)
}

/// Returns the overhead that the pairs of runs show. `None` if there are too few, or the statement is lost in the round trip.
pub fn measured(runs: &Runs) -> Option<Range> {
    let [baseline, reported] = [BASELINE, REPORTED].map(|mode| median(&runs.ms_of(mode)));
    let is_too_short = is_too_short(baseline, runs.round_trip_ms.estimate);
    let Range { low, estimate, high } = runs.ratio(REPORTED).filter(|_| !is_too_short)?;
    // The round trip is subtracted from each baseline run.
    let margin = 1.0 + runs.round_trip_ms.margin() / baseline;
    let overhead = |ratio: f64| reported * (1.0 - 1.0 / ratio.max(1.0));
    Some(Range { low: overhead(low / margin), estimate: overhead(estimate), high: overhead(high * margin) })
}

/// Returns the overhead that the calls can cost. Parallel processes that share a CPU wait for each other's timing, so `calls` may be
/// those of all processes. `None` if noise hides the cost of a bare call.
fn possible_overhead(runs: &Runs, reported: f64, calls: Range) -> Option<Range> {
    let bare = sorted(&runs.bare_calls_ms);
    // The machine may be as slow during the runs as it was in the slowest loops, but not as slow as an interrupted loop seemed.
    let (usual, slow) = (median(&bare), quantile(&bare, 0.9));
    // A loop is short, so it may not have waited for a CPU as the statement did.
    let baseline = sorted(&runs.ms_of(BASELINE));
    let stretch = match baseline.first() {
        // A shorter run is the error of the round trip.
        Some(&fastest) if fastest > runs.round_trip_ms.high => median(&baseline) / fastest,
        _ => 1.0,
    };
    // Two reads.
    let most_overlap = 2.0 * OVERLAP_NS * MS_PER_NS;
    let least = (LEAST_PART * usual).max(usual - most_overlap);
    let slower_work = (WORK_ERROR * reported).min(calls.high * usual);
    (usual > 0.0).then(|| Range {
        low: (calls.low * least).min(reported),
        estimate: (calls.estimate * usual).min(reported),
        high: (calls.high * slow * stretch * MOST_PART + slower_work).min(reported),
    })
}

/// Returns whether clock reads cost more than the calls can cost. Only the clock reads differ between TIMING ON and OFF. A small
/// difference can be noise.
fn reads_cost_more(runs: &Runs, reported: f64, possible: Range) -> bool {
    extra_share(runs, REPORTED, ROWS_ONLY).low * reported > possible.high.max(WORK_ERROR * reported)
}

/// Returns the measured overhead within the limits of what the calls can cost, and the time that they cannot explain.
fn limit_by_calls(measured: Range, possible: Range) -> (Range, f64) {
    // The two contradict each other, so what both allow would be too narrow. A baseline run can contain more work than a timed one.
    if measured.estimate > possible.high || measured.high < possible.low {
        let unexplained = if measured.low > possible.high { measured.estimate - possible.high } else { 0.0 };
        return (Range { low: possible.low.min(measured.low), ..possible }, unexplained);
    }
    (Range { high: measured.high.min(possible.high), ..measured }, 0.0)
}

/// Returns the relative error of the corrected time. If the pairs show more overhead than the calls can cost, and that can still be
/// chance, the time is as uncertain as this difference.
pub fn relative_error(runs: &Runs) -> f64 {
    let measured = measured(runs);
    let Overhead { reported, corrected, unexplained, .. } = overhead(runs, measured);
    let difference = measured.map_or(0.0, |measured| measured.estimate - (reported - corrected.low));
    let doubt = if unexplained > 0.0 { 0.0 } else { difference / reported };
    corrected.relative_half_width().max(doubt)
}

/// Builds the report of a statement's runs.
pub fn report(server: &LiveServer, script: &Script, subject: &Subject, runs: &Runs) -> ExplainReport {
    let overhead = overhead(runs, measured(runs));
    ExplainReport {
        settings: server.settings.clone(),
        statement: Some(script.text.clone()),
        runs: Some(live_runs(server, script, subject, runs, &overhead)),
        notes: notes(server, subject, runs, relative_error(runs)),
        nodes: attribute(&runs.reported, &overhead),
        ..overhead.report()
    }
}

fn live_runs(server: &LiveServer, script: &Script, subject: &Subject, runs: &Runs, overhead: &Overhead) -> LiveRuns {
    let baseline = runs.ms_of(BASELINE);
    let (timing, counting) = (extra_share(runs, REPORTED, ROWS_ONLY), extra_share(runs, ROWS_ONLY, BASELINE));
    let counting_ms = overhead.reported - overhead.corrected.estimate - overhead.clock;
    let per_call = overhead.reported * NS_PER_MS / overhead.calls.max(1.0);
    let timed = |RunMode { name, .. }: &RunMode| {
        let (setting, value) = name.split_once('=')?;
        Some(Timed {
            setting: setting.into(),
            value: value.into(),
            reported_ms: overhead.reported * (1.0 + extra_share(runs, name, REPORTED).estimate),
            ratio: runs.ratio(name).map_or(1.0, |ratio| ratio.estimate.max(1.0)),
            clock_per_call_ns: extra_share(runs, name, ROWS_ONLY).times(per_call).clamp(0.0, f64::INFINITY),
        })
    };
    let mut given_settings: Vec<String> = script.settings.iter().map(|setting| setting.name.clone()).collect();
    given_settings.sort_unstable();
    given_settings.dedup();
    LiveRuns {
        server_version: server.version.clone(),
        server: server.name.clone(),
        runs: runs.rounds(),
        plain_runs: baseline.len(),
        plain_ms: median(&baseline),
        fastest_plain_ms: baseline.iter().copied().fold(f64::INFINITY, f64::min),
        spread_ms: Spread::of(&baseline),
        rows_only_ms: overhead.reported * (1.0 - timing.estimate),
        given_settings,
        plan_mode: subject.plan_mode.map(Into::into),
        round_trip_ms: runs.round_trip_ms.estimate,
        planning_ms: median_planning_ms(runs).or(subject.planning_ms),
        calls: runs.reported.first().map_or(0.0, |run| run.all_calls().estimate),
        clock_per_call_ns: per_call_with_margin(overhead.clock, timing, overhead),
        rows_per_call_ns: per_call_with_margin(counting_ms, counting, overhead),
        timed: server.timings.iter().filter_map(timed).collect(),
        samples: runs.samples.clone(),
    }
}

/// Returns a part of the overhead per call in ns, with the margin of the measured part, and at most the whole overhead.
fn per_call_with_margin(part_ms: f64, measured: Range, overhead: &Overhead) -> Range {
    let most_ms = overhead.reported - overhead.corrected.low;
    let margin_ms = measured.margin() * overhead.reported;
    let part =
        Range { low: part_ms - margin_ms, estimate: part_ms, high: (part_ms + margin_ms).min(most_ms).max(part_ms) };
    part.times(NS_PER_MS / overhead.calls.max(1.0)).clamp(0.0, f64::INFINITY)
}

/// Returns all notes, those about the server first.
fn notes(server: &LiveServer, subject: &Subject, runs: &Runs, half_width: f64) -> Vec<String> {
    let mut notes = server.notes.clone();
    if runs.end == Some(End::Stopped) {
        notes.push(format!("the runs were stopped; complete rounds: {}", runs.rounds()));
    }
    if runs.rows_sent > 0 {
        notes.push(format!("the baseline includes sending its rows to the client: {}", runs.rows_sent));
    }
    notes.extend(plan_mode(subject, runs));
    let rows = runs.reported.first().and_then(Plan::rows).filter(|rows| subject.skips_rows && *rows > 1.0);
    notes.extend(rows.map(|rows| format!("{rows} rows are not sent to the client, so psql's \\timing shows more")));
    notes.extend(different_calls(runs));
    notes.extend(imprecise(runs, half_width));
    if runs.reported.iter().any(|run| run.uses_jit) {
        notes.push("JIT compilation ran in every run; all figures include its time".into());
    }
    notes
}

/// Returns the median planning time, if baseline runs include it.
fn median_planning_ms(runs: &Runs) -> Option<f64> {
    (!runs.planning_ms.is_empty()).then(|| median(&runs.planning_ms))
}

/// Returns the time to plan the statement, if it is a part of the baseline, or not small compared with it.
pub fn notable_planning(subject: &Subject, runs: &Runs) -> Option<String> {
    const NOTABLE: f64 = 0.1;
    let not_small = |ms: &f64| *ms > NOTABLE * median(&runs.ms_of(BASELINE));
    let ms = median_planning_ms(runs).or(subject.planning_ms.filter(not_small))?;
    Some(duration(ms * NS_PER_MS))
}

/// Returns a note about the plan for the values of parameters, and about its planning.
fn plan_mode(subject: &Subject, runs: &Runs) -> Option<String> {
    let planning = notable_planning(subject, runs).map(|time| format!("planning took {time} and is not included"));
    match subject.plan_mode {
        Some(CUSTOM) => {
            Some(format!("the server plans the statement for these values (custom plan); {}", planning?))
        }
        Some(GENERIC) => Some(
            "the server uses a plan for any values (generic plan), as it does after five executions; SET plan_cache_mode = \
             force_custom_plan selects a plan for these values"
                .into(),
        ),
        _ => planning,
    }
}

/// Returns a note if the interval is wide and the time was up: a longer time would help.
fn imprecise(runs: &Runs, half_width: f64) -> Option<String> {
    const WANTED: f64 = 0.05;
    // The error of what the calls can cost does not depend on the number of rounds.
    let runs_vary =
        runs.ratio(REPORTED).filter(|ratio| ratio.relative_half_width() > WANTED).and(measured(runs)).is_some();
    (runs_vary && half_width > WANTED && half_width.is_finite() && runs.end != Some(End::Stopped)).then(|| {
        let (percent, rounds) = (100.0 * half_width, runs.rounds());
        format!("the runs varied, so the time is known to {percent:.0}% after {rounds} rounds; a --time above 20 s gives a narrower interval")
    })
}

/// Returns the numbers of calls: the smallest, the median, and the largest.
fn calls(runs: &Runs) -> Range {
    let calls = sorted(&runs.reported.iter().map(|run| run.calls_per_process().estimate).collect::<Vec<_>>());
    Range { low: quantile(&calls, 0.0), estimate: quantile(&calls, 0.5), high: quantile(&calls, 1.0) }
}

/// Returns a note if the numbers of calls differ. The overhead per call uses the median.
fn different_calls(runs: &Runs) -> Option<String> {
    const TOLERANCE: f64 = 1.1;
    const FEW: f64 = 10.0;
    let Range { low: min, high: max, .. } = calls(runs);
    (max > min * TOLERANCE + FEW)
        .then(|| format!("the number of calls varied from {min} to {max}, so the overhead per call is less certain"))
}

#[cfg(test)]
mod tests {
    use super::super::proptests::runs_with_times;
    use super::*;
    use crate::plan::tests::plan_of_json;

    fn plan(json: &str, execution_ms: f64) -> Plan {
        plan_of_json(json, execution_ms)
    }

    /// A count of a million rows: baseline 100 ms, row counting 10 ms, clock 90 ms.
    fn count_runs() -> Runs {
        runs_of([99.0, 100.0, 101.0, 100.0, 100.0, 100.0, 99.0, 101.0], 110.0)
    }

    /// The same runs, but the clock reads take 5 ms, and the machine was slower while EXPLAIN ran.
    fn slow_runs() -> Runs {
        runs_of([100.0; 8], 195.0)
    }

    fn runs_of(baseline: [f64; 8], rows_only: f64) -> Runs {
        let run = plan(
            r#"{"Plan": {"Node Type": "Aggregate", "Actual Total Time": 200.0, "Actual Rows": 1, "Actual Loops": 1,
                "Plans": [{"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Total Time": 130.0, "Actual Rows": 999999, "Actual Loops": 1}]}}"#,
            200.0,
        );
        runs_with_times(&baseline, &[rows_only; 8], vec![run; 8])
    }

    fn combined(runs: &Runs) -> Overhead {
        super::overhead(runs, measured(runs))
    }

    fn factor(overhead: &Overhead) -> Option<Range> {
        overhead.report().overhead_factor
    }

    fn rounded(overhead: &Overhead) -> [f64; 4] {
        [
            overhead.corrected.estimate,
            overhead.clock,
            (overhead.reported - overhead.corrected.estimate - overhead.clock),
            overhead.unexplained,
        ]
        .map(f64::round)
    }

    #[test]
    fn the_root_is_as_certain_as_the_statement() {
        let overhead = combined(&count_runs());
        assert_eq!(rounded(&overhead), [100.0, 90.0, 10.0, 0.0]);
        let Range { low, high, .. } = overhead.corrected;
        assert!((97.0..99.0).contains(&low) && (101.0..103.0).contains(&high), "{low} {high}");
        let factor = factor(&overhead).unwrap();
        assert!(factor.low < 2.0 && (factor.estimate - 2.0).abs() < 0.001 && factor.high > 2.0, "{factor:?}");
        let root = attribute(&count_runs().reported, &overhead)[0].corrected_ms;
        assert!((root.estimate - 100.0).abs() < 0.1 && (root.margin() - (100.0 - low)).abs() < 0.2, "{root:?}");
    }

    #[test]
    fn a_node_is_charged_for_half_of_its_own_calls() {
        let nodes = attribute(&count_runs().reported, &combined(&count_runs()));
        let scan = &nodes[1];
        assert!((scan.corrected_ms.estimate - 80.0).abs() < 0.1, "{:?}", scan.corrected_ms);
        // A tenth of a call may fall to the other side of the scan's time: 10 ms.
        assert!((10.0..16.0).contains(&scan.corrected_ms.margin()), "{:?}", scan.corrected_ms);
        assert!(scan.corrected_ms.high <= nodes[0].corrected_ms.high);
        assert!((scan.clock_share - 45.0 / 130.0).abs() < 0.001);
        assert_eq!((scan.rank, scan.corrected_rank, nodes[0].rank), (Some(1), Some(1), Some(2)));
    }

    #[test]
    fn what_the_calls_cannot_cost_is_not_overhead() {
        // A million calls cost 20 ms, and at most 26 + 6 ms.
        let runs = Runs { bare_calls_ms: vec![20e-6; 9], ..slow_runs() };
        let overhead = combined(&runs);
        assert_eq!(rounded(&overhead), [180.0, 5.0, 15.0, 68.0]);
        assert!((overhead.corrected.low - 168.0).abs() < 0.5 && (overhead.corrected.high - 196.0).abs() < 0.1);
        let nodes = attribute(&runs.reported, &overhead);
        assert!((nodes[0].corrected_ms.estimate - 180.0).abs() < 0.1, "{:?}", nodes[0].corrected_ms);
        // A call costs more while the statement waits for a CPU: the fastest baseline run takes a third of the time.
        let mut waits = runs.clone();
        waits.samples[0].ms = 33.3;
        assert!(combined(&waits).corrected.low < 120.0);
        // If bare calls cost as much as the overhead, nothing is unexplained.
        let explained = combined(&Runs { bare_calls_ms: vec![100e-6; 9], ..count_runs() });
        assert_eq!(rounded(&explained), [100.0, 90.0, 10.0, 0.0]);
    }

    #[test]
    fn timing_on_and_off_show_that_calls_reads_cost_more_than_bare_calls() {
        let overhead = combined(&Runs { bare_calls_ms: vec![20e-6; 9], ..count_runs() });
        assert_eq!(rounded(&overhead), [100.0, 90.0, 10.0, 0.0]);
        assert!((97.0..103.0).contains(&overhead.corrected.low) && overhead.corrected.high < 103.0);
    }

    #[test]
    fn contradicting_figures_do_not_make_the_interval_narrow() {
        let range = |low, estimate, high| Range { low, estimate, high };
        assert_eq!(limit_by_calls(range(19.0, 50.0, 90.0), range(4.0, 10.0, 20.0)), (range(4.0, 10.0, 20.0), 0.0));
        assert_eq!(limit_by_calls(range(2.0, 50.0, 90.0), range(4.0, 10.0, 20.0)), (range(2.0, 10.0, 20.0), 0.0));
        assert_eq!(limit_by_calls(range(25.0, 50.0, 90.0), range(4.0, 10.0, 20.0)), (range(4.0, 10.0, 20.0), 30.0));
        assert_eq!(limit_by_calls(range(8.0, 12.0, 90.0), range(4.0, 10.0, 20.0)), (range(8.0, 12.0, 20.0), 0.0));
        assert_eq!(limit_by_calls(range(0.0, 0.0, 1.0), range(4.0, 10.0, 20.0)), (range(0.0, 10.0, 20.0), 0.0));
    }

    #[test]
    fn parallel_processes_may_wait_for_each_others_timing() {
        let mut runs = Runs { bare_calls_ms: vec![20e-6; 9], ..slow_runs() };
        let single = combined(&runs).unexplained;
        runs.reported.iter_mut().for_each(|run| run.nodes[1].processes = 3.0);
        assert!(combined(&runs).unexplained < single - 30.0);
    }

    #[test]
    fn a_statement_that_sleeps_has_no_overhead() {
        let sleep = plan(
            r#"{"Plan": {"Node Type": "Result", "Actual Total Time": 200.1, "Actual Rows": 1, "Actual Loops": 1}}"#,
            200.1,
        );
        let runs = Runs { bare_calls_ms: vec![40e-6; 9], ..runs_with_times(&[200.1; 3], &[200.1; 3], vec![sleep; 3]) };
        let overhead = combined(&runs);
        assert!(factor(&overhead).unwrap().high < 1.000001, "{:?}", factor(&overhead));
    }

    #[test]
    fn baseline_runs_that_contain_more_work_say_nothing_about_the_calls() {
        let runs = Runs { bare_calls_ms: vec![40e-6; 9], ..runs_of([300.0; 8], 195.0) };
        let overhead = combined(&runs);
        assert_eq!(factor(&overhead).unwrap().low, 1.0);
        // A million calls cost 40 ms, and at most 52 + 6 ms.
        assert!((overhead.corrected.low - 142.0).abs() < 0.5 && overhead.corrected.high == 200.0, "{overhead:?}");
        assert!((overhead.corrected.estimate - 160.0).abs() < 0.1, "{overhead:?}");
    }

    #[test]
    fn different_numbers_of_calls_widen_what_the_calls_can_cost() {
        let mut runs = Runs { bare_calls_ms: vec![20e-6; 9], ..slow_runs() };
        let equal = combined(&runs).corrected;
        runs.reported[3].nodes[1].calls = Range::exactly(3e6);
        assert!(combined(&runs).corrected.low < equal.low - 30.0);
        let mut added = Runs::default();
        for calls in [5.0, 9.0, 1.0] {
            let mut round = Runs { reported: vec![runs.reported[0].clone()], ..Runs::default() };
            round.reported[0].nodes[1].calls = Range::exactly(calls);
            added.add(round);
        }
        assert_eq!(added.reported[0].nodes[1].calls, Range::exactly(5.0), "the first plan stands for all");
    }

    #[test]
    fn a_difference_that_can_be_chance_needs_more_rounds() {
        // The pairs show 10% more than the calls can cost, in some of the rounds.
        let varying = [100.0, 200.0, 100.0, 200.0, 200.0, 100.0, 200.0, 100.0];
        let runs = Runs { bare_calls_ms: vec![0.1e-6; 9], ..runs_of(varying, 200.0) };
        assert!(combined(&runs).unexplained == 0.0 && relative_error(&runs) > 0.1, "{}", relative_error(&runs));
        let certain = Runs { bare_calls_ms: vec![0.1e-6; 9], ..slow_runs() };
        assert!(combined(&certain).unexplained > 0.0 && relative_error(&certain) < 0.03);
    }

    #[test]
    fn a_statement_that_is_lost_in_the_round_trip_has_the_overhead_of_its_calls() {
        let one_row = plan(
            r#"{"Plan": {"Node Type": "Result", "Actual Total Time": 0.005, "Actual Rows": 1, "Actual Loops": 1}}"#,
            0.016,
        );
        let short = |bare_calls_ms| Runs {
            round_trip_ms: Range::between(0.08, 0.12),
            bare_calls_ms,
            ..runs_with_times(&[0.01; 8], &[0.01; 8], vec![one_row.clone(); 8])
        };
        let overhead = combined(&short(vec![40e-6; 9]));
        let calls_ms = overhead.calls * 40e-6;
        assert!((overhead.reported - overhead.corrected.estimate - calls_ms).abs() < 1e-9, "{overhead:?}");
        assert!(factor(&overhead).is_some() && overhead.unexplained == 0.0);
        let unknown = combined(&short(vec![]));
        assert_eq!((factor(&unknown), unknown.corrected.low, unknown.corrected.high), (None, 0.0, 0.016));
    }

    mod notes {
        use super::*;

        fn run(rows: u32) -> Plan {
            let json = format!(
                r#"{{"Plan": {{"Node Type": "Seq Scan", "Actual Total Time": 90.0, "Actual Rows": {rows}, "Actual Loops": 1}}}}"#
            );
            plan_of_json(&json, 100.0)
        }

        fn runs(baseline_ms: [f64; 3], rows: [u32; 3]) -> Runs {
            runs_with_times(&baseline_ms, &[95.0; 3], rows.map(run).into())
        }

        #[test]
        fn quiet_runs_of_few_rows_have_no_notes() {
            let runs = runs([90.0, 90.5, 90.2], [900, 900, 900]);
            assert_eq!((different_calls(&runs), imprecise(&runs, 0.01)), (None, None));
        }

        #[test]
        fn rows_that_are_not_sent_are_noted() {
            let subject = Subject { skips_rows: true, ..Subject::default() };
            let of = |rows| notes(&LiveServer::default(), &subject, &runs([90.0; 3], [rows; 3]), 0.01);
            assert!(of(5000)[0].starts_with("5000 rows are not sent"));
            assert!(of(9)[0].starts_with("9 rows are not sent"), "they can be wide");
            assert_eq!(of(1), Vec::<String>::new());
        }

        #[test]
        fn a_long_planning_time_is_noted() {
            let of = |planning_ms| {
                let subject = Subject { planning_ms: Some(planning_ms), ..Subject::default() };
                notes(&LiveServer::default(), &subject, &runs([90.0; 3], [9; 3]), 0.01)
            };
            assert_eq!(of(13.5), ["planning took 13.5 ms and is not included"]);
            assert_eq!(of(0.5), Vec::<String>::new());
        }

        #[test]
        fn different_numbers_of_calls_are_noted() {
            let note = different_calls(&runs([90.0; 3], [500, 900, 600])).unwrap();
            assert!(note.contains("501 to 901"), "{note}");
            assert_eq!(different_calls(&runs([90.0; 3], [900, 950, 910])), None);
        }

        #[test]
        fn rounds_that_vary_are_noted() {
            let note = imprecise(&runs([80.0, 120.0, 95.0], [900; 3]), 0.1).unwrap();
            assert!(note.contains("to 10% after 3 rounds") && note.contains("a --time above 20 s"), "{note}");
            assert_eq!(imprecise(&runs([90.0, 90.1, 90.2], [900; 3]), 0.1), None, "the calls are uncertain");
            assert_eq!(imprecise(&Runs { end: Some(End::Stopped), ..runs([80.0, 120.0, 95.0], [900; 3]) }, 0.1), None);
        }
    }
}
