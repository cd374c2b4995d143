//! What running a statement in all ways tells of the whole.

use super::runs::{Runs, execution_ms};
use super::server::Server;
use super::timing::Timing;
use crate::report::{LiveRuns, Timed};
use crate::server::explain::attribution::Overhead;
use crate::statistics::{longer, median};

const NS_PER_MS: f64 = 1e6;

pub fn report(server: &Server, runs: &Runs, overhead: &Overhead) -> LiveRuns {
    let per_call = NS_PER_MS / overhead.calls.max(1.0);
    let timed = |(timing, plans): &(Timing, Vec<_>)| {
        let reported = execution_ms(plans);
        Timed {
            setting: timing.setting.into(),
            value: timing.value.into(),
            reported_ms: median(&reported),
            overhead_share: added(median(&reported), overhead.plain),
            clock_per_call_ns: longer(&reported, &runs.rows_only_ms).times(per_call),
        }
    };
    LiveRuns {
        server_version: server.version.clone(),
        server: server.name.clone(),
        runs: runs.reported.len(),
        plain_runs: runs.plain_ms.len(),
        plain_ms: overhead.plain,
        rows_only_ms: overhead.rows_only,
        without_buffers_ms: overhead.without_buffers,
        overhead_share: added(overhead.reported, overhead.plain),
        round_trip_ms: runs.round_trip_ms,
        calls: overhead.calls,
        clock_per_call_ns: longer(&runs.reported_ms(), &runs.rows_only_ms).times(per_call),
        rows_per_call_ns: longer(&runs.rows_only_ms, &runs.plain_by_round()).times(per_call),
        timed: runs.timed.iter().map(timed).collect(),
    }
}

/// The share of what is reported that the plain runs do not take.
fn added(reported: f64, plain: f64) -> f64 {
    if reported > 0.0 { (reported - plain) / reported } else { 0.0 }
}
