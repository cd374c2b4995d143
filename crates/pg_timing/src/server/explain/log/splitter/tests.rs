mod damage;
mod hosts;

use super::*;
use crate::server::explain::log::entry::Content::{
    Announced, Beginning, Csv, Damaged, Json, Pasted, Rest, WithoutTabs,
};
use crate::server::explain::log::nesting::Session;

/// Returns the line numbers and contents of all entries.
fn all_entries(log: &str) -> Vec<(u64, Content)> {
    split(log).into_iter().map(|entry| (entry.place.line, entry.content)).collect()
}

fn split(log: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut add = |entry: Entry| found.push(entry);
    let mut splitter = Splitter::default();
    splitter.begin_file(0, &mut add);
    for line in log.split_inclusive('\n') {
        let text = line.trim_end_matches('\n');
        let line =
            Line { text: text.as_bytes(), is_cut: false, is_unfinished: text == line, has_nul: text.contains('\0') };
        splitter.line(&line, &mut add);
    }
    splitter.end_file(!log.ends_with('\n'), &mut add);
    splitter.end(&mut add);
    found
}

/// Returns the same without the sessions and prefixes.
fn entries(log: &str) -> Vec<(u64, Content)> {
    let mut all = all_entries(log);
    for (_, content) in &mut all {
        if let Announced { session, prefix, .. } | WithoutTabs { session, prefix, .. } = content {
            (*session, *prefix) = Default::default();
        }
    }
    all
}

/// Returns an entry without a context.
fn announced(ms: f64, text: &str) -> Content {
    Announced { ms, text: text.into(), session: Session::default(), prefix: Box::default(), context: String::new() }
}

const OTHER: &str = "2026-11-24 [7] LOG:  checkpoint starting\n\ta second line\n";

#[test]
fn an_entry_ends_at_the_next_line_without_a_tab() {
    let log = format!(
        "{OTHER}2026-11-24 [7] LOG:  duration: 5.100 ms  plan:\n\tQuery Text: a\n\tSort\n\t  ->  x\n{OTHER}[7] LOG:  duration: 1 ms  plan:\n\tb\n"
    );
    let expected = [(3, announced(5.1, "Query Text: a\nSort\n  ->  x\n")), (9, announced(1.0, "b\n"))];
    assert_eq!(entries(&log), expected);
}

#[test]
fn lost_tabs_end_an_entry_at_the_next_log_line() {
    let log = format!("LOG:  duration: 5.100 ms  plan:\nQuery Text: a\n\n  Sort\n{OTHER}");
    let text = "LOG:  duration: 5.1 ms  plan:\nQuery Text: a\n\n  Sort\n";
    let entry =
        WithoutTabs { text: text.into(), session: Session::default(), prefix: Box::default(), context: String::new() };
    assert_eq!(entries(&log), [(1, entry)]);
}

#[test]
fn csv_records_end_with_their_last_quotation_mark() {
    let record = "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,,0,LOG,00000,\"duration: 5.100 ms  plan:\nQuery Text: \"\"a\"\"\nLOG:  x\",,,,,\"context\nof two lines\",,,,\"psql\",,,-7\n";
    let other = "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,,0,LOG,00000,\"checkpoint\",,,,,,,,,,,,0\n";
    assert_eq!(entries(&format!("{other}{record}{other}{record}")), [(2, Csv(record.into())), (7, Csv(record.into()))]);
    // A truncated record ends where the next record begins.
    let truncated = record.split_inclusive('\n').take(2).collect::<String>();
    assert_eq!(entries(&format!("{truncated}{record}")), [(1, Damaged(Damage::Truncated)), (3, Csv(record.into()))]);
    assert_eq!(entries(&truncated), [(1, Damaged(Damage::Truncated))]);
}

#[test]
fn text_in_other_csv_records_is_no_plan() {
    let fields = "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",1,2,\"SELECT\",,,0,ERROR,42601";
    let plan = "duration: 5.100 ms  plan:\nSort (actual time=1..2 rows=1 loops=1)\n";
    let statement = format!("{fields},\"syntax error\",,,,,,\"{plan}\",12,,\"psql\",,,0\n");
    let message = format!("{fields},\"syntax error at \"\"x\n{plan}\",,,,,,,,,\"psql\",,,0\n");
    let record = format!("{fields},\"{plan}\",,,,,,,,,\"psql\",,,0\n");
    let mut all = entries(&format!("{statement}{message}{record}{statement}"));
    assert!(matches!(all.pop(), Some((11, Content::Failed(_)))));
    assert_eq!(all, [(8, Csv(record.clone()))]);
    // The end of a record is missing.
    let truncated = statement.lines().next().unwrap();
    assert_eq!(entries(&format!("{truncated}\n{record}")), [(2, Csv(record))]);
}

#[test]
fn json_lines_are_entries_or_lines() {
    let json = r#"{"error_severity":"LOG","message":"duration: 5.1 ms  plan:\nQuery Text: a"}"#;
    assert_eq!(entries(&format!("{{\"error_severity\":\"LOG\"}}\n{json}\n")), [(2, Json(json.into()))]);
    let docker = |text: &str| format!("{{\"log\":\"{text}\",\"stream\":\"stderr\"}}\n");
    let long = "x".repeat(16 << 10);
    let half = format!("\\t{long}");
    let lines = ["LOG:  duration: 5.100 ms  plan:\\n", &half, "y\\n", "\\tSort\\n", "LOG:  x\\n"];
    assert_eq!(entries(&lines.map(docker).concat()), [(1, announced(5.1, &format!("{long}y\nSort\n")))]);
    // Log collectors remove the line ends.
    let lines = ["LOG:  duration: 5.100 ms  plan:", "\\ta", "\\tSort", "LOG:  x"];
    assert_eq!(entries(&lines.map(docker).concat()), [(1, announced(5.1, "a\nSort\n"))]);
}

/// jsonlog in a container: each line is one entry, whatever the container's runtime adds.
#[test]
fn json_entries_in_the_lines_of_containers_are_entries() {
    let long = "x".repeat(40 << 10);
    let plan = serde_json::json!({"error_severity": "LOG", "session_id": "6b06", "query_id": 7, "context": "SQL function \"f\"",
        "message": format!("duration: 5.1 ms  plan:\nQuery Text: {long}\nSort (actual time=1..2 rows=1 loops=1)")});
    let failed = serde_json::json!({"error_severity": "ERROR", "session_id": "6b06", "message": "no"});
    let other = serde_json::json!({"error_severity": "LOG", "message": "checkpoint:  rows=1", "context": "LOG:  x"});
    let record = |record: &serde_json::Value| serde_json::json!({"level": "info", "logger": "postgres", "msg": "record", "logging_pod": "db-1", "record": record});
    let docker = |line: &str| {
        let parts = line.as_bytes().chunks(16 << 10).map(|part| str::from_utf8(part).unwrap());
        parts.map(|text| serde_json::json!({"log": text, "stream": "stderr"}).to_string() + "\n").collect::<String>()
    };
    let cri = |line: &str| {
        let (first, last) = line.split_at(line.len() / 2);
        format!("2026-11-22T01:02:03.1Z stderr P {first}\n2026-11-22T01:02:03.1Z stderr F {last}\n")
    };
    let compose = |line: &str| format!("db-1  | {line}\n");
    let operator = "{\"level\":\"info\",\"msg\":\"rows=1\"}";
    for is_record in [false, true] {
        let all =
            [&plan, &other, &failed, &plan].map(|line| if is_record { record(line) } else { line.clone() }.to_string());
        for (name, line) in [
            ("docker", &(|line: &str| docker(&format!("{line}\n"))) as &dyn Fn(&str) -> String),
            ("CRI", &cri),
            ("compose", &compose),
        ] {
            let log: String = all.iter().map(|text| line(text) + &line(operator)).collect();
            let found: Vec<Content> = entries(&log).into_iter().map(|(_, content)| content).collect();
            let session = Session::of(is_record.then_some("db-1"), "6b06");
            let expected = [Json(all[0].clone()), Content::Failed(session), Json(all[3].clone())];
            assert!(found == expected, "{name} {is_record}: {} entries, {:?}", found.len(), found.get(1));
            // The file ends within the entry.
            let log = line(&all[0]);
            let cut = &log[..log.len() - 10];
            assert_eq!(entries(cut), [(cut.lines().count() as u64, Damaged(Damage::Truncated))], "{name}");
            // After one of several lines of the container.
            let first = log.split_inclusive('\n').next().unwrap();
            if first.len() < log.len() {
                assert_eq!(entries(first), [(1, Damaged(Damage::Truncated))], "{name}");
            }
        }
    }
}

#[test]
fn lines_of_several_processes_are_separated() {
    let line = |process: u32, text: &str| format!("Nov 22 01:02:03 db1 postgres[{process}]: {text}\n");
    let log = [
        line(1, "[4-1] LOG:  duration: 5.100 ms  plan:"),
        line(2, "[9-1] LOG:  duration: 7.200 ms  plan:"),
        line(1, "[4-2] #011Query Text: a"),
        line(2, "[9-2] #011Query Text: b that is"),
        line(1, "[4-3] #011Sort"),
        // syslog splits long lines.
        line(2, "[9-3]  long"),
        line(2, "[9-4] #011Limit"),
        line(1, "[5-1] LOG:  x"),
    ];
    let expected =
        [(1, announced(5.1, "Query Text: a\nSort\n")), (2, announced(7.2, "Query Text: b that is long\nLimit\n"))];
    assert_eq!(entries(&log.concat()), expected);
}

#[test]
fn the_context_after_a_plan_is_not_a_part_of_its_last_line() {
    let line = |part: u32, text: &str| format!("Nov 22 01:02:03 db1 pg[1]: [4-{part}] {text}\n");
    // Only English contexts are recognized.
    for (word, context) in [("CONTEXT", "SQL function \"f\"\nx\n"), ("КОНТЕКСТ", "")] {
        let log = [
            line(1, "LOG:  duration: 5.100 ms  plan:"),
            line(2, "#011Sort"),
            line(3, &format!("2026-11-25 {word}:  SQL function \"f\"")),
            line(4, "#011x"),
        ];
        assert_eq!(contexts(&log.concat()), (1, vec![("Sort\n".into(), context.into())]));
    }
}

#[test]
fn a_message_that_is_not_split_has_escaped_line_ends() {
    let plan = "LOG:  duration: 5.100 ms  plan:#012#011Query Text: a#012#011Sort#012#011  ->  x";
    let expected = |line| (line, announced(5.1, "Query Text: a\nSort\n  ->  x\n"));
    let line = |text: &str| format!("Nov 22 01:02:03 db1 postgres[1]: {text}\n");
    let other = line("[3] LOG:  checkpoint#012#011b");
    assert_eq!(entries(&[line(&format!("[2] {plan}")), other, line(plan)].concat()), [expected(1), expected(3)]);
    // journalctl writes spaces before further lines.
    let spaces = " ".repeat(36);
    let plan = plan.replace("#012#011", &format!("\n{spaces}\t"));
    assert_eq!(entries(&line(&plan).repeat(2)), [expected(1), expected(5)]);
}

#[test]
fn journald_keeps_the_numbers_for_syslog() {
    let line = |text: &str| serde_json::json!({ "MESSAGE": text, "_PID": "7" }).to_string() + "\n";
    let log = ["[4-1] LOG:  duration: 5.100 ms  plan:", "[4-2] \tQuery Text: a that is", "[4-3]  long", "[4-4] \tSort"];
    let log = log.map(line).concat() + &line("[5-1] LOG:  x");
    assert_eq!(entries(&log), [(1, announced(5.1, "Query Text: a that is long\nSort\n"))]);
}

#[test]
fn entries_that_are_open_at_the_end_have_the_order_of_the_log() {
    let line =
        |process: u32| format!("Nov 22 01:02:03 db1 postgres[{process}]: LOG:  duration: {process}.0 ms  plan:\n");
    let log: String = (1..=20).map(line).collect();
    let expected: Vec<_> = (1..=20).map(|process| (process, announced(process as f64, ""))).collect();
    assert_eq!(entries(&log), expected);
}

#[test]
fn many_processes_do_not_end_the_entries_of_others() {
    let line = |process: u32, text: &str| format!("Nov 22 01:02:03 db1 postgres[{process}]: {text}\n");
    let others = |from: u32| (from..from + 400).map(|process| line(process, "LOG:  x")).collect::<String>();
    let mut log = line(1, "LOG:  duration: 5.100 ms  plan:");
    for part in 1..=9 {
        log += &(others(1000 * part) + &line(1, &format!("\t{part}")));
    }
    let text: String = (1..=9).map(|part| format!("{part}\n")).collect();
    assert_eq!(entries(&log), [(1, announced(5.1, &text))]);
}

#[test]
fn a_log_line_prefix_may_look_like_that_of_a_container_or_of_syslog() {
    let plan = |prefix: &str| format!("{prefix}LOG:  duration: 5.100 ms  plan:\n\tQuery Text: a\n\tSort\n");
    let expected = |line| (line, announced(5.1, "Query Text: a\nSort\n"));
    for prefix in ["joe | ", "[pod/x] ", "localhost postgres[12]: [3-1] ", "10:00:00 db1 postgres[12]: "] {
        assert_eq!(entries(&plan(prefix).repeat(2)), [expected(1), expected(4)], "{prefix}");
    }
    let mixed = plan("my app | ") + &plan("psql | ") + &plan("my app | ");
    assert_eq!(entries(&mixed), [expected(1), expected(4), expected(7)]);
}

/// In a container's lines, `%u@%d[%l]: ` looks like syslog's program and process. syslog also adds them to further lines.
#[test]
fn a_prefix_without_further_lines_is_not_that_of_syslog() {
    let mut number = 0;
    let mut line = |text: &str| {
        number += u32::from(text.contains("%l"));
        format!("2026-11-22T01:02:03.1Z stderr F {}\n", text.replace("%l", &number.to_string()))
    };
    let lines = ["pg[%l]: [7] LOG:  duration: 5.100 ms  plan:", "\tSort", "pg[%l]: [7] CONTEXT:  x"];
    let log: String = lines.iter().chain(&lines).chain(&lines[..2]).map(|text| line(text)).collect();
    let [first, rest @ ..] = &all_entries(&log)[..] else { panic!() };
    let of = |content: &Content| match content {
        Announced { text, context, session, .. } => (text.clone(), context.clone(), *session),
        other => panic!("{other:?}"),
    };
    let first = of(&first.1);
    assert_eq!((&*first.0, &*first.1), ("Sort\n", "x\n"));
    let [second, third] = rest else { panic!("{rest:?}") };
    let ((text, context, session), last) = (of(&second.1), of(&third.1));
    assert_eq!((&*text, &*context, session.is_known()), ("Sort\n", "x\n", true));
    assert_eq!(last, ("Sort\n".to_string(), String::new(), session));
    // The same with syslog's prefix in each line: each process is a session.
    let syslog = |process: u32| format!("2026-11-22T01:02:03.1Z pg[{process}]: ");
    let plan = |process: u32| {
        let prefix = syslog(process);
        format!("{prefix}LOG:  duration: 5.100 ms  plan:\n{prefix}\tSort\n{prefix}CONTEXT:  x\n")
    };
    assert_eq!(contexts(&(plan(7) + &plan(8))), (2, vec![("Sort\n".into(), "x\n".into()); 2]));
}

#[test]
fn parts_of_a_containers_line_are_joined() {
    let log = "2026-11-22T01:02:03.1Z stderr F LOG:  duration: 5.100 ms  plan:\n2026-11-22T01:02:03.1Z stderr P \tQuery Text:\n2026-11-22T01:02:03.1Z stderr F  a\n";
    assert_eq!(entries(log), [(1, announced(5.1, "Query Text: a\n"))]);
    // The file ends after a part.
    let log = log.split_inclusive('\n').take(2).collect::<String>();
    assert_eq!(entries(&log), [(1, Damaged(Damage::Truncated))]);
}

#[test]
fn plans_outside_of_entries_are_passed_on_as_they_are() {
    let plan = "              QUERY PLAN\n-----------\n Sort (actual time=1..2 rows=1 loops=1)\n\n";
    assert_eq!(entries(&format!("{OTHER}text\n{plan}{OTHER}")), [(6, Pasted(format!("text\n{plan}")))]);
    assert_eq!(entries("[\n  {\"Plan\"\n  }\n]"), [(2, Beginning("[\n  {\"Plan\"\n  }\n]\n".into()))]);
    assert_eq!(entries(&format!("text\n{OTHER}text\n")), []);
}

/// Returns the number of distinct sessions, and each entry's text and context.
fn contexts(log: &str) -> (usize, Vec<(String, String)>) {
    let mut sessions = std::collections::HashSet::new();
    let all = all_entries(log).into_iter().map(|(_, content)| match content {
        Announced { text, session, context, .. } | WithoutTabs { text, session, context, .. } => {
            assert!(session.is_known(), "{text}");
            sessions.insert(session);
            // The announcement, if the tabs are lost.
            (text.trim_start_matches("LOG:  duration: 5.1 ms  plan:\n").into(), context)
        }
        other => panic!("{other:?}"),
    });
    let all = all.collect();
    (sessions.len(), all)
}

#[test]
fn a_failed_statement_is_passed_on_after_nested_plans() {
    let plan = "2026-11-24 [7] LOG:  duration: 5.1 ms  plan:\n\tSort\n";
    let context = "2026-11-24 [7] CONTEXT:  SQL function \"f\"\n";
    let error = "2026-11-24 [8] ERROR:  no\n\tERROR:  x\n2026-11-24 [8] STATEMENT:  select 'ERROR:  '\n";
    let Some((1, Announced { session, prefix, .. })) = all_entries(plan).pop() else { panic!() };
    assert_eq!(&*prefix, "2026-11-24 [7] LOG:  ");
    let log = all_entries(&format!("{error}{plan}{context}{error}{}", error.replace('8', "7")));
    let [(4, Announced { .. }), (7, Content::Failed(other)), (10, Content::Failed(failed))] = &log[..] else {
        panic!("{log:?}")
    };
    assert!(*failed == session && *other != session && other.is_known(), "{log:?}");
    let csv = |severity: &str, message: &str| {
        format!(
            "2026-11-21 22:20:13.123 UTC,\"u\",\"d\",7,\"[local]\",6b06,2,\"SELECT\",,3/7,0,{severity},00000,{message},,,,,\n"
        )
    };
    let json = |severity: &str, message: &str| {
        format!("{{\"error_severity\":\"{severity}\",\"session_id\":\"6b06\",\"message\":\"{message}\"}}\n")
    };
    let in_csv = csv("LOG", "\"duration: 5.1 ms  plan:\nSort\"") + &csv("WARNING", "x") + &csv("ERROR", "\"x\ny\"");
    let in_json = json("LOG", "duration: 5.1 ms  plan:\\nSort") + &json("WARNING", "x") + &json("FATAL", "x");
    for log in [in_csv, in_json] {
        let all = all_entries(&log);
        let failed = Content::Failed(Session::of(None::<&str>, "6b06"));
        assert!(all.len() == 2 && all[1].1 == failed, "{all:?}");
    }
    // Without nested plans, it does not matter.
    assert_eq!(all_entries(&format!("{error}{plan}{error}")).len(), 1);
}

const CONTEXT: &str = "SQL statement \"select 1\nfrom t\"\nPL/pgSQL function f() line 3 at SQL statement\n";

#[test]
fn the_context_follows_the_plan() {
    let context = CONTEXT.trim_end().replace('\n', "\n\t");
    for prefix in ["2026-11-24 [7] ", "6b0630d2.32b2 "] {
        let plan = format!("{prefix}LOG:  duration: 5.100 ms  plan:\n\tQuery Text: a\n\tSort\n");
        let nested = format!("{plan}{prefix}CONTEXT:  {context}\n");
        let log = format!("{nested}{plan}{OTHER}{nested}");
        let text = || "Query Text: a\nSort\n".to_string();
        let expected = [CONTEXT, "", CONTEXT].map(|context| (text(), context.to_string()));
        assert_eq!(contexts(&log), (1, expected.to_vec()), "{prefix}");
        // The tabs are lost.
        assert_eq!(contexts(&log.replace('\t', "")), (1, expected.to_vec()), "{prefix}");
    }
    // Another process wrote this context.
    let log = "[7] LOG:  duration: 5.100 ms  plan:\n\tSort\n[9] CONTEXT:  x\n";
    assert_eq!(contexts(log), (1, vec![("Sort\n".into(), "".into())]));
}

/// `%l` is another number in each line, and `%e` is the same in all sessions.
#[test]
fn numbers_of_lines_and_error_codes_are_no_processes() {
    let mut lines = 0;
    let mut line = |prefix: &str, process: &str, text: &str| {
        lines += 1;
        prefix.replace("%l", &lines.to_string()).replace("%p", process).replace("%e", "00000") + text
    };
    for prefix in ["[%l] [%p] ", "[%e] [%p] ", "%p [%l] ", "[%p-%l] ", "%l %p %e "] {
        let log: String = ["7", "7", "9"]
            .map(|process| {
                let plan = line(prefix, process, "LOG:  duration: 5.100 ms  plan:\n\tQuery Text: a\n\tSort\n");
                plan + &line(prefix, process, "CONTEXT:  x\n")
            })
            .concat();
        let expected = ("Query Text: a\nSort\n".to_string(), "x\n".to_string());
        assert_eq!(contexts(&log), (2, vec![expected; 3]), "{prefix}");
    }
}

#[test]
fn syslog_has_the_context_in_the_same_message() {
    let line = |process: u32, part: usize, text: &str| {
        format!("Nov 22 01:02:03 db1 postgres[{process}]: [4-{part}] {}\n", text.replace('\t', "#011"))
    };
    let long = "SQL statement \"select 1\n\tfrom t\"\n\tPL/pgSQL function f() line 3\n at SQL statement";
    let text = format!("[7] LOG:  duration: 5.100 ms  plan:\n\tSort\n\t  ->  x\n[7] CONTEXT:  {long}");
    let of = |process: u32| text.lines().enumerate().map(move |(at, text)| line(process, at + 1, text));
    let log: String = of(7).zip(of(8)).map(|(a, b)| a + &b).collect();
    let expected = ("Sort\n  ->  x\n".to_string(), CONTEXT.to_string());
    assert_eq!(contexts(&log), (2, vec![expected.clone(), expected]));
}
