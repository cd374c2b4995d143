//! What an entry shows about the client's statement: its command, its transaction, and when the entry was written.

/// What is not in the log is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    pub command: Option<Command>,
    pub transaction: Option<Transaction>,
    pub time: Option<LogTime>,
}

/// A virtual transaction identifier, like `3/25`. Every transaction has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    backend: u64,
    number: u64,
}

/// The client's command. Its first word is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// With the extended protocol, the plan is logged when the portal closes: during a later BIND or COMMIT, for example.
    Select,
    /// FETCH and MOVE: the plan of the cursor's query is logged when the cursor closes.
    Fetch,
    /// The plan is logged before the command ends.
    WithPlan(&'static str),
    /// The command itself has no plan, but can execute functions or triggers. Deferred triggers run at COMMIT.
    WithoutPlan,
}

/// When an entry was written. Only differences count, so the time zone does not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogTime {
    pub ms: f64,
    /// the true time is later by less than this
    pub resolution_ms: f64,
}

const WITH_PLAN: [&str; 9] = ["INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "CREATE", "REFRESH", "EXPLAIN", "EXECUTE"];

/// Other first words of commands in the prefix of a text log.
const WITHOUT_PLAN: [&str; 18] = [
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "BIND",
    "CALL",
    "CLOSE",
    "CLUSTER",
    "COMMIT",
    "DEALLOCATE",
    "DECLARE",
    "DO",
    "DROP",
    "PARSE",
    "PREPARE",
    "REINDEX",
    "SET",
    "TRUNCATE",
    "VACUUM",
];

impl Command {
    /// Returns the command with this tag.
    pub fn of(tag: &str) -> Command {
        let word = tag.split(' ').next().unwrap_or_default();
        match word {
            "SELECT" => Command::Select,
            "FETCH" | "MOVE" => Command::Fetch,
            word => WITH_PLAN
                .iter()
                .find(|known| **known == word)
                .map_or(Command::WithoutPlan, |known| Command::WithPlan(known)),
        }
    }

    /// Returns the command in the prefix of a text log.
    fn in_prefix(prefix: &str) -> Option<Command> {
        let words = prefix.as_bytes().split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let words = words.filter(|word| word.first().is_some_and(u8::is_ascii_uppercase));
        let is_known = |word: &&str| {
            ["SELECT", "FETCH", "MOVE"].contains(word) || WITH_PLAN.contains(word) || WITHOUT_PLAN.contains(word)
        };
        words.filter_map(|word| str::from_utf8(word).ok()).find(is_known).map(Command::of)
    }

    /// Returns whether a plan that was logged during `caller` can contain one that was logged during this command. `None`: the
    /// commands do not show it.
    pub fn is_within(self, caller: Command, is_same_transaction: bool) -> Option<bool> {
        match (self, caller) {
            (Command::WithoutPlan, _) => Some(false),
            (called, caller) if called == caller => Some(true),
            (Command::Select | Command::Fetch, Command::WithoutPlan) => is_same_transaction.then_some(true),
            _ => Some(false),
        }
    }
}

impl Evidence {
    /// Returns what the fields of a CSV or JSON log show.
    pub fn of_fields(command: Option<&str>, transaction: Option<&str>, time: Option<&str>) -> Evidence {
        Evidence {
            command: command.map(Command::of),
            transaction: transaction.and_then(Transaction::of),
            time: time.and_then(LogTime::in_text),
        }
    }

    /// Returns what two entries have in common.
    pub fn common(self, other: Evidence) -> Evidence {
        Evidence {
            command: self.command.filter(|_| self.command == other.command),
            transaction: self.transaction.filter(|_| self.transaction == other.transaction),
            time: None,
        }
    }

    /// Returns what the prefix of a text log shows.
    pub fn of_prefix(prefix: &str) -> Evidence {
        Evidence {
            command: Command::in_prefix(prefix),
            transaction: Transaction::in_prefix(prefix),
            time: LogTime::in_text(prefix),
        }
    }
}

impl Transaction {
    fn in_prefix(prefix: &str) -> Option<Transaction> {
        let is_other = |c: char| !c.is_ascii_digit() && c != '/';
        prefix.split(is_other).find_map(Transaction::of)
    }

    /// Returns the transaction with this identifier. Outside of transactions, the number is 0.
    fn of(word: &str) -> Option<Transaction> {
        let (backend, number) = word.split_once('/')?;
        let [backend, number] = [backend, number].map(|text| text.parse().ok());
        Some(Transaction { backend: backend?, number: number? }).filter(|transaction| transaction.number != 0)
    }
}

impl LogTime {
    /// Returns the first time in a text, like `2026-11-25 07:40:27.191`. The milliseconds can be missing.
    fn in_text(text: &str) -> Option<LogTime> {
        const PATTERN: &[u8] = b"0000-00-00 00:00:00";
        let is_time = |window: &[u8]| {
            PATTERN.iter().zip(window).all(|(expected, byte)| match expected {
                b'0' => byte.is_ascii_digit(),
                other => other == byte,
            })
        };
        let at = text.as_bytes().windows(PATTERN.len()).position(is_time)?;
        let number = |from: usize, length: usize| text.get(at + from..at + from + length)?.parse::<i64>().ok();
        let [year, month, day] = [number(0, 4)?, number(5, 2)?, number(8, 2)?];
        let seconds = (number(11, 2)? * 60 + number(14, 2)?) * 60 + number(17, 2)?;
        let ms = text[at + PATTERN.len()..].strip_prefix('.').and_then(|_| number(PATTERN.len() + 1, 3));
        let all = (days(year, month, day) * 86_400 + seconds) * 1000 + ms.unwrap_or(0);
        Some(LogTime { ms: all as f64, resolution_ms: if ms.is_some() { 1.0 } else { 1000.0 } })
    }
}

/// Returns the number of days from a fixed day to a date in the Gregorian calendar:
/// <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_shows_command_transaction_and_time() {
        let all = Evidence::of_prefix("2026-11-25 07:40:27.191 UTC [24783]: l=3,tag=ALTER TABLE,vxid=1/15,xid=769 ");
        let fields = Evidence::of_fields(Some("ALTER TABLE"), Some("1/15"), Some("2026-11-25 07:40:27.191 UTC"));
        assert!(all == fields && all.command == Some(Command::WithoutPlan) && all.transaction.is_some(), "{all:?}");
        assert_eq!(Evidence::of_prefix("2026/11/25 [7] db=select,app=Update 0/0 "), Evidence::default());
        let pgbadger = Evidence::of_prefix("2026-11-25 07:40:27 UTC [24783]: user=a,db=b ").time.unwrap();
        assert_eq!((pgbadger.resolution_ms, fields.time.unwrap().ms - pgbadger.ms), (1000.0, 191.0));
        for time in ["2026-11-25 07:40", "2026-11-25 07:40:2", "", "2026-11-25T07:40:27"] {
            assert_eq!(Evidence::of_prefix(time).time, None, "{time}");
        }
    }

    #[test]
    fn times_have_differences() {
        let difference = |a: &str, b: &str| LogTime::in_text(b).unwrap().ms - LogTime::in_text(a).unwrap().ms;
        assert_eq!(difference("2026-12-31 23:59:59.999", "2027-01-01 00:00:00.001"), 2.0);
        assert_eq!(difference("2028-02-28 00:00:00", "2028-03-01 00:00:00"), 2.0 * 86_400_000.0);
        assert_eq!(difference("2100-02-28 00:00:00", "2100-03-01 00:00:00"), 86_400_000.0);
        assert_eq!(difference("2026-11-25 07:00:00.5", "2026-11-25 08:00:01"), 3_601_000.0);
    }

    #[test]
    fn commands_without_a_plan_contain_no_plan() {
        let is_within =
            |called: &str, caller: &str, is_same| Command::of(called).is_within(Command::of(caller), is_same);
        for command in ["CALL", "DO", "COMMIT", "ALTER TABLE", "SET CONSTRAINTS"] {
            assert_eq!(is_within(command, command, true), Some(false), "{command}");
            assert_eq!(is_within(command, "SELECT", true), Some(false), "{command}");
        }
        for command in ["SELECT", "INSERT", "CREATE TABLE AS", "EXECUTE", "COPY"] {
            assert_eq!(is_within(command, command, false), Some(true), "{command}");
        }
        // A cursor, and the extended protocol within a transaction
        for (called, caller) in [("FETCH", "CLOSE CURSOR"), ("FETCH", "COMMIT"), ("SELECT", "BIND"), ("SELECT", "idle")]
        {
            assert_eq!((is_within(called, caller, true), is_within(called, caller, false)), (Some(true), None));
        }
        for (called, caller) in [("FETCH", "SELECT"), ("SELECT", "INSERT"), ("INSERT", "BIND"), ("INSERT", "UPDATE")] {
            assert_eq!(is_within(called, caller, true), Some(false), "{called} {caller}");
        }
    }
}
