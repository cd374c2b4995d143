//! `log_min_duration_statement` and similar settings: the server reads the clock at the end of each statement.

use super::advice::{Setting, advise};
use super::facts::Facts;
use super::statements;
use crate::report::SettingAdvice;

const NAMES: [&str; 3] = ["log_min_duration_statement", "log_min_duration_sample", "log_duration"];
/// check_log_duration in postgres.c reads the clock once per message: one message in the simple protocol, three (parse,
/// bind, execute) in the extended one. The server always reads the clock at the start.
const READS: (f64, f64) = (1.0, 3.0);

/// Returns the advice.
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
            // It is a timestamp, which comes from the system clock in every version.
            cost: &facts.clocks.system,
            why: "one read of the system clock per statement, or three in the extended protocol (parse, bind, execute); writing to the log costs far more".into(),
            turn_on: if on { format!("{name} = '{value}'") } else { format!("{name} = '1s'") },
            turn_off: format!("{name} = {off}"),
            value,
        },
    ))
}
