//! The exact number of node calls, from pg_fast_timing's counters.

use super::counts::Part;
use super::facts::Facts;
use crate::report::{CallsAre, PeriodCalls, Range};
use crate::server::planned::{Limits, TimingCost};
use crate::server::own_sql;
use crate::server::settings::{COUNT_CALLS, FAST_TIMING_METHOD, Server};

const PART: &str = "pg_fast_timing";
/// If roles or databases have values of their own for these settings, some sessions may not be counted.
const OTHER_SETTINGS: [&str; 4] =
    ["pg_fast_timing.", "auto_explain.", "session_preload_libraries", "local_preload_libraries"];
/// The counter and pg_stat_statements are read one after the other, so they contain different statements at both ends of the
/// window.
const TOLERANCE: f64 = 0.05;

const SECONDS_PER_NS: f64 = 1e-9;

/// Returns the counters of all sessions. If only this session has loaded the library, its counters say nothing about the others,
/// and the query returns nothing.
pub fn part(server: &Server) -> Option<Part> {
    let function = server.extension_object("pg_fast_timing_info")?;
    Some(Part { name: PART, sql: own_sql::counted_calls(&function) })
}

/// Returns the node calls per second that auto_explain.log_timing times, or would time, with a sample_rate of 1. `None` if
/// pg_fast_timing does not count exactly these. `estimated` is the estimate for the same window, if there is one.
pub fn per_s(facts: &Facts, estimated: Option<&PeriodCalls>) -> Option<f64> {
    let calls = facts.counts.growth(PART, "node_calls").ok()?;
    // The server timed statements without the extension, which did not count them.
    let failed = facts.counts.growth(PART, "failed").ok()? > 0.0;
    if failed || facts.window_s <= 0.0 || !counts_what_log_timing_times(&facts.server) {
        return None;
    }
    Some(calls / facts.window_s).filter(|per_s| estimated.is_none_or(|estimated| is_complete(*per_s, estimated)))
}

/// Returns whether a count can contain all statements. Sessions can change the settings for themselves, which no catalog shows.
/// Then the count is lower than the estimate, or even lower than the number of executions: each has at least one call.
fn is_complete(per_s: f64, estimated: &PeriodCalls) -> bool {
    per_s >= estimated.per_s.low * (1.0 - TOLERANCE)
        && estimated.executions_per_s.is_none_or(|executions| per_s >= executions * (1.0 - TOLERANCE))
}

/// The extension counts the statements that have instrumentation, and those of its setting.
fn counts_what_log_timing_times(server: &Server) -> bool {
    let is_relevant = |setting: &String| OTHER_SETTINGS.iter().any(|name| setting.starts_with(name));
    if server.other_settings.iter().any(is_relevant) {
        return false;
    }
    let times_nested = server.is("auto_explain.log_nested_statements", "on");
    let instruments = server.is("auto_explain.log_analyze", "on")
        && !server.is("auto_explain.log_min_duration", "-1")
        && server.sampled_plans() == 1.0;
    let counts = match server.setting(COUNT_CALLS) {
        Some("off") => instruments,
        Some("top") => instruments || !times_nested,
        Some("all") => times_nested,
        _ => false,
    };
    counts && !server.is(FAST_TIMING_METHOD, "off")
}

/// Returns the calls in the window, and what timing them costs. `estimated` is the estimate for the same window, if there is
/// one: a call of these plans can be cheaper or more expensive than a call of a usual plan.
pub fn window(
    facts: &Facts,
    estimated: Option<&PeriodCalls>,
    limits: Limits,
    cost: Option<&TimingCost>,
) -> Option<PeriodCalls> {
    let per_s = per_s(facts, estimated)?;
    let call_ns = cost.map(|cost| estimated.and_then(mean_call_ns).unwrap_or_else(|| cost.usual_clock_ns()));
    let needed = call_ns.map(|ns| ns.times(per_s * SECONDS_PER_NS));
    Some(PeriodCalls {
        calls_are: CallsAre::Counted,
        seconds: facts.window_s,
        executions_per_s: estimated.and_then(|estimated| estimated.executions_per_s),
        per_s: Range::between(per_s, per_s),
        core_share: needed.map(|needed| limits.share(needed)),
        needed_cores: needed,
    })
}

/// Returns the mean cost of the clock reads of an estimated call, in ns.
fn mean_call_ns(estimated: &PeriodCalls) -> Option<Range> {
    let (calls, needed) = (estimated.per_s, estimated.needed_cores?);
    let ns = |needed: f64, calls: f64| needed / calls / SECONDS_PER_NS;
    let [low, estimate, high] =
        [(needed.low, calls.low), (needed.estimate, calls.estimate), (needed.high, calls.high)].map(|(n, c)| ns(n, c));
    // Without a plan, and without calls, there is no mean.
    (0.0 < low && low <= estimate && estimate <= high && high.is_finite()).then_some(Range { low, estimate, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(settings: &[(&str, &str)]) -> Server {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Server { settings, ..Server::default() }
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
            assert_eq!(counts_what_log_timing_times(&server(&settings)), is_exact, "{settings:?}");
        }
        assert!(!counts_what_log_timing_times(&server(&instruments)), "without the library");
        for (other, is_exact) in [("pg_fast_timing.method (role joe)", false), ("track_io_timing (role joe)", true)] {
            let server = Server { other_settings: vec![other.into()], ..server(&[(COUNT_CALLS, "top")]) };
            assert_eq!(counts_what_log_timing_times(&server), is_exact, "{other}");
        }
    }

    fn range(low: f64, estimate: f64, high: f64) -> Range {
        Range { low, estimate, high }
    }

    fn period(per_s: Range, needed_cores: Option<Range>) -> PeriodCalls {
        PeriodCalls {
            calls_are: CallsAre::Estimated,
            seconds: 10.0,
            executions_per_s: Some(1000.0),
            per_s,
            core_share: None,
            needed_cores,
        }
    }

    #[test]
    fn a_count_without_some_sessions_is_not_used() {
        let estimated = period(range(1e4, 2e4, 4e4), None);
        assert!([9_900.0, 2e4, 9e9].iter().all(|per_s| is_complete(*per_s, &estimated)));
        assert!(!is_complete(9e3, &estimated));
        // The lower bound of statements without a plan is 0.
        let unplanned = period(range(0.0, 0.0, 4e4), None);
        assert!(is_complete(2000.0, &unplanned) && !is_complete(20.0, &unplanned));
    }

    #[test]
    fn the_cost_of_a_call_follows_from_the_plans() {
        let estimated = period(range(1e6, 2e6, 4e6), Some(range(0.02, 0.06, 0.16)));
        let ns = mean_call_ns(&estimated).unwrap();
        assert!([ns.low - 20.0, ns.estimate - 30.0, ns.high - 40.0].iter().all(|error| error.abs() < 1e-9), "{ns:?}");
        // Nothing was planned.
        assert_eq!(mean_call_ns(&period(range(0.0, 0.0, 4e6), Some(range(0.0, 0.0, 0.16)))), None);
        assert_eq!(mean_call_ns(&period(range(1e6, 2e6, 4e6), None)), None);
    }
}
