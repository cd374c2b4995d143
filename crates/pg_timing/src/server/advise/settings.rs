//! The settings whose cost is known from events that the server counts, and `timing_clock_source`: how many events there are, how
//! often each of them reads the clock, and the advice.

use super::facts::{ACTIVITY, Events, FUNCTIONS, Facts, IO, OTHER_DATABASES, STATEMENTS, WAL};
use crate::error::{Error, require};
use crate::host::check::{is_about_tsc, tsc_slow_if};
use crate::human::{count, duration, percent_range};
use crate::report::{Action, CHEAP_SHARE, CoreShare, EventsAre, Report, SYSTEM, SettingAdvice, Severity, finding_id};
use crate::server::settings::{FAST_TIMING_METHOD, set_hint};

/// pgstat_prepare_io_time and pgstat_count_io_op_time, pgss_planner, pgstat_init_function_usage and its end, XLogWrite and
/// issue_xlog_fsync: one read before the event and one after it.
const READS: f64 = 2.0;
/// Since 18 the server also times a wait for a read that it has started (WaitReadBuffers in bufmgr.c).
const READS_WITH_WAIT: f64 = 4.0;
/// check_log_duration in postgres.c reads the clock once per message: one message in the simple protocol, three (parse,
/// bind, execute) in the extended one. The server always reads the clock at the start.
const READS_OF_LOG: (f64, f64) = (1.0, 3.0);
/// MAX_BUFFERS_TO_EXTEND_BY in hio.c: this many new blocks can be timed together, but each may be counted.
const EXTENDED_AT_ONCE: f64 = 64.0;
/// WRITEBACK_MAX_PENDING_FLUSHES in bufmgr.h: the same limit for writebacks.
const WRITTEN_BACK_AT_ONCE: f64 = 256.0;
/// Size of a block in bytes, also in temporary files.
const BLOCK: f64 = 8192.0;
/// Per second. A server with fewer transactions is idle. Fewer events in its window say nothing about a busy server.
const FEW_PER_S: f64 = 10.0;
const LONGER_WINDOW: &str = "a longer window narrows the range: pg_timing advise --window 60";
pub const WHILE_BUSY: &str = "run it while the server is busy: pg_timing advise --window 60";

/// Returns a setting without an advice. `lines` turn it on, and off.
pub fn setting(name: &str, value: impl Into<String>, on: bool, lines: [String; 2]) -> SettingAdvice {
    let [line, undo] = lines.map(Some);
    SettingAdvice { name: name.into(), value: value.into(), on, line, undo, ..SettingAdvice::default() }
}

/// Returns the setting with the advice that follows from its events. `event_ns`: the highest cost of an event.
pub fn advise(
    facts: &Facts,
    setting: SettingAdvice,
    events: Result<Events, Error>,
    event_ns: Option<f64>,
) -> SettingAdvice {
    let events = events.unwrap_or_else(|gap| Events { gap: Some(gap), ..Events::default() });
    let is_few = events.per_s.is_some_and(|per_s| per_s < FEW_PER_S);
    let is_idle = || transactions(facts).is_ok_and(|transactions| transactions < FEW_PER_S * facts.window_s);
    let gap = match &events.gap {
        _ if events.per_s.is_some() && events.share.is_none() => {
            Error::new("the read cost of the clock is unknown", "run pg_timing on the server's host")
        }
        Some(gap) => gap.clone(),
        None => Error::new("the window is too short, because backends report only once per second", LONGER_WINDOW),
    };
    let (share, result) = match events.share {
        Some(CoreShare { high: Some(_), .. }) if is_few && is_idle() => {
            (None, Err(Error::new("few events on this idle server", WHILE_BUSY)))
        }
        Some(share) => (Some(share), judge(setting.on, share, gap)),
        None => (None, Err(gap)),
    };
    conclude(setting, Events { share, ..events }, event_ns, result)
}

/// Returns the advice for a known share, or why it was not determined.
pub fn judge(on: bool, share: CoreShare, gap: Error) -> Result<(Action, String), Error> {
    let (is_cheap, is_expensive) = (share.high.is_some_and(|high| high <= CHEAP_SHARE), share.low > CHEAP_SHARE);
    let (action, text) = match (on, share.high) {
        (true, _) if is_cheap => (Action::Keep, "cheap: leave it on"),
        (false, _) if is_cheap => (Action::TurnOn, "cheap: it can be turned on"),
        (true, _) if is_expensive => (Action::TurnOff, "expensive: turn it off"),
        (false, _) if is_expensive => (Action::None, "expensive: leave it off"),
        (_, None) => return Err(gap),
        (_, high) => return Err(Error::new(format!("{} of a core", percent_range(share.low, high)), LONGER_WINDOW)),
    };
    Ok((action, text.into()))
}

/// Returns the setting with its events, its advice, and the line for the advice.
pub fn conclude(
    setting: SettingAdvice,
    events: Events,
    event_ns: Option<f64>,
    result: Result<(Action, String), Error>,
) -> SettingAdvice {
    let (advice, summary, hint) = match result {
        Ok((action, summary)) => (action, summary, None),
        Err(Error { what, hint, .. }) => {
            // The user can compare the limit with other figures.
            let limit = event_ns.filter(|ns| *ns > 0.0).map_or(String::new(), |ns| {
                format!("; {} per second would cost 1% of a core", count((CHEAP_SHARE * 1e9 / ns).round() as u64))
            });
            (Action::Unknown, format!("not determined: {what}{limit}"), Some(hint))
        }
    };
    let (line, undo) = match advice {
        Action::TurnOn => (setting.line, setting.undo),
        Action::TurnOff => (setting.undo, setting.line),
        _ => (None, None),
    };
    let events_are = match (events.per_s, &events.gap) {
        (None, _) => EventsAre::Unknown,
        (Some(_), None) => EventsAre::Counted,
        (Some(_), Some(_)) => EventsAre::AtLeast,
    };
    let (events_per_s, core_share) = (events.per_s, events.share);
    SettingAdvice { events_per_s, events_are, core_share, advice, summary, hint, line, undo, ..setting }
}

/// Returns the transactions of others. Each part of a snapshot is read in a transaction of our own.
fn transactions(facts: &Facts) -> Result<f64, Error> {
    Ok((facts.growth(ACTIVITY, "transactions")? - facts.before.0.len() as f64).max(0.0))
}

/// `track_io_timing`: the server times each read and write of blocks. Several blocks can be timed together, and 15 also counts new
/// blocks that it does not time.
pub fn track_io_timing(facts: &Facts) -> Option<SettingAdvice> {
    switch(facts, "track_io_timing", io_events(facts))
}

/// `track_wal_io_timing`: the server times each write and sync of WAL.
pub fn track_wal_io_timing(facts: &Facts) -> Option<SettingAdvice> {
    switch(facts, "track_wal_io_timing", pairs(facts, facts.growth(WAL, "operations")))
}

/// Returns events with two reads of the clock each.
fn pairs(facts: &Facts, events: Result<f64, Error>) -> Result<Events, Error> {
    events.and_then(|n| facts.counted(n, n * READS, n * READS, &facts.clocks.read))
}

/// Returns the advice about a setting that is on or off.
fn switch(facts: &Facts, name: &str, events: Result<Events, Error>) -> Option<SettingAdvice> {
    let value = facts.server.setting(name)?;
    let lines = ["on", "off"].map(|value| format!("{name} = {value}"));
    Some(timed(facts, setting(name, value, value == "on", lines), events))
}

/// Returns the advice about a setting whose events read the clock twice.
fn timed(facts: &Facts, setting: SettingAdvice, events: Result<Events, Error>) -> SettingAdvice {
    let event_ns = facts.clocks.read.high_ns.map(|ns| READS * ns);
    advise(facts, setting, events, event_ns)
}

/// Returns the reads and writes with bounds on their clock reads.
fn io_events(facts: &Facts) -> Result<Events, Error> {
    let cost = &facts.clocks.read;
    let io = |name: &str| facts.growth(IO, name);
    let temporary = facts.growth(ACTIVITY, "temp_bytes")? / BLOCK;
    let at_once = match facts.server.major {
        17 => (facts.server.number_in("io_combine_limit").unwrap_or(128.0) * 1024.0 / BLOCK).max(1.0),
        _ => 1.0,
    };
    // The number of each kind of event, and the least and the most clock reads per event.
    let kinds = match facts.server.major {
        15 => vec![(facts.growth(ACTIVITY, "blks_read")? + io("writes")?, READS, READS), (io("backend")?, 0.0, READS)],
        major => vec![
            (io("reads")?, READS / at_once, if major >= 18 { READS_WITH_WAIT } else { READS }),
            (io("writes")? + io("fsyncs")?, READS, READS),
            (io("extends")?, READS / EXTENDED_AT_ONCE, READS),
            (io("writebacks")?, READS / WRITTEN_BACK_AT_ONCE, READS),
        ],
    };
    let add = |sum: [f64; 3], (n, low, high)| [sum[0] + n, sum[1] + n * low, sum[2] + n * high];
    let [events, low, high] = kinds.into_iter().fold([0.0; 3], add);
    let events = facts.counted(events, low, high, cost);
    let hint = "more memory avoids these files: ALTER SYSTEM SET work_mem = '64MB'; then: SELECT pg_reload_conf()";
    let gap = || Error::new("blocks of temporary files are timed, but not counted", hint);
    Ok(events?.or_more((temporary > 0.0).then(gap)))
}

/// `track_functions`: the server times each function call.
pub fn track_functions(facts: &Facts) -> Option<SettingAdvice> {
    const NAME: &str = "track_functions";
    let value = facts.server.setting(NAME)?;
    let on = value != "none";
    let calls = match on {
        true => facts.growth(FUNCTIONS, "calls"),
        false => Err(Error::new("calls are counted only while track_functions is on", set_hint(NAME, "'pl'"))),
    };
    let others = (facts.server.role.databases > 1)
        .then(|| Error::new("only functions of this database are counted", OTHER_DATABASES));
    let lines = [format!("{NAME} = '{}'", if on { value } else { "pl" }), format!("{NAME} = 'none'")];
    let events = pairs(facts, calls).map(|events| events.or_more(others));
    Some(timed(facts, setting(NAME, value, on, lines), events))
}

/// `log_min_duration_statement` and similar settings: the server reads the clock at the end of each statement.
pub fn statement_log(facts: &Facts) -> Option<SettingAdvice> {
    const NAMES: [&str; 3] = ["log_min_duration_statement", "log_min_duration_sample", "log_duration"];
    let server = &facts.server;
    let is_on = |name: &&str| server.setting(name).is_some_and(|value| !["-1", "off"].contains(&value));
    let name = *NAMES.iter().find(|name| is_on(name)).unwrap_or(&NAMES[0]);
    let value = server.setting(name)?;
    // It is a timestamp, which comes from the system clock in every version.
    let cost = &facts.clocks.system;
    let counted = |n: f64, more| {
        facts.counted(n, n * READS_OF_LOG.0, n * READS_OF_LOG.1, cost).map(|events| events.or_more(more))
    };
    let events = match (growth(facts, "calls"), transactions(facts)) {
        (Ok((calls, more)), _) => counted(calls, more),
        // Each transaction has at least one statement.
        (Err(Error { what, hint, .. }), Ok(transactions)) => {
            counted(transactions, Some(Error::new(format!("only transactions are counted: {what}"), hint)))
        }
        (Err(_), Err(why)) => Err(why),
    };
    let on = is_on(&name);
    let turn_on = format!("{name} = '{}'", if on { value } else { "1s" });
    let turn_off = format!("{name} = {}", if name == "log_duration" { "off" } else { "-1" });
    let event_ns = cost.high_ns.map(|ns| READS_OF_LOG.0 * ns);
    Some(advise(facts, setting(name, value, on, [turn_on, turn_off]), events, event_ns))
}

/// `pg_stat_statements.track_planning`: the extension times each planning, and takes a lock for it. The lock costs far more if many
/// sessions run the same statement, so the setting is never advised.
pub fn track_planning(facts: &Facts) -> Option<SettingAdvice> {
    const NAME: &str = "pg_stat_statements.track_planning";
    let value = facts.server.setting(NAME)?;
    let on = value == "on" && !facts.server.is("pg_stat_statements.track", "none");
    // While it is off, only statements are counted. A prepared statement may not be planned each time.
    let (name, least) = if on { ("plans", READS) } else { ("calls", 0.0) };
    let cost = &facts.clocks.read;
    let counted =
        growth(facts, name).and_then(|(n, more)| Ok(facts.counted(n, n * least, n * READS, cost)?.or_more(more)));
    let advice = switch(facts, NAME, counted)?;
    Some(match advice.advice {
        Action::TurnOn => {
            let summary = "its clock reads would be cheap, but it also takes a lock for each statement".into();
            without_lines(SettingAdvice { advice: Action::None, summary, ..advice })
        }
        _ => SettingAdvice { on, ..advice },
    })
}

/// Returns the growth of a number of pg_stat_statements, and the reason why it may be a lower bound.
pub fn growth(facts: &Facts, name: &str) -> Result<(f64, Option<Error>), Error> {
    let server = &facts.server;
    let is_installed = server.extension_object("pg_stat_statements")?.is_some();
    let hint = match server.setting("pg_stat_statements.track") {
        Some(_) => "run in this database: CREATE EXTENSION pg_stat_statements",
        None => {
            "add pg_stat_statements to shared_preload_libraries, restart the server, and run: CREATE EXTENSION pg_stat_statements"
        }
    };
    require(is_installed, "the database has no pg_stat_statements", hint)?;
    for (setting, value, usual) in
        [("pg_stat_statements.track", "none", "'top'"), ("compute_query_id", "off", "'auto'")]
    {
        require(!server.is(setting, value), format!("{setting} is {value}"), set_hint(setting, usual))?;
    }
    let growth = facts.growth(STATEMENTS, name)?;
    const UTILITY: &str = "pg_stat_statements.track_utility";
    let more = require(
        facts.growth(STATEMENTS, "dealloc")? == 0.0,
        "pg_stat_statements removed statements during the window",
        "run: ALTER SYSTEM SET pg_stat_statements.max = 20000; then restart the server",
    )
    .and_then(|()| require(!server.is(UTILITY, "off"), format!("{UTILITY} is off"), set_hint(UTILITY, "on")));
    Ok((growth, more.err()))
}

/// `pg_fast_timing.method`: a cheaper method to time plan nodes, also for auto_explain.
pub fn fast_timing(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(FAST_TIMING_METHOD);
    let (advice, summary) = match (value, facts.server.times_plans()) {
        (Some("off"), true) => (Action::TurnOn, "makes auto_explain's timing cheap"),
        (Some("tsc"), _) => (Action::None, "the CPU's counter times each call; the method auto costs less"),
        (Some("off") | None, false) => (Action::None, "useful only if auto_explain times plans, which it does not"),
        (Some(_), _) => (Action::Keep, "it times plan nodes at low cost"),
        (None, true) => (
            Action::TurnOn,
            "makes auto_explain's timing cheap: install it, try LOAD 'pg_fast_timing' in a session, then append it to session_preload_libraries",
        ),
    };
    let lines = ["auto", "off"].map(|method| format!("{FAST_TIMING_METHOD} = '{method}'"));
    let advised = setting(FAST_TIMING_METHOD, value.unwrap_or("not loaded"), false, lines);
    let advised = conclude(advised, Events::default(), None, Ok((advice, summary.into())));
    // No line to paste: it would replace the present value, and without the library no session could start.
    Some(if value.is_some() { advised } else { without_lines(advised) })
}

pub fn without_lines(setting: SettingAdvice) -> SettingAdvice {
    SettingAdvice { line: None, undo: None, ..setting }
}

/// `timing_clock_source` (19): the system clock, or the CPU's counter. If the TSC is turned off, PostgreSQL reads the system clock.
pub fn clock_source(facts: &Facts) -> Option<SettingAdvice> {
    const NAME: &str = "timing_clock_source";
    let value = facts.server.setting(NAME)?;
    let here = facts.clocks.here.as_ref().ok_or("the host of the server is not visible");
    let result = here.and_then(|here| tsc_advice(here, facts.server.uses_tsc()));
    let result = result.map_err(|why| Error::new(why, "run it on the server's host: pg_timing"));
    // The server shows `auto (tsc)` for `auto`.
    let present = value.split(' ').next().unwrap_or(value);
    let is_off = matches!(result, Ok((Action::TurnOff, _)));
    let [on, off] = if is_off { [present, "system"] } else { ["tsc", present] };
    let lines = [on, off].map(|value| format!("{NAME} = '{value}'"));
    Some(conclude(setting(NAME, value, false, lines), Events::default(), None, result))
}

/// Returns the advice about the TSC of this host, or why there is none.
fn tsc_advice(here: &Report, uses_tsc: bool) -> Result<(Action, String), &'static str> {
    let ns = |name: &str| here.clock(name).and_then(|clock| clock.read_ns);
    let costs = ns(SYSTEM).zip(ns("rdtscp"));
    let compared = |text: &str| match costs.map(|(system, tsc)| (duration(system), duration(tsc))) {
        Some((system, tsc)) => format!("{text}: a read of the TSC takes {tsc}, one of the system clock {system}"),
        None => text.into(),
    };
    let is_slow = tsc_slow_if(here, Some(uses_tsc)).severity >= Severity::Warning;
    let is_faster = costs.is_some_and(|(system, tsc)| tsc < system);
    Ok(match (faults(here), here.tsc.usable) {
        (Some(why), _) => (if uses_tsc { Action::TurnOff } else { Action::None }, format!("do not use the TSC: {why}")),
        _ if is_slow => (Action::TurnOff, compared("the TSC is slower than the system clock")),
        (None, Some(true)) if uses_tsc => (Action::Keep, compared("the TSC can be trusted")),
        (None, Some(true)) if is_faster => (Action::TurnOn, compared("the TSC can be trusted")),
        (None, Some(true)) => (Action::None, "the TSC is not faster on this host".into()),
        (None, _) => return Err("the TSC was not measured"),
    })
}

/// Returns the faults of the host's TSC. Its cost is not a fault, and a drift can be that of another clock.
fn faults(here: &Report) -> Option<String> {
    let is_fault = |id: &str| is_about_tsc(id) && ![finding_id::TSC_SLOW, finding_id::DRIFT].contains(&id);
    let alarms = here.findings.iter().filter(|finding| finding.severity >= Severity::Warning && is_fault(&finding.id));
    let findings = alarms.map(|finding| finding.summary.clone());
    let all: Vec<String> = here.tsc.distrust.iter().cloned().chain(findings).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
