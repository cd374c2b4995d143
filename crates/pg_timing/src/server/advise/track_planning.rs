//! `pg_stat_statements.track_planning`: the clock is read before and after a statement is planned.

use super::advice::{Setting, advise};
use super::facts::{Events, Facts};
use super::statements;
use crate::report::{Action, SettingAdvice};

const NAME: &str = "pg_stat_statements.track_planning";
/// pgss_planner: one before, one after.
const READS: f64 = 2.0;

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?.to_string();
    let on = value == "on" && !facts.server.is("pg_stat_statements.track", "none");
    // While it is off only statements are counted, and a prepared one may not be planned again.
    let counted = match on {
        true => statements::grew(facts, "plans").map(|(plans, more)| (facts.counted(plans, READS, READS), more)),
        false => statements::grew(facts, "calls").map(|(calls, more)| (facts.counted(calls, 0.0, READS), more)),
    };
    let events = match counted {
        Ok((events, Some(more))) => events.or_more(more),
        Ok((events, None)) => events,
        Err(why) => Events::unknown(why),
    };
    let advice = advise(
        facts,
        Setting {
            name: NAME,
            value,
            on,
            events,
            reads_per_event: READS,
            cost: &facts.clocks.read,
            why: "two reads of the clock for each plan that is made. It also takes a lock for each, which costs far more where many sessions run the same statement".into(),
            turn_on: format!("{NAME} = on"),
            turn_off: format!("{NAME} = off"),
        },
    );
    Some(match advice.advice {
        Action::TurnOn => SettingAdvice {
            advice: Action::None,
            summary: "its reads of the clock would be cheap; its lock for each statement may not be".into(),
            line: None,
            undo: None,
            ..advice
        },
        _ => advice,
    })
}
