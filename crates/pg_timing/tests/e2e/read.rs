//! `pg_timing read` on published outputs of pg_test_timing.

use super::{alarms, fixture, fixtures, json, pg_timing, run};

#[test]
fn text_of_every_fixture() {
    let names = fixtures("pg_test_timing");
    assert_eq!(names.len(), 20, "{names:?}");
    for name in names {
        let read = |details: &[&str]| {
            let mut command = pg_timing();
            let (status, stdout, stderr) =
                run(command.current_dir(fixture("pg_test_timing")).arg("read").args(details).arg(&name));
            assert_eq!(stderr, "", "{name}");
            format!("{stdout}status {status}\n")
        };
        let snapshot = format!("read_{}", name.trim_end_matches(".txt"));
        insta::assert_snapshot!(snapshot, read(&["--details"]));
        let screen = read(&[]);
        for document in screen.split("\npg_test_timing output") {
            assert!(document.lines().count() <= 40, "{name}: {document}");
        }
        let details = read(&["--details"]);
        let label = if details.contains("risk: ") { "details and risks" } else { "details" };
        let command = format!("\n{label}: pg_timing read --details {name}\n");
        assert_eq!(screen.contains(&command), screen != details, "{screen}");
    }
}

#[test]
fn each_output_is_judged_and_the_worst_gives_the_status() {
    let text = |name: &str| std::fs::read_to_string(fixture("pg_test_timing").join(name)).unwrap();
    let both = text("i7-860-tsc.txt") + &text("i7-860-acpi_pm.txt");
    let (status, stdout, stderr) = run(pg_timing().args(["read", "-", "--format", "json"]).write_stdin(both));
    assert_eq!((status, stderr.as_str()), (2, ""));
    let documents = serde_json::Deserializer::from_str(&stdout).into_iter::<serde_json::Value>();
    let severities: Vec<serde_json::Value> =
        documents.map(|report| report.unwrap()["verdict"]["severity"].clone()).collect();
    assert_eq!(severities, ["ok", "critical"]);
}

/// The alarms of real outputs with faults.
#[test]
fn faults_are_alarms() {
    let read = |name: &str| {
        let mut command = pg_timing();
        command.arg("read").arg(fixture("pg_test_timing").join(name)).args(["--format", "json"]);
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!(stderr, "");
        (status, json(&stdout))
    };
    for coarse in ["pg15-coarse.txt", "pg19-coarse.txt"] {
        let (status, report) = read(coarse);
        assert_eq!((status, alarms(&report)), (2, vec![("clock-slow", "warning"), ("clock-coarse", "critical")]));
    }
    // A library makes reads cost 0.2 us. The interruptions do not count in that.
    for busy in ["pg15-busy.txt", "pg19-busy.txt"] {
        let (status, report) = read(busy);
        assert_eq!((status, alarms(&report)), (1, vec![("clock-slow", "warning"), ("clock-gaps", "warning")]));
        assert!(report["clocks"][0]["undisturbed_ns"].as_f64().unwrap() < 250.0, "{report}");
    }
    let (status, report) = read("pg19-trapped-tsc.txt");
    assert_eq!((status, alarms(&report)), (2, vec![("tsc-slow", "critical")]));
    let findings = report["findings"].as_array().unwrap();
    let slow = findings.iter().find(|finding| finding["id"] == "tsc-slow").unwrap();
    assert!(slow["fix"][0]["command"].as_str().unwrap().contains("timing_clock_source = 'system'"), "{slow}");
}

/// Up to version 18, readings are cut to microseconds before the subtraction. So a difference of 1 us is no duration of 1
/// to 2 us: it only means that the microsecond changed in between.
#[test]
fn rows_of_a_classic_table_overlap() {
    let mut command = pg_timing();
    command.arg("read").arg(fixture("pg_test_timing/i7-860-acpi_pm.txt")).args(["--format", "json"]);
    let report = json(&run(&mut command).1);
    let rows = report["clocks"][0]["histogram"].as_array().unwrap();
    let bounds: Vec<_> =
        rows.iter().map(|row| (row["ge_ns"].as_u64().unwrap(), row["le_ns"].as_u64().unwrap())).collect();
    assert_eq!(bounds, [(0, 999), (0, 1999), (1000, 3999), (3000, 7999), (7000, 15_999)]);
    let facts = report["host"].as_object().unwrap();
    assert_eq!(facts.len(), 11);
    for (name, fact) in facts {
        assert_eq!(fact["unavailable"], "not in the input", "{name}");
    }
}

/// Without the rows of its interruptions, a busy host looks like one with a slow clock.
#[test]
fn a_table_without_its_last_rows_is_not_a_slow_clock() {
    for (name, first_row) in [("pg15-busy.txt", 5), ("pg19-busy.txt", 7)] {
        let text = output(name);
        let lines: Vec<&str> = text.lines().collect();
        for end in first_row..lines.len() - 1 {
            let (status, stdout, _) = run(pg_timing().args(["read", "-"]).write_stdin(lines[..end].join("\n")));
            let is_known = stdout.contains("rows are missing") || stdout.contains("interruptions took");
            assert!(status != 2 && is_known, "{name}, {end} lines: {status} {stdout}");
        }
    }
}

#[test]
fn kernel_log_is_recognized() {
    let log = "[    0.000000] tsc: Detected 2900.000 MHz processor\n";
    let (status, stdout, stderr) = run(pg_timing().args(["read", "-"]).write_stdin(log));
    assert_eq!((status, stdout.as_str()), (3, ""));
    let (error, hint) = stderr.split_once('\n').unwrap();
    assert!(error.contains("kernel log"), "{stderr}");
    assert_eq!(hint, "hint: for a kernel log, type: pg_timing check --kernel-log FILE\n");
}

/// Returns the status, the screen as words, and the first report of a text.
fn read(text: &str) -> (i32, String, serde_json::Value) {
    let (status, screen, stderr) = run(pg_timing().args(["read", "-"]).write_stdin(text));
    assert_eq!(stderr, "");
    let (_, stdout, _) = run(pg_timing().args(["read", "-", "--format", "json"]).write_stdin(text));
    let mut reports = serde_json::Deserializer::from_str(&stdout).into_iter::<serde_json::Value>();
    (status, screen.split_whitespace().collect::<Vec<_>>().join(" "), reports.next().unwrap().unwrap())
}

fn output(name: &str) -> String {
    std::fs::read_to_string(fixture("pg_test_timing").join(name)).unwrap()
}

/// What is missing could be the problem.
#[test]
fn a_part_of_an_output_is_never_good() {
    for text in [
        "Per loop time including overhead: 35.96 nsec".to_string(),
        output("pg15.txt").lines().take(4).collect::<Vec<_>>().join("\n"),
        output("pg15.txt").replace("    16      0.00003         13\n", ""),
        output("pg19.txt").split_once("TSC frequency source").unwrap().0.to_string(),
        output("contradictory-figures.txt"),
    ] {
        let (status, screen, report) = read(&text);
        assert_eq!((status, &report["verdict"]["severity"]), (3, &"unknown".into()), "{text}\n{screen}");
    }
    assert!(read(&output("contradictory-figures.txt")).1.contains("the figures contradict each other: 1.2 M readings"));
}

/// Pages and mails lose line breaks.
#[test]
fn an_output_on_one_line_has_the_same_verdict() {
    for name in fixtures("pg_test_timing").iter().filter(|name| *name != "ticket.txt") {
        let (text, flat) = (output(name), output(name).replace(['\n', '\r'], " "));
        let ((status, _, report), (flat_status, _, flat)) = (read(&text), read(&flat));
        assert_eq!(
            (flat_status, &flat["verdict"], &flat["clocks"]),
            (status, &report["verdict"], &report["clocks"]),
            "{name}"
        );
    }
    assert_eq!(read(&output("coarse-on-one-line.txt")).0, 2);
    assert_eq!(read(&output("thousands-separator.txt")).2["clocks"][0]["loop_ns"], 1044.67);
}

/// A time is ticks divided by the rate in use, so 2 994 357 kHz counted at 2 500 000 makes times 19.8% too long.
#[test]
fn a_wrong_rate_in_use_has_one_number() {
    let lines = "TSC frequency in use: 2500000 kHz\nTSC frequency from calibration: 2994357 kHz\n\
                 WARNING: Calibrated TSC frequency differs by 19.8% from the TSC frequency in use\n\
                 HINT: Consider setting timing_clock_source to 'system'.\n";
    let text = output("pg19.txt");
    let text = text.split_once("TSC frequency in use").unwrap().0.to_string() + lines;
    for text in [text.clone(), text.replace('\n', " ")] {
        let (status, screen, report) = read(&text);
        assert_eq!((status, alarms(&report)), (2, vec![("tsc-rate-mismatch", "critical")]));
        assert_eq!(screen.matches("19.8%").count(), 3, "{screen}");
        assert!(screen.contains("times by it are 19.8% too long") && !screen.contains("16.5"), "{screen}");
    }
}

/// A ticket has the output, the clock sources and the kernel log.
#[test]
fn everything_in_a_ticket_is_used() {
    let ticket = format!(
        "Hi,\n$ pg_test_timing\n{}\n$ cat /sys/devices/system/clocksource/clocksource0/current_clocksource\nhpet\n\
         $ cat /sys/devices/system/clocksource/clocksource0/available_clocksource\nhpet acpi_pm \n$ dmesg | grep -i clocks\n\
         [ 7823.104882] clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is \
         too large:\n[ 7823.105771] clocksource: Switched to clocksource hpet\n",
        output("docker-mac-hpet.txt")
    );
    for ticket in [ticket.clone(), ticket.lines().map(|line| format!("> {line}\n")).collect()] {
        let (status, screen, report) = read(&ticket);
        assert_eq!((status, &report["clocksource"]["current"]), (2, &"hpet".into()));
        assert_eq!(report["clocksource"]["available"], serde_json::json!(["hpet", "acpi_pm"]));
        for id in ["clock-slow", "tsc-demoted", "clocksource-slow"] {
            assert!(alarms(&report).iter().any(|(alarm, _)| *alarm == id), "{id}: {screen}");
        }
        assert!(screen.contains("marked the TSC unstable 7823 s after boot on CPU 2"), "{screen}");
    }
    // Among several outputs, a clock source belongs to the outputs after it.
    let two = format!(
        "{}\n# echo acpi_pm > /sys/devices/system/clocksource/clocksource0/current_clocksource\n{}",
        output("i7-860-tsc.txt"),
        output("i7-860-acpi_pm.txt")
    );
    let (_, stdout, _) = run(pg_timing().args(["read", "-", "--format", "json"]).write_stdin(two));
    let reports = serde_json::Deserializer::from_str(&stdout).into_iter::<serde_json::Value>();
    let current: Vec<_> = reports.map(|report| report.unwrap()["clocksource"]["current"].clone()).collect();
    assert!(current[0].is_object() && current[1] == "acpi_pm", "{current:?}");
}
