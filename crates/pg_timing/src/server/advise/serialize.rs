//! `EXPLAIN (ANALYZE, SERIALIZE)` (17): no setting, but it reads the clock for each row as well.

use super::facts::Facts;
use crate::human::duration;
use crate::report::{Action, EventsAre, SettingAdvice};

/// serializeAnalyzeReceive in explain_dr.c: one before, one after.
const READS: f64 = 2.0;

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    if facts.server.major() < 17 {
        return None;
    }
    let summary = match facts.clocks.read.high_ns {
        Some(ns) => format!("up to {} a row: {} in 100 000 rows", duration(READS * ns), duration(READS * ns * 1e5)),
        None => "not determined: what a read of the clock costs is unknown".into(),
    };
    Some(SettingAdvice {
        name: "EXPLAIN (SERIALIZE)".into(),
        value: "no setting".into(),
        on: false,
        events_per_s: None,
        events_are: EventsAre::Unknown,
        reads_per_event: READS,
        core_share: None,
        advice: Action::None,
        summary,
        why: "two reads of the clock for each row that is turned into text; TIMING OFF spares them".into(),
        line: None,
        undo: None,
        extrapolated: false,
    })
}
