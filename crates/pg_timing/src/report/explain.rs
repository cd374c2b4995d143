//! The reports of `explain`: of one statement or plan, of two statements, or one under two settings (`--against`), and of all plans of
//! a log. The serde names are the JSON contract.

use crate::statistics::{Range, quantile, sorted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much the runs of a statement differ: their 10th and 90th percentile. This describes the machine, and is not the
/// error of an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spread {
    pub p10: f64,
    pub p90: f64,
}

impl Spread {
    /// Returns the spread of these values, or zeros if there are none.
    pub fn of(values: &[f64]) -> Spread {
        let sorted = sorted(values);
        Spread { p10: quantile(&sorted, 0.1), p90: quantile(&sorted, 0.9) }
    }
}

/// How much of an EXPLAIN ANALYZE is overhead.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainReport {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    /// server settings that affect the figures
    pub settings: BTreeMap<String, String>,
    /// missing in some captured plans
    pub statement: Option<String>,
    /// for a statement that was run
    #[serde(flatten)]
    pub runs: Option<LiveRuns>,
    /// for a captured plan
    pub capture: Option<Capture>,
    /// execution time that EXPLAIN ANALYZE reported
    pub reported_ms: f64,
    /// time without overhead
    pub corrected_ms: Range,
    /// reported / corrected; null if there are too few runs and the cost of a call is not known, and for a captured plan if its
    /// overhead could be all of its time
    pub overhead_factor: Option<Range>,
    /// overhead as a fraction of the reported time: 1 - 1 / overhead_factor
    pub overhead_share: f64,
    /// clock reads as a fraction of the reported time, as far as the calls can explain it; an estimate for a captured plan
    pub clock_share: f64,
    /// time that is not explained by clock reads, as a fraction of the reported time: the timed runs took longer than the
    /// baseline by more than the calls can cost. It is a part of corrected_ms
    pub unexplained_share: f64,
    /// limits of these figures
    pub notes: Vec<String>,
    pub nodes: Vec<ExplainedNode>,
    /// the plan as EXPLAIN printed it, if an output format needs it; not a part of the JSON
    #[serde(skip)]
    pub document: Option<PlanSource>,
}

impl ExplainReport {
    /// Returns the node's ranks by reported and by corrected self time, if the overhead changed the rank by more than the
    /// errors. `None` for nodes below 5% of the time, which do not matter to the user.
    pub fn rank_change(&self, node: &ExplainedNode) -> Option<(usize, usize)> {
        const MATTERS: f64 = 0.05;
        let matters = node.reported_self_ms > MATTERS * self.reported_ms
            || node.corrected_self_ms > MATTERS * self.corrected_ms.estimate;
        let is_changed = matters && self.nodes.iter().any(|other| node.has_swapped_ranks_with(other));
        node.rank.zip(node.corrected_rank).filter(|_| is_changed)
    }

    /// Returns whether the figures can be shown: the runs or the calls show the overhead.
    pub fn has_figures(&self) -> bool {
        self.runs.is_none() || self.overhead_factor.is_some()
    }
}

/// Results of running the statement. A captured plan has none of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LiveRuns {
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// number of runs in each mode
    pub runs: usize,
    /// number of baseline runs
    pub plain_runs: usize,
    /// median of the baseline runs: without EXPLAIN, rows not sent
    pub plain_ms: f64,
    /// the fastest baseline run
    pub fastest_plain_ms: f64,
    /// times of the baseline runs, without any correction
    pub spread_ms: Spread,
    /// EXPLAIN ANALYZE, TIMING OFF; at the same speed as the reported runs
    pub rows_only_ms: f64,
    /// names of the settings that were given with the statement; their values are in `settings`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_settings: Vec<String>,
    /// the server's plan for the values of the parameters: `custom` (for these values) or `generic`; missing without values
    pub plan_mode: Option<String>,
    /// time of an empty statement; it is subtracted from the baseline
    pub round_trip_ms: f64,
    /// planning time; it is subtracted from the baseline if each baseline run plans the statement
    pub planning_ms: Option<f64>,
    /// calls of all nodes by all processes
    pub calls: f64,
    /// clock reads per call, mean, in ns
    pub clock_per_call_ns: Range,
    /// row counting (and buffer counting, if BUFFERS is on by default) per call, mean, in ns
    pub rows_per_call_ns: Range,
    /// results of the other timing methods that the server offers
    pub timed: Vec<Timed>,
    /// all runs, in their order. Each round has two baseline runs, with which its other runs are compared
    pub samples: Vec<RunSample>,
}

/// Returns whether a statement that takes `plain_ms` without EXPLAIN is too short to measure: it is lost in the variation of round
/// trips. Then the overhead comes from the calls.
pub fn is_too_short(plain_ms: f64, round_trip_ms: f64) -> bool {
    const ROUND_TRIPS: f64 = 2.0;
    plain_ms <= ROUND_TRIPS * round_trip_ms
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunSample {
    /// `baseline`, `reported`, `rows_only`, or the setting of a timing method like `pg_fast_timing.method=auto`
    pub mode: String,
    pub ms: f64,
}

/// The result of one timing method.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Timed {
    pub setting: String,
    pub value: String,
    pub reported_ms: f64,
    /// how many times longer it takes than the baseline, which includes what the calls cannot explain
    pub ratio: f64,
    /// its time minus that of TIMING OFF, per call, mean, in ns
    pub clock_per_call_ns: Range,
}

/// A format of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanFormat {
    Text,
    Json,
}

/// A plan as EXPLAIN printed it, without what a log or psql adds. YAML and XML are rewritten as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanSource {
    Text(String),
    Json(String),
}

/// Facts about a captured plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Capture {
    /// number of plans in the input; with `--all --format jsonl`, number of plans up to this one
    pub plans: usize,
    /// number of the plan that was used, from 1
    pub taken: usize,
    /// where the plan is in a log; missing for other inputs
    pub place: Option<LogPlace>,
    /// a function or a trigger executed the statement, so its time is also in its caller's time
    pub is_nested: bool,
    /// timed calls of all nodes by all processes
    pub calls: Range,
    /// read cost of the server's clock, as given
    pub read_ns: Option<f64>,
    /// what timing adds to a call of a small function on the server's host, as given
    pub timed_call_ns: Option<f64>,
    /// expected overhead per call: clock reads and row counting
    pub expected_call_ns: Option<Range>,
    /// time without EXPLAIN, as given
    pub given_plain_ms: Option<f64>,
    /// the given time contradicts the expected cost of the calls, so corrected_ms covers both
    pub inputs_contradict: bool,
    /// bounds of the clock's share of the reported time
    pub clock_share: Range,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainedNode {
    /// child indexes from the root down, like `0.1`
    pub path: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// name as in EXPLAIN's text format, after the label of the subplan
    pub title: String,
    /// calls of all processes
    pub calls: f64,
    /// number of parallel processes
    pub processes: u32,
    /// loops per process, on average, by which EXPLAIN divides the times; not a part of the JSON
    #[serde(skip)]
    pub loops: f64,
    /// all loops together, per process
    pub reported_ms: f64,
    /// maximum rounding error of reported_ms: EXPLAIN prints one loop's time with three decimals. If it is more than a
    /// quarter of reported_ms, ignore clock_share
    pub rounded_ms: f64,
    pub corrected_ms: Range,
    /// clock reads as a fraction of the node's reported time
    pub clock_share: f64,
    /// self time: without the nodes below
    pub reported_self_ms: f64,
    pub corrected_self_ms: f64,
    /// corrected_self_ms with its 95% interval
    pub self_ms: Range,
    /// error of reported_self_ms: run-to-run variation and rounding
    pub reported_self_off_ms: f64,
    /// error of corrected_self_ms, without that of the whole overhead, which affects all nodes alike
    pub corrected_self_off_ms: f64,
    /// rank by reported self time, from 1; null if the plan does not show the self time: the node runs a part of a subplan that
    /// other nodes run, too, or its inputs ran in parallel
    pub rank: Option<usize>,
    /// rank by corrected self time, from 1
    pub corrected_rank: Option<usize>,
}

/// Returns the number of nodes above the one with this path.
pub fn depth(path: &str) -> usize {
    path.matches('.').count()
}

impl ExplainedNode {
    /// Returns whether two nodes swapped ranks, and differ by more than their errors both before and after.
    ///
    /// The errors are added: both nodes are parts of the same whole, so they are not independent.
    fn has_swapped_ranks_with(&self, other: &ExplainedNode) -> bool {
        self.rank.zip(other.rank).zip(self.corrected_rank.zip(other.corrected_rank)).is_some_and(
            |((rank, other_rank), (corrected, other_corrected))| (rank < other_rank) != (corrected < other_corrected),
        ) && (self.reported_self_ms - other.reported_self_ms).abs()
            > self.reported_self_off_ms + other.reported_self_off_ms
            && (self.corrected_self_ms - other.corrected_self_ms).abs()
                > self.corrected_self_off_ms + other.corrected_self_off_ms
    }
}

// Of two statements.

/// Which of two statements is faster, and where.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatementComparison {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    pub difference: Difference,
    /// time of B / time of A; null if there are too few rounds, or a statement is too short to measure
    pub ratio: Option<Range>,
    /// number of rounds: A, B and A again
    pub rounds: usize,
    /// one of the statements, or both, are lost in the round trip to the server: there is no ratio
    pub is_too_short: bool,
    /// time of an empty statement; it is subtracted from all times
    pub round_trip_ms: f64,
    pub a: ComparedStatement,
    pub b: ComparedStatement,
    /// nodes with other numbers of rows come first, and then those whose times differ most
    pub nodes: Vec<NodePair>,
    /// limits of these figures
    pub notes: Vec<String>,
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// server settings that affect the figures, without those that were given with a statement
    pub settings: BTreeMap<String, String>,
}

/// What the interval of the ratio shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// B takes less time than A
    Faster,
    /// B takes more time than A
    Slower,
    /// the interval contains 1
    NoneFound,
    /// there are too few rounds, or the statements are too short
    NotDetermined,
}

impl Difference {
    pub fn of(ratio: Range) -> Difference {
        match ratio {
            Range { high, .. } if high < 1.0 => Difference::Faster,
            Range { low, .. } if low > 1.0 => Difference::Slower,
            _ => Difference::NoneFound,
        }
    }
}

/// One of the two statements.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedStatement {
    /// with the lines before it
    pub statement: String,
    /// its SET and RESET lines, with those of --against-set
    pub settings: Vec<String>,
    /// time without EXPLAIN at the speed that the machine had during the runs of A: of B it is the ratio times the time of A
    pub ms: f64,
    /// time outside of the nodes: triggers, the start and the end of the execution
    pub outside_ms: Range,
    /// median of the runs without EXPLAIN
    pub plain_ms: f64,
    /// the fastest run without EXPLAIN
    pub fastest_plain_ms: f64,
    /// times of the runs without EXPLAIN
    pub spread_ms: Spread,
    /// execution time that EXPLAIN ANALYZE reported
    pub reported_ms: f64,
    /// rows that it returns or writes; null if the statement was not explained
    pub rows: Option<f64>,
    /// the server's plan for the values of the parameters: `custom` (for these values) or `generic`; missing without values
    pub plan_mode: Option<String>,
    pub nodes: Vec<ComparedNode>,
    /// times of all runs without EXPLAIN in ms, in their order
    pub samples: Vec<f64>,
}

/// A plan node. Its times are its shares of the corrected plan, of the statement's `ms`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedNode {
    /// child indexes from the root down, like `0.1`
    pub path: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// name as in EXPLAIN's text format, after the label of the subplan
    pub title: String,
    /// rows of all loops and processes
    pub rows: f64,
    /// maximum rounding error of `rows`: EXPLAIN prints the rows of one loop, on average
    pub rows_error: f64,
    /// calls of all processes
    pub calls: f64,
    /// shared blocks that were hit or read, also by the nodes below
    pub blocks: f64,
    /// with the nodes below
    pub corrected_ms: Range,
    /// without the nodes below
    pub self_ms: Range,
}

/// A node of A and the same one of B, or a node of only one of them.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodePair {
    /// index in `.a.nodes`
    pub a: Option<usize>,
    /// index in `.b.nodes`
    pub b: Option<usize>,
    /// self time in B minus self time in A
    pub difference_ms: Range,
    /// the numbers of rows differ by more than their rounding errors
    pub has_other_rows: bool,
}

// Of all plans of a log.

/// How much of the time of all plans is overhead, statement by statement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogReport {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    /// names of the files
    pub files: Vec<String>,
    /// number of plans that were found, with those that were skipped
    pub plans: u64,
    /// all plans together, without those that were skipped, and without nested plans: their time is also in the time of the
    /// statements that executed them
    pub total: LogTotal,
    /// reported time of nested plans, which the total does not contain
    pub nested_ms: f64,
    /// the statement that lost the most time to timing comes first
    pub statements: Vec<LoggedStatement>,
    /// the plans that the figures do not include, by reason
    pub skipped: Vec<SkippedPlans>,
    /// the hosts, containers or pods that wrote the plans, if the lines of the log name several; the figures are right only for
    /// the host whose clock was given
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<LogHost>,
    /// reading ended early, because of a signal or an error
    pub is_incomplete: bool,
    /// limits of these figures
    pub notes: Vec<String>,
}

/// The sum over plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogTotal {
    /// number of plans; in the total, without nested ones
    pub runs: u64,
    /// number of plans of nested statements: a function or a trigger executed them. They have rows of their own
    pub nested_runs: u64,
    /// execution time that auto_explain reported
    pub reported_ms: f64,
    /// time without overhead
    pub corrected_ms: Range,
    /// time of the clock reads
    pub clock_ms: Range,
    /// (reported - corrected) / reported
    pub overhead_share: Range,
    /// clock reads as a fraction of the reported time
    pub clock_share: Range,
}

impl LogTotal {
    /// Returns the overhead in ms.
    pub fn overhead_ms(&self) -> Range {
        self.corrected_ms.subtracted_from(self.reported_ms)
    }
}

/// All plans of a statement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoggedStatement {
    /// with `?` instead of constants, and at most 1000 bytes; missing for plans without a query, and for all statements
    /// after the first 5000 of the log, which are one row
    pub statement: Option<String>,
    /// the server's identifier of the query, if the log has it
    pub query_id: Option<i64>,
    #[serde(flatten)]
    pub total: LogTotal,
    /// file and line of the slowest plan
    pub slowest: LogPlace,
}

/// Where a plan is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogPlace {
    pub file: String,
    /// from 1
    pub line: u64,
}

/// A host, container or pod that wrote plans.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogHost {
    /// as the lines of the log name it
    pub name: String,
    /// number of its plans, with those that were skipped
    pub plans: u64,
}

/// Plans that the figures do not include.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedPlans {
    pub plans: u64,
    /// why the first one was skipped
    pub reason: String,
    /// what to do
    pub hint: String,
    /// the first one
    pub first: LogPlace,
    /// a part of the plan is missing or wrong; otherwise it is a plan without times
    pub is_damaged: bool,
}
