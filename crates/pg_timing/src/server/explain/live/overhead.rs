//! The overhead of EXPLAIN ANALYZE for the whole plan, from live runs.
//!
//! The overhead is the difference between the reported time and the baseline. It is divided by the calls of the plan.
//! A call costs at most as much as in a loop of bare calls, where the processor has no other work to overlap it with.
//! Overhead beyond that is `unexplained`; for example, the machine was slower during these runs. We assume that it slowed
//! all nodes by the same factor.

use super::run_results::Runs;
use super::times::{Times, time_ms};
use crate::plan::Plan;
use crate::plan::attribution::{Charge, attribute};
use crate::report::run_mode::{BASELINE, ROWS_ONLY, WITHOUT_BUFFERS};
use crate::report::{ExplainedNode, Range, Spread};
use crate::statistics::{median, quantile};

/// The figures of the whole plan. Times are in ms, at the speed that the machine had during the reported runs.
#[derive(Clone, Debug)]
pub struct Overhead {
    /// median of the runs of EXPLAIN ANALYZE
    pub reported: f64,
    /// reported / corrected; `None` if the statement is too short
    pub factor: Option<Range>,
    /// reported time without overhead
    pub corrected: Range,
    pub rows_only: f64,
    pub without_buffers: Option<f64>,
    /// time without EXPLAIN while nothing else slows the machine, also in other sessions
    pub undisturbed: Range,
    /// the runs do not show whether `undisturbed` is at full speed
    pub full_speed_is_uncertain: bool,
    /// baseline runs, from the 10th to the 90th percentile
    pub spread: Spread,
    /// calls of the whole plan, per process
    pub calls: f64,
    /// calls of the whole plan by all processes
    pub all_calls: f64,
    per_call: f64,
}

impl Overhead {
    /// Computes the overhead of the whole plan.
    pub fn of(runs: &Runs) -> Overhead {
        let times = Times::of(runs);
        let times = times.as_ref();
        let baseline = runs.ms_of(BASELINE);
        let reported = median(&runs.reported_ms());
        let factor = times.and_then(Times::factor);
        let corrected = match factor {
            Some(factor) => {
                Range { low: reported / factor.high, estimate: reported / factor.estimate, high: reported / factor.low }
            }
            None => too_short(&baseline, runs.round_trip_margin_ms),
        };
        let first = runs.reported.first();
        let calls = first.map_or(0.0, |run| run.calls_per_process().estimate);
        let processes = first.map_or(1.0, Plan::concurrent_processes);
        let mut overhead = Overhead {
            reported,
            factor,
            corrected,
            rows_only: time_ms(runs, times, ROWS_ONLY),
            without_buffers: runs.has(WITHOUT_BUFFERS).then(|| time_ms(runs, times, WITHOUT_BUFFERS)),
            undisturbed: times
                .and_then(|times| times.undisturbed(BASELINE))
                .map_or(corrected, |time| time.in_another_session().range()),
            full_speed_is_uncertain: times.is_some_and(|times| !times.saw_full_speed()),
            spread: Spread::of(&baseline),
            calls,
            all_calls: first.map_or(0.0, |run| run.all_calls().estimate),
            per_call: 0.0,
        };
        // Parallel processes that share a CPU wait for each other's timing.
        let max_per_call = runs.bare_call_ms.map_or(f64::INFINITY, |bare_call| bare_call * processes);
        overhead.per_call = (overhead.total() / calls.max(1.0)).min(max_per_call);
        overhead
    }

    /// Returns the reported time without overhead.
    pub fn baseline(&self) -> f64 {
        self.corrected.estimate
    }

    /// Returns the whole overhead. It is 0 if noise makes it look negative.
    fn total(&self) -> f64 {
        (self.reported - self.baseline()).max(0.0)
    }

    /// Returns the overhead of clock reads: of TIMING ON, without the part that the calls cannot explain.
    pub fn clock(&self) -> f64 {
        self.timing() * self.explained_part()
    }

    /// Returns the overhead of counting rows, and buffers if BUFFERS is on by default: what is neither clock reads nor
    /// unexplained.
    pub fn counting(&self) -> f64 {
        (self.total() - self.timing()) * self.explained_part()
    }

    /// Returns the overhead of TIMING ON. It is at most the whole overhead, even if noise makes it look larger.
    fn timing(&self) -> f64 {
        (self.reported - self.rows_only).clamp(0.0, self.total())
    }

    /// Returns the fraction of the overhead that the calls can explain.
    pub fn explained_part(&self) -> f64 {
        if self.total() > 0.0 { 1.0 - self.unexplained() / self.total() } else { 1.0 }
    }

    /// Returns the overhead that the calls cannot explain.
    pub fn unexplained(&self) -> f64 {
        (self.total() - self.per_call * self.calls.max(1.0)).max(0.0)
    }

    /// Returns every node with its corrected time.
    pub fn nodes(&self, runs: &Runs) -> Vec<ExplainedNode> {
        let clock_part = if self.total() > 0.0 { self.timing() / self.total() } else { 0.0 };
        let charge = Charge {
            reported: self.reported,
            whole: self.corrected,
            baseline_margin: self.corrected.half_width(),
            per_call: self.per_call,
            calls_margin: self.corrected.half_width(),
            unexplained: self.unexplained(),
            clock_per_call: self.per_call * clock_part,
            of_any_session: self.baseline(),
        };
        attribute(&runs.reported, self.calls, &charge, runs.sampled().map(|sampled| (sampled, self.corrected)))
    }
}

/// Returns the range of a statement that is lost in the round trip.
fn too_short(baseline: &[f64], margin: f64) -> Range {
    let mut sorted = baseline.to_vec();
    sorted.sort_by(f64::total_cmp);
    Range { low: 0.0, estimate: median(baseline), high: quantile(&sorted, 0.9) + margin }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str, execution_ms: f64) -> Plan {
        Plan::new(serde_json::from_str(json).unwrap(), execution_ms)
    }

    /// A count of a million rows: baseline 100 ms, row counting 10 ms, clock 90 ms.
    fn count_runs() -> Runs {
        count_runs_of([99.0, 100.0, 101.0, 100.0, 100.0])
    }

    fn count_runs_of(baseline: [f64; 5]) -> Runs {
        let run = plan(
            r#"{"Plan": {"Node Type": "Aggregate", "Actual Total Time": 200.0, "Actual Rows": 1, "Actual Loops": 1,
                "Plans": [{"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Total Time": 130.0, "Actual Rows": 999999, "Actual Loops": 1}]}}"#,
            200.0,
        );
        Runs::with_times(&[(BASELINE, &baseline), (ROWS_ONLY, &[110.0; 5])], vec![run; 5])
    }

    #[test]
    fn the_root_is_as_certain_as_the_baseline() {
        let overhead = Overhead::of(&count_runs());
        let figures = [overhead.baseline(), overhead.rows_only, overhead.reported, overhead.clock()];
        assert_eq!(figures.map(|ms| (10.0 * ms).round() / 10.0), [100.0, 110.0, 200.0, 90.0]);
        assert!(overhead.corrected.low <= 99.5 && overhead.corrected.high >= 100.5, "{:?}", overhead.corrected);
        assert!(overhead.corrected.low > 97.0 && overhead.corrected.high < 103.0, "{:?}", overhead.corrected);
        let factor = overhead.factor.unwrap();
        assert!(factor.low < 2.0 && (factor.estimate - 2.0).abs() < 0.001 && factor.high > 2.0, "{factor:?}");
        assert_eq!(overhead.spread, Spread { p10: 99.4, p90: 100.6 });
        let nodes = overhead.nodes(&count_runs());
        let (root, whole) = (nodes[0].corrected_ms, overhead.corrected);
        assert!((root.estimate - 100.0).abs() < 0.1, "{root:?}");
        assert!((root.half_width() - whole.half_width()).abs() < 0.1, "{root:?} {whole:?}");
    }

    #[test]
    fn self_times_are_precise_on_a_slow_clock() {
        // The scan makes a million calls with 1.7 us of overhead each.
        let run = |noise: f64| {
            let json = format!(
                r#"{{"Plan": {{"Node Type": "Nested Loop", "Actual Total Time": {}, "Actual Rows": 1, "Actual Loops": 1, "Plans": [
                    {{"Node Type": "Seq Scan", "Actual Total Time": {}, "Actual Rows": 999999, "Actual Loops": 1}},
                    {{"Node Type": "Hash", "Actual Total Time": {}, "Actual Rows": 1, "Actual Loops": 1}}]}}}}"#,
                9000.0 + noise,
                4300.0 + noise,
                3000.0 + noise,
            );
            plan(&json, 9000.0 + noise)
        };
        let runs = Runs::with_times(
            &[(BASELINE, &[7300.0; 5]), (ROWS_ONLY, &[7300.0; 5])],
            [-9.0, 3.0, 0.0, 6.0, -3.0].map(run).into(),
        );
        let overhead = Overhead::of(&runs);
        let nodes = overhead.nodes(&runs);
        assert_eq!([1, 2].map(|index| nodes[index].corrected_self_ms.round()), [3450.0, 3000.0]);
        // The overhead of the scan's own half calls may be wrong by 8%. In another session, each node differs by 10% of its
        // time and 1% of the statement's time, times the share of the other nodes.
        let between_sessions = |ms: f64| (0.1 * ms).hypot(73.0) * (1.0 - ms / 7300.0);
        let [scan, hash] = [1, 2].map(|index| nodes[index].corrected_self_off_ms);
        assert!((between_sessions(3450.0) + 10.0..210.0).contains(&scan), "{scan}");
        assert!((hash - between_sessions(3000.0)).abs() < 5.0, "{hash}");
        assert!((nodes[0].corrected_ms.half_width() - overhead.corrected.half_width()).abs() < 1.0);
    }

    #[test]
    fn a_node_is_charged_for_half_of_its_own_calls() {
        let runs = count_runs();
        let nodes = Overhead::of(&runs).nodes(&runs);
        let scan = &nodes[1];
        assert!((scan.corrected_ms.estimate - 80.0).abs() < 0.1, "{:?}", scan.corrected_ms);
        // A tenth of a call may fall to the other side of the scan's time: 10 ms. Sessions differ by 2 ms.
        assert!((10.0..13.0).contains(&scan.corrected_ms.half_width()), "{:?}", scan.corrected_ms);
        assert!(scan.corrected_ms.high <= nodes[0].corrected_ms.high);
        assert!((scan.clock_share - 45.0 / 130.0).abs() < 0.001);
        assert_eq!((scan.rank, scan.corrected_rank, nodes[0].rank), (Some(1), Some(1), Some(2)));
    }

    #[test]
    fn unexplained_overhead_makes_all_nodes_slower_alike() {
        let mut runs = count_runs();
        // Calls explain 40 of the 100 ms of overhead.
        runs.bare_call_ms = Some(40e-6);
        let overhead = Overhead::of(&runs);
        assert!((overhead.unexplained() - 60.0).abs() < 0.1, "{}", overhead.unexplained());
        let nodes = overhead.nodes(&runs);
        assert!((nodes[0].corrected_ms.estimate - 100.0).abs() < 0.1, "{:?}", nodes[0].corrected_ms);
        // The scan has 110 of the 160 ms that remain without the calls' overhead.
        assert!((nodes[1].corrected_ms.estimate - 100.0 * 110.0 / 160.0).abs() < 0.1, "{:?}", nodes[1].corrected_ms);
        // Of the 100 ms of overhead, TIMING ON caused 90. The calls explain 40% of that.
        assert!((nodes[1].clock_share - 18.0 / 130.0).abs() < 0.001);
        assert!((overhead.clock() - 36.0).abs() < 0.1, "{}", overhead.clock());
        // The scan makes all of the calls; half of a call falls into the aggregate's own time.
        assert!((nodes[0].clock_share * 200.0 - overhead.clock()).abs() < 0.1, "{}", nodes[0].clock_share);
        // If bare calls cost as much as the overhead, nothing is unexplained.
        let without_limit = Overhead::of(&count_runs()).nodes(&count_runs());
        runs.bare_call_ms = Some(100e-6);
        let scan = Overhead::of(&runs).nodes(&runs)[1].corrected_ms;
        assert!((scan.estimate - without_limit[1].corrected_ms.estimate).abs() < 0.01, "{scan:?}");
    }

    #[test]
    fn parallel_processes_may_wait_for_each_others_timing() {
        let mut runs = count_runs();
        runs.bare_call_ms = Some(10e-6);
        for run in &mut runs.reported {
            run.nodes[1].processes = 3.0;
        }
        let [overhead, single] =
            [Overhead::of(&runs), Overhead::of(&Runs { bare_call_ms: Some(10e-6), ..count_runs() })];
        assert!((single.unexplained() - 90.0).abs() < 0.1 && (overhead.unexplained() - 70.0).abs() < 0.1);
    }

    #[test]
    fn noise_does_not_make_the_overhead_negative() {
        let runs = count_runs_of([300.0; 5]);
        let overhead = Overhead::of(&runs);
        let nodes = overhead.nodes(&runs);
        assert!(nodes.iter().all(|node| node.corrected_ms.estimate == node.reported_ms && node.clock_share == 0.0));
        assert_eq!(overhead.factor.unwrap().low, 1.0);
        assert!(nodes[0].corrected_ms.high < 200.001, "EXPLAIN does not make a statement faster");
    }

    #[test]
    fn noisy_baseline_runs_widen_the_margins_of_self_times() {
        let margins = |baseline: [f64; 5]| {
            let runs = count_runs_of(baseline);
            Overhead::of(&runs).nodes(&runs).iter().map(|node| node.corrected_self_off_ms).collect::<Vec<f64>>()
        };
        let (quiet, noisy) = (margins([100.0; 5]), margins([60.0, 100.0, 140.0, 80.0, 120.0]));
        // The scan has half of the calls and four fifths of the time.
        assert!((0..2).all(|node| noisy[node] > quiet[node] + 1.5), "{quiet:?} {noisy:?}");
    }

    #[test]
    fn the_clock_is_at_most_the_whole_overhead() {
        let overhead = Overhead::of(&count_runs_of([150.0; 5]));
        assert!((overhead.clock() - 50.0).abs() < 1e-9, "{}", overhead.clock());
    }

    #[test]
    fn a_statement_that_is_lost_in_the_round_trip_has_only_an_upper_limit() {
        let runs =
            Runs { round_trip_ms: 0.1, round_trip_margin_ms: 0.02, ..count_runs_of([0.0, 0.0, 0.1, 0.02, 0.03]) };
        let overhead = Overhead::of(&runs);
        assert_eq!((overhead.factor, overhead.corrected.low), (None, 0.0));
        assert!((0.05..0.2).contains(&overhead.corrected.high), "{:?}", overhead.corrected);
    }
}
