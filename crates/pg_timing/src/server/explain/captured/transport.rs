//! What syslog, journald and containers put before each line of a server's log: who sent the line, and how the line
//! continues the one before it.

mod syslog;

pub use syslog::numbered;

use std::hash::{DefaultHasher, Hash, Hasher};

/// A line of the server, and its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent<'a> {
    /// host, container or pod
    pub host: Option<&'a str>,
    /// the server's process
    pub process: Option<&'a str>,
    pub text: &'a str,
    pub part: Part,
}

/// Which part of a line this is. syslog and container runtimes split long lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// more of the line follows
    Unfinished,
    /// the file ends within the line
    Cut,
    /// it begins like a message for syslog, but the number can be that of the message or of its part
    Begins {
        number: u32,
    },
    /// the first part of a numbered message for syslog
    First {
        message: u64,
    },
    /// a later part of a message for syslog: it continues the message, and the line too if it does not begin with a tab
    Next {
        /// number of the message, if the server wrote it
        message: Option<u64>,
        number: u32,
    },
}

/// The number of the sender if no transport names it.
pub const NO_SENDER: u64 = 0;

impl Sent<'_> {
    /// Returns a number for the host, container or pod.
    pub fn sending_host(&self) -> u64 {
        Sent { process: None, ..*self }.sender()
    }

    /// Returns a number for the sender. Lines of different senders can be mixed.
    pub fn sender(&self) -> u64 {
        match (self.host, self.process) {
            (None, None) => NO_SENDER,
            sender => {
                let mut hasher = DefaultHasher::new();
                sender.hash(&mut hasher);
                hasher.finish()
            }
        }
    }
}

/// Returns the line as the server wrote it, with its sender. A line without a known prefix is returned unchanged.
pub fn sent(line: &str) -> Sent<'_> {
    if !may_have_prefix(line) {
        return Sent { host: None, process: None, text: line, part: Part::Whole };
    }
    let of_container = sent_by_container(line);
    let has_time = of_container.text.len() < line.len();
    syslog::message(of_container, has_time).unwrap_or(of_container)
}

/// Returns the same, but removes only the prefixes of containers.
pub fn sent_by_container(line: &str) -> Sent<'_> {
    let plain = Sent { host: None, process: None, text: line, part: Part::Whole };
    if may_have_prefix(line) { without_container_prefix(plain) } else { plain }
}

/// Returns whether a prefix is possible: it begins with a letter, a digit or a bracket.
fn may_have_prefix(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[' || c == '<')
}

/// Removes the prefixes of containers, in this order:
/// `db-1  | ` (Docker Compose) or `[pod/db-0/postgres] ` (kubectl --prefix);
/// `2026-11-22T01:02:03.123456789Z ` (kubectl and docker logs --timestamps);
/// `stderr F ` (log files on a Kubernetes node).
fn without_container_prefix(line: Sent) -> Sent {
    let mut line = line;
    if let Some((name, rest)) = line.text.split_once("| ")
        && name.ends_with(' ')
        && is_name(name.trim_end())
    {
        (line.host, line.text) = (Some(name.trim_end()), rest);
    }
    if let Some((name, rest)) = line.text.strip_prefix("[pod/").and_then(|rest| rest.split_once("] ")) {
        (line.host, line.text) = (Some(name), rest);
    }
    if let Some((timestamp, rest)) = line.text.split_once(' ')
        && is_timestamp(timestamp)
    {
        line.text = rest;
        for stream in ["stderr", "stdout"] {
            if let Some(rest) = rest.strip_prefix(stream) {
                let [whole, part] = [" F ", " P "].map(|flag| rest.strip_prefix(flag));
                (line.text, line.part) = match (whole, part) {
                    (Some(text), _) => (text, Part::Whole),
                    (_, Some(text)) => (text, Part::Unfinished),
                    _ => continue,
                };
            }
        }
    }
    line
}

/// The octal number of a tab: rsyslog writes it instead of a tab.
pub const TAB: &str = "#011";

/// Returns the text of a line that continues a message: a tab precedes it.
pub fn continued(text: &str) -> Option<&str> {
    text.strip_prefix('\t').or_else(|| text.strip_prefix(TAB))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a text can be the name of a container or a host. A host can be an address.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-:".contains(&b))
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
    use super::*;

    #[test]
    fn known_prefixes_are_removed() {
        const LINE: &str = "\t  ->  Seq Scan on t  (actual time=0.007..0.008 rows=1 loops=1)";
        let next = |message, number| Part::Next { message: Some(message), number };
        for (before, host, process, part) in [
            ("Nov 22 01:02:03 db1 postgres[123]: [4-2] ", Some("db1"), Some("123"), next(4, 2)),
            ("Nov 22 01:02:03 db1 postgres[123]: [4-1] ", Some("db1"), Some("123"), Part::First { message: 4 }),
            (
                "Nov 22 01:02:03 db1 postgres[123]: [12] ",
                Some("db1"),
                Some("123"),
                Part::Next { message: None, number: 12 },
            ),
            ("Nov  2 01:02:03 db1.example.com postgres[123]: ", Some("db1.example.com"), Some("123"), Part::Whole),
            ("2026-11-22T01:02:03.123456+00:00 db1 postgres[123]: [12-3] ", Some("db1"), Some("123"), next(12, 3)),
            ("Nov 22 01:02:03 db1 pg.main[123]: [4-2] ", Some("db1"), Some("123"), next(4, 2)),
            ("Nov 22 01:02:03 db1 local0.info postgres-17[123]: [4-2] ", Some("db1"), Some("123"), next(4, 2)),
            ("<134>Nov 22 01:02:03 postgres[123]: [4-2] ", None, Some("123"), next(4, 2)),
            (
                "<134>1 2026-11-24T10:00:00.000000+00:00 db1 postgres 123 - - [5-2] ",
                Some("db1"),
                Some("123"),
                next(5, 2),
            ),
            (
                "<134>1 2026-11-24T10:00:00Z db1 postgres-17 123 - [meta sequenceId=\"1\" x=\"\\\"]\"][y@1]  [5-2] ",
                Some("db1"),
                Some("123"),
                next(5, 2),
            ),
            ("<134>1 2026-11-24T10:00:00Z - postgres 123 - - \u{feff}", None, Some("123"), Part::Whole),
            (
                "Sun 2026-11-22 01:02:03 UTC db1 postgresql@17-main.service[123]: ",
                Some("db1"),
                Some("123"),
                Part::Whole,
            ),
            ("db-1  | ", Some("db-1"), None, Part::Whole),
            ("db_1 | 2026-11-22T01:02:03.123456789Z ", Some("db_1"), None, Part::Whole),
            ("[pod/db-0/postgres] ", Some("db-0/postgres"), None, Part::Whole),
            ("2026-11-22T01:02:03.123456789Z stderr F ", None, None, Part::Whole),
            ("2026-11-22T01:02:03.123456789Z stdout P ", None, None, Part::Unfinished),
            ("", None, None, Part::Whole),
        ] {
            let line = format!("{before}{LINE}");
            let found = sent(&line);
            assert_eq!((found.text, found.host, found.process, found.part), (LINE, host, process, part), "{before}");
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
            "Sort Key: x[1]: y",
            "<2026-11-24 10:00:00 UTC> LOG:  x",
            "<134> LOG:  x",
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">",
        ] {
            assert_eq!(sent(line).text, line);
        }
    }

    #[test]
    fn a_number_before_a_message_is_not_the_number_of_a_part() {
        let part = |message: &str| sent(&format!("Nov 22 01:02:03 db1 postgres[123]: {message}")).part;
        assert_eq!(part("[12] LOG:  duration: 1.000 ms  plan:"), Part::Begins { number: 12 });
        assert_eq!(part("[12] #011Settings: a:  b"), Part::Next { message: None, number: 12 });
        assert_eq!(part("[1] LOG:  duration: 1.000 ms  plan:"), Part::Begins { number: 1 });
        assert_eq!(part("[x-2] a"), Part::Whole);
    }

    #[test]
    fn senders_differ() {
        let line = |host: &str, process| format!("Nov 22 01:02:03 {host} postgres[{process}]: x");
        let senders = [line("a", 1), line("a", 2), line("b", 1), "x".into()].map(|line| sent(&line).sender());
        assert_eq!(senders.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        assert_eq!(senders[3], 0);
    }

    #[test]
    fn a_continued_line_begins_with_a_tab() {
        assert_eq!((continued("\tx"), continued("#011 x"), continued(" x")), (Some("x"), Some(" x"), None));
    }
}
