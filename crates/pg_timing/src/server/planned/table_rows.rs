//! Numbers of rows of the tables in plans, as the last VACUUM or ANALYZE estimated them.

use super::guesses::TableRows;
use super::planner_node::PlannerNode;
use crate::error::Error;
use crate::server::session::Session;

/// The tables that were read until now.
#[derive(Debug, Default)]
pub struct Tables(TableRows);

impl Tables {
    pub fn rows(&self) -> &TableRows {
        &self.0
    }

    /// Reads the numbers of rows of the tables in this plan.
    pub fn read(&mut self, session: &mut Session, root: &PlannerNode) -> Result<(), Error> {
        let mut names = Vec::new();
        collect(root, &mut names);
        names.retain(|name| !self.0.contains_key(name));
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(());
        }
        let literal = |text: &String| session.connection().literal(Some(text));
        let pairs = names.iter().map(|(schema, table)| Ok(format!("({}, {})", literal(schema)?, literal(table)?)));
        let values = pairs.collect::<Result<Vec<String>, Error>>()?.join(", ");
        let rows = session.query(&format!(
            "SELECT wanted.s, wanted.t, c.reltuples::text FROM (VALUES {values}) AS wanted (s, t)
             JOIN pg_catalog.pg_namespace n ON n.nspname = wanted.s
             JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.t"
        ))?;
        for row in rows.rows {
            let Ok([Some(schema), Some(table), Some(number)]) = <[Option<String>; 3]>::try_from(row) else { continue };
            // A table that was never analyzed has -1.
            if let Some(number) = number.parse().ok().filter(|number| (0.0..1e15).contains(number)) {
                self.0.insert((schema, table), number);
            }
        }
        Ok(())
    }
}

fn collect(node: &PlannerNode, names: &mut Vec<(String, String)>) {
    names.extend(node.schema.clone().zip(node.relation.clone()));
    node.plans.iter().for_each(|plan| collect(plan, names));
}
