//! The settings that a user gives with the statement: `SET` and `RESET` lines.
//!
//! Each run applies them with SET LOCAL in its own transaction. So all runs have them, and none is left behind, even if a
//! connection pooler gives the session to another client. The user's `statement_timeout` limits the user's statement, and
//! pg_timing's own limits everything else: a short timeout would otherwise end the queries of settings.

use super::rejection::Rejection;
use super::scan::{Token, Tokens, stored};
use crate::error::Error;
use crate::server::connection::{Connection, Output};
use crate::server::own_sql;
use crate::server::settings::FAST_TIMING_METHOD;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub const STATEMENT_TIMEOUT: &str = "statement_timeout";

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// in lower case, like `work_mem`
    pub name: String,
    set_local: String,
}

/// Names, or their beginnings if they end with `*`; why they are refused; a hint.
const REFUSED: [(&[&str], &str, &str); 7] = [
    (
        &["idle_session_timeout", "idle_in_transaction_session_timeout", "transaction_timeout", "exit_on_error"],
        "it could end the session between two runs",
        "remove the line; --limit and statement_timeout limit each run",
    ),
    (
        &["transaction", "transaction_*", "default_transaction_*", "session characteristics", "constraints"],
        "pg_timing chooses the mode of its transactions",
        "remove the line; runs are read-only without --allow-writes, and PGOPTIONS=\"-c default_transaction_isolation=...\" \
         sets the isolation level",
    ),
    (
        &["session_authorization"],
        "pg_timing keeps the rights of the user that connects",
        "use SET ROLE, or connect as that user with -U",
    ),
    (
        &["auto_explain.*"],
        "auto_explain also times runs without EXPLAIN",
        "remove the line; pg_timing switches auto_explain.log_analyze off in its runs",
    ),
    (
        &[FAST_TIMING_METHOD],
        "pg_timing measures each method",
        "remove the line; PGOPTIONS=\"-c session_preload_libraries=pg_fast_timing -c pg_fast_timing.method=...\" sets the \
         method of the reported runs",
    ),
    (
        &["client_encoding"],
        "pg_timing sends and reads UTF-8",
        "remove the line, and convert the file, for example with iconv",
    ),
    (
        &["standard_conforming_strings"],
        "pg_timing reads a backslash in '...' as an ordinary character",
        "remove the line, and write E'...' for strings with escapes",
    ),
];

impl Setting {
    /// Whether the statement is one of these.
    pub fn begins(statement: &str) -> bool {
        Tokens::of(statement).next().is_some_and(|first| first.is("SET") || first.is("RESET"))
    }

    /// Returns the setting of a SET or RESET.
    pub fn new(statement: &str) -> Result<Setting, Rejection> {
        let mut tokens = Tokens::of(statement).peekable();
        let is_reset = tokens.next().is_some_and(|first| first.is("RESET"));
        let mut ahead = tokens.clone();
        let scope = ahead.next().filter(|token| !is_reset && (token.is("LOCAL") || token.is("SESSION")));
        // `SET SESSION AUTHORIZATION`, `SET SESSION CHARACTERISTICS` and `SET session.name` have no scope.
        let is_other = |next: Token| next.is("AUTHORIZATION") || next.is("CHARACTERISTICS") || next.is_symbol(".");
        if scope.is_some() && !ahead.next().is_some_and(is_other) {
            tokens.next();
        }
        let start = tokens.peek().map_or(statement.len(), |token| token.start);
        let name = name(tokens).ok_or_else(|| unsupported("this form of SET", UNKNOWN_FORM))?;
        if is_reset && name == "all" {
            return Err(unsupported("RESET ALL", "a new session has these values already"));
        }
        check(&name)?;
        // Without a comment at the end, which would hide TO DEFAULT.
        let end = Tokens::of(statement).last().map_or(start, |token| token.end());
        let rest = &statement[start..end];
        let set_local = match is_reset {
            true => format!("SET LOCAL {} TO DEFAULT", if name == "timezone" { "timezone" } else { rest }),
            false => format!("SET LOCAL {rest}"),
        };
        Ok(Setting { name, set_local })
    }

    /// Returns the SQL that applies the setting until the end of the transaction.
    pub fn set_local(&self) -> &str {
        &self.set_local
    }
}

const UNKNOWN_FORM: &str = "pg_timing does not understand it";

fn unsupported(name: &str, why: &'static str) -> Rejection {
    Rejection::Setting { name: name.into(), why, hint: "remove the line, or write SET name = value" }
}

/// Returns the name of the setting, also for the forms with a syntax of their own. `None` if they are unknown.
fn name<'a>(mut tokens: impl Iterator<Item = Token<'a>> + Clone) -> Option<String> {
    const FORMS: [(&[&str], &str); 9] = [
        (&["TIME", "ZONE"], "timezone"),
        (&["SCHEMA"], "search_path"),
        (&["NAMES"], "client_encoding"),
        (&["ROLE"], "role"),
        (&["XML", "OPTION"], "xmloption"),
        (&["SESSION", "AUTHORIZATION"], "session_authorization"),
        (&["SESSION", "CHARACTERISTICS"], "session characteristics"),
        (&["TRANSACTION"], "transaction"),
        (&["CONSTRAINTS"], "constraints"),
    ];
    let begins = |words: &[&str]| {
        let mut tokens = tokens.clone();
        let found = words.iter().all(|word| tokens.next().is_some_and(|token| token.is(word)));
        // In `SET schema.name = 1`, the keyword is an ordinary name.
        found && !tokens.next().is_some_and(|token| token.is_symbol("."))
    };
    if let Some((_, name)) = FORMS.iter().find(|(words, _)| begins(words)) {
        return Some((*name).into());
    }
    let part = |token: Token| Some(stored(&token.name()?).to_string());
    let mut name = part(tokens.next()?)?;
    loop {
        match tokens.next() {
            Some(token) if token.is_symbol(".") => name = format!("{name}.{}", part(tokens.next()?)?),
            Some(token) if token.is("TO") || token.is_symbol("=") => break,
            None => break,
            Some(_) => return None,
        }
    }
    // The server ignores the case of these names, also in quotes.
    Some(name.to_ascii_lowercase())
}

fn check(name: &str) -> Result<(), Rejection> {
    let is_refused = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *pattern,
    };
    match REFUSED.iter().find(|(patterns, ..)| patterns.iter().any(is_refused)) {
        Some(&(_, why, hint)) => Err(Rejection::Setting { name: name.into(), why, hint }),
        None => Ok(()),
    }
}

/// Applies the settings until the end of the transaction, without `statement_timeout`, which is for the user's statement
/// only.
pub fn apply(settings: &[Setting], connection: &mut Connection, stop: &AtomicBool) -> Result<(), Error> {
    settings
        .iter()
        .filter(|setting| setting.name != STATEMENT_TIMEOUT)
        .try_for_each(|setting| connection.run(&setting.set_local, Output::Discard, stop).map(|_| ()))
}

/// Begins a transaction in which statements of pg_timing may take `own_limit`. Returns the timeout of the user's statement
/// as the server shows it, like `5s`: that of the lines before the statement, or else that of the session.
///
/// None of these statements reads a table, so they take microseconds: the user's timeout already applies to some of them. The
/// search_path is empty afterwards.
pub fn begin(
    connection: &mut Connection,
    mode: &str,
    own_limit: Duration,
    given: &[Setting],
    stop: &AtomicBool,
) -> Result<String, Error> {
    connection.run(&own_sql::begin(mode), Output::Discard, stop)?;
    connection.run(own_sql::EMPTY_SEARCH_PATH, Output::Discard, stop)?;
    for setting in given.iter().filter(|setting| setting.name == STATEMENT_TIMEOUT) {
        connection.run(setting.set_local(), Output::Discard, stop)?;
    }
    let shown = connection.run("SHOW statement_timeout", Output::Keep, stop)?;
    connection.run(&set_timeout(own_limit), Output::Discard, stop)?;
    Ok(shown.value().unwrap_or_default().into())
}

/// Returns the SQL that sets the timeout until the end of the transaction.
pub fn set_timeout(limit: Duration) -> String {
    own_sql::set_local(STATEMENT_TIMEOUT, &limit.as_millis().to_string())
}

/// Returns the timeout that the server shows, or `None` if there is none. The server shows a whole number in the largest
/// possible unit: <https://www.postgresql.org/docs/current/config-setting.html>
pub fn parse_timeout(shown: &str) -> Option<Duration> {
    let digits = shown.find(|c: char| !c.is_ascii_digit()).unwrap_or(shown.len());
    let (number, unit) = shown.split_at(digits);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(unit_ms)?)).filter(|limit| !limit.is_zero())
}

/// Returns the name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_form_is_set_locally() {
        for (text, name, set_local) in [
            ("SET work_mem = '1GB'", "work_mem", "SET LOCAL work_mem = '1GB'"),
            ("-- a\nset Local Work_Mem to 1", "work_mem", "SET LOCAL Work_Mem to 1"),
            ("SET SESSION jit=off", "jit", "SET LOCAL jit=off"),
            ("SET \"app\".User_ID = '7'", "app.user_id", "SET LOCAL \"app\".User_ID = '7'"),
            ("SET TIME ZONE 'UTC'", "timezone", "SET LOCAL TIME ZONE 'UTC'"),
            ("SET LOCAL TIME ZONE 'UTC'", "timezone", "SET LOCAL TIME ZONE 'UTC'"),
            ("SET SCHEMA 's'", "search_path", "SET LOCAL SCHEMA 's'"),
            ("SET ROLE reader", "role", "SET LOCAL ROLE reader"),
            ("SET session ROLE reader", "role", "SET LOCAL ROLE reader"),
            ("RESET work_mem", "work_mem", "SET LOCAL work_mem TO DEFAULT"),
            ("RESET TIME ZONE", "timezone", "SET LOCAL timezone TO DEFAULT"),
            ("RESET jit -- again", "jit", "SET LOCAL jit TO DEFAULT"),
            ("RESET ROLE", "role", "SET LOCAL ROLE TO DEFAULT"),
            ("SET statement_timeout = 100", "statement_timeout", "SET LOCAL statement_timeout = 100"),
            ("SET lock_timeout = 100", "lock_timeout", "SET LOCAL lock_timeout = 100"),
            ("SET schema.Name = 1", "schema.name", "SET LOCAL schema.Name = 1"),
            ("SET LOCAL Role . x TO 1", "role.x", "SET LOCAL Role . x TO 1"),
            ("SET transaction.x = 1", "transaction.x", "SET LOCAL transaction.x = 1"),
            ("SET local.x = 1", "local.x", "SET LOCAL local.x = 1"),
            ("SET LOCAL session.x = 1", "session.x", "SET LOCAL session.x = 1"),
            ("RESET names.x", "names.x", "SET LOCAL names.x TO DEFAULT"),
            ("SET time.zone = 1", "time.zone", "SET LOCAL time.zone = 1"),
            (
                "SET pg_fast_timing.sample_rate = 9",
                "pg_fast_timing.sample_rate",
                "SET LOCAL pg_fast_timing.sample_rate = 9",
            ),
        ] {
            assert!(Setting::begins(text), "{text}");
            assert_eq!(Setting::new(text), Ok(Setting { name: name.into(), set_local: set_local.into() }), "{text}");
        }
    }

    #[test]
    fn settings_against_the_programs_promises_are_refused() {
        for text in [
            "SET default_transaction_read_only = off",
            "SET \"Transaction_Read_Only\" TO off",
            "SET TRANSACTION READ WRITE",
            "SET LOCAL transaction_isolation = 'serializable'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "SET CONSTRAINTS ALL DEFERRED",
            "SET SESSION AUTHORIZATION bob",
            "SET LOCAL SESSION AUTHORIZATION bob",
            "RESET SESSION AUTHORIZATION",
            "SET idle_in_transaction_session_timeout = 1",
            "SET transaction_timeout = 1",
            "SET /* x */ auto_explain . log_analyze = on",
            "SET pg_fast_timing.method = tsc",
            "SET NAMES 'latin1'",
            "SET client_encoding TO latin1",
            "SET standard_conforming_strings = off",
            "RESET ALL",
            "SET U&\"transaction\\005fread_only\" = off",
            "SET",
            "SET = 1",
            "SET x y",
        ] {
            let Err(Rejection::Setting { name, why, hint }) = Setting::new(text) else { panic!("{text}") };
            assert!(!name.is_empty() && !why.is_empty() && !hint.is_empty(), "{text}");
        }
    }

    /// Returns the names in the guide's table of refused settings, as REFUSED writes them. A `*` stands for any text.
    fn refused_by_guide() -> Vec<String> {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.md")).unwrap();
        let (_, table) = page.split_once("| setting | why it is refused |\n").unwrap();
        let rows = table.lines().skip(1).map_while(|line| line.trim().strip_prefix("| "));
        let names = rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2));
        names.map(|name| name.trim_start_matches("SET ").to_lowercase().replace(' ', "_")).collect()
    }

    #[test]
    fn the_guide_and_this_list_name_the_same_settings() {
        let guide = refused_by_guide();
        let list: Vec<String> =
            REFUSED.iter().flat_map(|(names, ..)| *names).map(|name| name.replace(' ', "_")).collect();
        let is_same = |in_list: &str, in_guide: &str| match in_guide.split_once('*') {
            Some((start, end)) => in_list.starts_with(start) && in_list.ends_with(end),
            // The list's "transaction*" includes SET TRANSACTION.
            None => in_list.trim_end_matches('*') == in_guide,
        };
        for name in &list {
            assert!(guide.iter().any(|in_guide| is_same(name, in_guide)), "the guide lacks {name}: {guide:?}");
        }
        for name in &guide {
            assert!(
                list.iter().any(|in_list| is_same(in_list, name)),
                "the guide has {name}, the list has not: {list:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "(SET|RESET) (LOCAL |SESSION |TIME ZONE )?[a\"'.= é\\\\$;]{0,20}") {
            if let Ok(setting) = Setting::new(&text) {
                prop_assert!(setting.set_local.starts_with("SET LOCAL "));
            }
        }
    }

    #[test]
    fn the_shown_timeout_has_a_unit() {
        for (shown, ms) in
            [("300ms", 300), ("5s", 5000), ("2min", 120_000), ("1h", 3_600_000), ("24d", 24 * 86_400_000)]
        {
            assert_eq!(parse_timeout(shown), Some(Duration::from_millis(ms)), "{shown}");
        }
        for shown in ["0", "0ms", "", "5 apples", "99999999999999999999s", "9999999999999999999d"] {
            assert_eq!(parse_timeout(shown), None, "{shown}");
        }
        assert_eq!(set_timeout(Duration::from_secs(2)), "SET LOCAL statement_timeout = 2000");
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!([quoted("q"), quoted("a\"b")], ["\"q\"", "\"a\"\"b\""]);
    }
}
