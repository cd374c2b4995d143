//! `explain --plan LOG` with --all, --slowest and --nth: real logs in all formats.

mod damage;
mod hostile;
mod syslog;

use super::{fixture, json, pg_timing, refused, run};
use serde_json::Value;
use std::io::Write;
use std::path::Path;

fn log(name: &str) -> String {
    fixture("logs").join(name).to_str().unwrap().to_string()
}

/// Returns the exit status, stdout and stderr.
fn explain(arguments: &[&str]) -> (i32, String, String) {
    run(pg_timing().arg("explain").args(["--read-cost", "20", "--plan"]).args(arguments))
}

/// Returns the report on all plans of the files.
fn totals(files: &[&str]) -> Value {
    let (status, stdout, stderr) = explain(&[files, &["--all", "--format", "json"]].concat());
    assert_eq!((status, stderr.as_str()), (0, ""), "{files:?}");
    json(&stdout)
}

/// Returns the report without the names of the files and the identifiers that only some formats have.
fn figures(mut report: Value) -> Value {
    report["files"] = Value::Null;
    let places = |value: &mut Value| {
        for key in ["slowest", "first", "query_id"] {
            value.as_object_mut().unwrap().remove(key);
        }
    };
    for list in ["statements", "skipped"] {
        report[list].as_array_mut().unwrap().iter_mut().for_each(places);
    }
    report
}

fn write(path: &Path, text: &[u8]) -> String {
    std::fs::write(path, text).unwrap();
    path.to_str().unwrap().into()
}

#[test]
fn the_screen_shows_the_statements_that_lost_most() {
    let (status, stdout, stderr) = run(pg_timing().current_dir(fixture("logs")).args([
        "explain",
        "--read-cost",
        "20",
        "--plan",
        "server.log",
        "--all",
    ]));
    assert_eq!((status, stderr.as_str()), (0, ""));
    insta::assert_snapshot!("all_plans_of_a_log", stdout);
    assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
}

#[test]
fn all_formats_of_a_log_have_the_same_plans() {
    let plain = totals(&[&log("server.log")]);
    assert_eq!((plain["plans"].as_u64(), plain["total"]["runs"].as_u64()), (Some(24), Some(20)));
    for name in ["server.csv", "server.json"] {
        let report = totals(&[&log(name)]);
        assert!(report["statements"][0]["query_id"].is_i64(), "{report}");
        assert_eq!(figures(report), figures(plain.clone()), "{name}");
    }
    let schema = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain-log.schema.json"));
    let validator = jsonschema::validator_for(&json(&schema.unwrap())).unwrap();
    let errors: Vec<String> = validator.iter_errors(&plain).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let three = totals(&[&log("server.log"), &log("server.csv"), &log("server.json")]);
    assert_eq!((three["plans"].as_u64(), three["files"].as_array().unwrap().len()), (Some(72), 3));
}

/// syslog, journald, containers, compression, stdin.
#[test]
fn what_carries_a_log_does_not_matter() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let expected = figures(totals(&[&log("server.log")]));
    let each = |line: &dyn Fn(&str) -> String| text.lines().map(line).collect::<String>();
    let json_line = |key: &str, line: String| serde_json::json!({ key: line }).to_string() + "\n";
    let dir = tempfile::tempdir().unwrap();
    let mut messages = 0;
    let mut parts = 0;
    let syslog = text.lines().map(|line| {
        let is_next = line.starts_with('\t');
        (messages, parts) = if is_next { (messages, parts + 1) } else { (messages + 1, 1) };
        format!("Nov 22 01:02:03 db1 postgres[123]: [{messages}-{parts}] {}\n", line.replacen('\t', "#011", 1))
    });
    let syslog: String = syslog.collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    for (name, log) in [
        ("syslog", syslog.into_bytes()),
        ("journald", each(&|line| format!("Nov 22 01:02:03 db1 postgres[123]: {line}\n")).into_bytes()),
        ("journald.json", each(&|line| json_line("MESSAGE", line.into())).into_bytes()),
        ("docker.json", each(&|line| json_line("log", format!("{line}\n"))).into_bytes()),
        ("compose", each(&|line| format!("db-1  | {line}\n")).into_bytes()),
        ("kubernetes", each(&|line| format!("2026-11-22T01:02:03.123456789Z stderr F {line}\n")).into_bytes()),
        ("fluentd", each(&|line| format!("{{\"log\"=>{:?}, \"stream\"=>\"stderr\"}}\n", line)).into_bytes()),
        (
            "fluent-bit",
            each(&|line| format!("[7] kube.db: [[1700000000.5, {{}}], {{\"log\"=>{line:?}}}]\n")).into_bytes(),
        ),
        ("stream", each(&|line| format!("data: {}\n", json_line("line", line.into()))).into_bytes()),
        ("json-seq", each(&|line| format!("\x1e{}", json_line("MESSAGE", line.into()))).into_bytes()),
        ("windows", text.replace('\n', "\r\n").into_bytes()),
        ("gz", gzip.finish().unwrap()),
        ("zst", ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)),
    ] {
        let path = write(&dir.path().join(name), &log);
        assert_eq!(figures(totals(&[&path])), expected, "{name}");
    }
    // The server's JSON log as a container's output.
    let in_json = std::fs::read_to_string(log("server.json")).unwrap();
    let expected_json = totals(&[&log("server.json")]);
    let record = |line: &str| format!("{{\"level\":\"info\",\"msg\":\"record\",\"record\":{line}}}");
    for (name, line) in [
        ("docker", &(|line: &str| json_line("log", format!("{line}\n"))) as &dyn Fn(&str) -> String),
        ("CRI", &|line| format!("2026-11-22T01:02:03.123456789Z stderr F {line}\n")),
        ("CloudNativePG", &|line| format!("2026-11-22T01:02:03.123456789Z stderr F {}\n", record(line))),
    ] {
        let path = write(&dir.path().join(name), in_json.lines().map(line).collect::<String>().as_bytes());
        let report = totals(&[&path]);
        let query_ids = |report: &Value| -> Vec<Value> {
            report["statements"].as_array().unwrap().iter().map(|statement| statement["query_id"].clone()).collect()
        };
        assert_eq!(query_ids(&report), query_ids(&expected_json), "{name}");
        assert_eq!(figures(report), figures(expected_json.clone()), "{name}");
    }
    let stdin = ["explain", "--read-cost", "20", "--plan", "-", "--all", "--format", "json"];
    let (status, stdout, _) = run(pg_timing().args(stdin).write_stdin(text));
    assert_eq!((status, figures(json(&stdout))), (0, expected));
}

#[test]
fn single_plans_of_a_log_are_those_of_the_whole_log() {
    let path = log("server.log");
    let (status, lines, stderr) = explain(&[&path, "--all", "--format", "jsonl"]);
    assert_eq!((status, stderr.contains("skipped 4 of 24 plans")), (0, true), "{stderr}");
    let all: Vec<Value> = lines.lines().map(json).collect();
    let reported: f64 = all.iter().map(|plan| plan["reported_ms"].as_f64().unwrap()).sum();
    let total = totals(&[&path]);
    assert_eq!(all.len() as u64, total["total"]["runs"].as_u64().unwrap());
    assert!((reported - total["total"]["reported_ms"].as_f64().unwrap()).abs() < 1e-9);
    let (_, slowest, _) = explain(&[&path, "--slowest", "2", "--format", "json"]);
    let slowest = json(&slowest);
    assert!(slowest[0]["reported_ms"].as_f64() > slowest[1]["reported_ms"].as_f64(), "{slowest}");
    let number = slowest[0]["capture"]["taken"].to_string();
    let (status, same, _) = explain(&[&path, "--nth", &number, "--format", "json"]);
    assert_eq!((status, &json(&same)), (0, &slowest[0]));
    // A plan is printed in the format that was read, and the slowest plan is JSON.
    let (_, plan, _) = explain(&[&path, "--nth", &number, "--format", "plan-json"]);
    assert!(plan.contains("\"Actual Total Time\"") && plan.contains("\"Time Correction\": "), "{plan}");
    let stderr = refused(&["explain", "--read-cost", "20", "--plan", &path, "--nth", &number, "--format", "plan-text"]);
    assert!(stderr.contains("hint: give --format plan-json"), "{stderr}");
    let (_, page, _) = explain(&[&path, "--all", "--format", "html"]);
    assert!(page.contains("<table>") && !page.contains("<script"), "{page}");
    assert!(
        refused(&["explain", "--read-cost", "20", "--plan", &path, "--all", "--format", "plan-json"])
            .contains("--nth N")
    );
    assert!(refused(&["explain", "--read-cost", "20", "--plan", &path, "--nth", "25"]).contains("the input has 24"));
}

#[test]
fn a_plain_time_that_contradicts_the_plan_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let plan =
        |ms: u32| format!("Result (actual time={ms}.000..{ms}.000 rows=1 loops=1)\nExecution Time: {ms}.000 ms\n\n");
    let path = write(&dir.path().join("plans"), (plan(2000) + &plan(300)).as_bytes());
    let stderr = refused(&["explain", "--plan", &path, "--plain-ms", "500"]);
    assert!(
        stderr.contains("--plain-ms says 500 ms without EXPLAIN, but EXPLAIN ANALYZE took only 300 ms"),
        "{stderr}"
    );
    assert!(stderr.contains("hint: the plain time may be from another run"), "{stderr}");
    let (status, stdout, stderr) =
        run(pg_timing().args(["explain", "--plan", &path, "--plain-ms", "500", "--nth", "1", "--format", "json"]));
    assert_eq!((status, stderr.as_str(), &json(&stdout)["reported_ms"]), (0, "", &2000.0.into()));
}

/// The time of a nested statement is also in the time of the statement that executed it, so the total does not contain it.
#[test]
fn nested_statements_have_rows_outside_the_total() {
    let plan = |context: &str, table: &str, ms: &str, rows: u32| {
        format!(
            "2026-11-25 07:40:27.191 UTC [7] LOG:  duration: {ms} ms  plan:\n\tQuery Text: select f() from {table}\n\tSeq Scan on \
             {table}  (cost=0.00..1.00 rows=1 width=1) (actual time=0.010..{ms} rows={rows} loops=1)\n{context}"
        )
    };
    let context = "2026-11-25 07:40:27.191 UTC [7] CONTEXT:  PL/pgSQL function f() line 3 at PERFORM\n";
    let parameters = "2026-11-25 07:40:27.191 UTC [7] CONTEXT:  unnamed portal with parameters: $1 = '7'\n";
    let dir = tempfile::tempdir().unwrap();
    let log = plan(context, "inner_t", "40.000", 400_000) + &plan(parameters, "t", "50.000", 10);
    let path = write(&dir.path().join("log"), log.as_bytes());
    let report = totals(&[&path]);
    let total = &report["total"];
    assert_eq!((&total["runs"], &total["nested_runs"], &total["reported_ms"]), (&1.into(), &1.into(), &50.0.into()));
    assert_eq!((&report["nested_ms"], &report["statements"][0]["nested_runs"]), (&40.0.into(), &1.into()));
    let (_, text, _) = explain(&[&path, "--all"]);
    assert!(text.contains("(nested) select f() from inner_t") && text.contains("1, 40.0 ms"), "{text}");
    let (_, text, _) = explain(&[&path, "--nth", "1"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("number 1 of 2") && text.contains("nested: its time is also in its caller's time"), "{text}");
}

/// As clouds, containers and collectors export a log: one plan, with and without --all.
#[test]
fn logs_of_clouds_and_collectors_are_read() {
    for (name, ms) in [
        ("azure.json", 841.4),
        ("cloud_sql.json", 841.4),
        ("cloudwatch.json", 841.4),
        ("heroku.log", 841.4),
        ("filebeat.json", 30.2),
        ("docker.json", 30.2),
        ("quoted_plan.log", 6.0),
    ] {
        let path = fixture("cloud_logs").join(name).to_str().unwrap().to_string();
        let report = totals(&[&path]);
        assert_eq!((&report["plans"], &report["total"]["reported_ms"]), (&1.into(), &ms.into()), "{name}");
        let (status, last, stderr) = explain(&[&path, "--format", "json"]);
        assert_eq!((status, stderr.as_str(), &json(&last)["reported_ms"]), (0, "", &ms.into()), "{name}");
        // Another message is damaged: its number is named, and the exit status shows it.
        let text = std::fs::read_to_string(&path).unwrap();
        let damaged = "{\"message\": \"2026-11-20 UTC [7] LOG:  duration: 5.000 ms  plan:\\nQuery Text: select\n";
        let both = write(&tempfile::tempdir().unwrap().keep().join(name), (text + damaged).as_bytes());
        let (status, last, stderr) = explain(&[&both, "--format", "json"]);
        assert_eq!((status, &json(&last)["reported_ms"]), (3, &ms.into()), "{name}");
        assert!(stderr.contains("messages with plans that cannot be read: 1"), "{name} {stderr}");
        let (status, report, _) = explain(&[&both, "--all", "--format", "json"]);
        assert_eq!((status, &json(&report)["skipped"][0]["plans"]), (3, &1.into()), "{name}");
    }
}

/// Returns the messages of a text log.
fn messages(text: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in text.lines() {
        match messages.last_mut() {
            Some(message) if line.starts_with('\t') => *message += &format!("\n{line}"),
            _ => messages.push(line.into()),
        }
    }
    messages
}

/// Collectors send a whole message, some of them also its beginning.
#[test]
fn records_with_whole_messages_are_read() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let expected = figures(totals(&[&log("server.log")]));
    let dir = tempfile::tempdir().unwrap();
    let first = |message: &str| message.lines().next().unwrap_or_default().to_string();
    let short = |message: &str| message.chars().take(100).collect::<String>();
    let gelf = |message: &str, short: String| {
        serde_json::json!({"version": "1.1", "host": "db", "short_message": short, "full_message": message}).to_string()
    };
    for (name, record) in [
        ("GELF", &(|message: &str| gelf(message, first(message))) as &dyn Fn(&str) -> String),
        ("truncated GELF", &|message| gelf(message, short(message))),
        ("fluentd", &|message| format!("2026-11-24 10:00:00 +0000 db: {}", serde_json::json!({ "log": message }))),
        ("fluent-bit", &|message| format!("[7] kube.db: [170.5, {{\"log\"=>{}}}]", serde_json::json!(message))),
        ("json-seq", &|message| format!("\x1e{}", serde_json::json!({ "MESSAGE": message }))),
    ] {
        let all: String = messages(&text).iter().map(|message| record(message) + "\n").collect();
        assert_eq!(figures(totals(&[&write(&dir.path().join(name), all.as_bytes())])), expected, "{name}");
    }
}

/// Answers of programs and APIs: the value is a plan in text format.
#[test]
fn a_plan_in_a_value_of_json_is_read() {
    let plan = std::fs::read_to_string(fixture("plans").join("timescale-vectoragg.txt")).unwrap();
    let lines: Vec<[&str; 1]> = plan.lines().map(|line| [line]).collect();
    let dir = tempfile::tempdir().unwrap();
    let (_, expected, _) = explain(&[&write(&dir.path().join("plan"), plan.as_bytes()), "--format", "json"]);
    let object = serde_json::json!({ "query": "select 1", "plan": plan });
    let pretty = serde_json::to_string_pretty(&object).unwrap();
    for json_text in [object.to_string(), pretty, serde_json::json!({ "rows": lines }).to_string()] {
        let path = write(&dir.path().join("json"), json_text.as_bytes());
        let (status, found, stderr) = explain(&[&path, "--format", "json"]);
        assert_eq!((status, stderr.as_str()), (0, ""), "{json_text}");
        assert_eq!(json(&found)["nodes"], json(&expected)["nodes"], "{json_text}");
        let path = write(&dir.path().join("lines"), (json_text.replace('\n', "") + "\n").repeat(2).as_bytes());
        assert_eq!(totals(&[&path])["plans"], 2, "{json_text}");
    }
}

/// Rows of a log service: the first line names the columns, and each message is a field.
#[test]
fn exports_as_csv_are_read() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let messages = messages(&text);
    let row = |message: &str| format!("2026-11-24T10:00:00Z,db1,\"{}\"\n", message.replace('"', "\"\""));
    let header = "\"Date\",\"Host\",\"Message\"\n";
    let dir = tempfile::tempdir().unwrap();
    let expected = figures(totals(&[&log("server.log")]));
    let by_message = header.to_string() + &messages.iter().map(|message| row(message)).collect::<String>();
    let by_line = header.to_string() + &text.lines().map(row).collect::<String>();
    let one_column = messages.iter().map(|message| format!("\"{}\"\n", message.replace('"', "\"\"")));
    let one_column = "\"_raw\"\n".to_string() + &one_column.collect::<String>();
    for log in [by_message, by_line, one_column] {
        assert_eq!(figures(totals(&[&write(&dir.path().join("export.csv"), log.as_bytes())])), expected);
    }
}

/// Returns the CPU time of reading a log in seconds. The program has 128 MB for all of its data.
fn cpu_seconds(log: &[u8]) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("log"), log);
    let script = "ulimit -d 131072 && \"$0\" explain --read-cost 20 --all --plan \"$1\" > /dev/null && times";
    let program = env!("CARGO_BIN_EXE_pg_timing");
    let (status, stdout, stderr) = run(assert_cmd::Command::new("sh").args(["-c", script]).arg(program).arg(&path));
    assert_eq!((status, stderr.as_str()), (0, ""));
    // The second line has the user and the system time of the children: `0m1.210s 0m0.040s`.
    let times = stdout.lines().nth(1).unwrap().split_whitespace();
    let seconds = |time: &str| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + seconds.replace(',', ".").parse::<f64>().unwrap()
    };
    times.map(seconds).sum()
}

/// Four times the input takes about four times the CPU time, and no more memory. A quadratic reader takes 16 times as long.
/// `READER_MB` is the size of the larger input; `make check-world` has 64.
#[test]
fn each_reader_takes_linear_time_and_bounded_memory() {
    let megabytes = std::env::var("READER_MB").map_or(2, |megabytes| megabytes.parse().unwrap());
    let bytes: usize = (megabytes << 20) / 4;
    let read = |name: &str| std::fs::read_to_string(log(name)).unwrap();
    let json = r#"{"Plan": {"Node Type": "Sort", "Actual Total Time": 8.0, "Actual Rows": 1, "Actual Loops": 1, "Plans": [{"Node Type": "Result", "Actual Total Time": 7.0, "Actual Rows": 1, "Actual Loops": 1}]}}"#;
    let yaml = "Query Text: \"select 1\"\nPlan: \n  Node Type: \"Result\"\n  Actual Total Time: 7.0\n  Actual Rows: 1\n  Actual Loops: 1";
    let xml = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query-Text>select 1</Query-Text>\n  <Plan>\n    <Node-Type>Result</Node-Type>\n    <Actual-Total-Time>7.0</Actual-Total-Time>\n    <Actual-Rows>1</Actual-Rows>\n    <Actual-Loops>1</Actual-Loops>\n  </Plan>\n</explain>";
    let logged = |plan: &str| format!("LOG:  duration: 9.000 ms  plan:\n\t{}\n", plan.replace('\n', "\n\t"));
    let pasted =
        "Sort (actual time=1.000..2.500 rows=7 loops=3)\n  ->  Result (actual time=1.0..2.0 rows=1 loops=3)\n\n";
    let docker = |text: &str| text.lines().map(|line| serde_json::json!({"log": line}).to_string() + "\n").collect();
    for (name, part) in [
        ("text", read("server.log")),
        ("CSV", read("server.csv")),
        ("JSON log", read("server.json")),
        ("Docker", docker(&read("server.log"))),
        ("JSON", logged(json)),
        ("YAML", logged(yaml)),
        ("XML", logged(xml)),
        ("pasted text", pasted.into()),
        ("pasted in a frame", pasted.lines().map(|line| format!("| {line:100} |\n")).collect()),
        ("pasted JSON", format!("[{}]\n", json.replace("]}}", "]}, \"Execution Time\": 9.0}"))),
    ] {
        let text = |bytes: usize| part.repeat(bytes / part.len());
        // A text without empty lines that is no log may have 8 MB.
        let bytes = if ["pasted in a frame", "pasted JSON"].contains(&name) { bytes.min(1 << 20) } else { bytes };
        let (small, large) = (cpu_seconds(text(bytes).as_bytes()), cpu_seconds(text(4 * bytes).as_bytes()));
        assert!(large < 9.0 * small + 0.5, "{name}: {small} s and {large} s");
    }
    let text = |bytes: usize| read("server.log").repeat(bytes / read("server.log").len());
    let gzip = |text: String| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let zstd =
        |text: String| ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    let utf16 = |text: String| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (name, encode) in [("gzip", &gzip as &dyn Fn(String) -> Vec<u8>), ("zstd", &zstd), ("UTF-16", &utf16)] {
        // A file in UTF-16 may have 64 MB.
        let bytes = if name == "UTF-16" { bytes.min(7 << 20) } else { bytes };
        let (small, large) = (cpu_seconds(&encode(text(bytes))), cpu_seconds(&encode(text(4 * bytes))));
        assert!(large < 9.0 * small + 0.5, "{name}: {small} s and {large} s");
    }
}
