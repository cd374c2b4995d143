//! `pg_stat_statements.track_planning`: the server reads the clock before and after it plans a statement.

use super::advice::{Setting, advise};
use super::facts::{Events, Facts};
use super::statements;
use crate::report::{Action, SettingAdvice};

const NAME: &str = "pg_stat_statements.track_planning";
/// pgss_planner: one read before and one after the planning.
const READS: f64 = 2.0;

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?.to_string();
    let on = value == "on" && !facts.server.is("pg_stat_statements.track", "none");
    // While it is off, only statements are counted. A prepared statement may not be planned each time.
    let counted = match on {
        true => statements::growth(facts, "plans").map(|(plans, more)| (facts.counted(plans, READS, READS), more)),
        false => statements::growth(facts, "calls").map(|(calls, more)| (facts.counted(calls, 0.0, READS), more)),
    };
    let events = match counted {
        Ok((events, Some(more))) => events.or_more(more),
        Ok((events, None)) => events,
        Err(gap) => Events::unknown(gap),
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
            why: "two reads of the clock for each planning. The setting also takes a lock for each planning. The lock costs far more if many sessions run the same statement".into(),
            turn_on: format!("{NAME} = on"),
            turn_off: format!("{NAME} = off"),
        },
    );
    Some(match advice.advice {
        Action::TurnOn => SettingAdvice {
            advice: Action::None,
            summary: "its clock reads would be cheap, but it also takes a lock for each statement".into(),
            line: None,
            undo: None,
            ..advice
        },
        _ => advice,
    })
}
