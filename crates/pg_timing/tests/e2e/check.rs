//! The host check on this machine.

use super::{assert_status_matches_verdict, json, pg_timing, run};
use pg_timing::host::check::CHECKS;
use serde_json::Value;
use std::time::Instant;

#[test]
fn report_has_every_figure() {
    let start = Instant::now();
    let (status, stdout, stderr) = run(pg_timing().args(["check", "-d", "1", "--format", "json"]));
    let elapsed = start.elapsed().as_secs_f64();
    assert_eq!(stderr, "");
    let report = json(&stdout);
    assert_status_matches_verdict(status, &report);
    assert_eq!(report["schema_version"], 1);
    // The requested measuring time is 1 s.
    let seconds = report["measured_seconds"].as_f64().unwrap();
    assert!((0.5..=1.5).contains(&seconds) && seconds <= elapsed + 0.01, "{seconds} {elapsed}");

    let clocks = report["clocks"].as_array().unwrap();
    assert_eq!((&clocks[0]["name"], &clocks[0]["unavailable"]), (&"system".into(), &Value::Null));
    for clock in clocks.iter().filter(|clock| clock["unavailable"].is_null()) {
        let name = clock["name"].as_str().unwrap();
        // On a busy machine, interruptions can hide a coarse clock's step.
        let step = (!clock["granularity_unavailable"].is_string()).then_some("granularity_ns");
        for key in ["read_ns", "reads"].into_iter().chain(step) {
            assert!(clock[key].as_f64().is_some_and(|n| n > 0.0), "{name}: {key}: {clock}");
        }
        assert!(clock["percentiles"]["p50_ns"].is_number() && clock["backward_steps"].is_number(), "{clock}");
        let bins = clock["histogram"].as_array().unwrap();
        let forward_reads: u64 = bins.iter().map(|bin| bin["count"].as_u64().unwrap()).sum();
        let backward_steps = clock["backward_steps"].as_u64().unwrap();
        assert_eq!(forward_reads + backward_steps, clock["reads"].as_u64().unwrap(), "{name}");
    }
    let tsc = &report["tsc"];
    assert!(tsc["frequency_khz"].as_f64().unwrap() > 1000.0, "{tsc}");
    assert!(tsc["uncertainty_ppm"].as_f64().unwrap() > 0.0, "{tsc}");
    assert_eq!(tsc["reference"], "CLOCK_MONOTONIC_RAW");
    for key in ["source", "independent", "usable", "used_by_default"] {
        assert!(!tsc[key].is_null(), "{key}: {tsc}");
    }
    assert!(report["clocksource"]["current"].is_string() && report["clocksource"]["available"].is_array());
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), CHECKS.len());
    for finding in findings {
        for key in ["id", "severity", "summary", "evidence", "why", "fix"] {
            assert!(!finding[key].is_null(), "{key}: {finding}");
        }
    }
}

#[test]
fn output_is_plain_text_in_a_pipe() {
    let (status, stdout, stderr) = run(pg_timing().args(["-d", "0.3"]));
    assert!(status <= 2, "the clock was measured, so there is a verdict: {status}");
    assert_eq!(stderr, "", "no progress bar in a pipe");
    assert!(!stdout.contains('\x1b'), "no color in a pipe");
    // Line breaks depend on the figures.
    let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["clock ", "system ", "per row and plan", "a million rows through three"] {
        assert!(words.contains(part), "{part}: {stdout}");
    }
}

#[test]
fn version_and_help() {
    for flag in ["--version", "-V"] {
        let version = format!("pg_timing {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(run(pg_timing().arg(flag)), (0, version, String::new()));
    }
    for command in ["", "check", "test", "read", "compare", "clocksource", "explain", "advise"] {
        for flag in ["--help", "-?"] {
            let (status, stdout, stderr) = run(pg_timing().args(Some(command).filter(|c| !c.is_empty())).arg(flag));
            assert_eq!((status, stderr.as_str()), (0, ""), "{command} {flag}");
            let usage = format!("Usage: pg_timing {command}");
            assert!(stdout.contains(usage.trim_end()), "{command} {flag}: {stdout}");
        }
    }
}
