//! `explain --top`: what timing would add to the statements that took most execution time.

use super::activity::Activity;
use super::entries::{Entries, Figures, Key};
use super::skipped::Skipped;
use super::statements::{Planned, plan_all};
use super::timing_cost::TimingCost;
use super::unrecorded::unrecorded;
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
    session.keep_quiet(|name| server.setting(name).is_some());
    Entries::check(&server)?;
    let entries = Entries::take(&mut session, &server)?;
    let clocks = Clocks::of(&mut session, &server, stop);
    let order = longest_first(&entries);
    let no_values = Activity::default();
    let outcomes = plan_all(&mut session, &server, &entries, &order, wanted, &no_values, &mut |planned| {
        progress(planned as f64 / wanted as f64)
    })?;
    let cost = TimingCost::of(&clocks);
    let is_timed = server.times_plans();
    let all_ms = entries.total().exec_ms;
    let mut skipped = Skipped::default();
    let mut statements = Vec::new();
    for (key, figures) in &order {
        match outcomes.get(key) {
            Some(Ok(planned)) => statements.push(statement(key, *figures, planned, is_timed, cost.as_ref())),
            Some(Err(reason)) => skipped.add(reason, if all_ms > 0.0 { figures.exec_ms / all_ms } else { 0.0 }),
            None => {}
        }
    }
    let lost_ms = |statement: &TopStatement| statement.calls * statement.added_ms.map_or(0.0, |added| added.estimate);
    statements.sort_by(|a, b| lost_ms(b).total_cmp(&lost_ms(a)));
    Ok(TopReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        unrecorded: unrecorded(&server).map(|error| format!("{}; {}", error.what, error.hint)),
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

fn statement(
    key: &Key,
    figures: Figures,
    planned: &Planned,
    is_timed: bool,
    cost: Option<&TimingCost>,
) -> TopStatement {
    let calls = planned.node_calls.calls;
    let mean_ms = figures.mean_ms();
    let added_ms = cost.map(|cost| calls.by(cost.clock_ns(&planned.node_calls)).times(MS_PER_NS));
    // All processes of a parallel plan read the clock at the same time.
    let added_ms =
        added_ms.map(|added| if is_timed { at_most(added, mean_ms * planned.node_calls.processes()) } else { added });
    TopStatement {
        query_id: key.query().unwrap_or_default().to_string(),
        statement: planned.text.clone(),
        calls: figures.calls,
        mean_ms,
        rows: figures.rows_per_call().unwrap_or(0.0),
        node_calls: calls,
        added_ms,
        added_share: added_ms.and_then(|added| added_share(added, mean_ms, planned.node_calls.processes(), is_timed)),
    }
}

/// Returns the added time as a fraction of the time of an execution with timing. `is_timed` means that the mean contains it.
fn added_share(added: Range, mean_ms: f64, processes: f64, is_timed: bool) -> Option<Range> {
    let share = |added: f64| {
        let added = added / processes;
        added / if is_timed { mean_ms.max(added) } else { mean_ms + added }
    };
    (mean_ms > 0.0).then(|| Range { low: share(added.low), estimate: share(added.estimate), high: share(added.high) })
}

fn at_most(range: Range, most: f64) -> Range {
    Range { low: range.low.min(most), estimate: range.estimate.min(most), high: range.high.min(most) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;
    use crate::report::{ReadCost, SkippedStatements};

    fn report() -> TopReport {
        let statement = |text: &str, calls, mean_ms, node_calls, added_ms| TopStatement {
            query_id: "-42".into(),
            statement: text.into(),
            calls,
            mean_ms,
            rows: 1.0,
            node_calls,
            added_ms,
            added_share: added_ms.and_then(|added: Range| added_share(added, mean_ms, 1.0, false)),
        };
        let long =
            "SELECT o_orderpriority, count(*)\n\tFROM orders WHERE o_orderdate >= $1 AND o_orderdate < $2 GROUP BY 1";
        TopReport {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            server_version: "18.6".into(),
            server: "shop at /run/postgresql:5432".into(),
            read: ReadCost {
                ns: Some(22.0),
                low_ns: Some(21.0),
                high_ns: Some(23.0),
                clock: "system".into(),
                how: "measured on this host, where the server runs".into(),
            },
            since_reset_s: 86_400.0 * 5.0,
            statements: vec![
                statement(long, 1234.0, 61.5, Range::between(2e4, 3e6), Some(Range::between(0.62, 171.0))),
                statement(
                    "SELECT '\u{1b}[2J'",
                    5e6,
                    0.04,
                    Range::between(2.0, 2.0),
                    Some(Range::between(6e-5, 6.1e-5)),
                ),
                statement("TABLE t", 7.0, 0.0, Range::between(1.0, 9.0), None),
            ],
            unrecorded: None,
            skipped: vec![
                SkippedStatements {
                    why: "the server refused to plan them".into(),
                    statements: 2,
                    time_share: 0.12,
                    example: Some("relation \"t\" does not exist".into()),
                },
                SkippedStatements {
                    why: "utility statements without plan nodes".into(),
                    statements: 1,
                    time_share: 0.001,
                    example: None,
                },
            ],
            interrupted: false,
        }
    }

    #[test]
    fn a_share_of_the_execution_time_is_at_most_all_of_it() {
        let added = Range { low: 1.0, estimate: 10.0, high: 90.0 };
        let share = added_share(added, 10.0, 1.0, false).unwrap();
        assert_eq!((share.estimate, share.high), (0.5, 0.9));
        // The mean contains the added time already, and so it cannot be longer.
        assert_eq!(added_share(added, 10.0, 1.0, true).unwrap().high, 1.0);
        // Three processes read the clock at the same time.
        assert_eq!(added_share(added, 10.0, 3.0, false).unwrap().high, 0.75);
        assert_eq!(added_share(added, 0.0, 1.0, false), None);
    }

    #[test]
    fn screen() {
        let text = render::text::top::text(&render::escape::report(&report()).unwrap());
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_page_escapes_statements() {
        let mut report = report();
        report.statements[0].statement = "SELECT 1 < 2 AS \"<b>\"".into();
        let page = render::html::top::html(&render::escape::report(&report).unwrap());
        assert!(page.contains("SELECT 1 &lt; 2 AS &quot;&lt;b&gt;&quot;") && !page.contains("\u{1b}"), "{page}");
    }

    #[test]
    fn the_report_matches_its_schema() {
        let schema = serde_json::from_str(include_str!("../../../../../docs/explain-top.schema.json")).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let json = serde_json::from_str(&render::json::json(&report())).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}
