//! Plans the statements of pg_stat_statements that took most execution time.

use super::activity::Activity;
use super::entries::{Entries, Figures, Key, texts};
use super::explain::plan;
use super::node_calls::NodeCalls;
use super::skipped::Reason;
use super::table_rows::Tables;
use super::trust::Trust;
use crate::error::Error;
use crate::server::session::Session;
use crate::server::settings::Server;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Planning takes about a millisecond per statement.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Statements whose texts are read at once.
const BATCH: usize = 100;

/// A planned statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub text: String,
    pub node_calls: NodeCalls,
}

/// What is known about a statement's plan.
pub type Outcome = Result<Planned, Reason>;

/// Plans the entries in this order until `wanted` are planned. The outcome of the others is missing. `activity` has the
/// constants of some statements. `progress` receives the number of planned statements.
pub fn plan_all(
    session: &mut Session,
    server: &Server,
    entries: &Entries,
    order: &[(Key, Figures)],
    wanted: usize,
    activity: &Activity,
    progress: &mut dyn FnMut(usize),
) -> Result<BTreeMap<Key, Outcome>, Error> {
    let start = Instant::now();
    let trust = Trust::of(session)?;
    let mut tables = Tables::default();
    let mut outcomes = BTreeMap::new();
    let mut planned = 0;
    for batch in order.chunks(BATCH) {
        if planned >= wanted {
            break;
        }
        let keys: Vec<Key> = batch.iter().map(|(key, _)| *key).collect();
        let texts = texts(session, server, &keys)?;
        for (key, figures) in batch {
            if planned >= wanted || session.is_stopped() {
                break;
            }
            let outcome = match (key.query(), texts.get(key)) {
                (None, _) => Err(Reason::Hidden),
                _ if key.database() != entries.database => Err(Reason::OtherDatabase),
                (_, None) => Err(Reason::NoText),
                _ if start.elapsed() > TIME_LIMIT => Err(Reason::TimeOver),
                (_, Some(text)) => match plan(session, server, text, trust.includes(key.user()))? {
                    Ok(root) => {
                        tables.read(session, &root)?;
                        let seen = key.query().and_then(|query| activity.text(query, key.user()));
                        let with_values = match seen.filter(|_| NodeCalls::depend_on_values(&root)) {
                            // The same role has executed it.
                            Some(seen) => plan(session, server, seen, trust.includes(key.user()))?.ok(),
                            None => None,
                        };
                        let node_calls = match with_values {
                            Some(with_values) => NodeCalls::with_values(with_values, *figures, tables.rows()),
                            None => NodeCalls::of(root, *figures, tables.rows()),
                        };
                        Ok(Planned { text: text.clone(), node_calls })
                    }
                    Err(reason) => Err(reason),
                },
            };
            planned += usize::from(outcome.is_ok());
            outcomes.insert(*key, outcome);
            progress(planned);
        }
    }
    Ok(outcomes)
}
