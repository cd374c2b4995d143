//! `--kernel-log` with a tree that has no log.

use super::super::{alarms, findings, fixture, json, pg_timing, run};

/// A kernel log that the user names is read even if the tree has none.
#[test]
fn kernel_log_from_stdin() {
    let log = "[    1.000000] clocksource: Switched to clocksource tsc\n\
               [  500.000000] tsc: Marking TSC unstable due to clocksource watchdog\n";
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().to_str().unwrap();
    let mut command = pg_timing();
    command.args(["--root", root, "--kernel-log", "-", "--format", "json"]).write_stdin(log);
    let (status, stdout, stderr) = run(&mut command);
    let report = json(&stdout);
    assert_eq!((status, stderr.as_str()), (1, ""));
    assert_eq!(alarms(&report), [("tsc-demoted", "warning")]);
    let message = &report["kernel"]["messages"][1];
    assert_eq!((&message["seconds"], &message["level"]), (&json("500.0"), &json("\"fault\"")), "{message}");
    assert_eq!(message["text"], "tsc: Marking TSC unstable due to clocksource watchdog");
    // No file has the kernel's list of clock sources, so its log is the only proof.
    assert_eq!(report["tsc"]["usable"], false);
    assert!(
        report["tsc"]["distrust"].to_string().contains("the kernel marked it unstable 500 s after boot"),
        "{report}"
    );
}

/// The figures of this host show no fault of the TSC. Only an overflow of the watchdog's counter can explain the kernel's
/// decision then.
#[test]
fn a_jump_of_the_tsc_is_no_mistake_of_the_kernel() {
    let dmesg = std::fs::read_to_string(fixture("hosts/demoted-tsc-adjust/var/log/dmesg")).unwrap();
    let auto_demoted = |tsc_ns: &str| {
        let lines = dmesg.lines().filter(|line| !line.contains(" skewed "));
        let log: String = lines.map(|line| line.replace("511908832", tsc_ns) + "\n").collect();
        let mut command = pg_timing();
        command.arg("--root").arg(fixture("hosts/demoted-tsc-adjust"));
        let (_, stdout, stderr) = run(command.args(["--kernel-log", "-", "--format", "json"]).write_stdin(log));
        assert_eq!(stderr, "");
        let report = json(&stdout);
        let severity = findings(&report).into_iter().find(|(id, _)| *id == "tsc-auto-demoted").unwrap().1.to_string();
        (severity, report["kernel"]["demotion"]["because"].as_str().unwrap().to_string())
    };
    let (severity, because) = auto_demoted("38471000000000");
    assert_eq!(severity, "warning");
    assert!(because.starts_with("it jumped ahead of hpet by 38470 s in 511 ms"), "{because}");
    // 2^32 ticks of 24 MHz
    assert_eq!(auto_demoted("179468372081").0, "ok");
}

/// CPUID and the kernel agree, so only the measurement with another timer shows that both are wrong.
#[test]
fn the_kernels_own_clock_has_a_wrong_rate() {
    let log = fixture("kernel_logs/tsc-recalibrate.log");
    let mut command = pg_timing();
    command.arg("--root").arg(fixture("hosts/bare-intel")).arg("--kernel-log").arg(log).args(["--format", "json"]);
    let (status, stdout, _) = run(&mut command);
    assert_eq!((status, alarms(&json(&stdout))), (1, vec![("tsc-rate-mismatch", "warning")]));
}

/// A kernel without sysfs names its clock sources only in its log.
#[test]
fn clock_sources_from_the_log_of_freebsd() {
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().to_str().unwrap();
    let log = "Timecounter \"HPET\" frequency 14318180 Hz quality 950\nTimecounter \"TSC\" frequency 2999990112 Hz quality -100\n";
    let mut command = pg_timing();
    command.args(["--root", root, "--kernel-log", "-", "--format", "json"]).write_stdin(log);
    let (_, stdout, stderr) = run(&mut command);
    assert_eq!(stderr, "");
    let freebsd = json(&stdout);
    assert_eq!(freebsd["clocksource"]["available"], json("[\"HPET\"]"));
    let messages = freebsd["kernel"]["messages"].to_string();
    assert!(messages.contains("quality -100") && messages.contains("none below 0"), "{messages}");
}
