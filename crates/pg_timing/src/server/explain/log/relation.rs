//! Whether a plan contains a nested plan that is before it in the log of its session.

use super::evidence::LogTime;
use super::nesting::Nesting;
use super::normalize::beginning;

/// The server writes an entry after the end of the plan. Printing a usual plan takes less than this.
const PRINTING_MS: f64 = 10.0;

/// A name further back in a statement is not found, so that the time for each plan is limited.
const MAX_TEXT_BYTES: usize = 100_000;

/// How a nested plan and a later plan belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Within,
    /// The later plan cannot contain it.
    Separate,
    /// The log does not show it.
    Uncertain,
}

/// When nested plans ended. Several have the first and the last end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    pub first: LogTime,
    pub last: LogTime,
}

/// A later plan of the session.
pub struct Caller<'a> {
    pub nesting: &'a Nesting,
    pub ms: f64,
    /// the statement
    pub text: Option<&'a str>,
}

impl Caller<'_> {
    /// Returns whether this plan contains a nested plan. `ends`: when the nested plan ended, if the log shows that.
    pub fn contains(&self, called: &Nesting, ends: Option<Ends>) -> Relation {
        if !called.is_within(self.nesting) {
            return Relation::Separate;
        }
        // The contexts show which of two functions called the other one.
        if self.nesting.is_nested() {
            return Relation::Within;
        }
        let [inner, outer] = [called.evidence, self.nesting.evidence];
        let is_same = inner.transaction.zip(outer.transaction).map(|(inner, outer)| inner == outer);
        if is_same == Some(false) {
            return Relation::Separate;
        }
        let order = self.order(ends);
        let commands = inner.command.zip(outer.command);
        match commands.and_then(|(inner, outer)| inner.is_within(outer, is_same == Some(true))) {
            Some(false) => return Relation::Separate,
            // A statement without a plan has failed, for example. A cursor may have waited between its rows.
            Some(true) if order == Order::Before && inner.command == outer.command => return Relation::Uncertain,
            Some(true) => return Relation::Within,
            None => {}
        }
        match (order, self.names(called)) {
            (Order::During, _) | (Order::Unknown, true) => Relation::Within,
            (Order::Before, true) | (Order::Unknown, false) => Relation::Uncertain,
            (Order::Before, false) => Relation::Separate,
        }
    }

    /// A session executes one statement after the other, so a plan that ended after the beginning of this one is within it.
    fn order(&self, ends: Option<Ends>) -> Order {
        let Some((ends, time)) = ends.zip(self.nesting.evidence.time) else { return Order::Unknown };
        let begin = time.ms - self.ms;
        if ends.first.ms > begin + time.resolution_ms {
            Order::During
        } else if ends.last.ms + ends.last.resolution_ms < begin - PRINTING_MS {
            Order::Before
        } else {
            Order::Unknown
        }
    }

    /// Returns whether the statement contains the name of the outermost function as a word. Triggers and views hide it.
    fn names(&self, called: &Nesting) -> bool {
        let (Some(text), Some(name)) = (self.text, &called.function) else { return false };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        let (text, name) = (beginning(text, MAX_TEXT_BYTES).as_bytes(), name.as_bytes());
        text.windows(name.len()).enumerate().any(|(at, window)| {
            window.eq_ignore_ascii_case(name)
                && !at.checked_sub(1).is_some_and(|before| is_name(text[before]))
                && !text.get(at + name.len()).is_some_and(|after| is_name(*after))
        })
    }
}

/// When a nested plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Before,
    During,
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Evidence;
    use super::super::nesting::Session;
    use super::*;

    const INNER: &str = "SQL statement \"select 1\"\nPL/pgSQL function public.f(integer) line 1 at PERFORM";

    /// Returns the relation of a plan with this prefix and context, and of a later plan of `ms` with this prefix and text.
    fn relation(prefix: &str, context: &str, caller: &str, ms: f64, text: &str) -> Relation {
        let nesting = |prefix: &str, context| Nesting::new(Session::Known(1), context, Evidence::of_prefix(prefix));
        let called = nesting(prefix, context);
        let ends = called.evidence.time.map(|time| Ends { first: time, last: time });
        Caller { nesting: &nesting(caller, ""), ms, text: Some(text) }.contains(&called, ends)
    }

    #[test]
    fn the_log_shows_to_which_statement_a_plan_belongs() {
        use Relation::{Separate, Uncertain, Within};
        const F: &str = "select F(?)";
        const OTHER: &str = "select * from deff, f_2";
        for (called, caller, ms, text, expected) in [
            ("tag=SELECT 3/7", "tag=SELECT 3/7", 9.0, OTHER, Within),
            ("tag=SELECT 3/7", "tag=SELECT 3/8", 9.0, F, Separate),
            ("3/7", "3/8", 9.0, F, Separate),
            ("tag=CALL", "tag=SELECT", 9.0, F, Separate),
            ("tag=SELECT 3/7", "tag=BIND 3/7", 9.0, OTHER, Within),
            ("tag=SELECT", "tag=BIND", 9.0, OTHER, Uncertain),
            // The same commands in one transaction, but the first one ended long before: it has failed.
            ("2026-11-25 07:40:01.000 SELECT", "2026-11-25 07:40:02.000 SELECT", 9.0, F, Uncertain),
            ("2026-11-25 07:40:01.000 FETCH 3/7", "2026-11-25 07:40:02.000 CLOSE CURSOR 3/7", 9.0, OTHER, Within),
            // Only times
            ("2026-11-25 07:40:01.000", "2026-11-25 07:40:02.000", 1010.0, OTHER, Within),
            ("2026-11-25 07:40:01.000", "2026-11-25 07:40:02.000", 1000.0, OTHER, Uncertain),
            ("2026-11-25 07:40:01.000", "2026-11-25 07:40:02.000", 900.0, OTHER, Separate),
            ("2026-11-25 07:40:01.000", "2026-11-25 07:40:02.000", 900.0, F, Uncertain),
            ("2026-11-25 07:40:01", "2026-11-25 07:40:02", 1010.0, OTHER, Uncertain),
            ("2026-11-25 07:40:01", "2026-11-25 07:40:02", 2010.0, OTHER, Within),
            // Only the text
            ("", "", 9.0, F, Within),
            ("", "", 9.0, OTHER, Uncertain),
        ] {
            assert_eq!(relation(called, INNER, caller, ms, text), expected, "{called} {caller} {ms} {text}");
        }
    }
}
