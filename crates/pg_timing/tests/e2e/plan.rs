//! `explain --plan`: screens, JSON, and inputs that are refused.

use super::{fixture, json, pg_timing, refused, run};
use serde_json::Value;

fn plan(name: &str) -> String {
    fixture("plans").join(name).to_str().unwrap().to_string()
}

fn text(arguments: &[&str]) -> String {
    let (status, stdout, stderr) = run(pg_timing().arg("explain").args(arguments));
    assert_eq!((status, stderr.as_str()), (0, ""), "{arguments:?}");
    stdout
}

#[test]
fn screens_with_read_cost_and_plain_time() {
    let hpet = plan("docker-hpet.txt");
    insta::assert_snapshot!("by_a_read", text(&["--plan", &hpet, "--read-cost", "7400"]));
    insta::assert_snapshot!("by_a_plain_time", text(&["--plan", &hpet, "--plain-ms", "155"]));
    insta::assert_snapshot!("by_both", text(&["--plan", &hpet, "--plain-ms", "155", "--read-cost", "7400"]));
    insta::assert_snapshot!("parallel_in_a_log", text(&["--plan", &plan("parallel.log"), "--read-cost", "20"]));
}

/// Overhead that the calls cannot explain, and a given time that may include planning.
#[test]
fn screens_with_uncertain_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.txt");
    let plan = |planning: &str| {
        let text = format!(
            "Aggregate (actual time=500..500 rows=1 loops=1)\n  ->  Seq Scan on t (actual time=0.01..300 rows=100000 loops=1)\nPlanning Time: {planning} ms\nExecution Time: 500 ms\n"
        );
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    insta::assert_snapshot!("unexplained", text(&["--plan", &plan("0.1"), "--plain-ms", "100", "--read-cost", "20"]));
    insta::assert_snapshot!("planning", text(&["--plan", &plan("80"), "--plain-ms", "200"]));
}

/// A cost that the plan only allows because another processor could be faster.
#[test]
fn a_read_cost_that_is_too_high_has_a_note() {
    let screen = |read_cost| text(&["--plan", &plan("parallel-count.txt"), "--read-cost", read_cost]);
    assert!(screen("50").contains("with this read cost, the calls would take longer than the plan"));
    assert!(!screen("20").contains("with this read cost"));
}

#[test]
fn json_matches_the_schema() {
    let schema = std::fs::read_to_string(super::schema::EXPLAIN).unwrap();
    let validator = jsonschema::validator_for(&json(&schema)).unwrap();
    for estimate in [&["--read-cost", "20"][..], &["--plain-ms", "1"], &["--read-cost", "20", "--plain-ms", "1"]] {
        let report = json(&text(&[&["--plan", &plan("parallel.log"), "--format", "json"], estimate].concat()));
        let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert!(report.get("plain_ms").is_none() && report["overhead_share"].as_f64().is_some(), "{report}");
        let [share, factor] = [&report["overhead_share"], &report["overhead_factor"]["estimate"]].map(Value::as_f64);
        assert!(factor.is_none_or(|factor| (share.unwrap() - (1.0 - 1.0 / factor)).abs() < 1e-9), "{report}");
    }
}

#[test]
fn host_report_gives_the_read_cost() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("host.json");
    let write = |text: &str| std::fs::write(&report, text).unwrap();
    let report = report.to_str().unwrap();
    let hpet = plan("docker-hpet.txt");
    let gaps = |share: f64| {
        format!(r#"{{"threshold_ns": 118400, "count": 9, "total_ns": 1e8, "largest_ns": 9e6, "share": {share}}}"#)
    };
    let write_report = |share: f64| {
        write(&format!(
            r#"{{"clocks": [{{"name": "system", "read_ns": 7400.0, "loop_ns": 7500.0, "reads": 100000, "gaps": {}}},
            {{"name": "rdtsc", "read_ns": 10.0, "read_spread_ns": 1.0, "loop_ns": 25.0, "reads": 10000000}}], "findings": []}}"#,
            gaps(share)
        ))
    };
    let estimate = |plan: &str| json(&text(&["--plan", plan, "--host-report", report, "--format", "json"]));
    write_report(0.01);
    let quiet = estimate(&hpet);
    assert_eq!(quiet["capture"]["read_ns"], 7400.0);
    // How busy the host was during the check says nothing about this run of the plan.
    write_report(0.6);
    assert_eq!(estimate(&hpet)["corrected_ms"], quiet["corrected_ms"]);
    let tsc = dir.path().join("tsc.txt");
    std::fs::write(&tsc, std::fs::read_to_string(&hpet).unwrap() + "Settings: timing_clock_source = 'tsc'\n").unwrap();
    assert_eq!(estimate(tsc.to_str().unwrap())["capture"]["read_ns"], 10.0);
    // The costs of calls were not measured on this processor.
    let arm =
        r#"{"clocks": [{"name": "system", "read_ns": 30.0}, {"name": "cntvct", "read_ns": 10.0}], "findings": []}"#;
    write(&arm.replace("\"read_ns\"", "\"loop_ns\": 40.0, \"reads\": 9, \"read_ns\""));
    let stderr = refused(&["explain", "--plan", &hpet, "--host-report", report]);
    assert!(stderr.contains("is from an AArch64 processor"), "{stderr}");
    for (text, why) in [
        ("", "is not a host report"),
        ("{}", "is not a host report"),
        ("[1]", "is not a host report"),
        (r#"{"clocks": []}"#, "has no read cost of the system clock"),
        (r#"{"clocks": [{"name": "system", "read_ns": null}]}"#, "has no read cost of the system clock"),
        (r#"{"clocks": [{"name": "system", "read_ns": -5}]}"#, "the figure -5 of read_ns is impossible"),
        (
            r#"{"clocks": [{"name": "system", "read_ns": 1e308}]}"#,
            "is a damaged host report: the figure 1e+308 of read_ns is impossible",
        ),
    ] {
        write(text);
        let stderr = refused(&["explain", "--plan", &hpet, "--host-report", report]);
        assert!(stderr.contains(why), "{text}: {stderr}");
    }
    write(&format!(r#"{{"clocks": [{}0]}}"#, "[0],".repeat(1 << 20)));
    assert!(refused(&["explain", "--plan", &hpet, "--host-report", report]).contains("longer than 4 MB"));
}

#[test]
fn a_timed_call_in_the_host_report_makes_the_interval_narrower() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("host.json");
    let write = |call: &str| {
        let clock = format!(r#"{{"name": "system", "read_ns": 20.0, "loop_ns": 25.0, "reads": 100000{call}}}"#);
        std::fs::write(&report, format!(r#"{{"clocks": [{clock}], "findings": []}}"#)).unwrap();
    };
    let report = report.to_str().unwrap();
    let parallel = plan("parallel.log");
    let options = ["--plan", &parallel, "--host-report", report, "--format", "json"];
    let relative_error = |call| {
        write(call);
        let capture = &json(&text(&options))["capture"];
        let [low, high] = ["low", "high"].map(|bound| capture["expected_call_ns"][bound].as_f64().unwrap());
        (high - low) / (high + low)
    };
    assert!(relative_error(r#", "timed_call_ns": 44.0"#) < 0.8 * relative_error(""));
    write(r#", "timed_call_ns": 44.0"#);
    assert!(text(&options[..4]).contains("per timed call (two"));
    write(r#", "timed_call_ns": 4400.0"#);
    let stderr = refused(&["explain", "--plan", &parallel, "--host-report", report]);
    assert!(stderr.contains("a read of system takes 20 ns, but a timed call 4400 ns"), "{stderr}");
}

#[test]
fn unusable_plans_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plan");
    let append = "Append (actual time=0.000..0.000 rows=0 loops=1)\n";
    let several_trees = format!("{append}-> {append}-> {append}Execution Time: 1.000 ms\n");
    for (contents, why) in [
        ("", "there is no plan in the input"),
        ("total 4\ndrwxr-xr-x 2 root root\n", "there is no plan in the input"),
        ("Per loop time including overhead: 20.1 ns\n", "there is no plan in the input"),
        ("\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0", "not a text file"),
        (
            "[\n  {\n    \"Plan\": {\n      \"Node Type\": \"Result\",\n",
            "the plan's JSON is incomplete or damaged: EOF",
        ),
        ("[{\"Plan\": {\"Node Type\": 7}}]", "the plan's JSON is incomplete or damaged: invalid type"),
        ("[{\"Plan\": {\"Node Type\": \"Result\"}}]", "the plan was not executed"),
        (
            r#"[{"Plan": {"Node Type": "Result", "Actual Rows": 1, "Actual Loops": 1}, "Execution Time": 1}]"#,
            "TIMING OFF",
        ),
        (
            r#"[{"Plan": {"Node Type": "Result", "Actual Total Time": 1, "Actual Rows": -1, "Actual Loops": 1}, "Execution Time": 1}]"#,
            "the plan has an impossible figure: Actual Rows of Result is -1",
        ),
        ("Result  (cost=0.00..0.01 rows=1 width=4)\n", "the plan was not executed"),
        ("Result  (cost=0.00..0.01 rows=1 width=4) (actual rows=1 loops=1)\nExecution Time: 1.000 ms", "TIMING OFF"),
        (
            "  ->  Result (actual time=0.001..0.001 rows=1 loops=1)\nExecution Time: 1.000 ms\n",
            "the beginning of the plan is missing",
        ),
        ("- Plan: \n    Node Type: \"Res\n", "the plan's YAML is incomplete"),
        ("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n", "the plan's XML is incomplete"),
        (
            &several_trees,
            "the plan has lost its indentation, and its kinds of nodes do not show the tree: Append can be below",
        ),
        ("LOG:  duration: 1.000 ms  plan:\n\tPlan: \n\t  Node Type: \"Result\"\n", "the plan was not executed"),
        ("LOG:  duration: 1.000 ms  plan:\n", "no readable plan follows the log line \"duration: ... plan:\""),
        (
            "Result (actual time=0.001..0.001 rows=1 loops=1)\n  Timing: estimated from 3 samples, +-1.000 ms\nExecution Time: 1.000 ms\n",
            "pg_fast_timing",
        ),
    ] {
        std::fs::write(&file, contents).unwrap();
        let stderr = refused(&["explain", "--plan", file.to_str().unwrap(), "--read-cost", "20"]);
        assert!(stderr.contains(why), "{contents}: {stderr}");
    }
    let lost = std::fs::File::create(&file).unwrap();
    lost.set_len(64 << 20).unwrap();
    assert!(
        refused(&["explain", "--plan", file.to_str().unwrap(), "--read-cost", "20"]).contains("NUL bytes replace it")
    );
    assert!(refused(&["explain", "--plan", "/nonexistent", "--read-cost", "20"]).contains("No such file"));
}

#[test]
fn a_plan_without_its_last_lines_is_read() {
    let hpet = std::fs::read_to_string(plan("docker-hpet.txt")).unwrap();
    let (cut, _) = hpet.split_once("Planning").unwrap();
    let arguments = ["explain", "--plan", "-", "--plain-ms", "155"];
    let (status, stdout, stderr) = run(pg_timing().args(arguments).write_stdin(cut));
    assert_eq!((status, stderr.as_str()), (0, ""));
    insta::assert_snapshot!("without_execution_time", stdout);
}

/// A plan from a chat on Windows: UTF-16, no indentation, arrows as entities.
#[test]
fn a_plan_as_it_comes_is_read() {
    let hpet = std::fs::read_to_string(plan("docker-hpet.txt")).unwrap();
    let changed: String =
        hpet.lines().map(|line| line.trim_matches(['>', ' ']).replace("->", "-&gt;") + "\r\n").collect();
    let bytes: Vec<u8> = format!("\u{feff}{changed}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let report = |input: Vec<u8>| {
        let arguments = ["explain", "--plan", "-", "--read-cost", "7400", "--format", "json"];
        let (status, stdout, stderr) = run(pg_timing().args(arguments).write_stdin(input));
        assert_eq!((status, stderr.as_str()), (0, ""));
        json(&stdout)
    };
    let (read, original) = (report(bytes), report(hpet.into_bytes()));
    assert_eq!((&read["nodes"], &read["corrected_ms"]), (&original["nodes"], &original["corrected_ms"]));
    assert!(
        read["notes"][0].as_str().unwrap().contains("reconstructed from the kinds of its nodes"),
        "{}",
        read["notes"]
    );
}

#[test]
fn a_plan_in_another_format_is_mentioned() {
    let log = std::fs::read_to_string(plan("parallel.log")).unwrap()
        + "2026-11-21 22:21:00.000 UTC [3103] LOG:  duration: 9.000 ms  plan:\n\tQuery Text: \"SELECT 1\"\n\tPlan: \n\t  Node Type: \"Result\"\n";
    let (status, stdout, stderr) =
        run(pg_timing().args(["explain", "--plan", "-", "--read-cost", "20"]).write_stdin(log));
    assert_eq!((status, stderr.as_str()), (0, ""));
    insta::assert_snapshot!("yaml_after_text", stdout);
}

/// Runs the program with a limited address space.
#[test]
fn memory_is_bounded() {
    const BYTES: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plan");
    let arrays = |separator: &str| format!("[0]{separator}").repeat(BYTES / (3 + separator.len()));
    // Storing each value of a list takes 48 times as much memory as its text. 40 MB is several times what is needed.
    let values_kb = 40_000;
    // 100 000 nodes take about 110 MB in a list that doubles its size. All nodes of the first input would take over 180 MB.
    let nodes_kb = 150_000;
    let (no_plan, too_many_nodes) = ("there is no plan in the input", "the plan has more than 100 k nodes");
    for (contents, limit_kb, why) in [
        (format!("[{}[0]]\n", arrays(",")), values_kb, no_plan),
        (arrays(",\n"), values_kb, no_plan),
        ("[\n".repeat(BYTES / 2), values_kb, no_plan),
        (format!("{{\"Plan\": {{\"x\": [{}[0]]}}}}\n", arrays(",")), values_kb, "missing field `Node Type`"),
        (
            format!("{{\"Plan\": {{\"Plans\": [{}{{}}]}}}}", r#"{"Node Type":""},"#.repeat(BYTES / 8)),
            nodes_kb,
            too_many_nodes,
        ),
        (
            format!("Sort (actual rows=1 loops=1)\n{}", "  -> A (actual rows=1 loops=1)\n".repeat(100_001)),
            nodes_kb,
            too_many_nodes,
        ),
    ] {
        std::fs::write(&file, &contents).unwrap();
        let limited = format!("ulimit -d {limit_kb} && exec \"$0\" explain --read-cost 20 --plan \"$1\"");
        let program = env!("CARGO_BIN_EXE_pg_timing");
        let (status, _, stderr) = run(assert_cmd::Command::new("sh").args(["-c", &limited]).arg(program).arg(&file));
        assert_eq!(status, 3, "{stderr}");
        assert!(stderr.contains(why), "{why}: {stderr}");
    }
}

#[test]
fn conflicting_arguments_are_refused() {
    let hpet = plan("docker-hpet.txt");
    let with = |more: &[&str]| refused(&[&["explain", "--plan", &hpet][..], more].concat());
    assert!(with(&[]).contains("--read-cost NS, or --host-report FILE"));
    for live in
        [&["-c", "SELECT 1"][..], &["-f", "x"], &["--allow-writes"], &["--limit", "5"], &["-h", "db"], &["-d", "x"]]
    {
        assert!(with(&[live, &["--read-cost", "20"]].concat()).contains("cannot be used with"), "{live:?}");
    }
    // A word after the file is another file. Before --plan, it is a database.
    assert!(with(&["x", "--read-cost", "20"]).contains("could not read \"x\""));
    assert!(refused(&["explain", "x", "--plan", &hpet, "--read-cost", "20"]).contains("cannot be used with"));
    for bad in ["0", "-20", "nan", "inf", "x", ""] {
        assert!(with(&["--read-cost", bad]).contains("--read-cost"), "{bad}");
        assert!(with(&["--plain-ms", bad]).contains("--plain-ms"), "{bad}");
    }
    assert!(with(&["--read-cost", "20", "--host-report", "x"]).contains("cannot be used with"));
    for option in ["--read-cost", "--plain-ms", "--host-report"] {
        assert!(refused(&["explain", option, "20", "-c", "SELECT 1"]).contains("cannot be used with"), "{option}");
        assert!(refused(&["explain", option, "20"]).contains("--plan"), "{option}");
    }
    for option in [&["--all"][..], &["--slowest", "3"], &["--nth", "1"]] {
        assert!(refused(&[&["explain"], option].concat()).contains("--plan"), "{option:?}");
        let hint = with(option);
        assert!(hint.contains("--read-cost NS, or --host-report FILE"), "{option:?}");
        // Only a single plan can have a time without EXPLAIN.
        assert_eq!(hint.contains("--plain-ms"), option[0] == "--nth", "{hint}");
        assert!(with(&[option, &["--read-cost", "20", "-c", "SELECT 1"]].concat()).contains("cannot be used with"));
    }
    for options in [&["--all", "--slowest", "3"][..], &["--all", "--plain-ms", "7"], &["--slowest", "3", "--nth", "1"]]
    {
        assert!(with(&[options, &["--read-cost", "20"]].concat()).contains("cannot be used with"), "{options:?}");
    }
    for bad in ["0", "-1", "x", "1.5", "1001"] {
        assert!(with(&["--read-cost", "20", "--slowest", bad]).contains("--slowest"), "{bad}");
    }
    assert!(with(&["--read-cost", "100000"]).contains("take at least 70.0 s, but the plan took 7.6 s"));
}
