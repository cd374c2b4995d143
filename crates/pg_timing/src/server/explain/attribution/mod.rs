//! What a plan's nodes take without being timed.
//!
//! One timed call costs anything from nothing to two reads of the clock, depending on what it
//! overlaps with; so the cost is not assumed, but fitted on the very statement: what EXPLAIN ANALYZE
//! takes more than the plain run, over all calls of the plan. The root is then as good as the plain
//! runs. A node is charged for the calls below it and for half of its own (the other half falls into
//! its caller's time), and its interval says how far that may be off. None takes longer than the one
//! that it runs within.
//!
//! A call is taken to cost no more than in a loop of nothing else, where the processor has no other work to
//! hide it behind. What EXPLAIN ANALYZE takes beyond that is taken for another reason, like a machine that was
//! slower meanwhile, which made all of it longer.

pub mod charge;
mod sampled;
mod self_time;

use super::live::Runs;
use super::plan::calls::{Flat, all_calls, calls_at_once, flat};
use crate::report::{ExplainedNode, Range};
use crate::statistics::{longer, median, uncertainty};
use charge::{Charge, charged, finished};

/// In ms, all of it medians.
#[derive(Clone, Debug)]
pub struct Overhead {
    pub plain: f64,
    pub rows_only: f64,
    pub without_buffers: Option<f64>,
    pub reported: f64,
    pub corrected: Range,
    /// of the plan, by each process
    pub calls: f64,
    /// what one of them takes more for being timed
    call: f64,
}

impl Overhead {
    pub fn of(runs: &Runs) -> Overhead {
        let plain = median(&runs.plain_ms);
        let off = uncertainty(&runs.plain_ms).hypot(runs.round_trip_off_ms);
        let (calls, at_once) = runs.reported.first().map_or((0.0, 1.0), |run| {
            let nodes = flat(&run.plan);
            (all_calls(&nodes, run).estimate, calls_at_once(&nodes, run))
        });
        let mut overhead = Overhead {
            plain,
            rows_only: median(&runs.rows_only_ms),
            without_buffers: (!runs.without_buffers_ms.is_empty()).then(|| median(&runs.without_buffers_ms)),
            reported: median(&runs.reported_ms()),
            corrected: Range { low: (plain - off).max(0.0), estimate: plain, high: plain + off },
            calls,
            call: 0.0,
        };
        // Processes without a CPU of their own wait for the timing of each other.
        let most = runs.bare_call_ms.map_or(f64::INFINITY, |bare| bare * at_once);
        overhead.call = (overhead.total() / calls.max(1.0)).min(most);
        overhead
    }

    /// All that EXPLAIN ANALYZE adds. Noise can make it look negative: then it adds nothing.
    fn total(&self) -> f64 {
        (self.reported - self.plain).max(0.0)
    }

    /// What TIMING adds: a part of it, which noise in the plain runs can make look larger.
    pub fn clock(&self) -> f64 {
        (self.reported - self.rows_only).clamp(0.0, self.total())
    }

    /// What EXPLAIN ANALYZE takes more than its calls can.
    pub fn rest(&self) -> f64 {
        (self.total() - self.call * self.calls.max(1.0)).max(0.0)
    }

    /// Every node of the runs.
    pub fn nodes(&self, runs: &Runs) -> Vec<ExplainedNode> {
        let plans: Vec<Vec<Flat>> = runs.reported.iter().map(|run| flat(&run.plan)).collect();
        let Some(first) = plans.first() else { return Vec::new() };
        let clock = if self.total() > 0.0 { self.clock() / self.total() } else { 0.0 };
        let added = longer(&runs.reported_ms(), &runs.plain_by_round());
        let charge = Charge {
            reported: self.reported,
            // Where noise makes EXPLAIN ANALYZE look faster, it hides as much.
            off: self.corrected.high - self.corrected.estimate + (self.plain - self.reported).max(0.0),
            call: self.call,
            call_off: 0.0,
            calls_off: added.high - added.estimate,
            rest: self.rest(),
            clock: self.call * clock,
        };
        let mut nodes = charged(&plans, self.calls, &charge);
        if let Some(sampled) = runs.sampled() {
            sampled::refine(&mut nodes, sampled, self.corrected);
        }
        finished(nodes, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::explain::Explained;

    /// A count of a million rows: 100 ms plain, 10 ms for counting rows, 90 ms for the clock.
    fn counted() -> Runs {
        let run: Explained = serde_json::from_str(
            r#"{"Plan": {"Node Type": "Aggregate", "Actual Total Time": 200.0, "Actual Rows": 1, "Actual Loops": 1,
                "Plans": [{"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Total Time": 130.0, "Actual Rows": 999999, "Actual Loops": 1}]},
                "Execution Time": 200.0}"#,
        )
        .unwrap();
        Runs {
            plain_ms: vec![99.0, 100.0, 101.0, 100.0, 100.0],
            rows_only_ms: vec![110.0; 5],
            reported: vec![run; 5],
            ..Runs::default()
        }
    }

    #[test]
    fn the_root_is_as_good_as_the_plain_runs() {
        let overhead = Overhead::of(&counted());
        assert_eq!(
            (overhead.plain, overhead.rows_only, overhead.reported, overhead.clock()),
            (100.0, 110.0, 200.0, 90.0)
        );
        assert!(overhead.corrected.low <= 99.0 && overhead.corrected.high >= 101.0);
        let nodes = overhead.nodes(&counted());
        let (root, whole) = (nodes[0].corrected_ms, overhead.corrected);
        assert!((root.estimate - 100.0).abs() < 0.1, "{root:?}");
        assert!((root.off() - whole.off()).abs() < 0.1, "{root:?} {whole:?}");
    }

    #[test]
    fn on_a_slow_clock_places_are_known() {
        // A million calls of the scan, of 1.7 us each.
        let run = |off: f64| -> Explained {
            let json = format!(
                r#"{{"Plan": {{"Node Type": "Nested Loop", "Actual Total Time": {}, "Actual Rows": 1, "Actual Loops": 1, "Plans": [
                    {{"Node Type": "Seq Scan", "Actual Total Time": {}, "Actual Rows": 999999, "Actual Loops": 1}},
                    {{"Node Type": "Hash", "Actual Total Time": {}, "Actual Rows": 1, "Actual Loops": 1}}]}},
                    "Execution Time": {}}}"#,
                9000.0 + off,
                4300.0 + off,
                3000.0 + off,
                9000.0 + off
            );
            serde_json::from_str(&json).unwrap()
        };
        let runs = Runs {
            plain_ms: vec![7300.0; 5],
            rows_only_ms: vec![7300.0; 5],
            reported: [-9.0, 3.0, 0.0, 6.0, -3.0].map(run).into(),
            ..Runs::default()
        };
        let overhead = Overhead::of(&runs);
        let nodes = overhead.nodes(&runs);
        assert_eq!([1, 2].map(|at| nodes[at].corrected_self_ms.round()), [3450.0, 3000.0]);
        // The scan's half of a call, by a twelfth of it, and the runs.
        assert!((60.0..150.0).contains(&nodes[1].corrected_self_off_ms), "{}", nodes[1].corrected_self_off_ms);
        assert!(nodes[2].corrected_self_off_ms < 20.0, "{}", nodes[2].corrected_self_off_ms);
        assert!((nodes[0].corrected_ms.off() - overhead.corrected.off()).abs() < 1.0);
    }

    #[test]
    fn a_node_is_charged_for_half_of_its_calls() {
        let runs = counted();
        let nodes = Overhead::of(&runs).nodes(&runs);
        let scan = &nodes[1];
        assert!((scan.corrected_ms.estimate - 80.0).abs() < 0.1, "{:?}", scan.corrected_ms);
        // A quarter of a call, or three, may fall into its own time; but it takes no longer than the whole.
        assert!(scan.corrected_ms.low < 55.0 && scan.corrected_ms.high > 103.0, "{:?}", scan.corrected_ms);
        assert!(scan.corrected_ms.high <= nodes[0].corrected_ms.high);
        assert!((scan.clock_share - 45.0 / 130.0).abs() < 0.001);
        assert_eq!((scan.rank, scan.corrected_rank, nodes[0].rank), (1, 1, 2));
    }

    #[test]
    fn what_calls_cannot_take_made_all_of_it_longer() {
        let mut runs = counted();
        // 40 of the 100 ms that EXPLAIN ANALYZE takes more.
        runs.bare_call_ms = Some(40e-6);
        let nodes = Overhead::of(&runs).nodes(&runs);
        assert!((nodes[0].corrected_ms.estimate - 100.0).abs() < 0.1, "{:?}", nodes[0].corrected_ms);
        // 110 of 160 ms.
        assert!((nodes[1].corrected_ms.estimate - 100.0 * 110.0 / 160.0).abs() < 0.1, "{:?}", nodes[1].corrected_ms);
        // 90 of the 100 were the clock.
        assert!((nodes[1].clock_share - 18.0 / 130.0).abs() < 0.001);
        // As much as they took is nothing else.
        let charged = Overhead::of(&counted()).nodes(&counted());
        runs.bare_call_ms = Some(100e-6);
        assert_eq!(Overhead::of(&runs).nodes(&runs)[1].corrected_ms, charged[1].corrected_ms);
    }

    #[test]
    fn noise_does_not_make_it_negative() {
        let mut runs = counted();
        runs.plain_ms = vec![300.0; 5];
        let nodes = Overhead::of(&runs).nodes(&runs);
        assert!(nodes.iter().all(|node| node.corrected_ms.estimate == node.reported_ms && node.clock_share == 0.0));
        assert!(nodes[0].corrected_ms.high >= 300.0, "{:?}", nodes[0].corrected_ms);
    }

    #[test]
    fn what_is_unsure_of_all_calls_moves_time_between_nodes() {
        let off = |plain: [f64; 5]| {
            let runs = Runs { plain_ms: plain.into(), ..counted() };
            Overhead::of(&runs).nodes(&runs).iter().map(|node| node.corrected_self_off_ms).collect::<Vec<f64>>()
        };
        let (quiet, noisy) = (off([100.0; 5]), off([60.0, 100.0, 140.0, 80.0, 120.0]));
        // Half of the calls are the scan's, and four fifths of the time.
        assert!((0..2).all(|at| noisy[at] > quiet[at] + 3.0), "{quiet:?} {noisy:?}");
    }

    #[test]
    fn the_clock_takes_no_more_than_everything_that_is_added() {
        let mut runs = counted();
        runs.plain_ms = vec![150.0; 5];
        assert_eq!(Overhead::of(&runs).clock(), 50.0);
    }
}
