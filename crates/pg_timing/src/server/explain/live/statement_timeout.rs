//! `statement_timeout`: the user's limits the user's statement, and pg_timing's own limits everything else. A short timeout
//! would otherwise end the probe and the queries of settings.

use super::setting::{STATEMENT_TIMEOUT, Setting};
use crate::error::Error;
use crate::server::connection::{Connection, Output};
use crate::server::own_sql;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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
    connection.run(&set_local(own_limit), Output::Discard, stop)?;
    Ok(shown.value().unwrap_or_default().into())
}

/// Returns the SQL that sets the timeout until the end of the transaction.
pub fn set_local(limit: Duration) -> String {
    own_sql::set_local(STATEMENT_TIMEOUT, &limit.as_millis().to_string())
}

/// Returns the timeout that the server shows, or `None` if there is none. The server shows a whole number in the largest
/// possible unit: <https://www.postgresql.org/docs/current/config-setting.html>
pub fn parse(shown: &str) -> Option<Duration> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shown_timeout_has_a_unit() {
        for (shown, ms) in
            [("300ms", 300), ("5s", 5000), ("2min", 120_000), ("1h", 3_600_000), ("24d", 24 * 86_400_000)]
        {
            assert_eq!(parse(shown), Some(Duration::from_millis(ms)), "{shown}");
        }
        for shown in ["0", "0ms", "", "5 apples", "99999999999999999999s", "9999999999999999999d"] {
            assert_eq!(parse(shown), None, "{shown}");
        }
        assert_eq!(set_local(Duration::from_secs(2)), "SET LOCAL statement_timeout = 2000");
    }
}
