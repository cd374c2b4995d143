//! Logs of syslog and journald.

use super::{explain, figures, log, totals, write};
use crate::{fixture, json};
use serde_json::Value;

/// The fixtures have what PostgreSQL 17 sent to /dev/log with `log_destination = 'syslog,stderr'`, and its text log. syslog
/// splits long lines: such a plan is skipped, and its reason is named.
#[test]
fn what_the_server_sends_to_syslog_has_the_plans_of_its_text_log() {
    let dir = tempfile::tempdir().unwrap();
    for (name, split) in [("split", true), ("split_without_numbers", true), ("whole", false)] {
        let path = fixture("syslog").join(format!("{name}.json"));
        let sent = json(&std::fs::read_to_string(path).unwrap());
        let expected = totals(&[&write(&dir.path().join("server.log"), sent["log"].as_str().unwrap().as_bytes())]);
        assert_eq!((&expected["total"]["runs"], &expected["total"]["nested_runs"]), (&7.into(), &1.into()));
        // `<134>Nov 25 01:54:25 pg.main-17[4237]: message`
        let written = |line: &dyn Fn(&str, &str, &str, &str) -> String| -> String {
            let of_datagram = |datagram: &Value| {
                let (head, message) = datagram.as_str().unwrap().split_once("]: ").unwrap();
                let (head, process) = head.rsplit_once('[').unwrap();
                let (time, program) = head.split_once('>').unwrap().1.rsplit_once(' ').unwrap();
                line(time, program, process, message.trim_end()) + "\n"
            };
            sent["datagrams"].as_array().unwrap().iter().map(of_datagram).collect()
        };
        // What rsyslog does with control characters, and how journalctl continues a line.
        let escaped = |message: &str| message.replace('\t', "#011").replace('\n', "#012");
        let continued = |before: String, message: &str| {
            let spaces = " ".repeat(before.len());
            before + &message.replace('\n', &format!("\n{spaces}"))
        };
        const TIME: &str = "2026-11-25T01:54:25.123456+00:00";
        let rfc_5424 = |data: &str, program: &str, process: &str, message: &str| {
            format!("<134>1 {TIME} db1 {program} {process} - {data} {}", escaped(message))
        };
        for (form, log) in [
            ("raw", written(&|t, name, pid, text| format!("<134>{t} {name}[{pid}]: {text}"))),
            ("rsyslog", written(&|t, name, pid, text| format!("{t} db1 {name}[{pid}]: {}", escaped(text)))),
            ("iso", written(&|_, name, pid, text| format!("{TIME} db1 {name}[{pid}]: {}", escaped(text)))),
            ("rfc5424", written(&|_, name, pid, text| rfc_5424("-", name, pid, &format!(" {text}")))),
            ("data", written(&|_, name, pid, text| rfc_5424("[meta sequenceId=\"29\" x=\"]\"]", name, pid, text))),
            ("syslog-ng", written(&|t, name, pid, text| format!("{t} db1 {name}[{pid}]: {text}"))),
            ("busybox", written(&|t, name, pid, text| format!("{t} db1 local0.info {name}[{pid}]: {}", escaped(text)))),
            ("journalctl", written(&|t, name, pid, text| continued(format!("{t} db1 {name}[{pid}]: "), text))),
            ("json", written(&|_, _, pid, text| serde_json::json!({ "_PID": pid, "MESSAGE": text }).to_string())),
        ] {
            let file = write(&dir.path().join("syslog"), log.as_bytes());
            if split {
                let (status, stdout, _) = explain(&[&file, "--all", "--format", "json"]);
                let report = json(&stdout);
                let skipped = report["skipped"].to_string();
                assert!(skipped.contains("a part of the plan is lost"), "{name} {form} {report}");
                assert_eq!((status, &report["plans"]), (3, &8.into()), "{name} {form}");
            } else {
                assert_eq!(figures(totals(&[&file])), figures(expected.clone()), "{name} {form}");
            }
        }
    }
}

/// Lines of two servers in one file can be separated if syslog or a container adds the sender.
#[test]
fn mixed_lines_of_two_servers_are_separated() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mixed = |line: &dyn Fn(&str, &str) -> String| {
        text.lines().flat_map(|text| ["db1", "db2"].map(|host| line(host, text))).collect::<String>()
    };
    for (name, log) in [
        (
            "syslog",
            mixed(&|host, text| format!("<134>1 2026-11-24T10:00:00.000000+00:00 {host} pg-17 123 - - {text}\n")),
        ),
        ("journald", mixed(&|host, text| format!("Nov 22 01:02:03 {host} postgres-17[123]: {text}\n"))),
        ("compose", mixed(&|host, text| format!("{host}  | {text}\n"))),
    ] {
        let file = write(&dir.path().join(name), log.as_bytes());
        let (status, stdout, _) = explain(&[&file, "--all", "--format", "json"]);
        let report = json(&stdout);
        let plans = (report["plans"].as_u64(), report["total"]["runs"].as_u64());
        assert_eq!((status, plans), (3, (Some(48), Some(40))), "{name}");
        let hosts = serde_json::json!([{ "name": "db1", "plans": 24 }, { "name": "db2", "plans": 24 }]);
        assert_eq!(report["hosts"], hosts, "{name}");
    }
}

/// syslog may lose a part of a message. Its number shows that.
#[test]
fn a_plan_with_a_lost_part_is_damaged() {
    let plan = |message: usize| {
        let text = "LOG:  duration: 9.000 ms  plan:\n#011Query Text: select 1\n#011Append  (cost=0.00..1.00 rows=1 width=4) (actual time=0.010..9.000 rows=9 loops=1)\n\
                    #011  ->  Seq Scan on a  (cost=0.00..1.00 rows=1 width=4) (actual time=0.010..2.000 rows=9 loops=1)\n\
                    #011  ->  Seq Scan on b  (cost=0.00..1.00 rows=1 width=4) (actual time=0.010..2.000 rows=9 loops=1)";
        let line = move |(part, text)| format!("Nov 22 01:02:03 db1 postgres[7]: [{message}-{}] {text}\n", part + 1);
        text.lines().enumerate().map(line).collect::<Vec<String>>()
    };
    let dir = tempfile::tempdir().unwrap();
    let log = [&plan(5)[..3], &plan(5)[4..], &plan(6)].concat().concat();
    let path = write(&dir.path().join("syslog"), log.as_bytes());
    let (status, stdout, _) = explain(&[&path, "--all", "--format", "json"]);
    let report = json(&stdout);
    assert_eq!((status, report["plans"].as_u64(), report["total"]["runs"].as_u64()), (3, Some(2), Some(1)), "{report}");
    assert!(report["skipped"].to_string().contains("a part of the plan is lost"), "{report}");
}
