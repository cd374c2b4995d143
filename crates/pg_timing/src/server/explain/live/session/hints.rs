//! Errors that pg_timing knows more about than the server.

use super::RunSession;
use crate::error::{Error, SqlState};
use crate::server::explain::live::options::NOT_ROLLED_BACK;

const STOPPED: &str = "stopped; the statement was canceled on the server";

impl RunSession<'_> {
    /// Returns what the runs changed, as a hint for a user who stops them.
    pub(super) fn what_was_changed(&self) -> &'static str {
        match self.options.allow_writes {
            true => "the statement's changes were rolled back",
            false => "all runs were read-only and were rolled back",
        }
    }

    /// Replaces the message or hint of errors that pg_timing knows more about than the server.
    pub(super) fn with_better_hint(&self, error: Error) -> Error {
        let Error { what, hint, state } = error;
        let (what, hint) = match &state {
            state if state.is(SqlState::READ_ONLY) => {
                (what, format!("--allow-writes runs statements that write, and rolls them back; {NOT_ROLLED_BACK}"))
            }
            state if state.is(SqlState::QUERY_CANCELED) && self.is_stopped() => {
                (STOPPED.into(), self.what_was_changed().into())
            }
            // Another user may have canceled the statement earlier.
            state if state.is(SqlState::QUERY_CANCELED) && self.started.elapsed() >= self.limit => (
                format!("one run takes longer than {} s", self.limit.as_secs_f64()),
                match self.limit < self.options.limit {
                    true => {
                        "this limit is the statement_timeout of this user or database, or of a SET before the statement"
                            .into()
                    }
                    false => "set a longer limit with --limit SECONDS".into(),
                },
            ),
            state if state.is(SqlState::NO_SUCH_STATEMENT) || state.is(SqlState::STATEMENT_EXISTS) => (
                what,
                "a connection pooler gives each transaction another session: connect to the server directly".into(),
            ),
            _ => (what, hint),
        };
        Error { what, hint, state }
    }
}
