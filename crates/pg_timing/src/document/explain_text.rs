//! The sentences and cells of an explain report. The text screen and the HTML page both use them.

use crate::human::{PLUS_MINUS, count, duration, percent};
use crate::report::{Capture, ExplainReport, ExplainedNode, LiveRuns, LogPlace, NS_PER_MS, Range, SelfTime, Timed};

/// The answer, and the facts below the plan.
#[derive(Default)]
pub struct ExplainText {
    pub answer: String,
    /// name and sentence
    pub facts: Vec<(&'static str, String)>,
}

/// The names of the facts about one statement's runs.
pub const OVERHEAD: &str = "overhead";
pub const BASELINE: &str = "baseline";
pub const MARGINS: &str = "95% interval: in 95 of 100 cases, the true value is within it";
/// Nothing was run, so the error is that of test statements.
const CAPTURED_MARGINS: &str =
    "interval: for 92 of 100 test statements with less than 60% overhead, the true value was within it";
/// The given time is that of another run.
const GIVEN_MARGINS: &str = "interval, if the given time is off by at most 3%: on a busy machine, runs differ more";
const RANKS: &str =
    "by corrected self time; in parentheses: by reported self time, where the overhead changed the rank";

const UNKNOWN_RANKS: &str = "the plan does not show the self time: other nodes run a part of the same subplan, or the node's inputs \
    ran in parallel";

impl ExplainText {
    /// Returns the sentences for a report.
    pub fn of(report: &ExplainReport) -> ExplainText {
        let (answer, mut facts) = match (&report.runs, &report.capture) {
            (Some(runs), _) => (live_answer(report, runs), live_facts(report, runs)),
            (None, Some(capture)) => (captured_answer(report, capture), captured_facts(report, capture)),
            (None, None) => Default::default(),
        };
        let margins = match &report.capture {
            Some(capture) if capture.given_plain_ms.is_none() => CAPTURED_MARGINS,
            Some(_) => GIVEN_MARGINS,
            None => MARGINS,
        };
        if report.has_figures() {
            facts.insert(0, (PLUS_MINUS, margins.into()));
            if report.nodes.iter().any(|node| rank_change(node, report).is_some()) {
                facts.insert(1, ("rank", RANKS.into()));
            }
            if report.nodes.iter().any(|node| node.corrected_rank.is_none()) {
                facts.push(("rank ?", UNKNOWN_RANKS.into()));
            }
            if report.nodes.iter().any(|node| node.processes > 1) {
                facts.push(("note", "times of parallel nodes are per process".into()));
            }
        }
        facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
        ExplainText { answer, facts }
    }
}

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
fn live_answer(report: &ExplainReport, runs: &LiveRuns) -> String {
    let corrected = report.corrected_ms;
    let reports = format!("EXPLAIN ANALYZE reports {}", ms(report.reported_ms));
    let calls = format!("{} calls", count(runs.calls.round() as u64));
    if report.overhead_factor.is_none() {
        return format!(
            "{reports}; without EXPLAIN the query took {} (median). The overhead is not determined: there are too few runs, or the \
             query is too short.",
            ms(runs.plain_ms)
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
            let clock = (100.0 * report.clock_share).round().min(overhead);
            let parts = [(clock, "clock reads"), (overhead - clock, counting_name(report))];
            let shown = parts.iter().filter(|(percent, _)| *percent > 0.0);
            let shown: Vec<String> = shown.map(|(percent, name)| format!("{percent:.0}% {name}")).collect();
            format!("{overhead:.0}% of the reported time is overhead: {}.", shown.join(", "))
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

/// Returns the facts below the plan.
fn live_facts(report: &ExplainReport, runs: &LiveRuns) -> Vec<(&'static str, String)> {
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
        "clock reads {} ({} calls{}; {} ns per call), {} {}; from {} round{}",
        ms(clock),
        count(runs.calls.round() as u64),
        if is_parallel { " of all processes, which run at the same time" } else { "" },
        with_margin(runs.clock_per_call_ns),
        counting_name(report),
        ms(counting),
        runs.runs,
        if runs.runs == 1 { "" } else { "s" }
    )
}

/// A wider relative error is of little use.
const TOO_WIDE: f64 = 0.5;

/// Returns the headline: `EXPLAIN ANALYZE reported 7645 ms; without EXPLAIN this run would have taken about 160 ms (120
/// to 220 ms).`
fn captured_answer(report: &ExplainReport, capture: &Capture) -> String {
    let corrected = report.corrected_ms;
    // Only auto_explain prints the statement.
    let source = if report.statement.is_some() { "auto_explain" } else { "EXPLAIN ANALYZE" };
    let reported = format!("{source} reported {}", ms(report.reported_ms));
    if capture.given_plain_ms.is_none() {
        let [low, estimate, high] = [corrected.low, corrected.estimate, corrected.high].map(ms);
        let time = match low == high {
            true => high,
            false if corrected.low > 0.0 => format!("about {estimate} ({low} to {high})"),
            false => format!("at most {high}"),
        };
        let clock = clock(report, capture);
        return format!("{reported}; without EXPLAIN this run would have taken {time}. {clock}");
    }
    let is_range = capture.plain_may_include_planning || capture.inputs_contradict;
    let time = match is_range {
        true => format!("{} to {}", ms(corrected.low), ms(corrected.high)),
        false => ms(corrected.estimate),
    };
    let takes = format!("{reported}; without EXPLAIN the statement takes {time}");
    if report.reported_ms <= corrected.high && !capture.inputs_contradict {
        return format!("{takes}. The overhead is below measurement noise.");
    }
    let overhead = |ms: f64| 100.0 * (1.0 - ms / report.reported_ms).max(0.0);
    let share = match is_range {
        true => format!("{:.0}% to {:.0}%", overhead(corrected.high), overhead(corrected.low)),
        false => format!("{:.0}%", overhead(corrected.estimate)),
    };
    let is = if report.unexplained_share > 0.0 { "overhead or unexplained" } else { "overhead" };
    format!("{takes}: {share} of the reported time is {is}. {}", clock(report, capture))
}

/// Returns the clock's share as the table shows it, with its bounds, and the unexplained share.
fn clock(report: &ExplainReport, capture: &Capture) -> String {
    let [low, share, high] = [capture.clock_share.low, report.clock_share, capture.clock_share.high]
        .map(|share| format!("{:.0}%", 100.0 * share));
    let bounds = if low == high { String::new() } else { format!(" ({low} to {high})") };
    let unexplained = match report.unexplained_share > 0.0 {
        true => format!(", and {} is unexplained", percent(report.unexplained_share)),
        false => String::new(),
    };
    format!("Clock reads are {share} of the reported time{bounds}{unexplained}.")
}

/// Returns the facts below the plan.
fn captured_facts(report: &ExplainReport, capture: &Capture) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(LogPlace { file, line }) = &capture.place {
        let nested = if capture.is_nested { "; nested: its time is also in its caller's time" } else { "" };
        facts.push(("plan", format!("number {} of {}: {file} line {line}{nested}", capture.taken, capture.plans)));
    }
    facts.push(("calls", total_calls(capture)));
    if let (Some(read), Some(expected)) = (capture.read_ns, capture.expected_call_ns) {
        let call = match capture.timed_call_ns {
            Some(ns) => format!(", and {} per timed call (two reads, and the work that they delay)", duration(ns)),
            None => String::new(),
        };
        facts.push((
            "expected",
            format!(
                "{} to {} per call, with {} per clock read{call}; includes row counting, and buffer counting if BUFFERS was on",
                duration(expected.low),
                duration(expected.high),
                duration(read)
            ),
        ));
    }
    if let Some(implied) = capture.implied_call_ns {
        let overhead = format!("{} per call (overhead divided by the calls of a process)", duration(implied));
        facts.push(("measured", overhead + &comparison(implied, report, capture)));
    }
    if report.unexplained_share > 0.0 {
        let unexplained = format!(
            "{} of the reported time: the calls cannot cost that much. The plan's run may have been slower, for example with \
             cold caches",
            percent(report.unexplained_share)
        );
        facts.push(("unexplained", unexplained));
    } else if capture.read_ns.is_none() {
        let unknown = "not determined without --read-cost or --host-report; the time of clock reads may include it";
        facts.push(("unexplained", unknown.into()));
    }
    if let Some(plain) = capture.given_plain_ms.filter(|_| capture.plain_may_include_planning) {
        let planning = format!("the given {} may include planning, which is not in the reported time", ms(plain));
        facts.push(("planning", planning));
    }
    if capture.given_plain_ms.is_none() && report.corrected_ms.half_width() > TOO_WIDE * report.corrected_ms.estimate {
        // The slowest plans of a log have no common time.
        let nth = capture.place.as_ref().map_or(String::new(), |_| format!("--nth {} ", capture.taken));
        let advice = format!("for a narrower range, time the statement without EXPLAIN and give {nth}--plain-ms MS");
        facts.push(("precision", advice));
    }
    if !report.settings.is_empty() {
        facts.push(("settings", settings(report, |_| true)));
    }
    if let Some(statement) = &report.statement {
        facts.push(("statement", shortened(statement)));
    }
    facts
}

fn total_calls(capture: &Capture) -> String {
    let calls = capture.calls;
    let [low, high] = [calls.low, calls.high].map(|calls| count(calls.round() as u64));
    match low == high {
        true => format!("{high} in total"),
        false => format!("{low} to {high} in total (the plan does not show the exact number)"),
    }
}

/// Compares the implied with the expected overhead per call.
fn comparison(implied: f64, report: &ExplainReport, capture: &Capture) -> String {
    let (Some(read), Some(expected)) = (capture.read_ns, capture.expected_call_ns) else { return String::new() };
    let reads = format!("; {:.1} clock reads", implied / read);
    reads
        + match implied {
            _ if capture.inputs_contradict => ", which contradicts the expected cost: the interval covers both",
            _ if report.unexplained_share > 0.0 => ", more than a call can cost: see unexplained",
            ns if ns < expected.low => ", less than expected",
            _ => ", as expected",
        }
}

/// Returns about one line of a statement.
fn shortened(statement: &str) -> String {
    const MAX_CHARS: usize = 150;
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

/// Returns the node's rank by corrected self time, and in parentheses its rank by reported self time if that changed. `?`: the
/// plan does not show the node's self time.
pub fn rank(node: &ExplainedNode, report: &ExplainReport) -> String {
    match rank_change(node, report) {
        Some((reported, corrected)) => format!("{corrected} ({reported})"),
        None => node.corrected_rank.map_or("?".into(), |rank| rank.to_string()),
    }
}

/// Returns the node's ranks by reported and by corrected self time, if the change exceeds the errors.
///
/// Returns `None` for nodes below 5% of the time, and for captured plans, whose ranks are not precise enough.
fn rank_change(node: &ExplainedNode, report: &ExplainReport) -> Option<(usize, usize)> {
    let others = report.nodes.iter().map(SelfTime::of);
    let changed = || SelfTime::of(node).has_other_rank(others, report.reported_ms, report.corrected_ms.estimate);
    node.rank.zip(node.corrected_rank).filter(|_| report.runs.is_some() && changed())
}

/// Returns the reported time in ms, or its upper bound if it is mostly rounding error: EXPLAIN rounds each loop.
pub fn reported(node: &ExplainedNode) -> String {
    match is_mostly_rounding(node) {
        true => format!("<{}", digits(node.reported_ms + node.rounded_ms)),
        false => digits(node.reported_ms),
    }
}

/// Returns the corrected time in ms, or its upper bound if the lower bound is 0.
pub fn corrected(node: &ExplainedNode) -> String {
    let Range { low, estimate, high } = node.corrected_ms;
    if low > 0.0 || high == 0.0 { digits(estimate) } else { format!("<{}", digits(high).trim_start_matches('<')) }
}

/// Returns the clock's share of the reported time, or `?` if rounding hides it.
pub fn clock_share(node: &ExplainedNode) -> String {
    if is_mostly_rounding(node) { "?".into() } else { format!("{:.0}%", 100.0 * node.clock_share) }
}

fn is_mostly_rounding(node: &ExplainedNode) -> bool {
    node.rounded_ms > node.reported_ms / 4.0
}

/// Returns `40.0 +-3.0`, or `0 to 3` if the lower bound is close to 0.
pub fn with_margin(range: Range) -> String {
    match range.low > 0.0 && range.half_width() < range.estimate || range.high == 0.0 {
        true if range.half_width() == 0.0 => digits(range.estimate),
        true => format!("{} {}{}", digits(range.estimate), PLUS_MINUS, margin(range)),
        false => interval(range),
    }
}

/// Returns the margin with the decimals of the estimate. A margin that would then be 0 has its own digits.
fn margin(range: Range) -> String {
    let decimals = digits(range.estimate).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let margin = format!("{:.decimals$}", range.half_width());
    if margin.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { margin } else { digits(range.half_width()) }
}

/// Returns milliseconds with three digits. EXPLAIN prints no time below 1 us.
pub fn ms(ms: f64) -> String {
    format!("{} ms", digits(ms))
}

/// Returns bounds without their unit: `55.0 to 103`.
pub fn interval(range: Range) -> String {
    format!("{} to {}", digits(range.low), digits(range.high))
}

/// Returns a number with three digits, and all digits before the point.
pub fn digits(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        n if n < 0.0005 => "<0.001".into(),
        n if n < 0.9995 => format!("{number:.3}"),
        n if n < 9.995 => format!("{number:.2}"),
        n if n < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// Returns the settings whose names pass the test: `jit off, track_io_timing off`.
fn settings(report: &ExplainReport, test: impl Fn(&String) -> bool) -> String {
    let settings = report.settings.iter().filter(|(name, _)| test(name)).map(|(name, value)| format!("{name} {value}"));
    settings.collect::<Vec<_>>().join(", ")
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
        live_answer(&report, &runs)
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
        let text = live_answer(&report, &runs);
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
        let text = live_answer(&report, &LiveRuns { plain_ms: 0.01, round_trip_ms: 0.1, ..runs.clone() });
        assert!(
            text.contains("too short") && text.ends_with("its 3 calls cost about 500 ns (100 ns to 800 ns)."),
            "{text}"
        );
        let (report, runs) = self::report(30.0, [0.0, 20.0, 30.0], 0.0);
        assert!(live_answer(&report, &runs).contains("there are too few runs"));
        assert_eq!(live_facts(&report, &runs).len(), 1, "only the server is a fact");
    }

    fn node(rank: usize, corrected_rank: usize, corrected_self_ms: f64, margin: f64) -> ExplainedNode {
        ExplainedNode {
            rank: Some(rank),
            corrected_rank: Some(corrected_rank),
            reported_self_ms: 100.0 / rank as f64,
            corrected_self_ms,
            corrected_self_off_ms: margin,
            ..Default::default()
        }
    }

    #[test]
    fn rank_changes_within_the_errors_are_not_reported() {
        for (margin, change) in [(1.0, Some((1, 2))), (10.0, None)] {
            let nodes = vec![node(1, 2, 50.0, margin), node(2, 1, 55.0, margin)];
            let runs = Some(LiveRuns::default());
            let report = ExplainReport { nodes, runs, reported_ms: 200.0, ..Default::default() };
            assert_eq!(rank_change(&report.nodes[0], &report), change);
            assert_eq!(rank(&report.nodes[0], &report), if change.is_some() { "2 (1)" } else { "2" });
            let mut imprecise = report;
            imprecise.nodes.iter_mut().for_each(|node| node.reported_self_off_ms = 60.0);
            assert_eq!(rank_change(&imprecise.nodes[0], &imprecise), None);
        }
    }

    #[test]
    fn a_corrected_time_without_a_lower_bound_is_an_upper_bound() {
        let cell = |low: f64, high: f64| {
            let corrected_ms = Range::between(low, high);
            corrected(&ExplainedNode { corrected_ms, ..Default::default() })
        };
        assert_eq!([cell(90.0, 110.0), cell(0.0, 110.0), cell(0.0, 0.0)], ["100", "<110", "0"]);
        assert_eq!(cell(0.0, 0.0001), "<0.001");
    }

    #[test]
    fn times_that_are_mostly_rounding_are_upper_bounds() {
        let cells = |reported_ms: f64, rounded_ms: f64| {
            let node = ExplainedNode { reported_ms, rounded_ms, clock_share: 0.5, ..Default::default() };
            (reported(&node), clock_share(&node))
        };
        assert_eq!(cells(0.0, 500.0), ("<500".into(), "?".into()));
        assert_eq!(cells(1000.0, 500.0).1, "?");
        assert_eq!(cells(3000.0, 500.0), ("3000".into(), "50%".into()));
    }

    #[test]
    fn three_digits_are_shown() {
        assert_eq!([0.01234, 1.2345, 12.345, 123.45, 12345.6].map(digits), ["0.012", "1.23", "12.3", "123", "12346"]);
        assert_eq!([9.996, 0.0, 0.0004, 0.0006].map(ms), ["10.0 ms", "0 ms", "<0.001 ms", "0.001 ms"]);
    }

    #[test]
    fn a_range_from_zero_shows_its_upper_bound() {
        assert_eq!(with_margin(Range { low: 43.6, estimate: 44.1, high: 44.6 }), "44.1 +-0.5");
        assert_eq!(with_margin(Range { low: 219.8, estimate: 220.0, high: 220.2 }), "220 +-0.200");
        assert_eq!(with_margin(Range { low: 0.0, estimate: 1.0, high: 3.0 }), "0 to 3.00");
        assert_eq!(with_margin(Range { low: 0.5, estimate: 1.0, high: 3.0 }), "0.500 to 3.00");
        assert_eq!(with_margin(Range::default()), "0");
        assert_eq!(interval(Range { low: 0.0, estimate: 1.0, high: 3.0 }), "0 to 3.00");
    }
}
