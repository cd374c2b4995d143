//! The overhead of EXPLAIN ANALYZE for the whole plan, from live runs.
//!
//! The overhead is the difference between the reported time and the baseline. It is divided by the calls of the plan.
//! A call costs at most as much as in a loop of bare calls, where the processor has no other work to overlap it with.
//! Overhead beyond that is `unexplained`; for example, the machine was slower during these runs. We assume that it slowed
//! all nodes by the same factor.

use super::runs::Runs;
use crate::report::{ExplainedNode, Range};
use crate::server::explain::attribution::{Charge, attribute};
use crate::statistics::{median, paired_difference, uncertainty};

/// Medians over the runs. Times are in ms.
#[derive(Clone, Debug)]
pub struct Overhead {
    pub baseline: f64,
    pub rows_only: f64,
    pub without_buffers: Option<f64>,
    pub reported: f64,
    pub corrected: Range,
    /// calls of the whole plan, per process
    pub calls: f64,
    per_call: f64,
}

impl Overhead {
    /// Computes the overhead of the whole plan.
    pub fn of(runs: &Runs) -> Overhead {
        let baseline = median(&runs.baseline_ms);
        let margin = uncertainty(&runs.baseline_ms).hypot(runs.round_trip_margin_ms);
        let (calls, processes) =
            runs.reported.first().map_or((0.0, 1.0), |run| (run.total_calls().estimate, run.concurrent_processes()));
        let mut overhead = Overhead {
            baseline,
            rows_only: median(&runs.rows_only_ms),
            without_buffers: (!runs.without_buffers_ms.is_empty()).then(|| median(&runs.without_buffers_ms)),
            reported: median(&runs.reported_ms()),
            corrected: Range { low: (baseline - margin).max(0.0), estimate: baseline, high: baseline + margin },
            calls,
            per_call: 0.0,
        };
        // Parallel processes that share a CPU wait for each other's timing.
        let max_per_call = runs.bare_call_ms.map_or(f64::INFINITY, |bare_call| bare_call * processes);
        overhead.per_call = (overhead.total() / calls.max(1.0)).min(max_per_call);
        overhead
    }

    /// Returns the whole overhead. It is 0 if noise makes it look negative.
    fn total(&self) -> f64 {
        (self.reported - self.baseline).max(0.0)
    }

    /// Returns the overhead of TIMING ON. It is at most the whole overhead, even if noise makes it look larger.
    pub fn clock(&self) -> f64 {
        (self.reported - self.rows_only).clamp(0.0, self.total())
    }

    /// Returns the overhead that the calls cannot explain.
    pub fn unexplained(&self) -> f64 {
        (self.total() - self.per_call * self.calls.max(1.0)).max(0.0)
    }

    /// Returns every node with its corrected time.
    pub fn nodes(&self, runs: &Runs) -> Vec<ExplainedNode> {
        let clock_part = if self.total() > 0.0 { self.clock() / self.total() } else { 0.0 };
        let overhead = paired_difference(&runs.reported_ms(), &runs.baseline_by_round());
        let charge = Charge {
            reported: self.reported,
            // If noise makes EXPLAIN ANALYZE look faster than the baseline, it hides that much overhead.
            baseline_margin: self.corrected.high - self.corrected.estimate + (self.baseline - self.reported).max(0.0),
            per_call: self.per_call,
            per_call_bound: 0.0,
            calls_margin: overhead.high - overhead.estimate,
            unexplained: self.unexplained(),
            clock_per_call: self.per_call * clock_part,
        };
        attribute(&runs.reported, self.calls, &charge, runs.sampled().map(|sampled| (sampled, self.corrected)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::explain::plan::Plan;

    fn plan(json: &str, execution_ms: f64) -> Plan {
        Plan::new(serde_json::from_str(json).unwrap(), execution_ms)
    }

    /// A count of a million rows: baseline 100 ms, row counting 10 ms, clock 90 ms.
    fn count_runs() -> Runs {
        let run = plan(
            r#"{"Plan": {"Node Type": "Aggregate", "Actual Total Time": 200.0, "Actual Rows": 1, "Actual Loops": 1,
                "Plans": [{"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Total Time": 130.0, "Actual Rows": 999999, "Actual Loops": 1}]}}"#,
            200.0,
        );
        Runs {
            baseline_ms: vec![99.0, 100.0, 101.0, 100.0, 100.0],
            rows_only_ms: vec![110.0; 5],
            reported: vec![run; 5],
            ..Runs::default()
        }
    }

    #[test]
    fn the_root_is_as_certain_as_the_baseline() {
        let overhead = Overhead::of(&count_runs());
        assert_eq!(
            (overhead.baseline, overhead.rows_only, overhead.reported, overhead.clock()),
            (100.0, 110.0, 200.0, 90.0)
        );
        assert!(overhead.corrected.low <= 99.0 && overhead.corrected.high >= 101.0);
        assert!(overhead.corrected.low > 90.0 && overhead.corrected.high < 110.0);
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
        let runs = Runs {
            baseline_ms: vec![7300.0; 5],
            rows_only_ms: vec![7300.0; 5],
            reported: [-9.0, 3.0, 0.0, 6.0, -3.0].map(run).into(),
            ..Runs::default()
        };
        let overhead = Overhead::of(&runs);
        let nodes = overhead.nodes(&runs);
        assert_eq!([1, 2].map(|index| nodes[index].corrected_self_ms.round()), [3450.0, 3000.0]);
        // The overhead of the scan's own half calls may be wrong by 8%, and the runs differ.
        assert!((60.0..150.0).contains(&nodes[1].corrected_self_off_ms), "{}", nodes[1].corrected_self_off_ms);
        assert!(nodes[2].corrected_self_off_ms < 20.0, "{}", nodes[2].corrected_self_off_ms);
        assert!((nodes[0].corrected_ms.half_width() - overhead.corrected.half_width()).abs() < 1.0);
    }

    #[test]
    fn a_node_is_charged_for_half_of_its_own_calls() {
        let runs = count_runs();
        let nodes = Overhead::of(&runs).nodes(&runs);
        let scan = &nodes[1];
        assert!((scan.corrected_ms.estimate - 80.0).abs() < 0.1, "{:?}", scan.corrected_ms);
        // Between a quarter and three quarters of a call may fall into the scan's own time.
        assert!(scan.corrected_ms.low < 55.0 && scan.corrected_ms.high > 103.0, "{:?}", scan.corrected_ms);
        assert!(scan.corrected_ms.high <= nodes[0].corrected_ms.high);
        assert!((scan.clock_share - 45.0 / 130.0).abs() < 0.001);
        assert_eq!((scan.rank, scan.corrected_rank, nodes[0].rank), (1, 1, 2));
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
        // Of the 100 ms of overhead, 90 were the clock.
        assert!((nodes[1].clock_share - 18.0 / 130.0).abs() < 0.001);
        // If bare calls cost as much as the overhead, nothing is unexplained.
        let without_limit = Overhead::of(&count_runs()).nodes(&count_runs());
        runs.bare_call_ms = Some(100e-6);
        assert_eq!(Overhead::of(&runs).nodes(&runs)[1].corrected_ms, without_limit[1].corrected_ms);
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
        let mut runs = count_runs();
        runs.baseline_ms = vec![300.0; 5];
        let nodes = Overhead::of(&runs).nodes(&runs);
        assert!(nodes.iter().all(|node| node.corrected_ms.estimate == node.reported_ms && node.clock_share == 0.0));
        assert!(nodes[0].corrected_ms.high >= 300.0, "{:?}", nodes[0].corrected_ms);
    }

    #[test]
    fn noisy_baseline_runs_widen_the_margins_of_self_times() {
        let margins = |baseline: [f64; 5]| {
            let runs = Runs { baseline_ms: baseline.into(), ..count_runs() };
            Overhead::of(&runs).nodes(&runs).iter().map(|node| node.corrected_self_off_ms).collect::<Vec<f64>>()
        };
        let (quiet, noisy) = (margins([100.0; 5]), margins([60.0, 100.0, 140.0, 80.0, 120.0]));
        // The scan has half of the calls and four fifths of the time.
        assert!((0..2).all(|node| noisy[node] > quiet[node] + 3.0), "{quiet:?} {noisy:?}");
    }

    #[test]
    fn the_clock_is_at_most_the_whole_overhead() {
        let mut runs = count_runs();
        runs.baseline_ms = vec![150.0; 5];
        assert_eq!(Overhead::of(&runs).clock(), 50.0);
    }
}
