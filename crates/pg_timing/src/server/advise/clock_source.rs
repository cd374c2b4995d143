//! `timing_clock_source` (19): the system's clock, or the CPU's counter.

use super::facts::Facts;
use crate::human::duration;
use crate::report::{Action, EventsAre, Finding, Report, SYSTEM, SettingAdvice, Severity, finding_id};

const NAME: &str = "timing_clock_source";

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?;
    let uses_tsc = facts.server.uses_tsc();
    let line = |value: &str| Some(format!("{NAME} = '{value}'"));
    // `auto (tsc)` is typed as `auto`.
    let now = value.split(' ').next().unwrap_or(value);
    let (advice, summary, line, undo) = match &facts.clocks.here {
        None => (
            Action::Unknown,
            "not determined: whether its TSC can be trusted is seen only on the server's host, by pg_timing there"
                .into(),
            None,
            None,
        ),
        Some(here) => match (against(here), here.tsc.usable) {
            (Some(why), _) if uses_tsc => {
                (Action::TurnOff, format!("the TSC should not be used: {why}"), line("system"), line(now))
            }
            (Some(why), _) => (Action::None, format!("the TSC should not be used: {why}"), None, None),
            (None, Some(true)) if uses_tsc => {
                (Action::Keep, format!("the TSC can be trusted{}", saves(here)), None, None)
            }
            (None, Some(true)) if gains(here) => {
                (Action::TurnOn, format!("the TSC can be trusted{}", saves(here)), line("tsc"), line(now))
            }
            (None, Some(true)) => (Action::None, "the TSC is no faster here".into(), None, None),
            (None, _) => (Action::Unknown, "not determined: the TSC could not be judged".into(), None, None),
        },
    };
    Some(SettingAdvice {
        name: NAME.into(),
        value: value.into(),
        on: false,
        events_per_s: None,
        events_are: EventsAre::Unknown,
        reads_per_event: 1.0,
        core_share: None,
        advice,
        summary,
        why: "every read of the settings above, and of EXPLAIN ANALYZE, is of this clock".into(),
        line,
        undo,
        extrapolated: false,
    })
}

/// What the check of the host has against its TSC.
fn against(here: &Report) -> Option<String> {
    let alarm = |finding: &&Finding| {
        finding.severity >= Severity::Warning && (finding.id.starts_with("tsc-") || finding.id == finding_id::CPU_SKEW)
    };
    let found = here.findings.iter().filter(alarm).map(|finding| finding.summary.clone());
    let all: Vec<String> = here.tsc.distrust.iter().cloned().chain(found).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn costs(here: &Report) -> Option<(f64, f64)> {
    Some((here.clock(SYSTEM)?.read_ns?, here.clock("rdtscp")?.read_ns?))
}

fn gains(here: &Report) -> bool {
    costs(here).is_some_and(|(system, tsc)| tsc < system)
}

fn saves(here: &Report) -> String {
    let told =
        |(system, tsc)| format!(": a read of it takes {}, of the system's clock {}", duration(tsc), duration(system));
    costs(here).map(told).unwrap_or_default()
}
