//! Reads the JSON output of `pg_timing test` back.

use super::{Bin, ClockKind, ClockTable, Observed, Output, TscLines};
use crate::host::measure::log2_row;
use serde::Deserialize;

#[derive(Deserialize)]
struct Test {
    duration_s: u64,
    clocks: Vec<Clock>,
    tsc: Option<Tsc>,
}

#[derive(Deserialize)]
struct Clock {
    name: String,
    loop_ns: f64,
    observed: Vec<Duration>,
}

#[derive(Deserialize)]
struct Duration {
    ns: u64,
    count: u64,
}

#[derive(Deserialize)]
struct Tsc {
    source: String,
    in_use_khz: Option<u64>,
    calibrated_khz: Option<u64>,
    usable: bool,
    used_by_default: bool,
}

/// Returns the outputs of `pg_timing test --format json` in a text. `None` if there is anything else.
pub fn parse_json(json: &[u8]) -> Option<Vec<Output>> {
    let tests = serde_json::Deserializer::from_slice(json).into_iter::<Test>();
    let outputs: Vec<Output> = tests.map(|test| test.ok().map(output)).collect::<Option<_>>()?;
    (!outputs.is_empty()).then_some(outputs)
}

fn output(test: Test) -> Output {
    Output {
        duration_s: Some(test.duration_s),
        clocks: test.clocks.into_iter().map(table).collect(),
        tsc: test.tsc.map(|tsc| TscLines {
            source: Some(tsc.source),
            in_use_khz: tsc.in_use_khz,
            calibrated_khz: tsc.calibrated_khz,
            not_converged: tsc.calibrated_khz.is_none(),
            not_usable: !tsc.usable,
            used_by_default: Some(tsc.used_by_default),
        }),
        ..Output::default()
    }
}

fn table(mut clock: Clock) -> ClockTable {
    clock.observed.sort_by_key(|duration| duration.ns);
    ClockTable {
        kind: match clock.name.as_str() {
            "system" => ClockKind::System,
            "rdtscp" => ClockKind::Rdtscp,
            "rdtsc" => ClockKind::Rdtsc,
            _ => ClockKind::Other(clock.name),
        },
        loop_ns: Some(clock.loop_ns),
        unit_ns: 1.0,
        bins: bins(&clock.observed),
        observed: clock.observed.iter().map(|seen| Observed { ns: seen.ns, count: seen.count }).collect(),
    }
}

/// Returns the histogram of pg_test_timing 19: one row per power of two.
fn bins(observed: &[Duration]) -> Vec<Bin> {
    let rows = observed.last().map_or(0, |longest| log2_row(longest.ns) + 1);
    let bound = |row: usize| 2f64.powi(row as i32);
    let mut bins: Vec<Bin> = (0..rows)
        .map(|row| Bin { from_ns: if row == 0 { 0.0 } else { bound(row - 1) }, below_ns: bound(row), count: 0 })
        .collect();
    for seen in observed {
        let row = &mut bins[log2_row(seen.ns)];
        row.count = row.count.saturating_add(seen.count);
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::pg_test_timing::timing::{self, Timing};
    use crate::host::pg_test_timing::tsc::TscSummary;
    use crate::host::pg_test_timing::{Format, Options, parse, print};

    const JSON: &str = r#"{"schema_version": 1, "duration_s": 1, "interrupted": false, "clocks": [{"name": "system",
        "loop_ns": 25.5, "reads": 100, "observed": [{"ns": 24, "count": 70}, {"ns": 31, "count": 30}]}], "tsc": {"source":
        "x86", "in_use_khz": 2500000, "calibrated_khz": 2500100, "usable": true, "used_by_default": true}}"#;

    /// Both formats of one test give the same figures.
    #[test]
    fn it_is_the_same_as_the_text() {
        let observed = [(0, 1), (24, 70_000), (25, 28_000), (31, 10), (1024, 1)].into();
        let timing = Timing { title: timing::SYSTEM, loop_ns: 25.01, observed };
        let tsc = TscSummary {
            source: "x86".into(),
            in_use_khz: Some(2_500_000),
            calibrated_khz: Some(2_500_100),
            usable: true,
            used_by_default: true,
        };
        let options = Options { duration_s: 1, cutoff: 100.0, format: Format::Json };
        let json = print::json(&options, std::slice::from_ref(&timing), Some(&tsc), false);
        let table = print::nineteen(&timing, 100.0);
        let text = format!("Testing timing overhead for 1 second.\n\n{}\n{table}{}", timing::SYSTEM, tsc.text());
        assert_eq!(parse_json(json.as_bytes()), Some(parse(&text).unwrap()));
    }

    #[test]
    fn other_json_is_not_a_test() {
        assert_eq!(parse_json(format!("{JSON}\n{JSON}").as_bytes()).map(|outputs| outputs.len()), Some(2));
        for other in ["", "{}", "7", r#"{"clocks": [], "verdict": {}}"#, &JSON[..40], &JSON.replace("70", "-70")] {
            assert_eq!(parse_json(other.as_bytes()), None, "{other}");
        }
        let longest = JSON.replace("24", "18446744073709551615");
        assert_eq!(parse_json(longest.as_bytes()).unwrap()[0].clocks[0].bins.len(), 65);
    }
}
