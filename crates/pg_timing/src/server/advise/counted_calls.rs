//! The exact number of node calls, from pg_fast_timing's counters.

use super::counts::Part;
use super::facts::Facts;
use super::gap::{Gap, RUN_AGAIN};
use super::statements;
use crate::report::{CallCost, ClockReport, PeriodCalls, Range};
use crate::server::clock::Clocks;
use crate::server::own_sql;
use crate::server::settings::{COUNT_CALLS, FAST_TIMING_METHOD, Server, set_hint};

const PART: &str = "pg_fast_timing";
/// If roles or databases have values of their own for these settings, some sessions may not be counted.
const OTHER_SETTINGS: [&str; 4] =
    ["pg_fast_timing.", "auto_explain.", "session_preload_libraries", "local_preload_libraries"];
/// The counter and pg_stat_statements are read one after the other, so they contain different statements at both ends of the
/// window.
const TOLERANCE: f64 = 0.05;
/// What decides if the calls are not counted.
const EXPERIMENT: &str = "add pg_fast_timing to shared_preload_libraries, set pg_fast_timing.count_calls = 'top', restart the \
    server, and run: CREATE EXTENSION pg_fast_timing; or measure the most frequent statements: pg_timing explain -c SQL";

const SECONDS_PER_NS: f64 = 1e-9;

/// Returns the counters. If only this session has loaded the library, they say nothing about the others.
pub fn part(server: &Server) -> Option<Part> {
    let function = server.extension_object("pg_fast_timing_info")?;
    Some(Part { name: PART, sql: own_sql::counted_calls(&function) })
}

/// Returns the node calls per second that auto_explain.log_timing times, or would time, with a sample_rate of 1. Returns a gap if
/// pg_fast_timing does not count exactly these.
pub fn per_s(facts: &Facts) -> Result<f64, Gap> {
    check_settings(&facts.server)?;
    if facts.counts.level(PART, "of_server")? == 0.0 {
        return Err(Gap::new("pg_fast_timing is not in shared_preload_libraries", EXPERIMENT));
    }
    let (calls, failed) = (facts.counts.growth(PART, "node_calls")?, facts.counts.growth(PART, "failed")?);
    if facts.window_s <= 0.0 {
        return Err(Gap::new("stopped before anything was counted", RUN_AGAIN));
    }
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
    Ok(calls / facts.window_s)
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
pub fn period(facts: &Facts, per_s: f64) -> PeriodCalls {
    let needed = call_ns(&facts.clocks).map(|ns| ns.times(per_s * SECONDS_PER_NS));
    PeriodCalls {
        seconds: facts.window_s,
        per_s: Range::between(per_s, per_s),
        core_share: needed.map(|needed| share(facts, needed)),
        needed_cores: needed,
    }
}

/// Returns the cost of the clock reads of one call of a usual node in ns, with its error. `None` if the read cost is unknown.
pub fn call_ns(clocks: &Clocks) -> Option<Range> {
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
}
