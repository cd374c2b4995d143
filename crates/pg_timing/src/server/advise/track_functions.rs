//! `track_functions`: the server reads the clock before and after each function call.

use super::advice::{Setting, advise};
use super::counts::Part;
use super::facts::{Events, Facts};
use super::gap::{self, Gap};
use crate::report::SettingAdvice;
use crate::server::own_sql;
use crate::server::settings::{Server, set_hint};

const NAME: &str = "track_functions";
const PART: &str = "functions";
/// pgstat_init_function_usage and pgstat_end_function_usage read the clock once each.
const READS: f64 = 2.0;

/// Statistics of functions. They have no time of the last reset, so only a smaller number shows a reset.
pub fn part(_: &Server) -> Option<Part> {
    Some(Part { name: PART, sql: own_sql::FUNCTION_CALLS.into() })
}

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?.to_string();
    let on = value != "none";
    let line = |value: &str| format!("{NAME} = '{value}'");
    Some(advise(
        facts,
        Setting {
            name: NAME,
            on,
            events: events(facts, on).unwrap_or_else(Events::unknown),
            reads_per_event: READS,
            cost: &facts.clocks.read,
            why: "two reads of the clock for each call in procedural languages (pl), or also in SQL and C (all); pg_stat_user_functions counts calls only while track_functions is on".into(),
            turn_on: line(if on { &value } else { "pl" }),
            turn_off: line("none"),
            value,
        },
    ))
}

/// Returns the function calls.
fn events(facts: &Facts, on: bool) -> Result<Events, Gap> {
    if !on {
        return Err(Gap::new("calls are counted only while track_functions is on", set_hint(NAME, "'pl'")));
    }
    let events = facts.counted(facts.counts.growth(PART, "calls")?, READS, READS);
    Ok(match facts.server.databases > 1 {
        true => events.or_more(Gap::new("only functions of this database are counted", gap::OTHER_DATABASES)),
        false => events,
    })
}
