//! `EXPLAIN (ANALYZE, SERIALIZE)` (17): not a setting, but it also reads the clock for each row.

use super::facts::Facts;
use crate::human::duration;
use crate::report::{Action, EventsAre, SettingAdvice};

/// serializeAnalyzeReceive in explain_dr.c: one read before and one after each row.
const READS: f64 = 2.0;

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    if facts.server.major() < 17 {
        return None;
    }
    let summary = match facts.clocks.read.high_ns {
        Some(ns) => format!("up to {} per row: {} for 100 000 rows", duration(READS * ns), duration(READS * ns * 1e5)),
        None => "not determined: the read cost of the clock is unknown".into(),
    };
    Some(SettingAdvice {
        name: "EXPLAIN (SERIALIZE)".into(),
        value: "no setting".into(),
        on: false,
        events_per_s: None,
        events_are: EventsAre::Unknown,
        reads_per_event: READS,
        core_share: None,
        limit_per_s: None,
        advice: Action::None,
        summary,
        hint: None,
        why: "two reads of the clock for each row that is converted to text; TIMING OFF avoids them".into(),
        line: None,
        undo: None,
        extrapolated: false,
    })
}
