//! Reads the JSON output of `pg_timing test` back.

use super::{Bin, ClockKind, ClockTable, Observed, Output, TscLines};
use crate::host::measure::log2_row;
use crate::report::{ObservedDuration, TestReport, TestedClock};

/// The only version of this JSON format so far.
pub const SCHEMA_VERSION: u64 = 1;

/// Returns the outputs of `pg_timing test --format json` in a text, or why they cannot be used. `None` if there is anything
/// else.
pub fn parse_json(json: &[u8]) -> Option<Result<Vec<Output>, String>> {
    let tests = serde_json::Deserializer::from_slice(json).into_iter::<TestReport>();
    let tests: Vec<TestReport> = tests.collect::<Result<_, _>>().ok()?;
    (!tests.is_empty()).then(|| tests.into_iter().map(output).collect())
}

fn output(test: TestReport) -> Result<Output, String> {
    if test.schema_version != SCHEMA_VERSION {
        let version = test.schema_version;
        return Err(format!("has the JSON format {version}; this pg_timing reads the format {SCHEMA_VERSION}"));
    }
    let longest_ns = test.duration_s.saturating_add(1) as f64 * 1e9;
    if test.clocks.iter().any(|clock| !(clock.loop_ns > 0.0 && clock.loop_ns <= longest_ns)) {
        return Err("is a damaged output of pg_timing test: a clock has an impossible figure".into());
    }
    Ok(Output {
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
    })
}

fn table(mut clock: TestedClock) -> ClockTable {
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
        whole: true,
        bins: bins(&clock.observed),
        observed: clock.observed.iter().map(|seen| Observed { ns: seen.ns, count: seen.count }).collect(),
    }
}

/// Returns the histogram of pg_test_timing 19: one row per power of two.
fn bins(observed: &[ObservedDuration]) -> Vec<Bin> {
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
    use crate::host::pg_test_timing::{Format, Options, parse, print};
    use crate::report::TscSummary;

    const JSON: &str = r#"{"schema_version": 1, "duration_s": 1, "interrupted": false, "clocks": [{"name": "system",
        "loop_ns": 25.5, "reads": 100, "observed": [{"ns": 24, "count": 70}, {"ns": 31, "count": 30}]}], "tsc": {"source":
        "x86", "in_use_khz": 2500000, "calibrated_khz": 2500100, "usable": true, "used_by_default": true}}"#;

    /// Both formats of one test give the same figures.
    #[test]
    fn it_is_the_same_as_the_text() {
        let observed = [(0, 1), (24, 70_000), (25, 28_000), (31, 10), (1024, 1)].into();
        let timing = Timing { title: timing::SYSTEM, loop_ns: 25.01, observed };
        // PostgreSQL 19 prints lines about the counter only on x86.
        let tsc = cfg!(target_arch = "x86_64").then(|| TscSummary {
            source: "x86".into(),
            in_use_khz: Some(2_500_000),
            calibrated_khz: Some(2_500_100),
            usable: true,
            used_by_default: true,
        });
        let options = Options { duration_s: 1, cutoff: 100.0, format: Format::Json };
        let json = print::json(&options, std::slice::from_ref(&timing), tsc.as_ref(), false);
        let table = print::nineteen(&timing, 100.0);
        let text = format!(
            "Testing timing overhead for 1 second.\n\n{}\n{table}{}",
            timing::SYSTEM,
            tsc.map(|tsc| tsc.text()).unwrap_or_default()
        );
        assert_eq!(parse_json(json.as_bytes()), Some(Ok(parse(&text).unwrap())));
    }

    #[test]
    fn other_json_is_not_a_test() {
        assert_eq!(parse_json(format!("{JSON}\n{JSON}").as_bytes()).map(|outputs| outputs.unwrap().len()), Some(2));
        for other in ["", "{}", "7", r#"{"clocks": [], "verdict": {}}"#, &JSON[..40], &JSON.replace("70", "-70")] {
            assert_eq!(parse_json(other.as_bytes()), None, "{other}");
        }
        let longest = JSON.replace("24", "18446744073709551615");
        assert_eq!(parse_json(longest.as_bytes()).unwrap().unwrap()[0].clocks[0].bins.len(), 65);
    }

    #[test]
    fn another_version_and_impossible_figures_are_refused() {
        for (from, to, why) in [
            ("\"schema_version\": 1", "\"schema_version\": 2", "has the JSON format 2"),
            ("25.5", "-25.5", "impossible figure"),
            ("25.5", "0", "impossible figure"),
            ("25.5", "1e308", "impossible figure"),
        ] {
            let error = parse_json(JSON.replace(from, to).as_bytes()).unwrap().unwrap_err();
            assert!(error.contains(why), "{to}: {error}");
        }
        assert_eq!(parse_json(JSON.replace("\"schema_version\": 1,", "").as_bytes()), None, "another program");
    }
}
