//! `auto_explain.log_timing`: the server times every plan node of each sampled statement, even if it is not logged: two reads of the
//! clock for each call of each node.
//!
//! pg_fast_timing counts the calls of plan nodes. The server's own statistics have only a lower bound: a plan that reads a million
//! rows can need two calls or a billion (`docs/measuring.md`).

use super::facts::{COUNTERS, Events, Facts, NEEDS_MONITOR, RUN_AGAIN, TABLES};
use super::settings::{self, WHILE_BUSY, advise, conclude, judge, without_lines};
use super::{has_hidden_sessions, session_s};
use crate::error::{Error, require};
use crate::human::{count, percent_range};
use crate::report::{Action, CHEAP_SHARE, CallCost, ClockReport, CoreShare, SettingAdvice};
use crate::server::clock::Clocks;
use crate::server::settings::{COUNT_CALLS, FAST_TIMING_METHOD, Server, set_hint};

const NAME: &str = "auto_explain.log_timing";
const SAMPLE_RATE: &str = "auto_explain.sample_rate";
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
/// Below this rate, auto_explain times too few statements to be useful.
const LEAST_SAMPLE_RATE: f64 = 0.0001;
/// Node calls per second. A server with fewer is idle, and its window says nothing about a busy one.
const FEW_PER_S: f64 = 10.0;
/// The longest window that --window accepts, in s.
const LONGEST_WINDOW_S: f64 = 86_400.0;
const SECONDS_PER_NS: f64 = 1e-9;

/// Returns the advice about the setting.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let server = &facts.server;
    let on = server.times_plans();
    // A rate of 0 is no rate to keep.
    let rate = Some(server.sampled_plans()).filter(|rate| *rate > 0.0).unwrap_or(1.0);
    let call_ns = call_ns(&facts.clocks);
    let setting = settings::setting(NAME, value(server), on, ["on", "off"].map(|value| format!("{NAME} = {value}")));
    let counted = counted_per_s(facts);
    let events = match &counted {
        Ok(per_s) => Ok(Events { per_s: Some(per_s * rate), ..Events::default() }),
        Err(gap) => lower_bound(facts, gap.clone()),
    };
    let advice = match (counted, call_ns) {
        _ if on && server.fast_timing() => {
            let summary = "pg_fast_timing times the nodes, which costs about as much as log_timing = off: leave it on";
            let events = Events { share: None, ..events.unwrap_or_default() };
            conclude(setting, events, None, Ok((Action::Keep, summary.into())))
        }
        (Ok(per_s), Some(call_ns)) => from_counts(facts, setting, per_s, rate, call_ns),
        _ => advise(facts, setting, events, call_ns.map(|(_, high)| high)),
    };
    // If it is on without effect, or not loaded, no single line turns it on.
    let has_lines = on || server.is(NAME, "off");
    Some(if has_lines { advice } else { without_lines(advice) })
}

/// Returns the advice from exact counts: the statements have `per_s` calls, and timing one takes `call_ns`.
fn from_counts(
    facts: &Facts,
    setting: SettingAdvice,
    per_s: f64,
    rate: f64,
    (low_ns, high_ns): (f64, f64),
) -> SettingAdvice {
    let needed = (low_ns * per_s * SECONDS_PER_NS, high_ns * per_s * SECONDS_PER_NS);
    let (low, high) = share(facts, (needed.0 * rate, needed.1 * rate));
    let doubt = doubt(facts, per_s);
    let share = CoreShare { low, high: doubt.is_none().then_some(high) };
    let calls = count((per_s * rate).round() as u64);
    let cost = format!("{calls} node calls per second take {} of a core", percent_range(share.low, share.high));
    let lower_rate = sample_rate(needed.1).filter(|_| doubt.is_none());
    let with_rate =
        lower_rate.as_ref().map_or(String::new(), |rate| format!("; with {SAMPLE_RATE} = {rate} at most 1%"));
    let gap = doubt.clone().unwrap_or_else(|| Error::new(cost.clone() + &with_rate, WHILE_BUSY));
    let result = match judge(setting.on, share, gap.clone()) {
        Ok((action @ (Action::Keep | Action::TurnOn), _)) => Ok((action, format!("yes: {cost}"))),
        Ok((action, _)) => Ok((action, format!("no: {cost}{with_rate}"))),
        Err(_) if lower_rate.is_some() => {
            Ok((Action::SampleLess, format!("no, or only with a lower sample_rate: {cost}{with_rate}")))
        }
        Err(_) => Err(gap),
    };
    let share = (share.low > 0.0 || share.high.is_some()).then_some(share);
    let events = Events { per_s: Some(per_s * rate), share, gap: doubt };
    let advice = conclude(setting, events, Some(high_ns), result);
    match (lower_rate, advice.advice, advice.on) {
        (Some(rate), Action::SampleLess, true) => SettingAdvice {
            line: Some(format!("{SAMPLE_RATE} = {rate}")),
            undo: facts.server.setting(SAMPLE_RATE).map(|rate| format!("{SAMPLE_RATE} = {rate}")),
            ..advice
        },
        _ => advice,
    }
}

/// Returns the most important reason why there can be calls that are not counted, or why the count says nothing.
fn doubt(facts: &Facts, per_s: f64) -> Option<Error> {
    let seconds = session_s(facts, "running");
    // So long that a statement of the same length is likely to begin and end in it.
    let window = (2.0 * seconds).ceil().clamp(60.0, LONGEST_WINDOW_S);
    let checks = || {
        require(
            seconds <= facts.window_s / 2.0,
            format!("a statement has been running for {seconds:.0} s. It is counted only at its end"),
            format!("use a window in which the statement ends: pg_timing advise --window {window:.0}"),
        )?;
        let why = "other users may run long statements, which this user may not see";
        require(!has_hidden_sessions(facts), why, NEEDS_MONITOR)?;
        require(per_s >= FEW_PER_S, format!("almost nothing ran ({per_s:.1} node calls per second)"), WHILE_BUSY)
    };
    checks().err()
}

/// Returns a lower bound on the calls, with the reason why they are not counted. Each started sequential scan is a call, and so is
/// each changed row. Rows that a scan has read do not count as calls, because the scan may filter most of them.
fn lower_bound(facts: &Facts, Error { what, hint, .. }: Error) -> Result<Events, Error> {
    // The higher of the two lower bounds counts. Without pg_monitor the first one contains only this user's statements.
    let of_tables = facts.growth(TABLES, "asked");
    let bounds = [settings::growth(facts, "asked").map(|(asked, _)| asked), of_tables.clone()];
    let Some(calls) = bounds.into_iter().flatten().reduce(f64::max) else {
        return Err(of_tables.err().unwrap_or_else(|| Error::new("not counted", RUN_AGAIN)));
    };
    let calls = calls * facts.server.sampled_plans();
    let gap = Error::new(format!("the number of node calls is unknown: {what}"), hint);
    Ok(facts.counted(calls, calls * READS * MIN_SHARE, calls * READS, &facts.clocks.node)?.or_more(Some(gap)))
}

/// Returns the node calls per second that auto_explain.log_timing times, or would time, with a sample_rate of 1. Returns a gap if
/// pg_fast_timing does not count exactly these.
fn counted_per_s(facts: &Facts) -> Result<f64, Error> {
    check_settings(&facts.server)?;
    let is_loaded = facts.after.number(COUNTERS, "of_server")? > 0.0;
    require(is_loaded, "pg_fast_timing is not in shared_preload_libraries", EXPERIMENT)?;
    let (calls, failed) = (facts.growth(COUNTERS, "node_calls")?, facts.growth(COUNTERS, "failed")?);
    let why = format!("pg_fast_timing did not count {failed} statements, because the server timed them");
    require(failed == 0.0, why, set_hint(FAST_TIMING_METHOD, "'auto'"))?;
    // Sessions can change the settings for themselves, which no catalog shows. Then the count is lower than this bound.
    let asked = settings::growth(facts, "asked").map_or(0.0, |(asked, _)| asked);
    let why =
        "pg_fast_timing counted fewer calls than the statements needed for their rows: some sessions are not counted";
    require(calls >= asked * (1.0 - TOLERANCE), why, EXPERIMENT)?;
    require(facts.window_s > 0.0, "stopped before anything was counted", RUN_AGAIN)?;
    Ok(calls / facts.window_s)
}

/// Returns a gap if pg_fast_timing does not count the statements that log_timing times. It counts those that have instrumentation,
/// and those of its setting.
fn check_settings(server: &Server) -> Result<(), Error> {
    let no_library = || Error::new("pg_fast_timing is not loaded", EXPERIMENT);
    let count_calls = server.setting(COUNT_CALLS).ok_or_else(no_library)?;
    require(
        server.extension_object("pg_fast_timing_counters")?.is_some(),
        "this database does not have the extension pg_fast_timing",
        "run in this database: CREATE EXTENSION pg_fast_timing",
    )?;
    let is_relevant = |setting: &&String| OTHER_SETTINGS.iter().any(|name| setting.starts_with(name));
    let other = server.other_settings.iter().find(is_relevant);
    require(
        other.is_none(),
        format!(
            "sessions override {}, so pg_fast_timing may not count their statements",
            other.map_or("", |other| other)
        ),
        "remove this setting from the role or database: ALTER ROLE ... RESET, or ALTER DATABASE ... RESET",
    )?;
    let why = format!("{FAST_TIMING_METHOD} is off, so pg_fast_timing counts nothing");
    require(!server.is(FAST_TIMING_METHOD, "off"), why, set_hint(FAST_TIMING_METHOD, "'auto'"))?;
    let times_nested = server.is("auto_explain.log_nested_statements", "on");
    let instruments = server.is("auto_explain.log_analyze", "on")
        && !server.is("auto_explain.log_min_duration", "-1")
        && server.sampled_plans() == 1.0;
    let is_counted = match count_calls {
        "off" => instruments,
        "top" => instruments || !times_nested,
        "all" => times_nested,
        _ => false,
    };
    let why = format!("{COUNT_CALLS} = {count_calls} does not count the statements that log_timing would time");
    require(is_counted, why, set_hint(COUNT_CALLS, if times_nested { "'all'" } else { "'top'" }))
}

/// Returns the cost of the clock reads of one call of a usual node in ns, with its error. `None` if the read cost is unknown.
fn call_ns(clocks: &Clocks) -> Option<(f64, f64)> {
    let node = &clocks.node;
    let clock = clocks.here.as_ref().and_then(|here| here.clock(&node.clock));
    let timed_call_ns = clock.and_then(ClockReport::plausible_timed_call_ns);
    // Row counting is cheaper than timing, and happens also without it.
    let cost = |read_ns: f64| CallCost::new(read_ns, timed_call_ns, clocks.system.ns, false);
    // The error of a call contains that of the read cost.
    let (low, high) = (cost(node.ns.or(node.low_ns)?), cost(node.ns.or(node.high_ns)?));
    Some((low.clock_ns() * (1.0 - low.error()).max(0.0), high.clock_ns() * (1.0 + high.error())))
}

/// Returns the share of a core that clock reads take. `needed` is what they need if the statements are executed as often as in
/// the window.
///
/// With timing, statements take longer, so they are executed less often. The lower bound assumes a single session that begins
/// its next statement only after the last one: what took a second takes 1 + needed seconds.
pub fn share(facts: &Facts, (low, high): (f64, f64)) -> (f64, f64) {
    let most = facts.clocks.cpus().unwrap_or(f64::INFINITY);
    // The cost is in the present times.
    let is_timed = facts.server.times_plans() && !facts.server.fast_timing();
    let low = if is_timed { low } else { low / (1.0 + low) }.min(most);
    (low, high.min(most).max(low))
}

/// Returns the rate with which at most 1% of a core is used, rounded down to one digit.
fn sample_rate(share: f64) -> Option<String> {
    if share <= CHEAP_SHARE {
        return None;
    }
    let rate = CHEAP_SHARE / share;
    let unit = 10f64.powf(rate.log10().floor());
    // Without the small addition, an error of the division could lower a rate that has one digit.
    let rounded = (rate / unit + 1e-9).floor() * unit;
    (rounded >= LEAST_SAMPLE_RATE).then(|| format!("{rounded:.4}").trim_end_matches('0').to_string())
}

/// Returns the value, and whether other settings of auto_explain make it ineffective.
fn value(server: &Server) -> String {
    match server.setting(NAME) {
        None => "not loaded".into(),
        Some("on") if !server.times_plans() => "on (without effect)".into(),
        Some(value) => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::settings::ExtensionObject;

    fn server(settings: &[(&str, &str)]) -> Server {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Server {
            settings,
            extension_objects: vec![ExtensionObject::safe("pg_fast_timing_counters")],
            ..Server::default()
        }
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
        assert_eq!(check_settings(&server(&instruments)), Err(Error::new("pg_fast_timing is not loaded", EXPERIMENT)));
        let without_extension = Server { extension_objects: Vec::new(), ..server(&[(COUNT_CALLS, "top")]) };
        assert!(check_settings(&without_extension).unwrap_err().hint.contains("CREATE EXTENSION pg_fast_timing"));
        for (other, is_exact) in [("pg_fast_timing.method (role joe)", false), ("track_io_timing (role joe)", true)] {
            let server = Server { other_settings: vec![other.into()], ..server(&[(COUNT_CALLS, "top")]) };
            assert_eq!(check_settings(&server).is_ok(), is_exact, "{other}");
        }
    }

    #[test]
    fn the_sample_rate_is_rounded_down() {
        for (share, rate) in [
            (0.01, None),
            (0.02, Some("0.5")),
            (0.1, Some("0.1")),
            (0.27, Some("0.03")),
            (100.0, Some("0.0001")),
            (900.0, None),
        ] {
            assert_eq!(sample_rate(share).as_deref(), rate, "{share}");
        }
    }
}
