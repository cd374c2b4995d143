//! `track_cost_delay_timing` (18): the clock is read before and after a vacuum's nap.

use super::advice::{Setting, advise};
use super::facts::{Events, Facts};
use crate::report::SettingAdvice;
use crate::server::settings::Server;

const NAME: &str = "track_cost_delay_timing";
/// vacuum_delay_point in vacuum.c: one before, one after.
const READS: f64 = 2.0;

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?.to_string();
    Some(advise(
        facts,
        Setting {
            name: NAME,
            on: value == "on",
            value,
            events: events(&facts.server),
            reads_per_event: READS,
            cost: &facts.clocks.read,
            why: "two reads of the clock for each cost-based delay; delays are not counted, but a worker can make no more of them than fit into a second".into(),
            turn_on: format!("{NAME} = on"),
            turn_off: format!("{NAME} = off"),
        },
    ))
}

fn events(server: &Server) -> Events {
    let why = "delays are not counted";
    let by_hand = delay_ms(server.setting("vacuum_cost_delay"));
    let automatic = match server.setting("autovacuum_vacuum_cost_delay") {
        Some("-1") => by_hand,
        other => delay_ms(other),
    };
    match (by_hand, automatic, server.number_in("autovacuum_max_workers")) {
        // How many sessions vacuum by hand nobody limits.
        (Some(0.0), Some(automatic), Some(workers)) => {
            let each = if automatic > 0.0 { 1e3 / automatic } else { 0.0 };
            Events::at_most(workers * each * READS, why)
        }
        _ => Events::unknown(why),
    }
}

/// As the server prints it: `2ms`, `500us`, `0`.
fn delay_ms(value: Option<&str>) -> Option<f64> {
    let value = value?;
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = value.strip_suffix(unit)?.parse().ok()?;
    match unit {
        "us" => Some(number / 1e3),
        "ms" | "" => Some(number),
        "s" => Some(number * 1e3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays() {
        for (value, ms) in
            [("2ms", Some(2.0)), ("500us", Some(0.5)), ("0", Some(0.0)), ("1s", Some(1e3)), ("-1", None), ("", None)]
        {
            assert_eq!(delay_ms(Some(value)), ms, "{value}");
        }
    }
}
