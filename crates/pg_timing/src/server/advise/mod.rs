//! Estimates the cost of each setting that reads the clock. Each setting has a `fn(&Facts) -> Option<SettingAdvice>`.

mod facts;
mod log_timing;
mod settings;
#[cfg(test)]
mod tests;
mod verdict;

use crate::error::{Error, SqlState};
use crate::host::measure::Budget;
use crate::report::{AdviseReport, SettingAdvice};
use crate::server::clock::Clocks;
use crate::server::connection::Connection;
use crate::server::settings::{Server, Session};
use facts::{Counts, Facts, Part, Snapshot};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use timing_clock::Nanos;

/// All settings, in display order. The result is `None` if the server does not have the setting.
const SETTINGS: &[fn(&Facts) -> Option<SettingAdvice>] = &[
    settings::track_io_timing,
    settings::track_wal_io_timing,
    settings::track_functions,
    settings::statement_log,
    settings::track_planning,
    log_timing::setting,
    settings::fast_timing,
    settings::clock_source,
];

/// Returns the statistics that are read before and after the window.
fn parts(server: &Server) -> Vec<Part> {
    let mut parts = vec![verdict::sessions_part()];
    parts.extend(settings::parts(server));
    // These two are compared, so they are read one right after the other.
    parts.extend(settings::statements_part(server));
    parts.extend(log_timing::parts(server));
    parts
}

/// Interval between checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Observes the server for the window, and returns the costs of its settings. `progress` receives values from 0 to 1. Measures the
/// server's clocks only if `clocks` is empty, because that takes most of a second of CPU time.
pub fn advise(
    connection: &mut Connection,
    window: Nanos,
    clocks: &mut Option<Clocks>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<AdviseReport, Error> {
    let facts = observe(connection, window, clocks, stop, progress).map_err(|error| {
        match error.state.is(SqlState::QUERY_CANCELED) && stop.load(Ordering::Relaxed) {
            true => Error::new("stopped before the observation began", "run it again; advise changes nothing"),
            false => error,
        }
    })?;
    Ok(report(&facts, stop.load(Ordering::Relaxed)))
}

/// Collects the facts.
fn observe(
    connection: &mut Connection,
    window: Nanos,
    known_clocks: &mut Option<Clocks>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Facts, Error> {
    let mut session = Session::new(connection, stop);
    let server = Server::of(&mut session)?;
    let clocks = known_clocks.get_or_insert_with(|| Clocks::of(&mut session, &server, stop)).clone();
    let parts = parts(&server);
    // The window is the time between the snapshots, without the time for reading them.
    let budget = Budget::new(window, stop);
    let before = Snapshot::take(&mut session, &parts)?;
    while budget.go_on() {
        std::thread::sleep(POLL_INTERVAL.min(Duration::from_nanos(budget.left().0 as u64)));
        progress(budget.spent().0 / window.0);
    }
    let window_s = (budget.spent().secs() * 1e3).round() / 1e3;
    // Ctrl-C ends only the window. The second snapshot is still needed.
    session.ignore_stop();
    let after = Snapshot::take(&mut session, &parts)?;
    Ok(Facts { server, clocks, counts: Counts { before, after }, window_s })
}

/// Returns the report with the advice and the verdict.
fn report(facts: &Facts, interrupted: bool) -> AdviseReport {
    let settings: Vec<SettingAdvice> = SETTINGS.iter().filter_map(|setting| setting(facts)).collect();
    let clocks = &facts.clocks;
    let counted = facts.window_s > facts::REPORT_DELAY_S;
    let findings = verdict::host_findings(facts);
    AdviseReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        server_version: facts.server.version.clone(),
        server: facts.server.name.clone(),
        window_s: facts.window_s,
        interrupted,
        read: clocks.read.clone(),
        node_read: (clocks.node.clock != clocks.read.clock).then(|| clocks.node.clone()),
        verdict: verdict::verdict(&settings, &findings, clocks.read.low_ns.is_some(), counted),
        settings,
        findings,
        not_seen: verdict::not_seen(facts),
    }
}
