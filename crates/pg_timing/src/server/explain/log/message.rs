//! The message of a CSV or JSON log.

use super::evidence::Evidence;
use super::log_line_prefix::ProcessPlace;
use super::nesting::{Nesting, Session};
use super::server_line::{context, prefix};
use crate::server::explain::captured::announcement::announced_ms;
use crate::server::explain::captured::csv_record;
use crate::server::explain::captured::transport::continued;
use std::borrow::Cow;

/// A message, and what the other fields of its entry show.
#[derive(Debug, Default, PartialEq)]
pub struct Message {
    pub text: String,
    pub query_id: Option<i64>,
    /// the host or pod that wrote it, if the entry names it
    pub host: Option<String>,
    pub session: Session,
    /// what the server was executing; empty for a statement of the client
    pub context: String,
    pub evidence: Evidence,
}

/// A plan that a message announces.
pub struct AnnouncedPlan<'a> {
    pub ms: f64,
    pub text: Cow<'a, str>,
    pub nesting: Nesting,
}

/// A CSV log does not name its host, and nor does a message.
const NO_HOST: Option<&str> = None;

impl From<csv_record::Message> for Message {
    fn from(record: csv_record::Message) -> Message {
        let csv_record::Message { text, query_id, session, command, transaction, time, context, .. } = record;
        let session = session.map_or_else(Session::default, |session| Session::of(NO_HOST, &session));
        let evidence = Evidence::of_fields(command.as_deref(), transaction.as_deref(), time.as_deref());
        Message { text, query_id, host: None, session, context, evidence }
    }
}

impl Message {
    /// Returns the plan that the message announces. A collector may have joined the lines of a text log: then the message
    /// contains what the other fields do not have.
    pub fn announced(&self) -> Option<AnnouncedPlan<'_>> {
        let (first, text) = self.text.split_once('\n')?;
        let ms = announced_ms(first)?;
        // The lines of a text log keep their tabs. The context can follow.
        let (plan, after) = if continued(text).is_some() { before_context(text) } else { (text, "") };
        let has_tabs = plan.lines().all(|line| continued(line).is_some());
        let without_tabs = || plan.lines().filter_map(continued).collect::<Vec<_>>().join("\n");
        let text = if has_tabs { without_tabs().into() } else { plan.into() };
        Some(AnnouncedPlan { ms, text, nesting: self.nesting(first, after) })
    }

    /// Returns where the plan was executed. `first` and `after`: the lines of a text log before and after the plan.
    fn nesting(&self, first: &str, after: &str) -> Nesting {
        let session = match ProcessPlace::default().process(first) {
            Some(process) if !self.session.is_known() => Session::of(NO_HOST, process),
            _ => self.session,
        };
        let is_known = self.evidence != Evidence::default();
        let evidence = if is_known { self.evidence } else { Evidence::of_prefix(prefix(first)) };
        match self.context.is_empty() {
            true => Nesting::new(session, &context_of_lines(after), evidence),
            false => Nesting::new(session, &self.context, evidence),
        }
    }
}

fn context_of_lines(lines: &str) -> String {
    let of_line = |line| continued(line).or_else(|| context(line)).unwrap_or_default();
    lines.lines().map(of_line).collect::<Vec<_>>().join("\n")
}

/// Splits a text before the line with the entry's context.
fn before_context(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if continued(line).is_none() && context(line).is_some() {
            break;
        }
        at += line.len();
    }
    text.split_at(at)
}
