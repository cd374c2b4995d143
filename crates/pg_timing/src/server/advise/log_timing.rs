//! `auto_explain.log_timing`: the server times every plan node of each sampled statement, even if it is not logged.
//!
//! pg_fast_timing counts the calls of plan nodes. The server's own statistics have only a lower bound: a plan that reads a million
//! rows can need two calls or a billion (`docs/measuring.md`).

use super::advice::{CHEAP, Setting, advise_events};
use super::facts::{Events, Facts, Gap, NEEDS_MONITOR, Part, RUN_AGAIN};
use super::{statements, verdict};
use crate::human::{count, percent, percent_range};
use crate::report::{
    Action, CallCost, ClockReport, CoreShare, LogTimingAnswer, NodeCallsReport, PeriodCalls, Range, SettingAdvice,
};
use crate::server::clock::Clocks;
use crate::server::own_sql;
use crate::server::settings::{COUNT_CALLS, FAST_TIMING_METHOD, Server, set_hint};

const NAME: &str = "auto_explain.log_timing";
const SAMPLE_RATE: &str = "auto_explain.sample_rate";
const TABLES: &str = "tables";
const COUNTERS: &str = "pg_fast_timing";
/// InstrStartNode and InstrStopNode read the clock before and after each row of each node.
const READS: f64 = 2.0;
/// The smallest measured overhead of a call, as a share of its two reads: a CPU can read the clock while it waits for
/// memory. Depending on the query, a timed call took between a tenth (4 ns of 43 ns) and all of its two reads.
const MIN_SHARE: f64 = 0.1;
/// If roles or databases have values of their own for these settings, some sessions may not be counted.
const OTHER_SETTINGS: [&str; 4] =
    ["pg_fast_timing.", "auto_explain.", "session_preload_libraries", "local_preload_libraries"];
/// The counter and pg_stat_statements are read one after the other, so they contain different statements at both ends of the
/// window.
const TOLERANCE: f64 = 0.05;
/// What decides if the calls are not counted.
const EXPERIMENT: &str = "add pg_fast_timing to shared_preload_libraries, set pg_fast_timing.count_calls = 'top', restart the \
    server, and run: CREATE EXTENSION pg_fast_timing; or measure the most frequent statements: pg_timing explain -c SQL";
const WHILE_BUSY: &str = "run it while the server is busy: pg_timing advise --window 60";
/// Below this rate, auto_explain times too few statements to be useful.
const LEAST_SAMPLE_RATE: f64 = 0.0001;
/// Node calls per second. A server with fewer is idle, and its window says nothing about a busy one.
const FEW_PER_S: f64 = 10.0;
/// The longest window that --window accepts, in s.
const LONGEST_WINDOW_S: f64 = 86_400.0;
const SECONDS_PER_NS: f64 = 1e-9;

/// Returns the statistics of calls: scans and changed rows, and pg_fast_timing's counters.
pub fn parts(server: &Server) -> impl Iterator<Item = Part> {
    let counters = server.extension_object("pg_fast_timing_info").map(|function| own_sql::counted_calls(&function));
    let tables = Part { name: TABLES, sql: own_sql::TABLES.into() };
    counters.map(|sql| Part { name: COUNTERS, sql }).into_iter().chain([tables])
}

/// Returns the advice about the setting.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    Some(judge(facts).0)
}

/// Returns the report about node calls, with the same answer.
pub fn node_calls(facts: &Facts) -> NodeCallsReport {
    judge(facts).1
}

fn judge(facts: &Facts) -> (SettingAdvice, NodeCallsReport) {
    let server = &facts.server;
    let on = server.times_plans();
    let counted = counted_per_s(facts);
    let setting = Setting {
        name: NAME,
        value: value(server),
        on,
        events: match &counted {
            Ok(per_s) => Events { per_s: Some(per_s * rate(server)), ..Events::default() },
            Err(gap) => lower_bound(facts, gap).unwrap_or_else(Events::unknown),
        },
        reads_per_event: READS,
        cost: &facts.clocks.node,
        why: why(facts, counted.is_ok()),
        turn_on: format!("{NAME} = on"),
        turn_off: format!("{NAME} = off"),
    };
    let window = counted.as_ref().ok().map(|per_s| period(facts, *per_s));
    let (unavailable, hint) = counted.err().map(|gap| (gap.why, gap.hint)).unzip();
    let report = NodeCallsReport { window, unavailable, hint, ..NodeCallsReport::default() };
    let (advice, report) = match window.and_then(|window| Some((window, window.needed_cores?))) {
        _ if on && server.fast_timing() => {
            let summary = "pg_fast_timing times the nodes, which costs about as much as log_timing = off: leave it on";
            (setting.advice(None, None, Action::Keep, summary.into()), report)
        }
        Some((window, needed)) => from_counts(facts, setting, report, window.per_s.low, needed),
        None => (advise_events(facts, setting, call_ns(&facts.clocks).map(|ns| ns.high)), report),
    };
    let answer = match advice.advice {
        Action::Keep | Action::TurnOn => LogTimingAnswer::Yes,
        Action::TurnOff | Action::None => LogTimingAnswer::No,
        Action::SampleLess => LogTimingAnswer::WithSampleRate,
        Action::Unknown => LogTimingAnswer::Unknown,
    };
    // If it is on without effect, or not loaded, no single line turns it on.
    let has_lines = on || server.is(NAME, "off");
    let advice = if has_lines { advice } else { SettingAdvice { line: None, undo: None, ..advice } };
    (advice, NodeCallsReport { answer, ..report })
}

/// Returns the advice from exact counts. `needed` is the number of cores for the clock reads of `per_s` calls.
fn from_counts(
    facts: &Facts,
    setting: Setting,
    report: NodeCallsReport,
    per_s: f64,
    needed: Range,
) -> (SettingAdvice, NodeCallsReport) {
    let rate = rate(&facts.server);
    let share = share(facts, needed.times(rate));
    let doubt = doubt(facts, per_s);
    let is_at_least = doubt.as_ref().is_some_and(|doubt| doubt.hides_calls);
    // A certain cost is a no, whatever else is unknown.
    let doubt = doubt.filter(|_| share.low <= CHEAP);
    // No rate is known to be low enough for calls that are not in the figures.
    let sample_rate = sample_rate(needed.high).filter(|_| !is_at_least);
    let calls = count((per_s * rate).round() as u64);
    let cost = format!("{calls} node calls per second take {} of a core", percent_range(share.low, Some(share.high)));
    let with_rate = match sample_rate {
        Some(rate) => format!("with {SAMPLE_RATE} = {} at most 1%", decimal(rate)),
        None => "also with the lowest useful sample_rate".into(),
    };
    let no = if setting.on { Action::TurnOff } else { Action::None };
    let yes = if setting.on { Action::Keep } else { Action::TurnOn };
    let (action, summary) = match &doubt {
        Some(doubt) => (Action::Unknown, format!("not determined: {}", doubt.why)),
        None if is_at_least => {
            let share = percent(share.low);
            (no, format!("no: at least {calls} node calls per second take at least {share} of a core"))
        }
        None if share.low > CHEAP => (no, format!("no: {cost}; {with_rate}")),
        None if share.high <= CHEAP => (yes, format!("yes: {cost}")),
        None => {
            let action = if sample_rate.is_some() { Action::SampleLess } else { Action::Unknown };
            (action, format!("no, or only with a lower sample_rate: {cost}; {with_rate}"))
        }
    };
    let hides_all = doubt.is_some() && share.low <= 0.0;
    let shown = CoreShare { low: share.low, high: (!is_at_least && doubt.is_none()).then_some(share.high) };
    let (why, hint) = doubt.map(|doubt| (doubt.why, doubt.hint)).unzip();
    let on = setting.on;
    let advice = setting.advice(Some(shown).filter(|_| !hides_all), limit_per_s(facts), action, summary);
    let advice = SettingAdvice { hint: hint.clone(), ..advice };
    let advice = match (sample_rate, action, on) {
        (Some(rate), Action::SampleLess, true) => SettingAdvice {
            line: Some(format!("{SAMPLE_RATE} = {}", decimal(rate))),
            undo: facts.server.setting(SAMPLE_RATE).map(|rate| format!("{SAMPLE_RATE} = {rate}")),
            ..advice
        },
        _ => advice,
    };
    (advice, NodeCallsReport { doubt: why, hint, sample_rate, ..report })
}

/// Why the counted calls do not give an answer.
struct Doubt {
    why: String,
    hint: String,
    /// there can be calls that are not counted
    hides_calls: bool,
}

/// Returns the most important reason why the count says too little.
fn doubt(facts: &Facts, per_s: f64) -> Option<Doubt> {
    let sessions = verdict::sessions(&facts.counts);
    let (why, hint, hides_calls) = if sessions.running_s > facts.window_s / 2.0 {
        let seconds = sessions.running_s;
        // So long that a statement of the same length is likely to begin and end in it.
        let window = (2.0 * seconds).ceil().clamp(60.0, LONGEST_WINDOW_S);
        let hint = format!("use a window in which the statement ends: pg_timing advise --window {window:.0}");
        (format!("a statement has been running for {seconds:.0} s. It is counted only at its end"), hint, true)
    } else if sessions.has_hidden {
        ("other users may run long statements, which this user may not see".into(), NEEDS_MONITOR.into(), true)
    } else if per_s == 0.0 {
        ("nothing ran".into(), WHILE_BUSY.into(), false)
    } else if per_s < FEW_PER_S {
        (format!("almost nothing ran ({per_s:.1} node calls per second)"), WHILE_BUSY.into(), false)
    } else {
        return None;
    };
    let limit = limit_per_s(facts).map_or(String::new(), |limit| {
        format!("; {} node calls per second would cost 1% of a core", count(limit.round() as u64))
    });
    Some(Doubt { why: why + &limit, hint, hides_calls })
}

/// Returns a lower bound on the calls, with the reason why they are not counted. Each started sequential scan is a call, and so is
/// each changed row. Rows that a scan has read do not count as calls, because the scan may filter most of them.
fn lower_bound(facts: &Facts, counted: &Gap) -> Result<Events, Gap> {
    // The higher of the two lower bounds counts. Without pg_monitor the first one contains only this user's statements.
    let of_tables = facts.counts.growth(TABLES, "asked");
    let bounds = [statements::growth(facts, "asked").map(|(asked, _)| asked), of_tables.clone()];
    let Some(calls) = bounds.into_iter().flatten().reduce(f64::max) else {
        return Err(of_tables.err().unwrap_or_else(|| Gap::new("not counted", RUN_AGAIN)));
    };
    let calls = calls * facts.server.sampled_plans();
    let gap = Gap::new(format!("the number of node calls is unknown: {}", counted.why), counted.hint.clone());
    Ok(facts.counted(calls, READS * MIN_SHARE, READS).or_more(Some(gap)))
}

/// Returns the node calls per second that auto_explain.log_timing times, or would time, with a sample_rate of 1. Returns a gap if
/// pg_fast_timing does not count exactly these.
fn counted_per_s(facts: &Facts) -> Result<f64, Gap> {
    check_settings(&facts.server)?;
    if facts.counts.level(COUNTERS, "of_server")? == 0.0 {
        return Err(Gap::new("pg_fast_timing is not in shared_preload_libraries", EXPERIMENT));
    }
    let (calls, failed) = (facts.counts.growth(COUNTERS, "node_calls")?, facts.counts.growth(COUNTERS, "failed")?);
    let per_s = facts.per_s(calls)?;
    if failed > 0.0 {
        let why = format!("pg_fast_timing did not count {failed} statements, because the server timed them");
        return Err(Gap::new(why, set_hint(FAST_TIMING_METHOD, "'auto'")));
    }
    // Sessions can change the settings for themselves, which no catalog shows. Then the count is lower than this bound.
    let asked = statements::growth(facts, "asked").map_or(0.0, |(asked, _)| asked);
    if calls < asked * (1.0 - TOLERANCE) {
        let why = "pg_fast_timing counted fewer calls than the statements needed for their rows: some sessions are not counted";
        return Err(Gap::new(why, EXPERIMENT));
    }
    Ok(per_s)
}

/// Returns a gap if pg_fast_timing does not count the statements that log_timing times. It counts those that have instrumentation,
/// and those of its setting.
fn check_settings(server: &Server) -> Result<(), Gap> {
    let Some(count_calls) = server.setting(COUNT_CALLS) else {
        return Err(Gap::new("pg_fast_timing is not loaded", EXPERIMENT));
    };
    if server.extension_object("pg_fast_timing_info").is_none() {
        return Err(match server.unsafe_object("pg_fast_timing_info") {
            Some(error) => Gap::new(error.what, error.hint),
            None => Gap::new(
                "this database does not have the extension pg_fast_timing",
                "run in this database: CREATE EXTENSION pg_fast_timing",
            ),
        });
    }
    let is_relevant = |setting: &&String| OTHER_SETTINGS.iter().any(|name| setting.starts_with(name));
    if let Some(setting) = server.other_settings.iter().find(is_relevant) {
        return Err(Gap::new(
            format!("sessions override {setting}, so pg_fast_timing may not count their statements"),
            "remove this setting from the role or database: ALTER ROLE ... RESET, or ALTER DATABASE ... RESET",
        ));
    }
    if server.is(FAST_TIMING_METHOD, "off") {
        let why = format!("{FAST_TIMING_METHOD} is off, so pg_fast_timing counts nothing");
        return Err(Gap::new(why, set_hint(FAST_TIMING_METHOD, "'auto'")));
    }
    let times_nested = server.is("auto_explain.log_nested_statements", "on");
    let instruments = server.is("auto_explain.log_analyze", "on")
        && !server.is("auto_explain.log_min_duration", "-1")
        && server.sampled_plans() == 1.0;
    match count_calls {
        "off" if instruments => Ok(()),
        "top" if instruments || !times_nested => Ok(()),
        "all" if times_nested => Ok(()),
        _ => Err(Gap::new(
            format!("{COUNT_CALLS} = {count_calls} does not count the statements that log_timing would time"),
            set_hint(COUNT_CALLS, if times_nested { "'all'" } else { "'top'" }),
        )),
    }
}

/// Returns these calls per second with what timing them costs.
fn period(facts: &Facts, per_s: f64) -> PeriodCalls {
    let needed = call_ns(&facts.clocks).map(|ns| ns.times(per_s * SECONDS_PER_NS));
    PeriodCalls {
        seconds: facts.window_s,
        per_s: Range::between(per_s, per_s),
        core_share: needed.map(|needed| share(facts, needed)),
        needed_cores: needed,
    }
}

/// Returns the cost of the clock reads of one call of a usual node in ns, with its error. `None` if the read cost is unknown.
fn call_ns(clocks: &Clocks) -> Option<Range> {
    let node = &clocks.node;
    let clock = clocks.here.as_ref().and_then(|here| here.clock(&node.clock));
    let timed_call_ns = clock.and_then(ClockReport::plausible_timed_call_ns);
    // Row counting is cheaper than timing, and happens also without it.
    let cost = |read_ns: f64| CallCost::new(read_ns, timed_call_ns, clocks.system.ns, false);
    let (low, high) = match (node.ns, node.low_ns, node.high_ns) {
        // The error of a call contains that of the read cost.
        (Some(ns), ..) => (cost(ns), cost(ns)),
        (None, Some(low), Some(high)) => (cost(low), cost(high)),
        _ => return None,
    };
    Some(Range {
        low: low.clock_ns() * (1.0 - low.error()).max(0.0),
        estimate: (low.clock_ns() + high.clock_ns()) / 2.0,
        high: high.clock_ns() * (1.0 + high.error()),
    })
}

/// Returns the share of a core that clock reads take. `needed` is what they need if the statements are executed as often as in
/// the window.
///
/// With timing, statements take longer, so they are executed less often. The lower bound assumes a single session that begins
/// its next statement only after the last one: what took a second takes 1 + needed seconds.
pub fn share(facts: &Facts, needed: Range) -> Range {
    let most = facts.clocks.cpus().unwrap_or(f64::INFINITY);
    let is_timed = facts.server.reads_clock_for_plans();
    let low = if is_timed { needed.low } else { needed.low / (1.0 + needed.low) };
    let low = low.min(most);
    let high = needed.high.min(most).max(low);
    Range { low, estimate: needed.estimate.clamp(low, high), high }
}

/// Returns the node calls per second that would cost 1% of a core, if a call of a usual node takes most.
fn limit_per_s(facts: &Facts) -> Option<f64> {
    let ns = call_ns(&facts.clocks)?.high;
    (ns > 0.0).then(|| CHEAP * 1e9 / ns)
}

/// Returns the rate with which at most 1% of a core is used, rounded down to one digit.
fn sample_rate(share: f64) -> Option<f64> {
    if share <= CHEAP {
        return None;
    }
    let rate = CHEAP / share;
    let unit = 10f64.powf(rate.log10().floor());
    // Without the small addition, an error of the division could lower a rate that has one digit.
    let rounded = (rate / unit + 1e-9).floor() * unit;
    (rounded >= LEAST_SAMPLE_RATE).then_some(rounded)
}

fn decimal(rate: f64) -> String {
    format!("{rate:.4}").trim_end_matches('0').to_string()
}

/// Returns the share of statements that would be timed if auto_explain were on. A rate of 0 is no rate to keep.
fn rate(server: &Server) -> f64 {
    Some(server.sampled_plans()).filter(|rate| *rate > 0.0).unwrap_or(1.0)
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

/// Returns the reason for the cost. `is_counted` is true if pg_fast_timing has counted the calls.
fn why(facts: &Facts, is_counted: bool) -> String {
    let mut why = "two reads of the clock for each call of each plan node, in every sampled statement (sample_rate), \
        because the duration is known only at the end"
        .to_string();
    why += match is_counted {
        true => ". pg_fast_timing has counted the calls",
        false => ". The server's statistics show only the calls for rows sent and rows changed",
    };
    if let Ok(per_s) = facts.counts.growth(TABLES, "scanned").and_then(|rows| facts.per_s(rows)) {
        let rows = count(per_s as u64);
        why += &format!(
            ". Scans in this database read {rows} rows per second, and each row that passes the filter is a call"
        );
    }
    if !facts.server.fast_timing() {
        why += ". With the extension pg_fast_timing it costs about as much as log_timing = off";
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::settings::ExtensionObject;

    fn server(settings: &[(&str, &str)]) -> Server {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Server { settings, extension_objects: vec![ExtensionObject::safe("pg_fast_timing_info")], ..Server::default() }
    }

    #[test]
    fn only_counts_of_the_same_statements_are_used() {
        let instruments = [("auto_explain.log_analyze", "on"), ("auto_explain.log_min_duration", "1s")];
        let nested = [("auto_explain.log_nested_statements", "on")];
        for (count_calls, more, is_exact) in [
            ("off", vec![], false),
            ("off", instruments.to_vec(), true),
            ("off", [instruments.as_slice(), &[("auto_explain.sample_rate", "0.5")]].concat(), false),
            ("top", vec![], true),
            ("top", nested.to_vec(), false),
            ("all", vec![], false),
            ("all", nested.to_vec(), true),
            ("top", vec![(FAST_TIMING_METHOD, "off")], false),
        ] {
            let settings = [[(COUNT_CALLS, count_calls)].as_slice(), &more].concat();
            assert_eq!(check_settings(&server(&settings)).is_ok(), is_exact, "{settings:?}");
        }
        assert_eq!(check_settings(&server(&instruments)), Err(Gap::new("pg_fast_timing is not loaded", EXPERIMENT)));
        let without_extension = Server { extension_objects: Vec::new(), ..server(&[(COUNT_CALLS, "top")]) };
        assert!(check_settings(&without_extension).unwrap_err().hint.contains("CREATE EXTENSION pg_fast_timing"));
        for (other, is_exact) in [("pg_fast_timing.method (role joe)", false), ("track_io_timing (role joe)", true)] {
            let server = Server { other_settings: vec![other.into()], ..server(&[(COUNT_CALLS, "top")]) };
            assert_eq!(check_settings(&server).is_ok(), is_exact, "{other}");
        }
    }
    #[test]
    fn the_sample_rate_is_rounded_down() {
        for (share, rate) in [(0.01, None), (0.02, Some(0.5)), (0.1, Some(0.1)), (0.27, Some(0.03)), (900.0, None)] {
            let found = sample_rate(share);
            assert!(found == rate || (found.unwrap() - rate.unwrap()).abs() < 1e-12, "{share}: {found:?}");
        }
        assert_eq!([decimal(0.5), decimal(0.03), decimal(0.0001)], ["0.5", "0.03", "0.0001"]);
    }
}
