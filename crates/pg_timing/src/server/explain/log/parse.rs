//! Reads the plans of an entry.

#[cfg(test)]
mod tests;

use super::auto_explain::announced;
use super::entry::{Content, Damage};
use super::evidence::{Command, Evidence};
use super::json_line;
use super::message::{AnnouncedPlan, Message};
use super::mixed::{Mixed, only_root};
use super::nesting::Nesting;
use super::signs::{has_part_of_plan, has_rest_of_plan};
use crate::server::explain::captured::{Found, Source, Unreadable, csv_record, each_plan};
use crate::server::explain::plan::Explained;
use std::sync::Arc;

/// A plan of a log, or why it cannot be read.
#[derive(Debug, PartialEq)]
pub struct Parsed {
    pub found: Result<Explained, Unusable>,
    /// the query's identifier, from the entry or from the plan
    pub query_id: Option<i64>,
    /// the host or pod that wrote the plan, if the entry itself names it
    pub host: Option<Arc<str>>,
    pub nesting: Nesting,
    /// the plan's own text, if it is needed
    pub source: Option<Source<String>>,
}

#[derive(Debug, PartialEq)]
pub enum Unusable {
    Unreadable(Unreadable),
    Damaged(Damage),
}

/// Passes the plans of an entry to `found`. Only a pasted text can have several. A plan can have several MB, so a text is
/// dropped as soon as it was read into another form.
pub fn each(content: Content, needs_source: bool, found: &mut dyn FnMut(Parsed)) {
    let missing = || parsed(Err(Unreadable::Missing), None, Nesting::default());
    match content {
        Content::Announced { ms, text, session, prefix, context } => {
            let nesting = Nesting::new(session, &context, Evidence::of_prefix(&prefix));
            let root = match only_root(&text) {
                Ok(root) => root,
                Err(Mixed) => return found(Parsed { nesting, ..damaged(Damage::Mixed) }),
            };
            let (plan, source) = announced(&text, root, needs_source);
            found(Parsed { source, ..parsed(plan.map(|plan| with_time(plan, ms)), None, nesting) });
        }
        Content::Csv(record) => {
            let message = csv_record::message(&record).map(Message::from);
            drop(record);
            found(message.and_then(|message| of_message(&message, needs_source)).unwrap_or_else(missing));
        }
        Content::Json(line) => {
            let message = json_line::message(&line);
            drop(line);
            found(match message {
                Ok(message) => of_message(&message, needs_source).unwrap_or_else(missing),
                Err(error) => parsed(Err(Unreadable::Json(error.to_string())), None, Nesting::default()),
            });
        }
        Content::Pasted(text) => pasted(&text, needs_source, &Nesting::default(), found),
        Content::WithoutTabs { text, session, prefix, context } => {
            pasted(&text, needs_source, &Nesting::new(session, &context, Evidence::of_prefix(&prefix)), found);
        }
        Content::Beginning(text) => beginning(&text, needs_source, found),
        Content::Rest(text) => rest(&text, needs_source, found),
        Content::Damaged(damage) => found(damaged(damage)),
        Content::Failed(_) => {}
    }
}

fn of_message(message: &Message, needs_source: bool) -> Option<Parsed> {
    let AnnouncedPlan { ms, text, nesting } = message.announced()?;
    let (plan, source) = announced(&text, None, needs_source);
    let host = message.host.as_deref().map(Arc::from);
    Some(Parsed { source, host, ..parsed(plan.map(|plan| with_time(plan, ms)), message.query_id, nesting) })
}

fn pasted(text: &str, needs_source: bool, nesting: &Nesting, found: &mut dyn FnMut(Parsed)) {
    each_plan(text, &mut |plan, source| {
        let source = source.filter(|_| needs_source).map(Source::to_owned);
        found(Parsed { source, ..parsed(plan, None, nesting.clone()) });
    });
}

fn damaged(damage: Damage) -> Parsed {
    Parsed {
        found: Err(Unusable::Damaged(damage)),
        query_id: None,
        host: None,
        nesting: Nesting::default(),
        source: None,
    }
}

/// Passes the plans at the beginning of a file on. If there is none, the text can be the rest of a plan.
fn beginning(text: &str, needs_source: bool, found: &mut dyn FnMut(Parsed)) {
    let mut has_plan = false;
    pasted(text, needs_source, &Nesting::default(), &mut |plan| {
        has_plan = true;
        found(plan);
    });
    if !has_plan && has_part_of_plan(text) {
        found(damaged(Damage::NoBeginning));
    }
}

/// Passes the plans on that are complete. If there is none, the text can be the rest of a plan.
fn rest(text: &str, needs_source: bool, found: &mut dyn FnMut(Parsed)) {
    let mut plans = Vec::new();
    pasted(text, needs_source, &Nesting::default(), &mut |plan| plans.push(plan));
    let has_plan = plans.iter().any(|plan| plan.found.is_ok());
    match !has_plan && has_rest_of_plan(text) {
        true => found(damaged(Damage::NoBeginning)),
        false => plans.into_iter().for_each(found),
    }
}

fn parsed(found: Found, query_id: Option<i64>, nesting: Nesting) -> Parsed {
    // The log's identifier is that of the client's command. A nested plan, and a plan that is logged during a later command,
    // such as BIND, are of another statement.
    let is_own = !matches!(nesting.evidence.command, Some(Command::WithoutPlan | Command::Fetch));
    let of_entry = query_id.filter(|_| !nesting.is_nested() && is_own);
    let query_id = found.as_ref().ok().and_then(|plan| plan.query_id).or(of_entry);
    Parsed { found: found.map_err(Unusable::Unreadable), query_id, host: None, nesting, source: None }
}

/// Returns the plan with the log's time, unless the plan has an Execution Time.
fn with_time(plan: Explained, ms: f64) -> Explained {
    Explained { execution_ms: plan.execution_ms.or(Some(ms)), ..plan }
}
