//! `auto_explain.log_timing`: the server times every plan node of each sampled statement, even if it is not logged.

use super::advice::{Setting, advise_share, share};
use super::counts::Part;
use super::facts::{Events, Facts};
use super::gap::{self, Gap};
use super::node_calls::{Figures, LogTiming};
use super::{counted_calls, node_calls, statements};
use crate::human::count;
use crate::report::{Action, CoreShare, EventsAre, LogTimingAnswer, NodeCallsReport, SettingAdvice};
use crate::server::own_sql;
use crate::server::settings::Server;

const NAME: &str = "auto_explain.log_timing";
const SAMPLE_RATE: &str = "auto_explain.sample_rate";
const PART: &str = "tables";
/// InstrStartNode and InstrStopNode read the clock before and after each row of each node.
const READS: f64 = 2.0;
/// The smallest measured overhead of a call, as a share of its two reads: a CPU can read the clock while it waits for
/// memory. Depending on the query, a timed call took between a tenth (4 ns of 43 ns) and all of its two reads.
const MIN_SHARE: f64 = 0.1;

/// Statistics for a lower bound on calls: each started sequential scan is a call, and so is each changed row. Rows that
/// a scan has read do not count as calls, because the scan may filter most of them.
pub fn part(_: &Server) -> Option<Part> {
    Some(Part { name: PART, sql: own_sql::TABLES.into() })
}

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let server = &facts.server;
    let on = server.times_plans();
    let log_timing = LogTiming::of(facts);
    let setting = Setting {
        name: NAME,
        value: value(server),
        on,
        events: match log_timing.figures {
            Some(figures) => events_of(figures),
            None => events(facts, &log_timing.report).unwrap_or_else(Events::unknown),
        },
        reads_per_event: READS,
        cost: &facts.clocks.node,
        why: why(facts, log_timing.report.window.is_some()),
        turn_on: format!("{NAME} = on"),
        turn_off: format!("{NAME} = off"),
    };
    if on && server.fast_timing() {
        let summary = "pg_fast_timing times the nodes, which costs about as much as log_timing = off: leave it on";
        return Some(SettingAdvice { line: None, undo: None, ..setting.advice(None, None, Action::Keep, summary) });
    }
    let advice = match log_timing.figures {
        Some(figures) => from_figures(facts, &log_timing, figures, setting),
        None => without_figures(facts, setting),
    };
    // If it is on without effect, or not loaded, no single line turns it on.
    Some(match on || server.is(NAME, "off") {
        true => advice,
        false => SettingAdvice { line: None, undo: None, ..advice },
    })
}

/// Returns the report about node calls, with the same answer as the setting.
pub fn node_calls(facts: &Facts) -> NodeCallsReport {
    let report = LogTiming::of(facts).report;
    let answer = match setting(facts).map(|setting| setting.advice) {
        Some(Action::Keep | Action::TurnOn) => LogTimingAnswer::Yes,
        Some(Action::TurnOff | Action::None) => LogTimingAnswer::No,
        Some(Action::SampleLess) => LogTimingAnswer::WithSampleRate,
        Some(Action::Unknown) | None => LogTimingAnswer::Unknown,
    };
    NodeCallsReport { answer, ..report }
}

/// Returns the advice from the counted calls.
fn from_figures(facts: &Facts, log_timing: &LogTiming, figures: Figures, setting: Setting) -> SettingAdvice {
    let (on, report) = (setting.on, &log_timing.report);
    let action = match report.answer {
        LogTimingAnswer::Yes if on => Action::Keep,
        LogTimingAnswer::Yes => Action::TurnOn,
        LogTimingAnswer::No if on => Action::TurnOff,
        LogTimingAnswer::No => Action::None,
        LogTimingAnswer::WithSampleRate if report.sample_rate.is_some() => Action::SampleLess,
        LogTimingAnswer::WithSampleRate | LogTimingAnswer::Unknown => Action::Unknown,
    };
    let is_doubtful = report.doubt.is_some();
    // With a doubt, the figures do not contain all calls.
    let share = CoreShare { low: figures.share.low, high: (!is_doubtful).then_some(figures.share.high) };
    let share = Some(share).filter(|share| !is_doubtful || share.low > 0.0);
    let advice = setting.advice(share, node_calls::limit_per_s(facts), action, &log_timing.summary());
    let advice = SettingAdvice { hint: report.hint.clone(), ..advice };
    match (report.sample_rate, action, on) {
        (Some(rate), Action::SampleLess, true) => SettingAdvice {
            line: Some(format!("{SAMPLE_RATE} = {}", node_calls::decimal(rate))),
            undo: facts.server.setting(SAMPLE_RATE).map(|rate| format!("{SAMPLE_RATE} = {rate}")),
            ..advice
        },
        _ => advice,
    }
}

/// Returns the advice from the lower bounds, with the reason why there is no better figure.
fn without_figures(facts: &Facts, setting: Setting) -> SettingAdvice {
    let share = share(&setting.events, setting.cost);
    let call_ns = counted_calls::call_ns(&facts.clocks).map(|ns| ns.high);
    advise_share(facts, setting, share, call_ns)
}

/// Returns the calls of the sampled statements.
fn events_of(figures: Figures) -> Events {
    Events { per_s: Some(figures.per_s), are: EventsAre::Counted, ..Events::NONE }
}

/// Returns the value, with the setting that makes it ineffective.
fn value(server: &Server) -> String {
    let Some(timing) = server.setting(NAME) else { return "not loaded".into() };
    let off = ["log_analyze off", "log_min_duration -1", "sample_rate 0"];
    let why = [
        server.is("auto_explain.log_analyze", "off"),
        server.is("auto_explain.log_min_duration", "-1"),
        server.sampled_plans() == 0.0,
    ];
    match off.iter().zip(why).find(|(_, is)| *is && timing == "on") {
        Some((why, _)) => format!("{timing} ({why})"),
        None => timing.into(),
    }
}

/// Returns a lower bound on the calls, with the reason why they are not counted.
fn events(facts: &Facts, report: &NodeCallsReport) -> Result<Events, Gap> {
    // The higher of the two lower bounds counts. Without pg_monitor the first one contains only this user's statements.
    let bounds = [statements::growth(facts, "asked").map(|(asked, _)| asked), facts.counts.growth(PART, "asked")];
    let gap = bounds[1].clone().err();
    let calls = bounds.into_iter().flatten().reduce(f64::max);
    let calls = calls.ok_or_else(|| gap.unwrap_or_else(|| Gap::new("not counted", gap::RUN_AGAIN)))?;
    let calls = calls * facts.server.sampled_plans();
    let why = report.unavailable.as_deref().unwrap_or_default();
    let gap = Gap::new(format!("the number of node calls is unknown: {why}"), report.hint.clone().unwrap_or_default());
    Ok(facts.counted(calls, READS * MIN_SHARE, READS).or_more(gap))
}

/// Returns the reason for the cost. `is_counted` is true if pg_fast_timing has counted the calls.
fn why(facts: &Facts, is_counted: bool) -> String {
    let mut why = "two reads of the clock for each call of each plan node, in every sampled statement (sample_rate), \
        because the duration is known only at the end"
        .to_string();
    why += match is_counted {
        true => ". pg_fast_timing has counted the calls",
        false => ". The server's statistics show only the calls for rows sent and rows changed",
    };
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
