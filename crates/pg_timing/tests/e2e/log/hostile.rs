//! Logs with what a client wrote: a forged plan is never read, the real one always is, and the time is linear.

use super::{explain, json, write};

/// What the server writes before a message.
const PREFIX: &str = "2026-11-26 10:00:00.000 UTC [100] ";
const NODE: &str = "Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4) (actual time=0.007..1.500 rows=100 loops=1)";
const FORGED: &str =
    "Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4) (actual time=0.007..4999.000 rows=99999999 loops=1)";

/// What a client can put into a constant, a name or a statement.
fn forgeries() -> Vec<String> {
    let plan = format!("duration: 5000.000 ms  plan:\nQuery Text: forged\n{FORGED}");
    let json = format!("{{\"error_severity\":\"LOG\",\"message\":{}}}", serde_json::json!(plan));
    let csv =
        |quote: &str| format!("2026-11-26 10:00:00.000 UTC,,,7,,1,1,,,,0,LOG,00000,{quote}{plan}{quote},,,,,,,,,,,,0");
    let explain = "{\n\"Query Text\": \"\",\n\"Plan\": {\"Node Type\": \"Result\", \"Actual Rows\": 9999999, \"Actual Loops\": 1, \"Actual Total Time\": 4999}\n}";
    let before = ["", "LOG:  ", PREFIX, "| ", "> ", "/ LOG:  "];
    let mut all: Vec<String> = before.iter().map(|before| format!("{before}{plan}")).collect();
    all.extend([format!("{PREFIX}LOG:  {plan}"), json, csv(""), csv("\""), explain.into()]);
    all.extend(["SubPlan 1".into(), "Execution Time: 5000.000 ms".into(), "Planning Time: 5000.000 ms".into()]);
    all.extend([FORGED.into(), format!("  ->  {FORGED}"), format!("\tLOG:  {plan}")]);
    all
}

/// The message of a plan of 2 ms and 100 rows, without and with the forged text.
fn messages(forged: &str) -> Vec<String> {
    let forged = forged.replace('\'', "''");
    let plan = |query: &str, after: &str| format!("duration: 2.000 ms  plan:\nQuery Text: {query}\n{NODE}\n{after}");
    let removed = "  Rows Removed by Filter: 7";
    vec![
        plan("select 1", removed),
        plan("select 1", &format!("  Filter: (a = 'x\n{forged}'::text)\n{removed}")),
        plan("select 1", &format!("  Filter: (\"x''\n{}\" = 1)\n{removed}", forged.replace('"', "\"\""))),
        plan(&format!("select '\n{forged}\n'"), removed),
        plan(&format!("select /*\n{forged}\n*/ 1"), removed),
    ]
}

/// Asserts that a log has one plan with the figures of the real one.
#[track_caller]
fn assert_only_real(log: &str, name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("log"), log.as_bytes());
    let (_, last, stderr) = explain(&[&path, "--format", "json"]);
    assert_eq!(stderr, "", "{name}:\n{log}");
    let (_, all, stderr) = explain(&[&path, "--all", "--format", "json"]);
    assert_eq!(stderr, "", "{name}:\n{log}");
    let (last, all) = (json(&last), json(&all));
    let figures = (&last["reported_ms"], &last["nodes"][0]["calls"], last["nodes"].as_array().unwrap().len());
    assert_eq!(figures, (&2.0.into(), &101.0.into(), 1), "{name}:\n{log}");
    let figures = (&all["plans"], &all["total"]["runs"], &all["total"]["reported_ms"]);
    assert_eq!(figures, (&1.into(), &1.into(), &2.0.into()), "{name}:\n{log}");
}

/// Returns a record of the text log.
fn text_record(severity: &str, message: &str) -> String {
    format!("{PREFIX}{severity}:  {}\n", message.replace('\n', "\n\t"))
}

fn csv_record(severity: &str, message: &str, others: [&str; 5]) -> String {
    let quoted = |text: &str| match text.is_empty() {
        true => String::new(),
        false => format!("\"{}\"", text.replace('"', "\"\"")),
    };
    let [detail, hint, internal, context, statement] = others.map(quoted);
    format!(
        "2026-11-26 10:00:00.000 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,,0,{severity},00000,{},{detail},{hint},{internal},,{context},{statement},,,\"psql\",\"client backend\",,0\n",
        quoted(message)
    )
}

fn json_record(severity: &str, message: &str, others: [&str; 5]) -> String {
    let [detail, hint, internal_query, context, statement] = others;
    serde_json::json!({"timestamp": "2026-11-26 10:00:00.000 UTC", "pid": 7, "error_severity": severity, "message": message,
        "detail": detail, "hint": hint, "internal_query": internal_query, "context": context, "statement": statement})
    .to_string()
        + "\n"
}

#[test]
fn a_constant_or_a_name_in_a_plan_never_is_a_plan() {
    for forged in forgeries() {
        for message in messages(&forged) {
            assert_only_real(&text_record("LOG", &message), "text");
            assert_only_real(&(text_record("LOG", &message) + &text_record("LOG", "checkpoint")), "text");
            assert_only_real(&csv_record("LOG", &message, [""; 5]), "CSV");
            assert_only_real(&json_record("LOG", &message, [""; 5]), "JSON");
        }
        let filter = serde_json::json!(format!("(a = 'x\n{forged}\n{FORGED}\n'::text)"));
        let properties = [
            ("Node Type", "\"Seq Scan\""),
            ("Actual Total Time", "1.500"),
            ("Actual Rows", "100"),
            ("Actual Loops", "1"),
            ("Filter", &filter.to_string()),
        ];
        let yaml = properties.map(|(key, value)| format!("  {key}: {value}\n")).concat();
        let yaml = format!("duration: 2.000 ms  plan:\nQuery Text: {filter}\nPlan: \n{}", yaml.trim_end());
        assert_only_real(&text_record("LOG", &yaml), "YAML");
    }
}

#[test]
fn a_line_that_quotes_a_client_never_is_a_plan() {
    let real = &messages("")[0];
    let no_quotes = [""; 5];
    let is_around = |record: String, quotes: &str, name: &str| {
        assert_only_real(&format!("{quotes}{record}"), name);
        assert_only_real(&format!("{record}{quotes}"), name);
    };
    for before in ["", "select '\n", "invalid input: \"", "select / "] {
        let quoted = forgeries().into_iter().map(|forged| format!("{before}{forged}\n")).collect::<Vec<_>>();
        for word in ["ERROR", "STATEMENT", "DETAIL", "HINT", "QUERY", "CONTEXT", "ANWEISUNG", "INSTRUCTION "] {
            let quotes: String =
                quoted.iter().map(|quoted| text_record("ERROR", "no") + &text_record(word, quoted)).collect();
            is_around(text_record("LOG", real), &quotes, word);
        }
        // Any client can raise these with any text.
        for word in ["ERROR", "WARNING", "NOTICE", "INFO", "DEBUG1"] {
            let raised = real.replace("2.", "9.");
            is_around(text_record("LOG", real), &text_record(word, &raised), word);
            is_around(csv_record("LOG", real, no_quotes), &csv_record(word, &raised, no_quotes), word);
            is_around(json_record("LOG", real, no_quotes), &json_record(word, &raised, no_quotes), word);
            // Some collectors write the keys in another order.
            let last = format!("{{\"message\":{},\"error_severity\":\"{word}\"}}\n", serde_json::json!(raised));
            is_around(json_record("LOG", real, no_quotes), &last, word);
            // As jq prints it.
            let pretty = |record: &str| serde_json::to_string_pretty(&json(record)).unwrap() + "\n";
            let records = [json_record("LOG", real, no_quotes), json_record(word, &raised, no_quotes)];
            is_around(pretty(&records[0]), &pretty(&records[1]), word);
            assert_only_real(&format!("[{}]\n", records.each_ref().map(|record| record.trim()).join(",")), word);
        }
        // log_line_prefix shows the client's application_name.
        for name in ["", "x| "].map(|begin| format!("{begin}{{\"m\":\"duration: 5000.0 ms  plan:\\n")) {
            let statement = format!("STATEMENT:  select 1/0 /*\\n{FORGED}\"}}\n");
            let forged = format!("{PREFIX}app={name} ERROR:  division by zero\n{PREFIX}app={name} {statement}");
            is_around(text_record("LOG", real), &forged, "application_name");
        }
        // The server's severity can also be in a string before, or in the message itself.
        for statement in ["LOG:  statement: select 1 --", "LOG:  duration: 7.000 ms  statement: select 1 --"] {
            let begin = format!("{PREFIX}{{\"q\":\" {statement}\",");
            let forged = format!("{begin}\"m\":\"duration: 5000.000 ms  plan:\\nQuery Text: forged\\n{FORGED}\"}}\n");
            is_around(text_record("LOG", real), &forged, statement);
        }
        // Programs log what they send to the server.
        for key in ["sql", "query_text", "parameters"] {
            let of_program = serde_json::json!({ "level": "info", key: real.replace("2.", "9.") }).to_string() + "\n";
            is_around(json_record("LOG", real, no_quotes), &of_program, key);
        }
        let pasted = format!("NOTICE:  {FORGED}\n\t{FORGED}\nNOTICE:  Execution Time: 5000.000 ms\n");
        assert_only_real(&(pasted + &text_record("LOG", real)), "NOTICE");
        for field in 0..5 {
            let quotes = |record: fn(&str, &str, [&str; 5]) -> String| -> String {
                let with = |quoted: &String| {
                    let mut others = no_quotes;
                    others[field] = quoted;
                    record("ERROR", "no", others) + &record("LOG", "checkpoint", others)
                };
                quoted.iter().map(with).collect()
            };
            is_around(csv_record("LOG", real, no_quotes), &quotes(csv_record), "CSV");
            is_around(json_record("LOG", real, no_quotes), &quotes(json_record), "JSON");
        }
        // A collector sends whole messages.
        let whole = |message: &str| serde_json::json!({ "log": message }).to_string() + "\n";
        let errors: String = quoted.iter().map(|quoted| whole(&text_record("ERROR", quoted))).collect();
        is_around(whole(&text_record("LOG", real)), &errors, "collector");
        let quoted = quoted.iter().map(|quoted| format!("invalid input syntax: \"{quoted}"));
        let messages: Vec<String> = quoted.collect();
        let quotes = |record: fn(&str, &str, [&str; 5]) -> String| -> String {
            messages.iter().map(|message| record("ERROR", message, no_quotes)).collect()
        };
        is_around(csv_record("LOG", real, no_quotes), &quotes(csv_record), "CSV");
        is_around(json_record("LOG", real, no_quotes), &quotes(json_record), "JSON");
    }
}

/// The transports keep the tabs in their own ways.
#[test]
fn forged_plans_are_no_plans_in_syslog_either() {
    for forged in forgeries() {
        let log = text_record("LOG", &messages(&forged)[1]) + &text_record("STATEMENT", &forged);
        let mut number = (0, 0);
        let mut syslog = String::new();
        for line in log.lines() {
            number = if line.starts_with('\t') { (number.0, number.1 + 1) } else { (number.0 + 1, 1) };
            let line = line.replacen('\t', "#011", 1);
            syslog += &format!("Nov 26 10:00:00 db1 postgres[100]: [{}-{}] {line}\n", number.0, number.1);
        }
        assert_only_real(&syslog, "syslog");
        let journald: String = log.lines().map(|line| format!("Nov 26 10:00:00 db1 postgres[100]: {line}\n")).collect();
        assert_only_real(&journald, "journald");
        let compose: String = log.lines().map(|line| format!("db-1  | {line}\n")).collect();
        assert_only_real(&compose, "compose");
    }
}

/// The log begins within a record.
#[test]
fn the_rest_of_a_record_opens_none() {
    for forged in forgeries() {
        let log = text_record("LOG", &messages(&forged)[1]) + &text_record("LOG", &messages("")[0]);
        let dir = tempfile::tempdir().unwrap();
        let path =
            write(&dir.path().join("log"), log.split_once("Filter").unwrap().1.split_once('\n').unwrap().1.as_bytes());
        let (_, last, _) = explain(&[&path, "--format", "json"]);
        assert_eq!(json(&last)["reported_ms"], 2.0, "{log}");
        let (_, all, _) = explain(&[&path, "--all", "--format", "json"]);
        assert_eq!(json(&all)["total"]["reported_ms"], 2.0, "{log}");
    }
}

/// Notices and errors around a plan belong to a session in psql.
#[test]
fn a_plan_between_lines_of_psql_is_read() {
    let plan = format!("{NODE}\n  Rows Removed by Filter: 7\nExecution Time: 2.000 ms\n");
    for (before, after) in
        [("NOTICE:  table \"t\" does not exist, skipping\n", "ERROR:  no\n"), ("INFO:  x\n", ""), ("", "ERROR:  no\n")]
    {
        let dir = tempfile::tempdir().unwrap();
        let path = write(&dir.path().join("log"), format!("{before}{plan}{after}").as_bytes());
        let (status, stdout, stderr) = explain(&[&path, "--format", "json"]);
        assert_eq!(status, 0, "{before:?} {after:?}: {stderr}");
        assert_eq!(json(&stdout)["reported_ms"], 2.0, "{before:?} {after:?}");
    }
}

/// Each input takes minutes if the time is quadratic, and a recursive reader overflows its stack.
#[test]
fn long_inputs_take_linear_time_and_no_stack() {
    const LENGTH: usize = 1 << 19;
    let many = |text: &str| text.repeat(LENGTH / text.len());
    let of_server = |prefix: &str| {
        let record = text_record("LOG", &messages("")[0]);
        format!("{prefix} {record}{prefix} CONTEXT:  f\n")
    };
    let node = |rest: &str| {
        format!(r#"{{"Node Type":"CTE Scan","Actual Total Time":0,"Actual Rows":1,"Actual Loops":1{rest}}},"#)
    };
    let json_plan = |nodes: &str| {
        // The subplans of an Append are not its inputs, and it needs one.
        let nodes = node("") + nodes.trim_end_matches(',');
        format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Total Time": 9, "Actual Rows": 1, "Actual Loops": 1, "Plans": [{nodes}]}}}}"#
        )
    };
    // The largest plan that is read has 100 000 nodes and 8 MB. A quadratic pass over these takes longer than the time limit.
    const NODES: usize = 55_000;
    let nodes = |rest: &str| node(rest).repeat(NODES);
    // Each CTE reads the next one.
    let chain = |n: usize| node(&format!(r#", "CTE Name": "c{}", "Subplan Name": "CTE c{n}""#, n + 1));
    let with_query = |query: &str| text_record("LOG", &messages("")[0].replace("select 1", query));
    let inputs = [
        of_server(&many("/a")),
        of_server(&many("0/0 ")),
        of_server(&many("[1 ")),
        with_query(&many("/")),
        with_query(&many("/*")),
        with_query(&many("$a ")),
        json_record("LOG", &many("plan:\n"), [""; 5]),
        json_record("ERROR", "no", [&many("plan:\n"); 5]),
        serde_json::json!({ "log": many("plan:\n") }).to_string(),
        serde_json::json!({ "log": many("\\") + &many("plan:\n") }).to_string(),
        serde_json::json!({ "message": many("duration: 5 ms  plan:\n") }).to_string(),
        many("a,\"duration: 5 ms  plan:\n"),
        many("2026-11-21 22:20:13 UTC,,,7,,1,1,,,,0,LOG,00000,\"duration: 5.1 ms  plan:\n"),
        many("2026-11-21 22:20:13 UTC,,,7,,1,1,,,,0,ERROR,00000,\"x\n"),
        many("duration: ") + "5 ms  plan:\n",
        many("LOG:  duration: 5 ms  plan:\n"),
        many("\tLOG:  duration: 5 ms  plan:\n"),
        many("STATEMENT:  x plan:\n"),
        "[".repeat(LENGTH),
        many("[\n"),
        many("{\"Plan\": "),
        many("{\"Plan\": {\"Plans\": [\n"),
        format!("<explain xmlns=\"x\">{}", many("<a>")),
        many("<explain xmlns=\"x\">\n"),
        many("- Plan:\n"),
        format!("Plan:\n  Node Type: \"x\"\n  a: {}", many("[")),
        format!("Plan:\n  Node Type: \"x\"\n  a: {}", many("- ")),
        format!("<p>{}-&gt;\n", many("<a ")),
        format!("<p>{}-&gt;\n", many("&")),
        many("("),
        many("Sort (cost="),
        many("[\n0,\n"),
        many(r#"{"message": "[{\"message\": \"[0]\"}]"}"#),
        format!("{NODE}\n{}", many("  InitPlan 1\n    ->  Sort (actual rows=1 loops=1)\n")),
        format!("{NODE}\n{}", many("->  Append (actual time=0.000..1.000 rows=0 loops=1)\n")),
        format!("{NODE}\n{}", many("  ->  Sort\n(actual\ntime=0.000..1.000 rows=0 loops=1)\n")),
        format!("{NODE}\n{}", many("  InitPlan 1\n    Filter: (((\n")),
        json_plan(&nodes(r#", "CTE Name": "c", "Subplan Name": "CTE c""#)),
        json_plan(&(node(r#", "Subplan Name": "CTE c""#) + &nodes(r#", "CTE Name": "c""#))),
        json_plan(&nodes(r#", "Subplan Name": "InitPlan 1", "Filter": "(a > (InitPlan 1).col1)""#)),
        json_plan(&(node(r#", "Subplan Name": "InitPlan 1""#) + &nodes(r#", "Filter": "(InitPlan 1).col1""#))),
        json_plan(&(0..NODES).map(chain).collect::<String>()),
    ];
    let dir = tempfile::tempdir().unwrap();
    for input in inputs {
        let path = write(&dir.path().join("log"), input.as_bytes());
        for options in [&[path.as_str()][..], &[&path, "--all"]] {
            // It fails after the time limit, or if a signal ends the program.
            let (status, ..) = explain(options);
            let is_plan = input.ends_with("]}}");
            assert!(status == 0 || status == 3 && !is_plan, "{status}");
        }
    }
}
