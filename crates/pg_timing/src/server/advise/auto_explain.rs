//! `auto_explain.log_timing`: every node of every sampled statement's plan is timed, logged or not.

use super::advice::{Setting, advise};
use super::counts::Part;
use super::facts::{Events, Facts};
use super::statements;
use crate::human::count;
use crate::report::{Action, SettingAdvice};
use crate::server::settings::Server;

const NAME: &str = "auto_explain.log_timing";
const PART: &str = "tables";
/// InstrStartNode and InstrStopNode, around each row of each node.
const READS: f64 = 2.0;
/// A CPU reads the clock while it waits for memory, say: a timed call was measured to take from a tenth
/// of two reads (4 ns where those take 43) to all of it, by query.
const OVERLAPPED: f64 = 0.1;

/// What a plan has to be asked for at least: each sequential scan is begun by one call, each row that
/// is changed comes out of one. Rows that a scan has read are no calls: most may have been filtered out.
pub fn part(_: &Server) -> Option<Part> {
    let sql =
        "SELECT v.name, coalesce(v.n, 0)::text FROM (SELECT pg_catalog.sum(seq_scan + n_tup_upd + n_tup_del) AS asked,
            pg_catalog.sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS scanned FROM pg_catalog.pg_stat_user_tables) s,
        LATERAL (VALUES ('asked', asked), ('scanned', scanned)) v(name, n)";
    Some(Part { name: PART, sql: sql.into() })
}

/// Times the plans of some statements.
pub fn is_on(server: &Server) -> bool {
    server.is("auto_explain.log_analyze", "on")
        && server.is(NAME, "on")
        && !server.is("auto_explain.log_min_duration", "-1")
        && sampled(server) > 0.0
}

/// The part of the statements that is timed.
fn sampled(server: &Server) -> f64 {
    server.number_in("auto_explain.sample_rate").unwrap_or(1.0)
}

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let server = &facts.server;
    let on = is_on(server);
    let advice = advise(
        facts,
        Setting {
            name: NAME,
            value: value(server),
            on,
            events: events(facts).unwrap_or_else(Events::unknown),
            reads_per_event: READS,
            cost: &facts.clocks.node,
            why: why(facts),
            turn_on: format!("{NAME} = on"),
            turn_off: format!("{NAME} = off"),
        },
    );
    Some(match on && server.fast_timing() {
        true => SettingAdvice {
            core_share: None,
            advice: Action::Keep,
            summary: "pg_fast_timing times the nodes, at about what log_timing = off costs: leave it on".into(),
            line: None,
            undo: None,
            ..advice
        },
        false => advice,
    })
}

fn value(server: &Server) -> String {
    let Some(timing) = server.setting(NAME) else { return "not loaded".into() };
    let off = ["log_analyze off", "log_min_duration -1", "sample_rate 0"];
    let why = [
        server.is("auto_explain.log_analyze", "off"),
        server.is("auto_explain.log_min_duration", "-1"),
        sampled(server) == 0.0,
    ];
    match off.iter().zip(why).find(|(_, is)| *is && timing == "on") {
        Some((why, _)) => format!("{timing} ({why})"),
        None => timing.into(),
    }
}

fn events(facts: &Facts) -> Result<Events, String> {
    // Two bounds from below: the higher one. Without pg_monitor the first knows only our own statements.
    let seen = [statements::grew(facts, "asked").map(|(asked, _)| asked), facts.counts.grew(PART, "asked")];
    let why = seen[1].clone().err();
    let calls = seen.into_iter().flatten().reduce(f64::max).ok_or(why.unwrap_or_default())?;
    let calls = calls * sampled(&facts.server);
    Ok(facts
        .counted(calls, READS * OVERLAPPED, READS)
        .or_more("a row counts once in each node that it passes, which no statistics show"))
}

fn why(facts: &Facts) -> String {
    let mut why = "two reads of the clock for each row of each plan node, of every sampled statement (sample_rate), \
        for log_min_duration is known only at its end. Seen are only the calls that rows sent and rows changed need, \
        of statements that clients send"
        .to_string();
    if facts.server.is("auto_explain.log_nested_statements", "off") {
        why += " (what functions change is taken for theirs, and not timed as long as log_nested_statements is off)";
    }
    if let (Ok(scanned), true) = (facts.counts.grew(PART, "scanned"), facts.window_s > 0.0) {
        let each = count((scanned / facts.window_s) as u64);
        why += &format!("; this database's scans read {each} rows a second, and each that is passed on is a call");
    }
    if !facts.server.fast_timing() {
        why += ". With the extension pg_fast_timing it costs about what log_timing = off does";
    }
    why
}
