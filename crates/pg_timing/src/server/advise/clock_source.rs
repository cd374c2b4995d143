//! `timing_clock_source` (19): the system clock, or the CPU's counter.

use super::facts::Facts;
use crate::host::check::tsc_slow_if;
use crate::human::duration;
use crate::report::{Action, EventsAre, Finding, Report, SYSTEM, SettingAdvice, Severity, finding_id};

const NAME: &str = "timing_clock_source";

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?;
    let uses_tsc = facts.server.uses_tsc();
    let line = |value: &str| Some(format!("{NAME} = '{value}'"));
    // The server shows `auto (tsc)` for `auto`.
    let now = value.split(' ').next().unwrap_or(value);
    let (advice, summary, line, undo) = match &facts.clocks.here {
        None => (
            Action::Unknown,
            "not determined: the host of the server is not visible, so its TSC cannot be checked".into(),
            None,
            None,
        ),
        Some(here) => match (faults(here), here.tsc.usable) {
            (Some(why), _) if uses_tsc => {
                (Action::TurnOff, format!("do not use the TSC: {why}"), line("system"), line(now))
            }
            (Some(why), _) => (Action::None, format!("do not use the TSC: {why}"), None, None),
            (None, _) if tsc_slow_if(here, Some(uses_tsc)).severity >= Severity::Warning => (
                Action::TurnOff,
                format!("the TSC is slower than the system clock{}", comparison(here)),
                line("system"),
                line(now),
            ),
            (None, Some(true)) if uses_tsc => {
                (Action::Keep, format!("the TSC can be trusted{}", comparison(here)), None, None)
            }
            (None, Some(true)) if is_faster(here) => {
                (Action::TurnOn, format!("the TSC can be trusted{}", comparison(here)), line("tsc"), line(now))
            }
            (None, Some(true)) => (Action::None, "the TSC is not faster on this host".into(), None, None),
            (None, _) => (Action::Unknown, "not determined: the TSC was not measured".into(), None, None),
        },
    };
    let hint = (advice == Action::Unknown).then(|| "run it on the server's host: pg_timing".to_string());
    Some(SettingAdvice {
        name: NAME.into(),
        value: value.into(),
        on: false,
        events_per_s: None,
        events_are: EventsAre::Unknown,
        reads_per_event: 1.0,
        core_share: None,
        limit_per_s: None,
        advice,
        summary,
        hint,
        why: "the settings above and EXPLAIN ANALYZE read this clock".into(),
        line,
        undo,
        extrapolated: false,
    })
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

/// Returns the read costs of the system clock and of the TSC, in ns.
fn costs(here: &Report) -> Option<(f64, f64)> {
    Some((here.clock(SYSTEM)?.read_ns?, here.clock("rdtscp")?.read_ns?))
}

/// Returns whether the TSC is faster than the system clock.
fn is_faster(here: &Report) -> bool {
    costs(here).is_some_and(|(system, tsc)| tsc < system)
}

/// Returns both read costs as text.
fn comparison(here: &Report) -> String {
    let text = |(system, tsc)| {
        format!(": a read of the TSC takes {}, one of the system clock {}", duration(tsc), duration(system))
    };
    costs(here).map(text).unwrap_or_default()
}
