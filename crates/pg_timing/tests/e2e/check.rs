//! The host check on this very host.

use super::{json, pg_timing, ran};
use serde_json::Value;

fn report(arguments: &[&str]) -> (i32, Value) {
    let (status, stdout, stderr) = ran(pg_timing().args(arguments).args(["--format", "json"]));
    assert_eq!(stderr, "", "nothing but the result");
    (status, json(&stdout))
}

#[test]
fn every_figure_is_there() {
    let (status, report) = report(&["-d", "1"]);
    let severity = report["verdict"]["severity"].as_str().unwrap();
    assert_eq!(["ok", "warning", "critical", "unknown"][status as usize], severity);
    assert_eq!(report["schema_version"], 1);
    let clocks = report["clocks"].as_array().unwrap();
    assert_eq!(clocks[0]["name"], "system");
    for clock in clocks.iter().filter(|clock| clock["unavailable"].is_null()) {
        let name = clock["name"].as_str().unwrap();
        let positive = |key: &str| assert!(clock[key].as_f64().is_some_and(|n| n > 0.0), "{name}: {key}: {clock}");
        positive("read_ns");
        positive("reads");
        positive("granularity_ns");
        assert!(clock["percentiles"]["p50_ns"].is_number() && clock["backward_steps"].is_number(), "{clock}");
        let counted: u64 =
            clock["histogram"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!(counted + clock["backward_steps"].as_u64().unwrap(), clock["reads"].as_u64().unwrap(), "{name}");
    }
    // A counter that may be read has a rate, and a rate has an error.
    let tsc = &report["tsc"];
    assert!(tsc["frequency_khz"].as_f64().unwrap() > 1000.0, "{tsc}");
    assert!(tsc["uncertainty_ppm"].as_f64().unwrap() > 0.0, "{tsc}");
    assert_eq!(tsc["reference"], "CLOCK_MONOTONIC_RAW");
    for key in ["source", "independent", "usable", "used_by_default"] {
        assert!(!tsc[key].is_null(), "{key}: {tsc}");
    }
    assert!(report["clocksource"]["current"].is_string() && report["clocksource"]["available"].is_array());
    for finding in report["findings"].as_array().unwrap() {
        for key in ["id", "severity", "summary", "evidence", "why", "fix"] {
            assert!(!finding[key].is_null(), "{key}: {finding}");
        }
    }
}

#[test]
fn the_time_given_is_the_time_taken() {
    let (_, report) = report(&["check", "-d", "1"]);
    let seconds = report["measured_seconds"].as_f64().unwrap();
    assert!((0.5..=1.5).contains(&seconds), "{seconds}");
}

#[test]
fn text_is_the_default_and_plain_in_a_pipe() {
    let (_, stdout, stderr) = ran(pg_timing().args(["-d", "0.3"]));
    assert_eq!(stderr, "", "no progress bar in a pipe");
    assert!(!stdout.contains('\x1b'), "no colour in a pipe");
    // Where lines end depends on the figures.
    let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["clock ", "system ", "per row and plan", "a million rows through three"] {
        assert!(words.contains(part), "{part}: {stdout}");
    }
}

#[test]
fn version_and_help() {
    let (status, stdout, _) = ran(pg_timing().arg("--version"));
    assert_eq!((status, stdout), (0, format!("pg_timing {}\n", env!("CARGO_PKG_VERSION"))));
    for arguments in [&["--help"][..], &["-?"], &["check", "-?"], &["test", "--help"], &["read", "-?"]] {
        let (status, stdout, stderr) = ran(pg_timing().args(arguments));
        assert_eq!((status, stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(stdout.contains("Usage: pg_timing"), "{stdout}");
    }
}
