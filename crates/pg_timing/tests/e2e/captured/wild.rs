//! Kernel logs as people send them: of every source, and with every fault of the TSC.

use super::super::{alarms, fixture, json, pg_timing, run};
use serde_json::Value;

/// Returns the status, the screen and the report of a log without a tree.
fn check(log: &str) -> (i32, String, Value) {
    let empty = tempfile::tempdir().unwrap();
    let checked = |format: &str| {
        let mut command = pg_timing();
        command.arg("--root").arg(empty.path()).args(["--kernel-log", "-", "--format", format]).write_stdin(log);
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!(stderr, "");
        (status, stdout)
    };
    let (status, screen) = checked("text");
    (status, screen, json(&checked("json").1))
}

fn file(name: &str) -> String {
    std::fs::read_to_string(fixture("kernel_logs").join(name)).unwrap()
}

/// Returns the words of the screen without its line breaks.
fn words(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn screens_of_all_kernel_logs() {
    for name in super::super::fixtures("kernel_logs") {
        let empty = tempfile::tempdir().unwrap();
        let log = fixture("kernel_logs").join(&name);
        let (status, screen) = super::check(empty.path(), &["--details", "--kernel-log", log.to_str().unwrap()]);
        insta::assert_snapshot!(format!("kernel_log.{name}"), format!("{screen}status {status}\n"));
    }
}

/// One log, as dmesg, journalctl in Japanese and in JSON, linuxkit and grep print it.
#[test]
fn one_log_in_every_form() {
    let dmesg = "clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is too large:\n\
                 clocksource: Switched to clocksource hpet\n";
    let each = |prefix: &str| dmesg.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
    let logs = [
        file("journal-japanese.log"),
        file("journal.json"),
        file("linuxkit-kmsg.log"),
        each("12:[ 7823.104882] "),
        each("/var/log/kern.log:Nov 20 10:29:43 db kernel: [ 7823.104882] "),
        each("kern  :warn  : [Fr Nov 20 10:29:43 2026] "),
    ];
    for log in logs {
        let (status, _, report) = check(&log);
        assert_eq!(status, 1, "{log}");
        assert_eq!(report["kernel"]["demotion"]["cpu"], 2, "{log}");
        assert_eq!(report["clocksource"]["current"], "hpet", "{log}");
        assert!(alarms(&report).contains(&("tsc-demoted", "warning")), "{log}");
    }
}

/// A counter that went back did not count 7 703 356 256 s.
#[test]
fn counters_that_were_written() {
    for (name, because) in [
        ("tsc-reset-xen.log", "it went back by at least 248612 s"),
        ("tsc-stepped-back.log", "it went back by at least 779 us"),
        ("tsc-jumped-ahead.log", "it jumped ahead of hpet by at least 38470 s in at most 673 ms"),
    ] {
        let (status, screen, report) = check(&file(name));
        let found = report["kernel"]["demotion"]["because"].as_str().unwrap();
        assert!(status == 1 && found.starts_with(because), "{name}: {found}");
        let screen = words(&screen);
        assert!(
            screen.contains("a running kernel does not use an unstable TSC again, a restarted one does"),
            "{screen}"
        );
        assert!(!screen.contains("no faster clock source"), "{screen}");
    }
    let screen = words(&check(&file("tsc-reset-xen.log")).1);
    assert!(
        screen.contains("restart this virtual machine") && screen.contains("a suspend, a restore or a migration"),
        "{screen}"
    );
}

/// The log of a Xen host, whose tree has only the clock source xen.
#[test]
fn a_restart_brings_the_tsc_of_a_xen_guest_back() {
    let dir = tempfile::tempdir().unwrap();
    let sources = dir.path().join("sys/devices/system/clocksource/clocksource0");
    std::fs::create_dir_all(&sources).unwrap();
    std::fs::write(sources.join("current_clocksource"), "xen\n").unwrap();
    std::fs::write(sources.join("available_clocksource"), "xen\n").unwrap();
    let mut command = pg_timing();
    command.arg("--root").arg(dir.path()).arg("--kernel-log").arg(fixture("kernel_logs/tsc-reset-xen.log"));
    let (status, screen, _) = run(&mut command);
    let screen = words(&screen);
    assert_eq!(status, 1);
    assert!(screen.contains("tsc-demoted WARNING") && !screen.contains("no faster clock source"), "{screen}");
}

#[test]
fn harmless_messages_are_explained() {
    let (status, screen, _) = check(&file("readback-delay.log"));
    let screen = words(&screen);
    assert_eq!(status, 3, "nothing was measured");
    for part in ["acpi_pm wd-wd read-back delay of 144431ns", "harmless", "7 such messages", "invariant TSC"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
}

#[test]
fn boot_parameters_without_effect_are_named() {
    let screen = words(&check(&file("tsc-reliable-without-effect.log")).1);
    for part in ["boot parameters without effect: clocksource=tsc tsc=reliable", "install Linux 5.5 or later"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    // This kernel is newer.
    let log = "[    0.000000] Linux version 6.1.0-9 (x)\n".to_string() + &file("tsc-reliable-without-effect.log");
    let screen = words(&check(&log).1);
    assert!(screen.contains("boot parameters without effect: ") && !screen.contains("Linux 5.5"), "{screen}");
}

/// What a JSON record or a web page adds after a name is not a part of it.
#[test]
fn a_name_ends_before_the_frame() {
    for end in ["\"}", "<br>", "\"}]"] {
        let (_, _, report) = check(&format!("data: {{\"MESSAGE\":\"clocksource: Switched to clocksource hpet{end}\n"));
        assert_eq!(report["clocksource"]["current"], "hpet", "{end}");
    }
}

#[test]
fn timecounters_are_on_the_screen() {
    let (_, screen, report) = check(&file("freebsd-timecounter.log"));
    assert_eq!(report["clocksource"]["current"], "TSC");
    let screen = words(&screen);
    for part in ["\"ACPI-fast\" frequency 3579545 Hz quality 900", "ACPI-fast -> TSC", "in /etc/sysctl.conf"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
}

/// A log without a line about clocks proves nothing.
#[test]
fn a_log_without_recognized_lines() {
    let (status, screen, report) =
        check("[    0.000000] Linux version 6.1.0 (x)\n[    0.100000] usb 1-1: new device\n");
    assert_eq!(status, 3);
    assert!(screen.contains("no recognized line about clocks in the kernel log"), "{screen}");
    let unknown =
        |id: &str| report["findings"].as_array().unwrap().iter().any(|f| f["id"] == id && f["severity"] == "unknown");
    assert!(["clocksource-changed", "clocksource-refused", "tsc-firmware"].into_iter().all(unknown), "{report}");
}

/// On another machine a log is judged alone: figures of this machine say nothing about that host.
#[test]
fn a_log_of_another_host_is_judged_alone() {
    let other = "[    0.000000] Linux version 2.6.99-other (x) (gcc)\n\
                 [    0.300000] Switched to clocksource acpi_pm\n";
    let cpu = "clocksource: timekeeping watchdog on CPU4095: Marking clocksource 'tsc' as unstable because the skew is too large:\n";
    let freebsd = "Timecounter \"TSC-low\" frequency 1400000000 Hz quality 1000\n";
    for (log, why) in [
        (other, "its kernel is Linux 2.6.99-other"),
        (cpu, "its highest CPU is 4095, and that of this host is "),
        (freebsd, "its kernel is FreeBSD, and that of this host is Linux"),
    ] {
        let mut command = pg_timing();
        command.args(["check", "-d", "60", "--kernel-log", "-"]);
        let (status, screen, _) = run(command.write_stdin(log));
        let screen = words(&screen);
        assert_ne!(status, 0, "{screen}");
        assert!(screen.contains("this log is from another host: ") && screen.contains(why), "{screen}");
        assert!(!screen.contains("system "), "nothing was measured: {screen}");
    }
}
