//! Removes what syslog, journald and containers put before each line of a server's log.

/// Returns the line as the server wrote it. A line without a known prefix is returned unchanged.
pub fn without_log_prefix(line: &str) -> &str {
    let line = without_container_prefix(line);
    match without_syslog_prefix(line) {
        // rsyslog writes a tab as its octal number.
        Some(message) => message.strip_prefix("#011").unwrap_or(message),
        None => line,
    }
}

/// Removes the prefixes of containers, in this order:
/// `db-1  | ` (Docker Compose) or `[pod/db-0/postgres] ` (kubectl --prefix);
/// `2026-11-22T01:02:03.123456789Z ` (kubectl and docker logs --timestamps);
/// `stderr F ` (log files on a Kubernetes node).
fn without_container_prefix(line: &str) -> &str {
    let mut line = line;
    if let Some((name, rest)) = line.split_once("| ")
        && is_name(name.trim_end())
        && name.ends_with(' ')
    {
        line = rest;
    }
    if let Some((_, rest)) = line.strip_prefix("[pod/").and_then(|rest| rest.split_once("] ")) {
        line = rest;
    }
    if let Some((timestamp, rest)) = line.split_once(' ')
        && is_timestamp(timestamp)
    {
        line = rest;
        for stream in ["stderr F ", "stdout F ", "stderr P ", "stdout P "] {
            line = line.strip_prefix(stream).unwrap_or(line);
        }
    }
    line
}

/// Returns the message in `Nov 22 01:02:03 host postgres[123]: [4-2] message`.
///
/// The part number `[4-2]` is there only with log_destination syslog. An RFC 3339 timestamp may replace the date; the
/// caller has removed it.
fn without_syslog_prefix(line: &str) -> Option<&str> {
    let (before, message) = line.split_once("]: ")?;
    let (words, pid) = before.rsplit_once('[')?;
    let mut words = words.split(' ').filter(|word| !word.is_empty()).rev();
    let (program, host) = (words.next()?, words.next()?);
    let is_date = words.next().is_none_or(|time| time.matches(':').count() == 2) && words.count() <= 2;
    if !is_number(pid) || !is_date || !program.starts_with("postgres") || !is_name(host) {
        return None;
    }
    let part = message
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .filter(|(part, _)| part.split_once('-').is_some_and(|(message, part)| is_number(message) && is_number(part)));
    Some(part.map_or(message, |(_, rest)| rest))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a text can be the name of a container or a host.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// Returns whether a text is an RFC 3339 timestamp.
fn is_timestamp(text: &str) -> bool {
    text.split_once('T').is_some_and(|(date, time)| {
        date.len() == 10
            && date.bytes().all(|b| b.is_ascii_digit() || b == b'-')
            && time.matches(':').count() >= 2
            && time.bytes().all(|b| b.is_ascii_digit() || b":.+-Z".contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::without_log_prefix;

    #[test]
    fn known_prefixes_are_removed() {
        const LINE: &str = "  ->  Seq Scan on t  (actual time=0.007..0.008 rows=1 loops=1)";
        for before in [
            "Nov 22 01:02:03 db1 postgres[123]: [4-2] #011",
            "Nov  2 01:02:03 db1.example.com postgres[123]: ",
            "2026-11-22T01:02:03.123456+00:00 db1 postgres[123]: [12-3] #011",
            "db-1  | ",
            "db_1 | 2026-11-22T01:02:03.123456789Z ",
            "[pod/db-0/postgres] ",
            "2026-11-22T01:02:03.123456789Z stderr F ",
            "",
        ] {
            assert_eq!(without_log_prefix(&format!("{before}{LINE}")), LINE, "{before}");
        }
    }

    #[test]
    fn other_lines_are_unchanged() {
        for line in [
            "2026-11-22 01:02:03 UTC [4080]: [1-1] user=joe LOG:  duration: 1 ms  plan:",
            "  Filter: ((a | b) > 0)",
            "  Index Cond: (tags[1]: text)",
            "| Sort (actual time=0.007..0.008 rows=1 loops=1) |",
            "[{\"Plan\": {}}]",
            "a[1]: ",
        ] {
            assert_eq!(without_log_prefix(line), line);
        }
    }
}
