//! Sentences about a statement that pg_timing ran.

use super::figures::settings;
use super::parts::Parts;
use super::{digits, interval, ms, per_call};
use crate::human::PLUS_MINUS;
use crate::report::{ExplainReport, LiveRuns, Range, Timed};

/// Returns the headline: `EXPLAIN ANALYZE reports 585 ms; the query takes 219 ms (+-4).`
pub fn answer(report: &ExplainReport, runs: &LiveRuns) -> String {
    let corrected = report.corrected_ms;
    let reports = format!("EXPLAIN ANALYZE reports {}", ms(report.reported_ms));
    if report.overhead_factor.is_none() {
        let why = if runs.is_too_short() { "the query is too short" } else { "the machine is too noisy" };
        return format!(
            "{reports}; {why} to measure the overhead: without EXPLAIN the query takes at most {}.",
            ms(corrected.high)
        );
    }
    let times = format!("{reports}; the query takes {}.", estimate(corrected));
    if report.reported_ms <= corrected.high {
        return format!("{times} The overhead is below measurement noise.");
    }
    let overhead = (100.0 * report.overhead_share).round();
    if overhead == 0.0 {
        return format!("{times} Less than 1% of the reported time is overhead.");
    }
    let parts = Parts::of(report, runs).percentages(report.reported_ms, overhead);
    format!("{times} {overhead:.0}% of the reported time is overhead: {parts}.")
}

/// One margin describes both sides of an interval if the shorter side is at least this share of the longer one.
const EVEN: f64 = 0.9;

/// Returns `219 ms (+-4.0)`, or `8.50 ms (6.71 to 11.2 ms)` if the interval is uneven.
fn estimate(time: Range) -> String {
    let shorter_side = (time.high - time.estimate).min(time.estimate - time.low);
    match shorter_side >= EVEN * time.half_width() {
        true => format!("{} ({}{})", ms(time.estimate), PLUS_MINUS, digits(time.half_width())),
        false => format!("{} ({} ms)", ms(time.estimate), interval(time)),
    }
}

/// The names of the facts about one statement's runs.
pub const OVERHEAD: &str = "overhead";
pub const UNDISTURBED: &str = "undisturbed";

/// Returns the facts below the plan.
pub fn facts(report: &ExplainReport, runs: &LiveRuns) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if report.has_figures() {
        facts.extend([(OVERHEAD, overhead(report, runs)), (UNDISTURBED, undisturbed(runs))]);
        facts.extend(timing_methods(&runs.timed).map(|fact| ("timed by", fact)));
    }
    let is_given = |name: &String| runs.given_settings.contains(name);
    if !runs.given_settings.is_empty() {
        facts.push(("settings", format!("given with the statement: {}", settings(report, is_given))));
    }
    let others = settings(report, |name| !is_given(name));
    facts.push(("server", format!("PostgreSQL {}, {}; {others}", runs.server_version, runs.server)));
    facts
}

/// Returns a line for each setting that selects a timing method, with the reported time and the overhead of each value.
fn timing_methods(timed: &[Timed]) -> impl Iterator<Item = String> {
    let method = |timed: &Timed| {
        format!("{} {} ({:.0}% overhead)", timed.value, ms(timed.reported_ms), 100.0 * timed.overhead_share)
    };
    timed.chunk_by(|a, b| a.setting == b.setting).map(move |methods| {
        format!("{}: {}", methods[0].setting, methods.iter().map(method).collect::<Vec<_>>().join(", "))
    })
}

/// Returns the time on a machine that does nothing else, and what the runs took.
fn undisturbed(runs: &LiveRuns) -> String {
    let speed = match runs.full_speed_is_uncertain {
        false => "while nothing else slows the machine",
        true => "at this session's highest speed; the runs do not show whether that is full speed",
    };
    format!(
        "the query takes {} {speed}; 8 of 10 baseline runs took {} to {} ms",
        estimate(runs.undisturbed_ms),
        digits(runs.spread_ms.p10),
        digits(runs.spread_ms.p90),
    )
}

fn overhead(report: &ExplainReport, runs: &LiveRuns) -> String {
    let Parts { clock, row_counting, buffer_counting, unexplained } = Parts::of(report, runs);
    let calls = crate::human::count(runs.calls.round() as u64);
    let mut parts = vec![format!("clock reads {} ({calls} calls; {})", ms(clock), per_call(runs.clock_per_call_ns))];
    parts.extend(buffer_counting.map(|buffers| format!("buffer counting {}", ms(buffers))));
    parts.push(format!("row counting {}", ms(row_counting)));
    // Below 1 us it is a rounding error.
    if unexplained > 0.001 {
        parts.push(format!("unexplained {}", ms(unexplained)));
    }
    format!("{}; from {} runs per mode and {} baseline runs", parts.join(", "), runs.runs, runs.plain_runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_of(reported_ms: f64, corrected: [f64; 3]) -> String {
        let [low, estimate, high] = corrected;
        let overhead_factor = (low > 0.0).then_some(Range { low: 1.8, estimate: 2.0, high: 2.2 });
        let runs = LiveRuns { plain_ms: estimate, ..LiveRuns::default() };
        let corrected_ms = Range { low, estimate, high };
        let report = ExplainReport {
            reported_ms,
            corrected_ms,
            overhead_factor,
            overhead_share: 0.5,
            ..ExplainReport::default()
        };
        answer(&report, &runs)
    }

    #[test]
    fn what_cannot_be_measured_has_no_figures_but_a_limit() {
        let text = answer_of(0.016, [0.0, 0.0, 0.15]);
        let expected = "EXPLAIN ANALYZE reports 0.016 ms; the query is too short to measure the overhead: without EXPLAIN the query takes \
                        at most 0.150 ms.";
        assert_eq!(text, expected);
        assert!(answer_of(30.0, [0.0, 20.0, 90.0]).contains("the machine is too noisy to measure the overhead"));
        assert!(answer_of(0.16, [0.05, 0.1, 0.25]).contains("the query takes 0.100 ms"));
    }

    #[test]
    fn without_figures_only_the_server_is_a_fact() {
        let names = |overhead_factor| {
            let runs = LiveRuns::default();
            let report = ExplainReport { runs: Some(runs.clone()), overhead_factor, ..ExplainReport::default() };
            facts(&report, &runs).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["server"]);
        assert_eq!(names(Some(Range::default())), [OVERHEAD, UNDISTURBED, "server"]);
    }

    #[test]
    fn an_uncertain_full_speed_is_said() {
        let text = |full_speed_is_uncertain| undisturbed(&LiveRuns { full_speed_is_uncertain, ..LiveRuns::default() });
        assert!(text(false).contains("while nothing else slows the machine"));
        assert!(text(true).contains("at this session's highest speed"));
    }

    #[test]
    fn an_uneven_interval_has_bounds() {
        assert!(answer_of(400.0, [215.0, 219.0, 223.0]).contains("takes 219 ms (+-4.00)."));
        assert!(answer_of(400.0, [1.0, 127.0, 282.0]).contains("takes 127 ms (1.00 to 282 ms)."));
        assert!(answer_of(400.0, [6.71, 8.5, 11.2]).contains("takes 8.50 ms (6.71 to 11.2 ms)."));
    }
}
