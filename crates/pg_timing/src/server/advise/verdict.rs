//! The verdict: the most expensive settings that are on, and faults of the clock. Findings about the server's host, and events that
//! the statistics do not contain.

use super::facts::{Counts, Facts, Part};
use super::settings::STATEMENTS;
use crate::host::check;
use crate::human::percent;
use crate::report::{
    Action, CHEAP_SHARE, CRITICAL_SHARE, CoreShare, Finding, SettingAdvice, Severity, Verdict, finding_id,
};
use crate::server::own_sql;

const SESSIONS: &str = "sessions";

/// Returns the verdict. `clock` means that the read cost is known, and `counted` that there was a window.
pub fn verdict(settings: &[SettingAdvice], clock: bool, counted: bool) -> Verdict {
    let unknown = |summary: &str| Verdict { severity: Severity::Unknown, summary: summary.into() };
    if !clock {
        return unknown("Not determined: the read cost of the server's clock could not be measured.");
    }
    if !counted {
        return unknown("Not determined: stopped before the server's statistics could be observed.");
    }
    let on: Vec<&SettingAdvice> = settings.iter().filter(|setting| setting.on).collect();
    // The clock source matters even if no setting is on.
    let faulty: Vec<&SettingAdvice> =
        settings.iter().filter(|setting| !setting.on && setting.advice == Action::TurnOff).collect();
    let severity = on.iter().chain(&faulty).map(|setting| severity(setting)).max().unwrap_or(Severity::Ok);
    let is_expensive = |setting: &&&SettingAdvice| self::severity(setting) > Severity::Ok;
    let cost = |setting: &&SettingAdvice| {
        Some(format!("{} takes at least {}", setting.name, percent(setting.core_share?.low)))
    };
    let expensive: Vec<String> = on.iter().filter(is_expensive).filter_map(cost).collect();
    let names = |wanted: &dyn Fn(&SettingAdvice) -> bool| -> Vec<&str> {
        on.iter().filter(|setting| wanted(setting)).map(|setting| setting.name.as_str()).collect()
    };
    let cheap = names(&|setting| setting.advice == Action::Keep && setting.core_share.is_some());
    // Settings without a line for postgresql.conf need other steps.
    let cheap_to_turn_on = |setting: &&SettingAdvice| setting.advice == Action::TurnOn && setting.line.is_some();
    let turn_on: Vec<&str> = settings.iter().filter(cheap_to_turn_on).map(|setting| setting.name.as_str()).collect();
    // The bad news comes first.
    let mut sentences = Vec::new();
    if !expensive.is_empty() {
        sentences.push(format!("{} of a core for reading the clock.", expensive.join(", ")));
    }
    sentences.extend(faulty.iter().map(|setting| format!("{}: {}.", setting.name, setting.summary)));
    let list = |head: &str, names: &[&str]| (!names.is_empty()).then(|| format!("{head}: {}.", names.join(", ")));
    let is_open = |setting: &SettingAdvice| matches!(setting.advice, Action::SampleLess | Action::Unknown);
    sentences.extend(list("On, but not determined", &names(&is_open)));
    sentences.extend(match on.len() {
        0 => Some("No setting that reads the clock is on.".into()),
        all if all == cheap.len() => Some("Each setting that is on costs less than 1% of a core.".into()),
        _ => list("On, and less than 1% of a core each", &cheap),
    });
    sentences.extend(list("Cheap to turn on", &turn_on));
    if sentences.is_empty() {
        sentences.push("No setting that is on was found to cost 1% of a core.".into());
    }
    Verdict { severity, summary: sentences.join(" ") }
}

/// Returns the severity of the certain cost, or of a faulty clock.
fn severity(setting: &SettingAdvice) -> Severity {
    match setting.core_share {
        Some(CoreShare { low, .. }) if low > CRITICAL_SHARE => Severity::Critical,
        Some(CoreShare { low, .. }) if low > CHEAP_SHARE => Severity::Warning,
        // A faulty clock makes every figure wrong, even if it is cheap.
        None if !setting.on && setting.advice == Action::TurnOff => Severity::Warning,
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

/// Adds the findings to the verdict about the settings.
pub fn add(verdict: Verdict, findings: &[Finding]) -> Verdict {
    // The setting timing_clock_source already says that the TSC is slow.
    let new = findings.iter().filter(|finding| finding.id != finding_id::TSC_SLOW);
    let summary = new.fold(verdict.summary, |text, finding| format!("{text} On this host: {}.", finding.summary));
    let worst = findings.iter().map(|finding| finding.severity).chain([verdict.severity]).max();
    Verdict { severity: worst.unwrap_or(verdict.severity), summary }
}

/// Sessions of other users are visible only to superusers and to pg_monitor. For others, the type of a session is hidden, too.
/// A statement that waits for a lock makes no calls of plan nodes, and some kinds of statements have none.
pub fn sessions_part() -> Part {
    Part { name: SESSIONS, sql: own_sql::SESSIONS.into() }
}

/// The sessions at the end of the window.
pub struct Sessions {
    /// there are sessions whose statements this user may not see
    pub has_hidden: bool,
    /// the longest time of a running statement, in s
    pub running_s: f64,
    /// the longest time of a running transaction, in s
    oldest_s: f64,
}

/// Returns the sessions at the end of the window. If they are unknown, there may be hidden ones.
pub fn sessions(counts: &Counts) -> Sessions {
    // Longer than 30 years is not plausible.
    let seconds = |name| counts.level(SESSIONS, name).ok().filter(|seconds| *seconds < 1e9).unwrap_or(0.0);
    Sessions {
        has_hidden: counts.level(SESSIONS, "hidden").map_or(true, |hidden| hidden > 0.0),
        running_s: seconds("running"),
        oldest_s: seconds("oldest"),
    }
}

/// Returns one line for each kind of missing events.
pub fn not_seen(facts: &Facts) -> Vec<String> {
    let Facts { server, counts, window_s, .. } = facts;
    let mut lines = Vec::new();
    lines.extend(counts.refused().into_iter().map(|(part, why)| format!("the statistics of {part}: {why}")));
    lines.extend(late(counts, *window_s));
    if !server.monitor && counts.level(STATEMENTS, "hidden").is_ok_and(|hidden| hidden > 0.0) {
        lines.push("statement texts of other users in pg_stat_statements: needs pg_monitor".into());
    }
    if server.is("track_counts", "off") {
        lines.push("statistics of tables and databases: track_counts is off".into());
    }
    if server.databases > 1 {
        lines.push("tables and functions of other databases: connect to each".into());
    }
    if !server.other_settings.is_empty() {
        lines.push(format!("sessions that override a setting: {}", server.other_settings.join(", ")));
    }
    lines
}

/// Returns a line about transactions that still run, because they report only at their end.
fn late(counts: &Counts, window_s: f64) -> Option<String> {
    let Sessions { has_hidden, oldest_s, .. } = sessions(counts);
    match (has_hidden, oldest_s > window_s) {
        (_, true) => Some(format!("running transactions, the oldest for {oldest_s:.0} s: they report at their end")),
        (true, false) => Some("transactions of other users that started before the window: needs pg_monitor".into()),
        (false, false) => None,
    }
}
