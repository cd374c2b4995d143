//! The report of live runs.

use super::notes::notes;
use super::overhead::Overhead;
use super::run_results::Runs;
use super::script::Script;
use super::server::LiveServer;
use super::times::{Times, difference_ms, time_ms};
use super::timing::Timing;
use crate::plan::Plan;
use crate::report::run_mode::{BASELINE, REPORTED, ROWS_ONLY};
use crate::report::{ExplainReport, LiveRuns, NS_PER_MS, Range, Timed};

/// Builds the report of a statement's runs.
pub fn report(server: &LiveServer, script: &Script, runs: &Runs) -> ExplainReport {
    let overhead = Overhead::of(runs);
    ExplainReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        settings: server.settings.clone(),
        statement: Some(script.text().into()),
        runs: Some(live_runs(server, runs, &overhead)),
        capture: None,
        reported_ms: overhead.reported,
        corrected_ms: overhead.corrected,
        overhead_factor: overhead.factor,
        overhead_share: overhead_share(overhead.reported, overhead.baseline()),
        clock_share: share(overhead.clock(), overhead.reported),
        unexplained_share: share(overhead.unexplained(), overhead.reported),
        notes: notes(server, runs, &overhead),
        nodes: overhead.nodes(runs),
        document: runs.document.clone(),
    }
}

fn live_runs(server: &LiveServer, runs: &Runs, overhead: &Overhead) -> LiveRuns {
    let times = Times::of(runs);
    let per_call_ns = |longer: &str, shorter: &str| {
        difference_ms(runs, times.as_ref(), longer, shorter).times(NS_PER_MS / overhead.calls.max(1.0))
    };
    let timed = |(timing, _): &(Timing, Vec<Plan>)| {
        let mode = timing.to_string();
        let reported_ms = time_ms(runs, times.as_ref(), &mode);
        Timed {
            setting: timing.setting.into(),
            value: timing.value.into(),
            reported_ms,
            overhead_share: overhead_share(reported_ms, overhead.baseline()),
            clock_per_call_ns: per_call_ns(&mode, ROWS_ONLY),
        }
    };
    LiveRuns {
        server_version: server.version.clone(),
        server: server.name.clone(),
        runs: runs.reported.len(),
        plain_runs: runs.ms_of(BASELINE).len(),
        plain_ms: overhead.baseline(),
        undisturbed_ms: overhead.undisturbed,
        full_speed_is_uncertain: overhead.full_speed_is_uncertain,
        spread_ms: overhead.spread,
        rows_only_ms: overhead.rows_only,
        without_buffers_ms: overhead.without_buffers,
        given_settings: server.given_settings.iter().cloned().collect(),
        plan_mode: runs.plan_mode.map(|mode| mode.name().into()),
        round_trip_ms: runs.round_trip_ms,
        planning_ms: runs.median_planning_ms(),
        calls: overhead.all_calls,
        clock_per_call_ns: part_per_call(overhead.clock(), per_call_ns(REPORTED, ROWS_ONLY), overhead),
        rows_per_call_ns: part_per_call(overhead.counting(), per_call_ns(ROWS_ONLY, BASELINE), overhead),
        timed: runs.timed.iter().map(timed).collect(),
        samples: runs.samples.clone(),
    }
}

/// Returns a part of the overhead per call in ns. Its margin is that of the measured difference, without the unexplained
/// time.
fn part_per_call(part_ms: f64, difference_ns: Range, overhead: &Overhead) -> Range {
    let estimate = part_ms * NS_PER_MS / overhead.calls.max(1.0);
    let margin = difference_ns.half_width() * overhead.explained_part();
    Range { low: (estimate - margin).max(0.0), estimate, high: estimate + margin }
}

/// Returns the fraction of the reported time that is not in the baseline.
fn overhead_share(reported: f64, baseline: f64) -> f64 {
    share((reported - baseline).max(0.0), reported)
}

fn share(part: f64, reported: f64) -> f64 {
    if reported > 0.0 { part / reported } else { 0.0 }
}
