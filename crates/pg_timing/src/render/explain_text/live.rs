//! Sentences about a statement that pg_timing ran.

use super::figures::settings;
use super::{digits, interval, ms, per_call};
use crate::human::{PLUS_MINUS, count, duration, percent};
use crate::report::{ExplainReport, LiveRuns, NS_PER_MS, Range, Timed};

/// Parts of the reported time, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// the time without overhead and without the unexplained time
    pub rest: f64,
    pub clock: f64,
    pub counting: f64,
    pub unexplained: f64,
}

impl Parts {
    pub fn of(report: &ExplainReport) -> Parts {
        let ms = |share: f64| share * report.reported_ms;
        let (clock, unexplained) = (ms(report.clock_share), ms(report.unexplained_share));
        let corrected = report.corrected_ms.estimate.clamp(0.0, report.reported_ms.max(0.0));
        // The unexplained time of a captured plan is a part of its overhead.
        let rest = if report.runs.is_some() { (corrected - unexplained).max(0.0) } else { corrected };
        Parts { rest, clock, unexplained, counting: (report.reported_ms - rest - clock - unexplained).max(0.0) }
    }

    /// Returns `57% clock reads, 15% row counting`. The parts add up to `overhead_percent`.
    fn percentages(&self, report: &ExplainReport, overhead_percent: f64) -> String {
        let clock = (100.0 * self.clock / report.reported_ms).round().min(overhead_percent);
        let parts = [(clock, "clock reads"), (overhead_percent - clock, counting_name(report))];
        let shown = parts.iter().filter(|(percent, _)| *percent > 0.0);
        shown.map(|(percent, name)| format!("{percent:.0}% {name}")).collect::<Vec<_>>().join(", ")
    }
}

/// Returns what the server counts: PostgreSQL 18 and later also count buffers by default. A captured plan may have both.
pub fn counting_name(report: &ExplainReport) -> &'static str {
    let major = |runs: &LiveRuns| runs.server_version.split('.').next()?.parse::<u32>().ok();
    match report.runs.as_ref().and_then(major) {
        Some(..18) => "row counting",
        _ => "row and buffer counting",
    }
}

/// Returns the headline: `EXPLAIN ANALYZE reports 585 ms; the query takes 219 ms (+-4).`
pub fn answer(report: &ExplainReport, runs: &LiveRuns) -> String {
    let corrected = report.corrected_ms;
    let reports = format!("EXPLAIN ANALYZE reports {}", ms(report.reported_ms));
    let calls = format!("{} calls", count(runs.calls.round() as u64));
    if report.overhead_factor.is_none() {
        let why = if runs.is_too_short() { "the query is too short" } else { "there are too few runs" };
        let took = ms(runs.plain_ms);
        return format!(
            "{reports}; without EXPLAIN the query took {took} (median). The overhead is not determined: {why}."
        );
    }
    if runs.is_too_short() {
        let cost = |corrected_ms: f64| duration((report.reported_ms - corrected_ms) * NS_PER_MS);
        return format!(
            "{reports}. The query is too short to measure the overhead, but its {calls} cost about {} ({} to {}).",
            cost(corrected.estimate),
            cost(corrected.high),
            cost(corrected.low)
        );
    }
    let takes = format!("{reports}; the query takes {}.", estimate(corrected));
    let overhead = (100.0 * report.overhead_share).round();
    let most = 1.0 - corrected.low / report.reported_ms;
    let overhead = match report.reported_ms <= corrected.high || overhead == 0.0 {
        true => format!("At most {} of the reported time is overhead.", at_most(most)),
        false => {
            let parts = Parts::of(report).percentages(report, overhead);
            format!("{overhead:.0}% of the reported time is overhead: {parts}.")
        }
    };
    let unexplained = match report.unexplained_share >= 0.005 {
        true => format!(
            " Another {} is not explained by clock reads: the {calls} cannot cost that much. Perhaps the machine's speed changed.",
            percent(report.unexplained_share)
        ),
        false => String::new(),
    };
    format!("{takes} {overhead}{unexplained}")
}

/// Returns an upper bound as percentage, rounded up: `3%`, or `0.1%`.
fn at_most(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 1.0 {
        format!("{:.0}%", percent.ceil())
    } else {
        format!("{:.1}%", (10.0 * percent).ceil().max(1.0) / 10.0)
    }
}

/// One margin describes both sides of an interval if the shorter side is at least this share of the longer one.
const EVEN: f64 = 0.9;

/// Returns `219 ms (+-4.0)`, or `8.50 ms (6.71 to 11.2 ms)` if the interval is uneven.
fn estimate(time: Range) -> String {
    let shorter_side = (time.high - time.estimate).min(time.estimate - time.low);
    if ms(time.low) == ms(time.high) {
        return ms(time.estimate);
    }
    match shorter_side >= EVEN * time.half_width() {
        true => format!("{} ({}{})", ms(time.estimate), PLUS_MINUS, digits(time.half_width())),
        false => format!("{} ({} ms)", ms(time.estimate), interval(time)),
    }
}

/// The names of the facts about one statement's runs.
pub const OVERHEAD: &str = "overhead";
pub const BASELINE: &str = "baseline";

/// Returns the facts below the plan.
pub fn facts(report: &ExplainReport, runs: &LiveRuns) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if report.overhead_factor.is_some() && !runs.is_too_short() {
        facts.push((OVERHEAD, overhead(report, runs)));
    }
    if runs.plain_runs > 0 {
        facts.push((BASELINE, baseline(runs)));
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

/// Returns a line for each setting that selects a timing method, with the reported time of each value.
fn timing_methods(timed: &[Timed]) -> impl Iterator<Item = String> {
    let method =
        |timed: &Timed| format!("{} {} ({:.2} times the baseline)", timed.value, ms(timed.reported_ms), timed.ratio);
    timed.chunk_by(|a, b| a.setting == b.setting).map(move |methods| {
        format!("{}: {}", methods[0].setting, methods.iter().map(method).collect::<Vec<_>>().join(", "))
    })
}

/// Returns what the baseline runs took.
fn baseline(runs: &LiveRuns) -> String {
    // Two of so few runs are not a tenth.
    let most = if runs.plain_runs < 10 { "most" } else { "8 of 10" };
    format!(
        "the fastest of {} runs without EXPLAIN took {}; {most} took {} to {}",
        runs.plain_runs,
        ms(runs.fastest_plain_ms),
        digits(runs.spread_ms.p10),
        ms(runs.spread_ms.p90),
    )
}

fn overhead(report: &ExplainReport, runs: &LiveRuns) -> String {
    let Parts { clock, counting, .. } = Parts::of(report);
    let is_parallel = report.nodes.iter().any(|node| node.processes > 1);
    format!(
        "clock reads {} ({} calls{}; {}), {} {}; from {} round{}",
        ms(clock),
        count(runs.calls.round() as u64),
        if is_parallel { " of all processes, which run at the same time" } else { "" },
        per_call(runs.clock_per_call_ns),
        counting_name(report),
        ms(counting),
        runs.runs,
        if runs.runs == 1 { "" } else { "s" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(reported_ms: f64, corrected: [f64; 3], unexplained_share: f64) -> (ExplainReport, LiveRuns) {
        let [low, estimate, high] = corrected;
        let runs = LiveRuns { plain_ms: estimate, calls: 3.0, server_version: "17.2".into(), ..LiveRuns::default() };
        let overhead_share = 1.0 - estimate / reported_ms;
        let report = ExplainReport {
            reported_ms,
            corrected_ms: Range { low, estimate, high },
            overhead_factor: (low > 0.0).then_some(Range { low: 1.8, estimate: 2.0, high: 2.2 }),
            overhead_share,
            clock_share: 0.8 * overhead_share,
            unexplained_share,
            runs: Some(runs.clone()),
            ..ExplainReport::default()
        };
        (report, runs)
    }

    fn answer_of(reported_ms: f64, corrected: [f64; 3]) -> String {
        let (report, runs) = report(reported_ms, corrected, 0.0);
        answer(&report, &runs)
    }

    #[test]
    fn an_even_interval_has_a_margin_and_an_uneven_one_has_bounds() {
        assert!(answer_of(400.0, [215.0, 219.0, 223.0]).contains("takes 219 ms (+-4.00). 45% of the reported time"));
        assert!(answer_of(400.0, [1.0, 127.0, 282.0]).contains("takes 127 ms (1.00 to 282 ms)."));
    }

    #[test]
    fn an_interval_that_reaches_the_reported_time_has_an_upper_bound() {
        let text = answer_of(100.0, [97.5, 99.0, 100.0]);
        assert_eq!(
            text,
            "EXPLAIN ANALYZE reports 100 ms; the query takes 99.0 ms (97.5 to 100 ms). At most 3% of the reported time is overhead."
        );
        assert!(answer_of(200.0, [199.9999, 200.0, 200.0]).ends_with("At most 0.1% of the reported time is overhead."));
    }

    #[test]
    fn unexplained_time_is_not_overhead() {
        let (report, runs) = report(100.0, [96.0, 97.0, 98.0], 0.25);
        let text = answer(&report, &runs);
        assert!(
            text.contains("3% of the reported time is overhead: 2% clock reads, 1% row counting. Another 25% is not"),
            "{text}"
        );
        let Parts { rest, clock, counting, unexplained } = Parts::of(&report);
        assert_eq!([rest, clock, counting, unexplained].map(|ms| (10.0 * ms).round()), [720.0, 24.0, 6.0, 250.0]);
    }

    #[test]
    fn a_statement_that_is_too_short_has_the_cost_of_its_calls() {
        let (report, runs) = report(0.016, [0.0152, 0.0155, 0.0159], 0.0);
        let text = answer(&report, &LiveRuns { plain_ms: 0.01, round_trip_ms: 0.1, ..runs.clone() });
        assert!(
            text.contains("too short") && text.ends_with("its 3 calls cost about 500 ns (100 ns to 800 ns)."),
            "{text}"
        );
        let (report, runs) = self::report(30.0, [0.0, 20.0, 30.0], 0.0);
        assert!(answer(&report, &runs).contains("there are too few runs"));
        assert_eq!(facts(&report, &runs).len(), 1, "only the server is a fact");
    }
}
