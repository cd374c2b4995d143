//! The host of each entry.

use super::split;

/// Returns the hosts of all entries.
fn hosts(log: &str) -> Vec<Option<String>> {
    split(log).into_iter().map(|entry| entry.host.map(|host| host.to_string())).collect()
}

#[test]
fn each_entry_has_the_host_that_its_lines_name() {
    let lines = ["LOG:  duration: 5.100 ms  plan:", "\tQuery Text: a", "\tSort"];
    let with = |prefix: &str| lines.map(|line| format!("{prefix}{line}\n")).concat();
    let of = |hosts: &[&str]| hosts.iter().map(|host| Some(host.to_string())).collect::<Vec<_>>();
    for prefix in ["HOST  | ", "[pod/HOST] ", "Nov 22 01:02:03 HOST postgres[7]: "] {
        let log = ["db-1", "db-2"].map(|host| with(&prefix.replace("HOST", host))).concat();
        assert_eq!(hosts(&log), of(&["db-1", "db-2"]), "{prefix}");
    }
    // The lines of two hosts are mixed, and the process has the same number.
    let in_turn =
        lines.map(|line| ["db-1", "db-2"].map(|host| format!("Nov 22 01:02:03 {host} postgres[7]: {line}\n")).concat());
    assert_eq!(hosts(&in_turn.concat()), of(&["db-1", "db-2"]));
    let json = |keys: &str| lines.map(|line| format!("{{{keys},\"KEY\":{line:?}}}\n")).concat();
    let journald = json(r#""_HOSTNAME":"db-1","_PID":"7""#) + &json(r#""_HOSTNAME":"db-2","_PID":"7""#);
    let pods = json(r#""kubernetes":{"pod_name":"db-1"}"#) + &json(r#""kubernetes":{"pod_name":"db-2"}"#);
    for (log, key) in [(journald, "MESSAGE"), (pods, "log")] {
        assert_eq!(hosts(&log.replace("KEY", key)), of(&["db-1", "db-2"]), "{key}");
    }
    // journalctl writes the host once per message.
    let spaces =
        |prefix: &str| lines[1..].iter().map(|line| " ".repeat(prefix.len()) + line + "\n").collect::<String>();
    let prefix = "Nov 22 01:02:03 db-1 postgres[7]: ";
    assert_eq!(hosts(&format!("{prefix}{}\n{}", lines[0], spaces(prefix))), of(&["db-1"]));
    // A log_line_prefix that looks like that of a container, or like syslog's, is not in the lines that follow.
    for prefix in ["joe | ", "[pod/x] ", "2026-11-22T01:02:03Z joe app[12]: "] {
        let log = with("").replace("LOG:", &format!("{prefix}LOG:"));
        assert_eq!(hosts(&log.repeat(2)), [None, None], "{prefix}");
    }
}
