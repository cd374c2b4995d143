//! Estimates the cost of each setting that reads the clock. Each setting has a `fn(&Facts) -> Option<SettingAdvice>`.

mod facts;
mod log_timing;
mod settings;
#[cfg(test)]
mod tests;

use crate::error::{Error, SqlState};
use crate::host::check;
use crate::host::measure::Budget;
use crate::human::percent;
use crate::report::{
    Action, AdviseReport, CHEAP_SHARE, CRITICAL_SHARE, Finding, SettingAdvice, Severity, Verdict, finding_id,
};
use crate::server::clock::Clocks;
use crate::server::connection::Connection;
use crate::server::settings::{Server, Session};
use facts::{Facts, SESSIONS, STATEMENTS, Snapshot, statistics};
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

/// Interval between checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Observes the server for the window, and returns the costs of its settings. `progress` receives values from 0 to 1. Measures the
/// server's clocks only if `clocks` is empty, because that takes most of a second of CPU time.
pub fn advise(
    connection: &mut Connection,
    window: Nanos,
    clocks: &mut Option<Clocks>,
    progress: &mut dyn FnMut(f64),
) -> Result<AdviseReport, Error> {
    let stop = connection.stop().clone();
    let facts = observe(&mut Session::new(connection), window, clocks, &stop, progress).map_err(|error| {
        match error.state.is(SqlState::QUERY_CANCELED) && stop.load(Ordering::Relaxed) {
            true => Error::new("stopped before the observation began", "run it again; advise changes nothing"),
            false => error,
        }
    })?;
    Ok(report(&facts, stop.load(Ordering::Relaxed)))
}

/// Collects the facts.
fn observe(
    session: &mut Session,
    window: Nanos,
    known_clocks: &mut Option<Clocks>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Facts, Error> {
    let server = Server::of(session)?;
    let clocks = known_clocks.get_or_insert_with(|| Clocks::of(session, &server)).clone();
    let parts = statistics(&server);
    // The window is the time between the snapshots, without the time for reading them.
    let budget = Budget::new(window, stop);
    let before = Snapshot::take(session, &parts)?;
    while budget.go_on() {
        std::thread::sleep(POLL_INTERVAL.min(Duration::from_nanos(budget.left().0 as u64)));
        progress(budget.spent().0 / window.0);
    }
    let window_s = (budget.spent().secs() * 1e3).round() / 1e3;
    // Ctrl-C ends only the window. The second snapshot is still needed.
    session.connection.ignores_stop = true;
    let after = Snapshot::take(session, &parts)?;
    Ok(Facts { server, clocks, before, after, window_s })
}

/// Returns the report with the advice and the verdict.
fn report(facts: &Facts, interrupted: bool) -> AdviseReport {
    let settings: Vec<SettingAdvice> = SETTINGS.iter().filter_map(|setting| setting(facts)).collect();
    let clocks = &facts.clocks;
    let counted = facts.window_s > facts::REPORT_DELAY_S;
    let findings = host_findings(facts);
    AdviseReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        server_version: facts.server.version.clone(),
        server: facts.server.name.clone(),
        window_s: facts.window_s,
        interrupted,
        read: clocks.read.clone(),
        node_read: (clocks.node.clock != clocks.read.clock).then(|| clocks.node.clone()),
        verdict: verdict(&settings, &findings, clocks.read.low_ns.is_some(), counted),
        settings,
        findings,
        not_seen: not_seen(facts),
    }
}

/// Returns the verdict about the settings and the findings. `has_cost`: the read cost is known; `has_counts`: there was a window.
pub fn verdict(settings: &[SettingAdvice], findings: &[Finding], has_cost: bool, has_counts: bool) -> Verdict {
    let unknown = |why: &str| (Severity::Unknown, vec![format!("Not determined: {why}.")]);
    let (severity, mut sentences) = match (has_cost, has_counts) {
        (false, _) => unknown("the read cost of the server's clock could not be measured"),
        (true, false) => unknown("stopped before the server's statistics could be observed"),
        (true, true) => (settings.iter().map(severity).max().unwrap_or(Severity::Ok), sentences(settings)),
    };
    // The setting timing_clock_source already says that the TSC is slow.
    let new = findings.iter().filter(|finding| finding.id != finding_id::TSC_SLOW);
    sentences.extend(new.map(|finding| format!("On this host: {}.", finding.summary)));
    let worst = findings.iter().map(|finding| finding.severity).fold(severity, Severity::max);
    Verdict { severity: worst, summary: sentences.join(" ") }
}

/// Returns the sentences about the settings. The bad news comes first.
fn sentences(settings: &[SettingAdvice]) -> Vec<String> {
    let list = |head: &str, is_listed: fn(&SettingAdvice) -> bool| {
        let names = settings.iter().filter(|setting| is_listed(setting)).map(|setting| setting.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("{head}: {names}."))
    };
    let cost =
        |setting: &SettingAdvice| Some(format!("{} takes at least {}", setting.name, percent(setting.core_share?.low)));
    let expensive = settings.iter().filter(|setting| setting.on && severity(setting) > Severity::Ok);
    let expensive = expensive.filter_map(cost).collect::<Vec<_>>().join(", ");
    let faulty = settings.iter().filter(|setting| !setting.on && setting.advice == Action::TurnOff);
    let mut sentences = Vec::new();
    sentences.extend((!expensive.is_empty()).then(|| format!("{expensive} of a core for reading the clock.")));
    sentences.extend(faulty.map(|setting| format!("{}: {}.", setting.name, setting.summary)));
    sentences.extend(list("On, but not determined", |setting| {
        setting.on && matches!(setting.advice, Action::SampleLess | Action::Unknown)
    }));
    sentences.extend(list("On, and less than 1% of a core each", |setting| {
        setting.on && setting.advice == Action::Keep && setting.core_share.is_some()
    }));
    if !settings.iter().any(|setting| setting.on) {
        sentences.push("No setting that reads the clock is on.".into());
    } else if sentences.is_empty() {
        sentences.push("No setting that is on was found to cost 1% of a core.".into());
    }
    // Settings without a line for postgresql.conf need other steps.
    sentences.extend(list("Cheap to turn on", |setting| setting.advice == Action::TurnOn && setting.line.is_some()));
    sentences
}

/// Returns the severity of the certain cost of a setting that is on, or of a faulty clock, which makes every figure wrong.
fn severity(setting: &SettingAdvice) -> Severity {
    match setting.core_share.map_or(0.0, |share| share.low) {
        low if setting.on && low > CRITICAL_SHARE => Severity::Critical,
        low if setting.on && low > CHEAP_SHARE => Severity::Warning,
        _ if !setting.on && setting.advice == Action::TurnOff => Severity::Warning,
        _ => Severity::Ok,
    }
}

/// These findings affect every time that a server measures, whatever its settings.
const OF_EVERY_SERVER: &[&str] = &[finding_id::CLOCK_BACKWARD, finding_id::CLOCK_COARSE, finding_id::CLOCK_GAPS];

/// Returns the alarms. There are none if the server's host was not measured.
pub fn host_findings(facts: &Facts) -> Vec<Finding> {
    let Some(here) = &facts.clocks.here else { return Vec::new() };
    let general = here.findings.iter().filter(|finding| OF_EVERY_SERVER.contains(&finding.id.as_str())).cloned();
    let all = general.chain([check::tsc_slow_if(here, Some(facts.server.uses_tsc()))]);
    all.filter(|finding| finding.severity >= Severity::Warning).collect()
}

/// Returns whether there are sessions at the end of the window whose statements this user may not see.
pub fn has_hidden_sessions(facts: &Facts) -> bool {
    facts.after.number(SESSIONS, "hidden").map_or(true, |hidden| hidden > 0.0)
}

/// Returns the longest time of a `running` statement at the end of the window, or of the `oldest` transaction, in s.
pub fn session_s(facts: &Facts, name: &str) -> f64 {
    // Longer than 30 years is not plausible.
    facts.after.number(SESSIONS, name).ok().filter(|seconds| *seconds < 1e9).unwrap_or(0.0)
}

/// Returns one line for each kind of missing events.
pub fn not_seen(facts: &Facts) -> Vec<String> {
    let Facts { server, window_s, .. } = facts;
    let mut lines = Vec::new();
    lines.extend(facts.refused().into_iter().map(|(part, why)| format!("the statistics of {part}: {why}")));
    // Transactions report only at their end.
    let oldest_s = session_s(facts, "oldest");
    if oldest_s > *window_s {
        lines.push(format!("running transactions, the oldest for {oldest_s:.0} s: they report at their end"));
    } else if has_hidden_sessions(facts) {
        lines.push("transactions of other users that started before the window: needs pg_monitor".into());
    }
    if !server.role.monitor && facts.after.number(STATEMENTS, "hidden").is_ok_and(|hidden| hidden > 0.0) {
        lines.push("statement texts of other users in pg_stat_statements: needs pg_monitor".into());
    }
    if server.is("track_counts", "off") {
        lines.push("statistics of tables and databases: track_counts is off".into());
    }
    if server.role.databases > 1 {
        lines.push("tables and functions of other databases: connect to each".into());
    }
    if !server.other_settings.is_empty() {
        lines.push(format!("sessions that override a setting: {}", server.other_settings.join(", ")));
    }
    lines
}
