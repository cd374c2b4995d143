//! What has no counted events: `pg_fast_timing.method`, `timing_clock_source` and EXPLAIN (SERIALIZE).

use super::advice::without_events;
use super::facts::Facts;
use crate::host::check::tsc_slow_if;
use crate::human::duration;
use crate::report::{Action, Finding, Report, SYSTEM, SettingAdvice, Severity, finding_id};
use crate::server::settings::FAST_TIMING_METHOD;

/// `pg_fast_timing.method`: a cheaper method to time plan nodes, also for auto_explain.
pub fn fast_timing(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(FAST_TIMING_METHOD);
    let (advice, summary) = match (value, facts.server.times_plans()) {
        (Some("off"), true) => (Action::TurnOn, "makes auto_explain's timing cheap"),
        (Some("off"), false) => (Action::None, "the server itself times plan nodes; auto_explain does not time any"),
        (Some("tsc"), _) => (Action::None, "the CPU's counter times each call; the method auto costs less"),
        (Some(_), _) => (Action::Keep, "it times plan nodes at low cost"),
        // No line to paste: it would replace the present value, and without the library no session could start.
        (None, true) => (
            Action::TurnOn,
            "makes auto_explain's timing cheap: install it, try LOAD 'pg_fast_timing' in a session, then append it to session_preload_libraries",
        ),
        (None, false) => (Action::None, "useful only if auto_explain times plans, which it does not do on this server"),
    };
    let how = match value {
        Some("tsc") => "it reads the CPU's counter twice per call",
        Some("sampling") => {
            "it reads no clock per call, and estimates times with a clock that ticks 1000 times per second"
        }
        _ => "it times all calls of a node only while that is cheap",
    };
    let why = format!("it times plan nodes instead of the server: {how}. pg_fast_timing_info() shows its overhead");
    let line = |method: &str| {
        (advice == Action::TurnOn && value.is_some()).then(|| format!("{FAST_TIMING_METHOD} = '{method}'"))
    };
    Some(SettingAdvice {
        line: line("auto"),
        undo: line("off"),
        ..without_events(FAST_TIMING_METHOD, value.unwrap_or("not loaded"), advice, summary, why)
    })
}

/// `EXPLAIN (ANALYZE, SERIALIZE)` (17): not a setting, but it also reads the clock for each row.
pub fn serialize(facts: &Facts) -> Option<SettingAdvice> {
    /// serializeAnalyzeReceive in explain_dr.c: one read before and one after each row.
    const READS: f64 = 2.0;
    let summary = match facts.clocks.read.high_ns {
        Some(ns) => format!("up to {} per row: {} for 100 000 rows", duration(READS * ns), duration(READS * ns * 1e5)),
        None => "not determined: the read cost of the clock is unknown".into(),
    };
    let why = "two reads of the clock for each row that is converted to text; TIMING OFF avoids them";
    let advice = without_events("EXPLAIN (SERIALIZE)", "no setting", Action::None, summary, why);
    (facts.server.major() >= 17).then_some(SettingAdvice { reads_per_event: READS, ..advice })
}

/// `timing_clock_source` (19): the system clock, or the CPU's counter.
pub fn clock_source(facts: &Facts) -> Option<SettingAdvice> {
    const NAME: &str = "timing_clock_source";
    let value = facts.server.setting(NAME)?;
    let (advice, summary) = match &facts.clocks.here {
        Some(here) => of_host(here, facts.server.uses_tsc()),
        None => (
            Action::Unknown,
            "not determined: the host of the server is not visible, so its TSC cannot be checked".into(),
        ),
    };
    let line = |value: &str| Some(format!("{NAME} = '{value}'"));
    // The server shows `auto (tsc)` for `auto`.
    let undo = line(value.split(' ').next().unwrap_or(value));
    let (line, undo) = match advice {
        Action::TurnOff => (line("system"), undo),
        Action::TurnOn => (line("tsc"), undo),
        _ => (None, None),
    };
    let hint = (advice == Action::Unknown).then(|| "run it on the server's host: pg_timing".to_string());
    let why = "the settings above and EXPLAIN ANALYZE read this clock";
    let plain = without_events(NAME, value, advice, summary, why);
    Some(SettingAdvice { reads_per_event: 1.0, hint, line, undo, ..plain })
}

/// Returns the advice about the TSC of this host. If it is turned off, PostgreSQL reads the system clock.
fn of_host(here: &Report, uses_tsc: bool) -> (Action, String) {
    let costs = || Some((here.clock(SYSTEM)?.read_ns?, here.clock("rdtscp")?.read_ns?));
    let compared = |text: &str| match costs() {
        Some((system, tsc)) => {
            format!("{text}: a read of the TSC takes {}, one of the system clock {}", duration(tsc), duration(system))
        }
        None => text.into(),
    };
    let is_faster = costs().is_some_and(|(system, tsc)| tsc < system);
    match (faults(here), here.tsc.usable) {
        (Some(why), _) => (if uses_tsc { Action::TurnOff } else { Action::None }, format!("do not use the TSC: {why}")),
        (None, _) if tsc_slow_if(here, Some(uses_tsc)).severity >= Severity::Warning => {
            (Action::TurnOff, compared("the TSC is slower than the system clock"))
        }
        (None, Some(true)) if uses_tsc => (Action::Keep, compared("the TSC can be trusted")),
        (None, Some(true)) if is_faster => (Action::TurnOn, compared("the TSC can be trusted")),
        (None, Some(true)) => (Action::None, "the TSC is not faster on this host".into()),
        (None, _) => (Action::Unknown, "not determined: the TSC was not measured".into()),
    }
}

/// Returns the faults of the host's TSC. Its cost is not a fault.
fn faults(here: &Report) -> Option<String> {
    let alarm = |finding: &&Finding| {
        finding.severity >= Severity::Warning
            && finding.id != finding_id::TSC_SLOW
            && (finding.id.starts_with("tsc-") || finding.id == finding_id::CPU_SKEW)
    };
    let findings = here.findings.iter().filter(alarm).map(|finding| finding.summary.clone());
    let all: Vec<String> = here.tsc.distrust.iter().cloned().chain(findings).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
