//! Text from outside that tries to control the terminal, to hide text, or to look like another line of output.

use super::{fixture, fixtures, json, pg_timing, run};
use pg_timing::document::text::{Output, text};
use pg_timing::document::{self, pages};
use pg_timing::report::compare::compare;
use pg_timing::report::document::Document;
use pg_timing::report::thresholds::Thresholds;
use pg_timing::report::{AdviseReport, ExplainReport, Report, SettingAdvice};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;

/// A line break and a forged line, sequences in 7 and 8 bits, and a mark that reverses the text after it.
const HOSTILE: &str = "x\r\nOK  forged\x1b[2J\u{9b}31m\u{202e}\u{7}";

/// Asserts that an output that is not for a terminal has no character that can do harm.
fn assert_harmless(output: &str, what: &[&str]) {
    let harmful = |c: &char| *c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(c));
    assert_eq!(output.chars().find(harmful), None, "{what:?}: {output:?}");
    // A page keeps the line breaks of the statement.
    let forged = |line: &str| line.starts_with("OK  forged") && !output.starts_with("<!DOCTYPE html>");
    assert!(!output.lines().any(forged), "{what:?}: {output}");
}

/// Renders a report with its texts replaced. The screen must have as many escape characters as with harmless texts. Returns
/// the number of texts that were replaced: some texts are words of a fixed list.
fn assert_each_text_is_escaped<T: Serialize + DeserializeOwned>(
    report: &Value,
    render: impl Fn(&T) -> String,
) -> usize {
    // All items of a list have the same fields: one item shows which of them can be replaced.
    let mut replaceable = HashMap::new();
    let mut with = |text: &str| {
        let (mut report, mut replaced) = (report.clone(), 0);
        for path in text_paths(&report, String::new()) {
            let old = std::mem::replace(report.pointer_mut(&path).unwrap(), text.into());
            let field = path.replace(|c: char| c.is_ascii_digit(), "");
            if *replaceable.entry(field).or_insert_with(|| T::deserialize(&report).is_ok()) {
                replaced += 1;
            } else {
                *report.pointer_mut(&path).unwrap() = old;
            }
        }
        (render(&T::deserialize(&report).unwrap()), replaced)
    };
    let ((harmless, _), (hostile, replaced)) = (with("x"), with(HOSTILE));
    assert_eq!(hostile.matches('\x1b').count(), harmless.matches('\x1b').count(), "{hostile:?}");
    assert_harmless(&hostile.replace('\x1b', ""), &[]);
    replaced
}

fn screen(document: &document::Document) -> String {
    text(document, Output::PIPE)
}

/// Returns the paths of all texts in a JSON document.
fn text_paths(value: &Value, path: String) -> Vec<String> {
    match value {
        Value::String(_) => vec![path],
        Value::Array(values) => {
            values.iter().enumerate().flat_map(|(nth, value)| text_paths(value, format!("{path}/{nth}"))).collect()
        }
        Value::Object(fields) => {
            let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
            fields.iter().flat_map(|(name, value)| text_paths(value, format!("{path}/{}", escaped(name)))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn each_text_of_a_host_report_is_escaped() {
    let mut replaced = 0;
    for host in fixtures("hosts") {
        let root = fixture("hosts").join(host);
        let (_, report, _) = run(pg_timing().args(["--format", "json", "--root"]).arg(root));
        replaced +=
            assert_each_text_is_escaped(&json(&report), |report| screen(&document::host::document(report, None)));
        assert_each_text_is_escaped(&json(&report), |report| document::nagios::check(report, &Thresholds::default()));
        let page = |report: &Report| {
            let document = Document::Host(Box::new(report.clone()));
            pages::of_entries(vec![pages::Entry { file: None, document }])
        };
        assert_each_text_is_escaped(&json(&report), page);
    }
    assert!(replaced > 500, "{replaced}");
}

#[test]
fn each_text_of_an_explain_report_is_escaped() {
    let plan = fixture("plans").join("parallel.log");
    let arguments = ["explain", "--read-cost", "20", "--format", "json", "--plan"];
    let (_, report, _) = run(pg_timing().args(arguments).arg(plan));
    let report = json(&report);
    let text = |report: &ExplainReport| screen(&document::explain::document(report));
    assert!(assert_each_text_is_escaped(&report, text) > 10);
    assert!(
        assert_each_text_is_escaped(&report, |report: &ExplainReport| pages::of_plans(std::slice::from_ref(report)))
            > 10
    );
}

#[test]
fn each_text_of_an_advise_report_is_escaped() {
    let setting = serde_json::json!({
        "name": "track_io_timing", "value": "off", "on": false, "events_per_s": 3.0, "events_are": "counted",
        "core_share": {"low": 0.01, "high": 0.02}, "advice": "turn_on", "summary": "cheap",
        "line": "track_io_timing = on", "undo": "track_io_timing = off",
    });
    let report = serde_json::json!({
        "schema_version": 1, "version": "0", "server_version": "18.6", "server": "db", "window_s": 10.0,
        "interrupted": false, "read": {"ns": 20.0, "low_ns": 19.0, "high_ns": 21.0, "clock": "system", "how": "measured"},
        "settings": [setting], "findings": [], "verdict": {"severity": "ok", "summary": "fine"}, "not_seen": ["triggers"],
    });
    let text = |report: &AdviseReport| screen(&document::advise::document(report));
    assert!(assert_each_text_is_escaped(&report, text) > 10);
    // The names of settings are our own.
    let line = |report: &AdviseReport| {
        let settings = report.settings.iter().map(|setting| SettingAdvice { name: "x".into(), ..setting.clone() });
        document::nagios::advise(&AdviseReport { settings: settings.collect(), ..report.clone() })
    };
    assert_each_text_is_escaped(&report, line);
}

/// Files of a captured tree, a kernel log, an output of pg_test_timing and a plan, each with hostile text.
#[test]
fn hostile_files_are_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let hostile_line = HOSTILE.replace('\n', "");
    write("tree/proc/sys/kernel/osrelease", &format!("6.1{HOSTILE}\n"));
    write(
        "tree/proc/cpuinfo",
        &format!("processor\t: 0\nvendor_id\t: {HOSTILE}\nmodel name\t: {hostile_line}\nflags\t: tsc\n"),
    );
    write("tree/proc/cmdline", &format!("clocksource={hostile_line} tsc={hostile_line}\n"));
    write("tree/sys/class/dmi/id/sys_vendor", HOSTILE);
    write("tree/sys/hypervisor/type", HOSTILE);
    write("tree/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    write("tree/sys/devices/system/clocksource/clocksource0/available_clocksource", &format!("hpet {hostile_line}\n"));
    let log = write(
        "log",
        &format!(
            "[    1.0] tsc: Marking TSC unstable due to {hostile_line}\n[  2.0] clocksource: Switched to clocksource hpet{hostile_line}\n"
        ),
    );
    let root = dir.path().join("tree").to_str().unwrap().to_string();
    let timing = write(
        "timing",
        &format!(
            "Testing timing overhead for 3 seconds.\nPer loop time including overhead: 20 ns{HOSTILE}\n  < us   % of total      count\n     1     90.0  1000\nTSC frequency source: {hostile_line}\n"
        ),
    );
    let plan = write(
        "plan",
        &format!(
            "2026-01-01 LOG:  duration: 100.0 ms  plan:\n\tQuery Text: SELECT '{hostile_line}'\n\tSeq Scan on \"{hostile_line}\"  (cost=0.00..1.00 rows=1 width=4) (actual time=0.1..99.0 rows=100000 loops=1)\n"
        ),
    );
    let json_plan = write(
        "plan.json",
        &serde_json::json!([{"Plan": {"Node Type": format!("Seq{HOSTILE}"), "Relation Name": HOSTILE, "Alias": HOSTILE,
            "Actual Rows": 100000, "Actual Loops": 1, "Actual Startup Time": 0.1, "Actual Total Time": 99.0},
            "Settings": {"jit": HOSTILE}, "Query Text": HOSTILE, "Execution Time": 100.0}])
        .to_string(),
    );
    let (_, host_report, _) = run(pg_timing().args(["--root", &root, "--format", "json"]));
    let host_report = write(&format!("{hostile_line}.json"), &host_report);
    // Its folder does not exist, so root cannot create it, either.
    let missing = dir.path().join(format!("missing/{HOSTILE}")).to_str().unwrap().to_string();
    for arguments in [
        &["--root", &root, "--kernel-log", &log][..],
        &["--root", &root, "--kernel-log", &log, "--nagios"],
        &["--root", &root, "--kernel-log", &log, "--format", "json"],
        &["clocksource", "list", "--root", &root],
        &["read", &timing],
        &["read", &timing, "--format", "json"],
        &["explain", "--plan", &plan, "--read-cost", "20"],
        &["explain", "--plan", &plan, "--read-cost", "20", "--format", "html"],
        &["explain", "--plan", &json_plan, "--read-cost", "20"],
        &["explain", "--plan", &json_plan, "--read-cost", "20", "--format", "json"],
        &["explain", "--plan", &json_plan, "--read-cost", "20", "--format", "html"],
        &["report", &host_report],
        // Errors
        &["report", &missing],
        &["report", "-o", &missing, &host_report],
        &["report", &plan],
        &["--root", &missing],
        &["--kernel-log", &missing],
        &["--capture", &missing],
        &["read", &missing],
        &["explain", "--plan", &missing, "--read-cost", "20"],
        &["explain", "--plan", &timing, "--read-cost", "20"],
        &["explain", "--plan", &plan, "--host-report", &missing],
        &["explain", "-h", &missing, "-c", "SELECT 1"],
        &["explain", "-d", &format!("host=/missing dbname={HOSTILE}"), "-c", "SELECT 1"],
        &["explain", "-c", &format!("SELECT {HOSTILE};SELECT 2")],
        &["clocksource", "use", HOSTILE],
        &[HOSTILE],
        &[&format!("--{HOSTILE}")],
        &["-d", HOSTILE],
        &["--format", HOSTILE],
    ] {
        let (_, stdout, stderr) = run(pg_timing().args(arguments));
        assert!(!(stdout.is_empty() && stderr.is_empty()), "{arguments:?}");
        assert_harmless(&stdout, arguments);
        assert_harmless(&stderr, arguments);
    }
}

/// Names of files, and reports of other hosts.
#[test]
fn a_hostile_comparison_is_harmless() {
    let mut replaced = 0;
    let report =
        |host: &str| json(&run(pg_timing().args(["--format", "json", "--root"]).arg(fixture("hosts").join(host))).1);
    for (before, after) in [("kvm-tsc", "docker-desktop-hpet"), ("junk", "gvisor")] {
        let other: Report = serde_json::from_value(report(after)).unwrap();
        replaced += assert_each_text_is_escaped(&report(before), |report: &Report| {
            screen(&document::compare::document(&compare((HOSTILE, report), ("after", &other))))
        });
    }
    assert!(replaced > 40, "{replaced}");
}

/// A report can have come from another host.
#[test]
fn a_hostile_host_report_is_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let report = serde_json::json!({"clocks": [{"name": "system", "read_ns": 20.0}], "host": {"name": HOSTILE},
        "clocksource": {"current": HOSTILE}, "version": HOSTILE});
    std::fs::write(&path, report.to_string()).unwrap();
    assert!(Report::from_json(report.to_string().as_bytes()).is_ok());
    let plan = fixture("plans").join("docker-hpet.txt");
    for format in ["text", "json", "html"] {
        let mut command = pg_timing();
        command.args(["explain", "--format", format, "--host-report"]).arg(&path).arg("--plan").arg(&plan);
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!((status, stderr.as_str()), (0, ""));
        assert_harmless(&stdout, &[format]);
    }
}
