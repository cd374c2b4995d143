//! `track_cost_delay_timing` (18): the server reads the clock before and after each cost-based delay of a vacuum.

use super::advice::{Setting, advise};
use super::facts::{Events, Facts};
use super::gap::Gap;
use crate::report::SettingAdvice;
use crate::server::settings::Server;

const NAME: &str = "track_cost_delay_timing";
/// vacuum_delay_point in vacuum.c: one read before and one after the delay.
const READS: f64 = 2.0;

/// Returns the advice.
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
            why: "two reads of the clock for each cost-based delay; delays are not counted, but the length of a delay limits their number per worker and second".into(),
            turn_on: format!("{NAME} = on"),
            turn_off: format!("{NAME} = off"),
        },
    ))
}

/// Returns an upper bound on the delays.
fn events(server: &Server) -> Events {
    let gap = Gap::new(
        "delays are not counted",
        "limit them: ALTER SYSTEM SET vacuum_cost_delay = 0; then: SELECT pg_reload_conf()",
    );
    let manual = delay_ms(server.setting("vacuum_cost_delay"));
    let automatic = match server.setting("autovacuum_vacuum_cost_delay") {
        Some("-1") => manual,
        other => delay_ms(other),
    };
    match (manual, automatic, server.number_in("autovacuum_max_workers")) {
        // Nothing limits the number of sessions that run VACUUM manually.
        (Some(0.0), Some(automatic), Some(workers)) => {
            let each = if automatic > 0.0 { 1e3 / automatic } else { 0.0 };
            Events::at_most(workers * each * READS, gap)
        }
        _ => Events::unknown(gap),
    }
}

/// Parses a delay in the server's format: `2ms`, `500us`, `0`.
fn delay_ms(value: Option<&str>) -> Option<f64> {
    let value = value?;
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    // The server's own limit is 100 ms.
    let number = value.strip_suffix(unit)?.parse().ok().filter(|number| (0.0..=1e6).contains(number))?;
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
    fn delays_are_parsed() {
        for (value, ms) in [
            ("2ms", Some(2.0)),
            ("500us", Some(0.5)),
            ("0", Some(0.0)),
            ("1s", Some(1e3)),
            ("-1", None),
            ("", None),
            (&"9".repeat(400), None),
        ] {
            assert_eq!(delay_ms(Some(value)), ms, "{value}");
        }
    }
}
