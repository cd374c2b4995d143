//! `log_min_duration_statement` and its like: how long a statement took is asked at its end.

use super::advice::{Setting, advise};
use super::facts::Facts;
use super::statements;
use crate::report::SettingAdvice;

const NAMES: [&str; 3] = ["log_min_duration_statement", "log_min_duration_sample", "log_duration"];
/// check_log_duration in postgres.c reads it once a message: one of the simple protocol, three (parse,
/// bind, execute) of the extended one. The start's reading is there in any case.
const READS: (f64, f64) = (1.0, 3.0);

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let server = &facts.server;
    let is_on = |name: &&str| server.setting(name).is_some_and(|value| !["-1", "off"].contains(&value));
    let name = *NAMES.iter().find(|name| is_on(name)).unwrap_or(&NAMES[0]);
    let value = server.setting(name)?.to_string();
    let on = is_on(&name);
    let off = if name == "log_duration" { "off" } else { "-1" };
    Some(advise(
        facts,
        Setting {
            name,
            on,
            events: statements::events(facts, READS.0, READS.1),
            reads_per_event: READS.0,
            // A timestamp, and so of the system's clock in every version.
            cost: &facts.clocks.system,
            why: "one read of the system's clock a statement, up to three where it is sent in parts (parse, bind, execute); what is written to the log costs far more".into(),
            turn_on: if on { format!("{name} = '{value}'") } else { format!("{name} = '1s'") },
            turn_off: format!("{name} = {off}"),
            value,
        },
    ))
}
