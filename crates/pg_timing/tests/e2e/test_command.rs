//! `pg_timing test`: pg_test_timing's formats.

use super::{json, pg_timing, ran};

#[test]
fn nineteen() {
    let (status, stdout, stderr) = ran(pg_timing().args(["test", "-d", "1"]));
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with(
        "Testing timing overhead for 1 second.\n\nSystem clock source: clock_gettime (CLOCK_MONOTONIC)\n\
         Average loop time including overhead: "
    ));
    let head = "              <= ns   % of total  running %      count\n                  0   ";
    assert!(stdout.contains(head) && stdout.contains("Observed timing durations up to 99.9900%:\n"), "{stdout}");
    if cfg!(target_arch = "x86_64") && !stdout.contains("TSC clock source is not usable") {
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
}

#[test]
fn classic() {
    let (status, stdout, _) = ran(pg_timing().args(["test", "-d", "1", "--format", "classic"]));
    assert_eq!(status, 0);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "Testing timing overhead for 1 second.");
    assert!(lines[1].starts_with("Per loop time including overhead: ") && lines[1].ends_with(" ns"), "{stdout}");
    assert_eq!(lines[2..4], ["Histogram of timing durations:", "  < us   % of total      count"]);
    assert!(lines[4].starts_with("     1   "), "{stdout}");
}

#[test]
fn as_json() {
    let (status, stdout, _) = ran(pg_timing().args(["test", "-d", "1", "--format", "json"]));
    assert_eq!(status, 0);
    let test = json(&stdout);
    let clock = &test["clocks"][0];
    assert_eq!(clock["name"], "system");
    let counted: u64 = clock["observed"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, clock["reads"].as_u64().unwrap());
}

/// What it prints, it reads: the two stay one format.
#[test]
fn read_understands_it() {
    for format in ["19", "classic"] {
        let (_, stdout, _) = ran(pg_timing().args(["test", "-d", "1", "--format", format]));
        let (status, read, stderr) =
            ran(pg_timing().args(["read", "-", "--format", "json"]).write_stdin(stdout.clone()));
        assert!(status <= 2, "{stderr}");
        let read = json(&read);
        assert_eq!(read["excerpt"], false, "{format}: {stdout}");
        let loop_ns: f64 =
            stdout.split("including overhead: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert_eq!(read["clocks"][0]["loop_ns"].as_f64(), Some(loop_ns));
    }
}
