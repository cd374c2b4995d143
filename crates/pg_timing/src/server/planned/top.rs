//! `explain --top`: what timing would add to the statements that took most execution time.

use super::entries::{Entries, Figures, Key};
use super::skipped::Skipped;
use super::statements::{Planned, plan_all};
use super::timing_cost::TimingCost;
use crate::error::Error;
use crate::report::{MS_PER_NS, Range, TopReport, TopStatement};
use crate::server::clock::Clocks;
use crate::server::connection::Connection;
use crate::server::session::Session;
use crate::server::settings::Server;
use std::sync::atomic::AtomicBool;

/// Plans the `wanted` statements that took most execution time. `progress` receives the completed fraction, 0 to 1.
pub fn top(
    connection: &mut Connection,
    wanted: usize,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<TopReport, Error> {
    let mut session = Session::new(connection, stop);
    let server = Server::of(&mut session)?;
    session.keep_quiet(&server);
    Entries::check(&server)?;
    let entries = Entries::take(&mut session, &server)?;
    let clocks = Clocks::of(&mut session, &server, stop);
    let order = longest_first(&entries);
    let outcomes = plan_all(&mut session, &server, &entries, &order, wanted, &mut |planned| {
        progress(planned as f64 / wanted as f64)
    })?;
    let cost = TimingCost::of(&clocks);
    let all_ms = entries.total().exec_ms;
    let mut skipped = Skipped::default();
    let mut statements = Vec::new();
    for (key, figures) in &order {
        match outcomes.get(key) {
            Some(Ok(planned)) => statements.push(statement(key, *figures, planned, cost.as_ref())),
            Some(Err(reason)) => skipped.add(reason, if all_ms > 0.0 { figures.exec_ms / all_ms } else { 0.0 }),
            None => {}
        }
    }
    let lost_ms = |statement: &TopStatement| statement.calls * statement.added_ms.map_or(0.0, |added| added.estimate);
    statements.sort_by(|a, b| lost_ms(b).total_cmp(&lost_ms(a)));
    Ok(TopReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        server_version: server.version,
        server: server.name,
        read: clocks.node,
        since_reset_s: entries.age_s,
        statements,
        skipped: skipped.into_list(),
        interrupted: session.is_stopped(),
    })
}

fn longest_first(entries: &Entries) -> Vec<(Key, Figures)> {
    let mut order: Vec<(Key, Figures)> = entries.figures.iter().map(|(key, figures)| (*key, *figures)).collect();
    order.sort_by(|(_, a), (_, b)| b.exec_ms.total_cmp(&a.exec_ms));
    order
}

fn statement(key: &Key, figures: Figures, planned: &Planned, cost: Option<&TimingCost>) -> TopStatement {
    let calls = planned.node_calls.calls;
    let added_ms = |cost: &TimingCost| {
        let ns = cost.clock_ns(&planned.node_calls);
        let product =
            Range { low: calls.low * ns.low, estimate: calls.estimate * ns.estimate, high: calls.high * ns.high };
        product.times(MS_PER_NS)
    };
    TopStatement {
        query_id: key.query().unwrap_or_default().to_string(),
        statement: planned.text.clone(),
        calls: figures.calls,
        mean_ms: figures.mean_ms(),
        rows: figures.rows_per_call().unwrap_or(0.0),
        node_calls: calls,
        added_ms: cost.map(added_ms),
    }
}
