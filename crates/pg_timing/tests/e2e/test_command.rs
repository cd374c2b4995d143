//! `pg_timing test` and pg_test_timing print pg_test_timing's formats.

use super::{assert_status_matches_verdict, json, pg_test_timing, pg_timing, run};
use std::sync::LazyLock;
use std::thread;

struct Outputs {
    nineteen: String,
    classic: String,
    json: String,
    pg_test_timing: String,
}

/// The outputs of all formats. Each run takes 1 s per clock, also if the CPUs are busy. Therefore all runs happen at
/// the same time.
static OUTPUTS: LazyLock<Outputs> = LazyLock::new(|| {
    let stdout = |(status, stdout, stderr): (i32, String, String)| {
        assert_eq!((status, stderr.as_str()), (0, ""));
        stdout
    };
    thread::scope(|scope| {
        let nineteen = scope.spawn(|| run(pg_timing().args(["test", "-d", "1"])));
        let classic = scope.spawn(|| run(pg_timing().args(["test", "-d", "1", "--format", "classic"])));
        let json = scope.spawn(|| run(pg_timing().args(["test", "-d", "1", "--format", "json"])));
        let pg_test_timing = scope.spawn(|| {
            let dir = tempfile::tempdir().unwrap();
            run(pg_test_timing(&dir).args(["--dur", "1", "--cut=50"]))
        });
        Outputs {
            nineteen: stdout(nineteen.join().unwrap()),
            classic: stdout(classic.join().unwrap()),
            json: stdout(json.join().unwrap()),
            pg_test_timing: stdout(pg_test_timing.join().unwrap()),
        }
    })
});

#[test]
fn format_19_is_the_default() {
    let stdout = &OUTPUTS.nineteen;
    assert!(stdout.starts_with(
        "Testing timing overhead for 1 second.\n\nSystem clock source: clock_gettime (CLOCK_MONOTONIC)\n\
         Average loop time including overhead: "
    ));
    let head = "              <= ns   % of total  running %      count\n                  0   ";
    assert!(stdout.contains(head) && stdout.contains("Observed timing durations up to 99.9900%:\n"), "{stdout}");
    if !cfg!(target_arch = "x86_64") || stdout.contains("TSC clock source is not usable") {
        return eprintln!("SKIPPED: PostgreSQL cannot use this machine's TSC, so the output has no lines about it");
    }
    for line in [
        "Clock source: RDTSCP\n",
        "Fast clock source: RDTSC\n",
        "\nTSC frequency source: x86",
        "\nTSC frequency in use: ",
    ] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
    assert!(stdout.trim_end().ends_with("'system'.") || stdout.trim_end().ends_with("'tsc'."), "{stdout}");
}

#[test]
fn pg_test_timing_accepts_abbreviated_options() {
    let stdout = &OUTPUTS.pg_test_timing;
    assert!(stdout.starts_with("Testing timing overhead for 1 second.\n"), "{stdout}");
    assert!(stdout.contains("Observed timing durations up to 50.0000%:"), "{stdout}");
}

#[test]
fn classic_format() {
    let stdout = &OUTPUTS.classic;
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "Testing timing overhead for 1 second.");
    assert!(lines[1].starts_with("Per loop time including overhead: ") && lines[1].ends_with(" ns"), "{stdout}");
    assert_eq!(lines[2..4], ["Histogram of timing durations:", "  < us   % of total      count"]);
    assert!(lines[4].starts_with("     1   "), "{stdout}");
}

#[test]
fn json_format_counts_every_read() {
    let test = json(&OUTPUTS.json);
    let clock = &test["clocks"][0];
    assert_eq!(clock["name"], "system");
    let counted: u64 = clock["observed"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert!(counted > 0);
    assert_eq!(counted, clock["reads"].as_u64().unwrap());
}

#[test]
fn read_accepts_the_output_of_test() {
    for stdout in [&OUTPUTS.nineteen, &OUTPUTS.classic] {
        let mut command = pg_timing();
        command.args(["read", "-", "--format", "json"]).write_stdin(stdout.clone());
        let (status, read, stderr) = run(&mut command);
        assert_eq!(stderr, "");
        let read = json(&read);
        assert_status_matches_verdict(status, &read);
        assert_ne!(status, 3, "{stdout}");
        assert!(read["missing"].is_null(), "{stdout}");
        let (_, loop_time) = stdout.split_once("including overhead: ").unwrap();
        let loop_ns: f64 = loop_time.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(read["clocks"][0]["loop_ns"].as_f64(), Some(loop_ns));
    }
}
