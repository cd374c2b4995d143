//! The result of `explain` on one statement or plan: the answer, where the time goes, the plan, and the facts.

use super::text::cut;
use super::{Bar, Block, Cell, Column, Document, Facts, Position, Row, Shares, Table, fraction, without_line_ends};
use crate::human::{PLUS_MINUS, count, digits, duration, interval, is_even, ms, percent, with_margin};
use crate::report::{
    Capture, ExplainReport, ExplainedNode, LiveRuns, LogPlace, NS_PER_MS, Range, Spread, Timed, depth, is_too_short,
};
use std::collections::BTreeMap;

pub const TITLE: &str = "Overhead of EXPLAIN ANALYZE";

/// The longest name of a fact, "unexplained", and a space.
const NAMES: usize = 12;

pub fn document(report: &ExplainReport) -> Document {
    // The page has the whole statement above the plan.
    let (beginning, facts): (Vec<_>, Vec<_>) = facts(report).into_iter().partition(|(name, _)| *name == "statement");
    let statement = report.statement.clone().map(Block::Code);
    let mut blocks = vec![Block::Page(statement.into_iter().collect())];
    if report.has_figures() {
        blocks.push(Block::Shares(shares(report)));
        if !report.nodes.is_empty() {
            blocks.push(Block::Part("Plan", vec![Block::Table(plan(report))]));
        }
    }
    let [facts, beginning] = [facts, beginning].map(|facts| Block::Facts(Facts::new(NAMES, facts)));
    let figures = vec![facts, Block::Screen(vec![beginning])];
    blocks.push(Block::Part("How these figures were made, and their limits", figures));
    Document::answer(&answer(report)).with(blocks)
}

/// Returns the plan as a tree.
fn plan(report: &ExplainReport) -> Table {
    let times = report.nodes.iter().flat_map(|node| [node.reported_self_ms, node.corrected_self_ms]);
    let longest_ms = times.fold(0.0, f64::max);
    let below = |head: &str| Column::right(head).group("with children, ms");
    let keys = &[("reported", "reported self"), ("", "corrected self")];
    Table {
        name: "plan".into(),
        columns: vec![
            Column::left("rank"),
            Column::right("self, ms").group("corrected"),
            below("reported"),
            below("corrected"),
            below("clock"),
            Column::right("calls").at(Position::Page),
            Column { keys, ..Column::left("self times").at(Position::Page) },
            Column::left("node").at(Position::Tree),
        ],
        rows: report.nodes.iter().map(|node| row(node, report, longest_ms)).collect(),
        ..Table::default()
    }
}

fn row(node: &ExplainedNode, report: &ExplainReport, longest_ms: f64) -> Row {
    let bar =
        |class, low: f64, high: f64| Bar { class, start: fraction(low, longest_ms), end: fraction(high, longest_ms) };
    let bars = vec![
        vec![bar("reported", 0.0, node.reported_self_ms)],
        vec![bar("", 0.0, node.corrected_self_ms), bar("error", node.self_ms.low, node.self_ms.high)],
    ];
    let cells = [
        rank(node, report).into(),
        with_margin(node.self_ms).into(),
        reported(node).into(),
        Cell { notes: vec![interval(node.corrected_ms)], ..corrected(node).into() },
        clock_share(node).into(),
        count(node.calls.round() as u64).into(),
        Cell { bars, ..Cell::default() },
        Cell { depth: depth(&node.path), ..node.title.as_str().into() },
    ];
    Row { is_bold: node.corrected_rank == Some(1), ..Row::new(cells) }
}

/// Returns where the reported time goes. The parts add up to it.
fn shares(report: &ExplainReport) -> Shares {
    let reported = report.reported_ms;
    let range = report.corrected_ms;
    // The unexplained time is a part of the corrected time, and has its own part here.
    let bounds_of = if report.unexplained_share > 0.0 { "with the unexplained time" } else { "interval" };
    let [rest, clock, counting, unexplained] = parts(report);
    let parts = [
        ("", "without overhead", rest),
        ("reported", "clock reads", clock),
        ("counting", counting_name(report), counting),
        ("unexplained", "unexplained", unexplained),
    ];
    // Below 1 us it is a rounding error.
    let shown = parts.into_iter().filter(|(.., ms)| *ms > 0.001).collect::<Vec<_>>();
    // The parts of runs at different times can exceed the reported time.
    let sum = shown.iter().map(|(.., ms)| ms).sum::<f64>().max(reported);
    let mut end = 0.0;
    let part = |(class, name, time): (&'static str, &str, f64)| {
        let start = end;
        end += fraction(time, sum);
        let share = percent(fraction(time, reported));
        let bounds = if class.is_empty() { format!(", {bounds_of} {} ms", interval(range)) } else { String::new() };
        (Bar { class, start, end }, format!("{name} {} ({share}){bounds}", ms(time)))
    };
    let parts = shown.into_iter().map(part).collect();
    Shares { parts, interval: Bar { class: "", start: fraction(range.low, sum), end: fraction(range.high, sum) } }
}

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

/// Returns the headline.
pub fn answer(report: &ExplainReport) -> String {
    match (&report.runs, &report.capture) {
        (Some(runs), _) => live_answer(report, runs),
        (None, Some(capture)) => captured_answer(report, capture),
        (None, None) => String::new(),
    }
}

/// Returns the names and sentences below the plan.
fn facts(report: &ExplainReport) -> Vec<(&'static str, String)> {
    let mut facts = match (&report.runs, &report.capture) {
        (Some(runs), _) => live_facts(report, runs),
        (None, Some(capture)) => captured_facts(report, capture),
        (None, None) => Vec::new(),
    };
    let margins = match &report.capture {
        Some(capture) if capture.given_plain_ms.is_none() => CAPTURED_MARGINS,
        Some(capture) if capture.inputs_contradict => {
            "interval: it covers the given time, and the expected cost of the calls"
        }
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
        let outside = report.reported_ms - report.nodes.first().map_or(f64::INFINITY, |root| root.reported_ms);
        // A smaller part does not matter.
        if outside > (0.05 * report.reported_ms).max(1.0) {
            facts.push((
                "note",
                format!("{} of the reported time are outside of the nodes: triggers, start and end", ms(outside)),
            ));
        }
        if report.nodes.iter().any(|node| node.processes > 1) {
            facts.push(("note", "times of parallel nodes are per process".into()));
        }
    }
    facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
    facts
}

/// Returns the parts of the reported time, in ms: the time without overhead and without the unexplained time, clock reads,
/// counting, and the unexplained time.
fn parts(report: &ExplainReport) -> [f64; 4] {
    let ms = |share: f64| share * report.reported_ms;
    let (clock, unexplained) = (ms(report.clock_share), ms(report.unexplained_share));
    let corrected = report.corrected_ms.estimate.clamp(0.0, report.reported_ms.max(0.0));
    let rest = (corrected - unexplained).max(0.0);
    [rest, clock, (report.reported_ms - rest - clock - unexplained).max(0.0), unexplained]
}

/// Returns what the server counts: PostgreSQL 18 and later also count buffers by default. A captured plan may have both.
fn counting_name(report: &ExplainReport) -> &'static str {
    let major = |runs: &LiveRuns| runs.server_version.split('.').next()?.parse::<u32>().ok();
    let is_old = report.runs.as_ref().and_then(major).is_some_and(|major| major < 18);
    if is_old { "row counting" } else { "row and buffer counting" }
}

/// Returns the headline: `EXPLAIN ANALYZE reports 585 ms; the query takes 219 ms (+-4).`
fn live_answer(report: &ExplainReport, runs: &LiveRuns) -> String {
    let corrected = report.corrected_ms;
    let reports = format!("EXPLAIN ANALYZE reports {}", ms(report.reported_ms));
    if report.overhead_factor.is_none() {
        let plain = ms(runs.plain_ms);
        return format!(
            "{reports}; without EXPLAIN the query took {plain} (median). The overhead is not determined: there are too few runs, or \
             the query is too short."
        );
    }
    if is_too_short(runs.plain_ms, runs.round_trip_ms) {
        let calls = count(runs.calls.round() as u64);
        let [low, cost, high] = [corrected.high, corrected.estimate, corrected.low]
            .map(|corrected_ms| duration((report.reported_ms - corrected_ms) * NS_PER_MS));
        return format!(
            "{reports}. The query is too short to measure the overhead, but its {calls} calls cost about {cost} ({low} to {high})."
        );
    }
    format!("{reports}; the query takes {}. {}", estimate(corrected), shares_of_time(report, runs.calls))
}

/// Returns the sentence about the overhead and its parts, and the one about the time that the calls cannot explain.
fn shares_of_time(report: &ExplainReport, calls: f64) -> String {
    let corrected = report.corrected_ms;
    let overhead = (100.0 * report.overhead_share).round();
    let share = |ms: f64| (1.0 - ms / report.reported_ms).max(0.0);
    // If the inputs of a captured plan contradict each other, the interval covers both, and also the unexplained time.
    let is_contradiction = report.capture.is_some() && report.unexplained_share > 0.0;
    let most = share(corrected.low) - if is_contradiction { report.unexplained_share } else { 0.0 };
    let reaches_zero = report.reported_ms <= corrected.high && !is_contradiction;
    let overhead = match reaches_zero || overhead == 0.0 {
        true => format!("At most {} of the reported time is overhead.", at_most(most)),
        false => {
            let [low, high] = [share(corrected.high), most].map(|share| (100.0 * share).round());
            let has_bounds = report.capture.is_some() && (low < overhead || overhead < high);
            let bounds = if has_bounds { format!(" ({low}% to {high}%)") } else { String::new() };
            let clock = (100.0 * report.clock_share).round().min(overhead);
            let parts = [(clock, "clock reads"), (overhead - clock, counting_name(report))];
            let shown = parts.iter().filter(|(percent, _)| *percent > 0.0);
            let shown: Vec<String> = shown.map(|(percent, name)| format!("{percent:.0}% {name}")).collect();
            // From little to all: an estimate would look more certain than it is.
            match has_bounds && corrected.low <= 0.0 {
                true => format!("{low}% to {high}% of the reported time is overhead."),
                false => format!("{overhead:.0}%{bounds} of the reported time is overhead: {}.", shown.join(", ")),
            }
        }
    };
    if report.unexplained_share < 0.005 {
        return overhead;
    }
    let (share, calls) = (percent(report.unexplained_share), count(calls.round() as u64));
    format!(
        "{overhead} At least another {share} is not explained by clock reads: the {calls} calls cannot cost that much. Perhaps the machine's \
         speed changed."
    )
}

/// Returns an upper bound as percentage, rounded up: `3%`, or `0.1%`.
fn at_most(share: f64) -> String {
    let (decimals, steps) = if share > 0.01 { (0, 1.0) } else { (1, 10.0) };
    format!("{:.decimals$}%", (100.0 * share * steps).ceil().max(1.0) / steps)
}

/// Returns `219 ms (+-4.0)`, or `8.50 ms (6.71 to 11.2 ms)` if the interval is uneven.
fn estimate(time: Range) -> String {
    if ms(time.low) == ms(time.high) {
        return ms(time.estimate);
    }
    match is_even(time) {
        true => format!("{} ({}{})", ms(time.estimate), PLUS_MINUS, digits(time.margin())),
        false => format!("{} ({} ms)", ms(time.estimate), interval(time)),
    }
}

/// Returns the facts below the plan.
fn live_facts(report: &ExplainReport, runs: &LiveRuns) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if report.overhead_factor.is_some() && !is_too_short(runs.plain_ms, runs.round_trip_ms) {
        facts.push(("overhead", overhead(report, runs)));
    }
    if runs.plain_runs > 0 {
        facts.push(("baseline", baseline(runs.plain_runs, runs.fastest_plain_ms, runs.spread_ms)));
        facts.extend(timing_methods(&runs.timed).map(|fact| ("timed by", fact)));
    }
    let is_given = |name: &String| runs.given_settings.contains(name);
    if !runs.given_settings.is_empty() {
        facts.push(("settings", format!("given with the statement: {}", settings(&report.settings, is_given))));
    }
    let others = settings(&report.settings, |name| !is_given(name));
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

/// Returns what this number of baseline runs took.
pub fn baseline(number: usize, fastest_ms: f64, spread_ms: Spread) -> String {
    // Two of so few runs are not a tenth.
    let most = if number < 10 { "most" } else { "8 of 10" };
    let [fastest, p90] = [fastest_ms, spread_ms.p90].map(ms);
    let p10 = digits(spread_ms.p10);
    format!("the fastest of {number} runs without EXPLAIN took {fastest}; {most} took {p10} to {p90}")
}

fn overhead(report: &ExplainReport, runs: &LiveRuns) -> String {
    let [_, clock, counting, _] = parts(report);
    let ([clock, counted], counting) = ([clock, counting].map(ms), counting_name(report));
    let (calls, per_call) = (count(runs.calls.round() as u64), with_margin(runs.clock_per_call_ns));
    let is_parallel = report.nodes.iter().any(|node| node.processes > 1);
    let of_all = if is_parallel { " of all processes, which run at the same time" } else { "" };
    let (rounds, s) = (runs.runs, if runs.runs == 1 { "" } else { "s" });
    format!(
        "clock reads {clock} ({calls} calls{of_all}; {per_call} ns per call), {counting} {counted}; from {rounds} round{s}"
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
    let [reported, low, estimate, high] =
        [report.reported_ms, corrected.low, corrected.estimate, corrected.high].map(ms);
    let time = match low == high {
        true => high,
        false if corrected.low > 0.0 => format!("about {estimate} ({low} to {high})"),
        false => format!("at most {high}"),
    };
    let shares = shares_of_time(report, capture.calls.estimate);
    format!("{source} reported {reported}; without EXPLAIN this run would have taken {time}. {shares}")
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
        let [low, high, read] = [expected.low, expected.high, read].map(duration);
        let call = capture.timed_call_ns.map_or(String::new(), |ns| {
            format!(", and {} per timed call (two reads, and the work that they delay)", duration(ns))
        });
        let counting = "includes row counting, and buffer counting if BUFFERS was on";
        facts.push(("expected", format!("{low} to {high} per call, with {read} per clock read{call}; {counting}")));
    }
    if capture.read_ns.is_none() && report.unexplained_share == 0.0 {
        let unknown = "not determined without --read-cost or --host-report; the time of clock reads may include it";
        facts.push(("unexplained", unknown.into()));
    }
    if capture.given_plain_ms.is_none() && report.corrected_ms.margin() > TOO_WIDE * report.corrected_ms.estimate {
        // The slowest plans of a log have no common time.
        let nth = capture.place.as_ref().map_or(String::new(), |_| format!("--nth {} ", capture.taken));
        let advice = format!("for a narrower range, time the statement without EXPLAIN and give {nth}--plain-ms MS");
        facts.push(("precision", advice));
    }
    if !report.settings.is_empty() {
        facts.push(("settings", settings(&report.settings, |_| true)));
    }
    if let Some(statement) = &report.statement {
        const MAX_CHARS: usize = 150;
        facts.push(("statement", cut(&without_line_ends(statement), MAX_CHARS)));
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

/// Returns the node's rank by corrected self time, and in parentheses its rank by reported self time if that changed. `?`: the
/// plan does not show the node's self time.
fn rank(node: &ExplainedNode, report: &ExplainReport) -> String {
    let changed = rank_change(node, report).map(|(reported, corrected)| format!("{corrected} ({reported})"));
    changed.or(node.corrected_rank.map(|rank| rank.to_string())).unwrap_or("?".into())
}

/// Returns the node's ranks by reported and by corrected self time, if the change exceeds the errors. The ranks of captured
/// plans are not precise enough.
fn rank_change(node: &ExplainedNode, report: &ExplainReport) -> Option<(usize, usize)> {
    report.rank_change(node).filter(|_| report.runs.is_some())
}

/// Returns the reported time in ms, or its upper bound if it is mostly rounding error: EXPLAIN rounds each loop.
fn reported(node: &ExplainedNode) -> String {
    match is_mostly_rounding(node) {
        true => format!("<{}", digits(node.reported_ms + node.rounded_ms)),
        false => digits(node.reported_ms),
    }
}

/// Returns the corrected time in ms, or its upper bound if the lower bound is 0.
fn corrected(node: &ExplainedNode) -> String {
    let Range { low, estimate, high } = node.corrected_ms;
    if low > 0.0 || high == 0.0 { digits(estimate) } else { format!("<{}", digits(high).trim_start_matches('<')) }
}

/// Returns the clock's share of the reported time, or `?` if rounding hides it.
fn clock_share(node: &ExplainedNode) -> String {
    if is_mostly_rounding(node) { "?".into() } else { format!("{:.0}%", 100.0 * node.clock_share) }
}

fn is_mostly_rounding(node: &ExplainedNode) -> bool {
    node.rounded_ms > node.reported_ms / 4.0
}

/// Returns the settings whose names pass the test: `jit off, track_io_timing off`.
pub fn settings(settings: &BTreeMap<String, String>, test: impl Fn(&String) -> bool) -> String {
    let settings = settings.iter().filter(|(name, _)| test(name)).map(|(name, value)| format!("{name} {value}"));
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
    fn time_outside_of_the_nodes_is_noted() {
        let note = |root_ms| {
            let (report, _) = report(48.7, [46.0, 47.0, 48.0], 0.0);
            let root = ExplainedNode { reported_ms: root_ms, ..ExplainedNode::default() };
            let facts = facts(&ExplainReport { nodes: vec![root], ..report });
            facts.into_iter().map(|(_, text)| text).find(|text| text.contains("outside of the nodes"))
        };
        assert_eq!(
            note(14.3).unwrap(),
            "34.4 ms of the reported time are outside of the nodes: triggers, start and end"
        );
        assert_eq!(note(48.0), None);
    }

    #[test]
    fn unexplained_time_is_not_overhead() {
        let (report, runs) = report(100.0, [96.0, 97.0, 98.0], 0.25);
        let text = live_answer(&report, &runs);
        assert!(
            text.contains(
                "3% of the reported time is overhead: 2% clock reads, 1% row counting. At least another 25% is not"
            ),
            "{text}"
        );
        let [rest, clock, counting, unexplained] = parts(&report);
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

    fn captured(reported_ms: f64, corrected: f64) -> ExplainReport {
        let corrected_ms = Range { low: corrected / 2.0, estimate: corrected, high: corrected * 2.0 };
        ExplainReport { reported_ms, corrected_ms, clock_share: 0.5, unexplained_share: 0.125, ..Default::default() }
    }

    #[test]
    fn the_bar_shows_the_interval_of_the_report() {
        let corrected_ms = Range { low: 96.9, estimate: 495.0, high: 500.0 };
        let report = ExplainReport { reported_ms: 500.0, corrected_ms, unexplained_share: 0.78, ..Default::default() };
        let Shares { parts, interval } = shares(&report);
        assert_eq!((interval.start, interval.end), (96.9 / 500.0, 1.0));
        assert!(parts[0].1.ends_with("with the unexplained time 96.9 to 500 ms"), "{}", parts[0].1);
    }

    #[test]
    fn the_parts_add_up_to_the_reported_time() {
        let Shares { parts, .. } = shares(&captured(1000.0, 375.0));
        let ends: Vec<f64> = parts.iter().map(|(bar, _)| bar.end).collect();
        assert_eq!(ends, [0.25, 0.75, 0.875, 1.0]);
        assert_eq!(parts[1].1, "clock reads 500 ms (50%)");
    }
}
