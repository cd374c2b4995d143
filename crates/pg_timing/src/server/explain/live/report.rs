//! The report of live runs.

use super::notes::notes;
use super::overhead::Overhead;
use super::runs::{Runs, execution_ms};
use super::server::Server;
use super::statement::Statement;
use super::timing::Timing;
use crate::report::{ExplainReport, LiveRuns, Timed};
use crate::server::explain::plan::Plan;
use crate::statistics::{median, paired_difference};

const NS_PER_MS: f64 = 1e6;

/// Builds the report of a statement's runs.
pub fn report(server: &Server, statement: &Statement, runs: &Runs) -> ExplainReport {
    let overhead = Overhead::of(runs);
    ExplainReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        settings: server.settings.clone(),
        statement: Some(statement.text().into()),
        runs: Some(live_runs(server, runs, &overhead)),
        capture: None,
        reported_ms: overhead.reported,
        corrected_ms: overhead.corrected,
        clock_share: if overhead.reported > 0.0 { overhead.clock() / overhead.reported } else { 0.0 },
        notes: notes(server, runs, &overhead),
        nodes: overhead.nodes(runs),
    }
}

fn live_runs(server: &Server, runs: &Runs, overhead: &Overhead) -> LiveRuns {
    let ns_per_call = NS_PER_MS / overhead.calls.max(1.0);
    let timed = |(timing, plans): &(Timing, Vec<Plan>)| {
        let reported = execution_ms(plans);
        Timed {
            setting: timing.setting.into(),
            value: timing.value.into(),
            reported_ms: median(&reported),
            overhead_share: overhead_share(median(&reported), overhead.baseline),
            clock_per_call_ns: paired_difference(&reported, &runs.rows_only_ms).times(ns_per_call),
        }
    };
    LiveRuns {
        server_version: server.version.clone(),
        server: server.name.clone(),
        runs: runs.reported.len(),
        plain_runs: runs.baseline_ms.len(),
        plain_ms: overhead.baseline,
        rows_only_ms: overhead.rows_only,
        without_buffers_ms: overhead.without_buffers,
        overhead_share: overhead_share(overhead.reported, overhead.baseline),
        round_trip_ms: runs.round_trip_ms,
        calls: overhead.calls,
        clock_per_call_ns: paired_difference(&runs.reported_ms(), &runs.rows_only_ms).times(ns_per_call),
        rows_per_call_ns: paired_difference(&runs.rows_only_ms, &runs.baseline_by_round()).times(ns_per_call),
        timed: runs.timed.iter().map(timed).collect(),
    }
}

/// Returns the fraction of the reported time that is not in the baseline.
fn overhead_share(reported: f64, baseline: f64) -> f64 {
    if reported > 0.0 { (reported - baseline) / reported } else { 0.0 }
}
