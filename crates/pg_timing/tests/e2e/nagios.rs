//! The lines of `check --nagios` and `advise --nagios`, as a monitoring server reads them.

use super::{fixture, fixtures, pg_timing, refused, run};
use pg_timing::document::nagios;
use pg_timing::report::AdviseReport;
use pg_timing::report::thresholds::Thresholds;
use regex::Regex;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A figure of the performance data: label, value, unit, warning, critical, minimum, maximum.
type Figure = [String; 7];

/// Reads a plugin's output strictly: one line, one vertical bar, and after it the grammar of the Monitoring Plugins'
/// guidelines, "2.6. Performance data". Returns the text and the figures.
fn parsed(output: &str) -> (String, Vec<Figure>) {
    let line = output.strip_suffix('\n').unwrap_or_else(|| panic!("no line end: {output:?}"));
    assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    let (text, data) = line.split_once(" | ").unwrap_or((line, ""));
    assert!(!text.contains('|') && !data.contains('|'), "{line}");
    // A label in quotes can contain spaces, and two quotes for one. Value, limits, minimum and maximum are plain numbers.
    let number = "-?[0-9]+(?:\\.[0-9]+)?";
    let figure = format!(
        "^(?:'((?:[^'=]|'')+)'|([^\\s'=]+))=({number})(s|%|)(?:;({number})?)?(?:;({number})?)?(?:;({number})?)?(?:;({number})?)?(?: |$)"
    );
    let figure = Regex::new(&figure).unwrap();
    let (mut rest, mut figures) = (data, Vec::new());
    while !rest.is_empty() {
        let found = figure.captures(rest).unwrap_or_else(|| panic!("{rest:?} in {line}"));
        let group = |nth: usize| found.get(nth).map(|part| part.as_str().to_string()).unwrap_or_default();
        figures.push([group(1) + &group(2), group(3), group(4), group(5), group(6), group(7), group(8)]);
        rest = &rest[found[0].len()..];
    }
    (text.into(), figures)
}

fn figure<'a>(figures: &'a [Figure], label: &str) -> [&'a str; 6] {
    let found = figures.iter().find(|figure| figure[0] == label).unwrap_or_else(|| panic!("{label}: {figures:?}"));
    [1, 2, 3, 4, 5, 6].map(|nth| found[nth].as_str())
}

fn root(host: &str) -> PathBuf {
    fixture("hosts").join(host)
}

fn check(host: &str, arguments: &[&str]) -> (i32, String) {
    let (status, stdout, stderr) = run(pg_timing().arg("--root").arg(root(host)).arg("--nagios").args(arguments));
    assert_eq!(stderr, "", "{host}");
    (status, stdout)
}

#[test]
fn line_of_a_bad_host() {
    let (status, line) = check("docker-desktop-hpet", &[]);
    assert_eq!((status, line.lines().count()), (2, 1));
    assert!(line.starts_with("CLOCKS CRITICAL - "), "{line}");
    let (_, performance_data) = line.trim_end().split_once(" | ").unwrap();
    assert_eq!(
        performance_data,
        "read=0.0000073420s;0.0000001000;0.0000005000;0 system_backward_steps=0;0;0;0 lost=3.90%;;;0;100 \
         tsc_frequency_khz=2899940"
    );
}

#[test]
fn the_line_of_every_host_has_the_grammar_of_the_guidelines() {
    let mut all = 0;
    for host in fixtures("hosts") {
        let (status, line) = check(&host, &["-w", "read=90ns,lost=5%,skew=1us", "-c", "read=1us,lost=20%,skew=10us"]);
        let (text, figures) = parsed(&line);
        let word = ["OK", "WARNING", "CRITICAL", "UNKNOWN"][status as usize];
        assert!(text.starts_with(&format!("CLOCKS {word} - ")), "{host}: {text}");
        all += figures.len();
    }
    assert!(all > 100, "{all}");
}

#[test]
fn thresholds_add_to_the_verdict() {
    // This host reads its clock in 24.6 ns, and interruptions took less than 1% of the time.
    for (arguments, status, words) in [
        (&["-w", "read=100ns"][..], 0, ""),
        (&["-w", "read=20"], 1, "Threshold -w read exceeded: a read of PostgreSQL's clock costs 24.6 ns"),
        (&["--warning=read=10ns", "--critical=read=20ns"], 2, "Threshold -c read exceeded"),
        (&["-c", "lost=0%"], 2, "Threshold -c lost exceeded: interruptions took 0."),
        (&["-w", "skew=1us", "-c", "skew=1us"], 0, ""),
    ] {
        let (actual, line) = check("kvm-tsc", arguments);
        assert_eq!(actual, status, "{arguments:?}: {line}");
        let (text, _) = parsed(&line);
        assert!(text.contains(words) && (status > 0 || !text.contains("Threshold")), "{arguments:?}: {line}");
    }
    // A read costs 1.236 us there, which is 1.2 us on the screen.
    let (_, line) = check("azure-msr", &["-c", "read=1.2us"]);
    assert!(line.contains("a read of PostgreSQL's clock costs slightly more than the limit of 1.2 us."), "{line}");
    let (_, line) = check("kvm-tsc", &["-w", "read=20,lost=5%", "-c", "read=1us,skew=10us"]);
    let (_, figures) = parsed(&line);
    // The verdict is critical from 500 ns on, which is less than 1 us.
    assert_eq!(figure(&figures, "read")[1..5], ["s", "0.0000000200", "0.0000005000", "0"]);
    assert_eq!(figure(&figures, "lost")[1..], ["%", "5", "", "0", "100"]);
    assert_eq!(figure(&figures, "skew"), ["0", "s", "", "0.0000100000", "0", ""]);
}

#[test]
fn a_threshold_of_a_figure_that_was_not_measured_is_unknown() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = pg_timing();
    command.arg("--root").arg(empty.path()).args(["--nagios", "-w", "read=1us"]);
    let (status, line, _) = run(&mut command);
    assert_eq!(status, 3);
    assert!(parsed(&line).0.contains("The threshold for read could not be checked"), "{line}");
}

#[test]
fn bad_thresholds_are_refused() {
    for (arguments, why) in [
        (&["--nagios", "-w", "cost=5"][..], "unknown name \"cost\""),
        (&["--nagios", "-c", "read=5%"], "unknown unit \"%\""),
        (&["check", "--nagios", "-w", "read=5,read=6"], "two limits"),
        (&["check", "--nagios", "-w", ""], "LIMITS"),
        (&["--nagios", "-w", "read=2us", "-c", "read=1us"], "the limit of read for a warning (-w) is above"),
        (&["-w", "read=5"], "--nagios"),
        (&["check", "-c", "read=5"], "--nagios"),
    ] {
        let stderr = refused(arguments);
        assert!(stderr.contains(why), "{arguments:?}: {stderr}");
    }
}

fn advise_report() -> Value {
    let setting = |name: &str, on: bool, low: f64| {
        json!({
            "name": name, "value": "on", "on": on, "events_per_s": 3.0, "events_are": "counted",
            "core_share": {"low": low, "high": null}, "advice": "keep", "summary": "cheap",
        })
    };
    let settings = [setting("track_io_timing", true, 0.0005), setting("auto_explain.log_timing", false, 0.25)];
    json!({
        "schema_version": 1, "version": "0", "server_version": "18.6", "server": "db", "window_s": 10.0, "interrupted": false,
        "read": {"ns": 20.0, "low_ns": 19.0, "high_ns": 21.0, "clock": "system", "how": "measured"}, "settings": settings, "findings": [],
        "verdict": {"severity": "warning", "summary": "a | b\nOK c"}, "not_seen": [],
    })
}

/// Text from outside must not end the line, and not begin performance data.
#[test]
fn line_of_advise() {
    let report: AdviseReport = serde_json::from_value(advise_report()).unwrap();
    let (text, figures) = parsed(&nagios::advise(&report));
    assert_eq!(text, "TIMING COST WARNING - a / b\\nOK c");
    assert_eq!(figure(&figures, "track_io_timing"), ["0.05", "%", "1", "10", "0", ""]);
    assert_eq!(figure(&figures, "auto_explain.log_timing_if_on"), ["25", "%", "", "", "0", ""]);
}

#[test]
fn text_from_outside_stays_in_the_line_of_check() {
    let (_, report, _) = run(pg_timing().args(["--format", "json", "--root"]).arg(root("kvm-tsc")));
    let mut report = pg_timing::report::Report::from_json(report.as_bytes()).unwrap();
    report.verdict.summary = "x | y=1\n| z='2'".into();
    let (text, _) = parsed(&nagios::check(&report, &Thresholds::default()));
    assert_eq!(text, "CLOCKS OK - x / y=1\\n/ z='2'");
}

/// Monitoring servers show stdout.
#[test]
fn an_error_of_advise_is_a_line_on_stdout() {
    let mut command = pg_timing();
    command.args(["advise", "--nagios", "-h", "/nonexistent", "-p", "1"]);
    let (status, stdout, stderr) = run(&mut command);
    assert_eq!(status, 3);
    assert!(parsed(&stdout).0.starts_with("TIMING COST UNKNOWN - "), "{stdout}");
    assert!(stderr.starts_with("pg_timing: error: "), "{stderr}");
    assert!(refused(&["advise", "--nagios", "--format", "json"]).contains("--nagios"));
}
