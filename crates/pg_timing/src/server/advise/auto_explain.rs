//! `auto_explain.log_timing`: the server times every plan node of each sampled statement, even if it is not logged.

use super::advice::{Setting, advise_share, share};
use super::counts::Part;
use super::facts::{Events, Facts};
use super::{node_calls, statements};
use crate::human::count;
use crate::report::{Action, CoreShare, EventsAre, PeriodCalls, SettingAdvice};
use crate::server::planned::TimingCost;
use crate::server::settings::Server;

const NAME: &str = "auto_explain.log_timing";
const PART: &str = "tables";
/// InstrStartNode and InstrStopNode read the clock before and after each row of each node.
const READS: f64 = 2.0;
/// The smallest measured overhead of a call, as a share of its two reads: a CPU can read the clock while it waits for
/// memory. Depending on the query, a timed call took between a tenth (4 ns of 43 ns) and all of its two reads.
const MIN_SHARE: f64 = 0.1;

/// Statistics for a lower bound on calls: each started sequential scan is a call, and so is each changed row. Rows that
/// a scan has read do not count as calls, because the scan may filter most of them.
pub fn part(_: &Server) -> Option<Part> {
    let sql =
        "SELECT v.name, coalesce(v.n, 0)::text FROM (SELECT pg_catalog.sum(seq_scan + n_tup_upd + n_tup_del) AS asked,
            pg_catalog.sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS scanned FROM pg_catalog.pg_stat_user_tables) s,
        LATERAL (VALUES ('asked', asked), ('scanned', scanned)) v(name, n)";
    Some(Part { name: PART, sql: sql.into() })
}

/// Returns whether auto_explain times plans.
pub fn is_on(server: &Server) -> bool {
    server.is("auto_explain.log_analyze", "on")
        && server.is(NAME, "on")
        && !server.is("auto_explain.log_min_duration", "-1")
        && node_calls::sampled(server) > 0.0
}

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let server = &facts.server;
    let on = is_on(server);
    let node_calls = node_calls::report(facts);
    let busier = node_calls::busier(&node_calls);
    let setting = Setting {
        name: NAME,
        value: value(server),
        on,
        events: match &busier {
            Some(period) => estimated(period, node_calls::rate(server)),
            None => events(facts).unwrap_or_else(Events::unknown),
        },
        reads_per_event: READS,
        cost: &facts.clocks.node,
        why: why(facts),
        turn_on: format!("{NAME} = on"),
        turn_off: format!("{NAME} = off"),
    };
    let call_ns = TimingCost::of(&facts.clocks).map(|cost| cost.usual_clock_ns().high);
    let advice = match busier.and_then(|period| period.core_share) {
        Some(share) => {
            let rate = node_calls::rate(server);
            let share = CoreShare { low: share.low * rate, high: Some(share.high * rate) };
            let advice = advise_share(facts, setting, Some(share), call_ns);
            match advice.extrapolated {
                true => advice,
                false => SettingAdvice { summary: node_calls::answer(&node_calls, rate), ..advice },
            }
        }
        None => without_statistics(facts, setting, call_ns),
    };
    // If it is on without effect, or not loaded, no single line turns it on.
    let advice = match on || server.is(NAME, "off") {
        true => advice,
        false => SettingAdvice { line: None, undo: None, ..advice },
    };
    Some(match on && server.fast_timing() {
        true => SettingAdvice {
            core_share: None,
            advice: Action::Keep,
            summary: "pg_fast_timing times the nodes, which costs about as much as log_timing = off: leave it on"
                .into(),
            line: None,
            undo: None,
            ..advice
        },
        false => advice,
    })
}

/// Returns the advice from the lower bounds, with the reason why there is no better figure.
fn without_statistics(facts: &Facts, setting: Setting, call_ns: Option<f64>) -> SettingAdvice {
    let share = share(&setting.events, setting.cost);
    let advice = advise_share(facts, setting, share, call_ns);
    match (&facts.workload, advice.advice) {
        (Err(error), Action::Unknown) => {
            SettingAdvice { summary: format!("{}. {}", advice.summary, error.hint), ..advice }
        }
        _ => advice,
    }
}

/// Returns the estimated calls of the sampled statements.
fn estimated(period: &PeriodCalls, sample_rate: f64) -> Events {
    let per_s = Some(period.per_s.estimate * sample_rate);
    Events { per_s, are: EventsAre::Estimated, reads_low: 0.0, reads_high: None, unseen: None }
}

/// Returns the value, with the setting that makes it ineffective.
fn value(server: &Server) -> String {
    let Some(timing) = server.setting(NAME) else { return "not loaded".into() };
    let off = ["log_analyze off", "log_min_duration -1", "sample_rate 0"];
    let why = [
        server.is("auto_explain.log_analyze", "off"),
        server.is("auto_explain.log_min_duration", "-1"),
        node_calls::sampled(server) == 0.0,
    ];
    match off.iter().zip(why).find(|(_, is)| *is && timing == "on") {
        Some((why, _)) => format!("{timing} ({why})"),
        None => timing.into(),
    }
}

/// Returns a lower bound on the calls.
fn events(facts: &Facts) -> Result<Events, String> {
    // The higher of the two lower bounds counts. Without pg_monitor the first one contains only this user's statements.
    let bounds = [statements::growth(facts, "asked").map(|(asked, _)| asked), facts.counts.growth(PART, "asked")];
    let why = bounds[1].clone().err();
    let calls = bounds.into_iter().flatten().reduce(f64::max).ok_or(why.unwrap_or_default())?;
    let calls = calls * node_calls::sampled(&facts.server);
    let unknown = match &facts.workload {
        Err(error) => format!("the number of node calls is unknown: {}", error.what),
        Ok(_) => "the number of node calls is unknown: pg_stat_statements lost statements".into(),
    };
    Ok(facts.counted(calls, READS * MIN_SHARE, READS).or_more(unknown))
}

/// Returns the reason for the cost.
fn why(facts: &Facts) -> String {
    let mut why = "two reads of the clock for each call of each plan node, in every sampled statement (sample_rate), \
        because the duration is known only at the end. The calls follow from the planner's row counts for the statements \
        in pg_stat_statements; nothing is executed"
        .to_string();
    if facts.workload.is_err() {
        why += ". Without them, the statistics show only the calls for rows sent and rows changed";
    }
    if let (Ok(scanned), true) = (facts.counts.growth(PART, "scanned"), facts.window_s > 0.0) {
        let rows = count((scanned / facts.window_s) as u64);
        why += &format!(
            ". Scans in this database read {rows} rows per second, and each row that passes the filter is a call"
        );
    }
    if !facts.server.fast_timing() {
        why += ". With the extension pg_fast_timing it costs about as much as log_timing = off";
    }
    why
}
