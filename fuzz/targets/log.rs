//! Any bytes as logs: all ways to read them find the same plans, every range is in order, and the screen fits.
#![no_main]

use anstream::adapter::strip_str;
use libfuzzer_sys::fuzz_target;
use pg_timing::document::text::{Output, text};
use pg_timing::document::{self, Document, html, pages};
use pg_timing::error::Error;
use pg_timing::log::{Gaps, Log, Plans, Sources};
use pg_timing::plan::{Explained, Inputs, ServerClock, writer};
use pg_timing::report::{ExplainReport, LogReport, LogTotal, PlanFormat, Range, SkippedPlans};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use unicode_width::UnicodeWidthStr;

/// Logs end with this byte. A log can have all others: NUL bytes, too, after a crash.
const END: u8 = 1;
/// More files would only make the fuzzer slower.
const MAX_FILES: usize = 3;

static DIR: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fuzz_target!(|data: &[u8]| {
    let mut paths = Vec::new();
    for (number, log) in data.splitn(MAX_FILES, |&byte| byte == END).enumerate() {
        let path = DIR.path().join(number.to_string());
        std::fs::write(&path, log).unwrap();
        paths.push(path);
    }
    let mut each: Vec<ExplainReport> = Vec::new();
    let gaps = read(&paths, None, |log| {
        log.each(&mut |report| {
            each.push(report);
            true
        })
    });
    let totals = read(&paths, None, |log| log.totals());
    // Each input has one of two numbers of plans and one of two formats: reading it again for each would take twice the time.
    let (most, format) = if data.len() % 2 == 0 { (usize::MAX, PlanFormat::Text) } else { (1, PlanFormat::Json) };
    let slowest = read(&paths, None, |log| log.slowest(most));
    let (gaps, totals, slowest) = match (gaps, totals, slowest) {
        (Ok(gaps), Ok(totals), Ok(slowest)) => (gaps, totals, slowest),
        (Err(one), Err(two), Err(three)) => return assert!(one == two && two == three, "{one} {two} {three}"),
        (gaps, totals, slowest) => panic!("{:?} {:?} {:?}", gaps.err(), totals.err(), slowest.err()),
    };
    check_counts(&each, &gaps, &totals);
    check_slowest(&each, &slowest, most);
    check_totals(&totals);
    for report in &each {
        check_plan(report);
    }
    check_nth(&paths, format, &each[data.len() / 2 % each.len()]);
    _ = pages::of_plans(&slowest.reports);
});

/// Reads the logs once.
fn read<T>(
    paths: &[PathBuf],
    document: Option<PlanFormat>,
    mode: impl FnOnce(Log) -> Result<T, Error>,
) -> Result<T, Error> {
    let clock = |plan: &Explained| Ok(ServerClock::given(20.0, plan));
    mode(Log {
        sources: Sources::new(paths.to_vec()),
        inputs: Inputs { clock: Some(&clock), plain_ms: None, document },
        stop: &AtomicBool::new(false),
        progress: &|_| {},
    })
}

/// All modes find the same plans, and each plan is analyzed or skipped.
fn check_counts(each: &[ExplainReport], gaps: &Gaps, totals: &LogReport) {
    let skipped = |plans: &[SkippedPlans]| plans.iter().map(|skipped| skipped.plans).sum::<u64>();
    let runs: u64 = totals.statements.iter().map(|statement| statement.total.runs).sum();
    assert_eq!((totals.total.runs + totals.total.nested_runs, each.len() as u64), (runs, runs));
    assert_eq!((gaps.plans as u64, skipped(&gaps.skipped)), (totals.plans, skipped(&totals.skipped)));
    assert_eq!(runs + skipped(&totals.skipped), totals.plans, "{totals:?}");
}

/// The slowest plans are those of all plans. Of the others, only the slower ones were analyzed.
fn check_slowest(each: &[ExplainReport], slowest: &Plans, most: usize) {
    let key = |report: &ExplainReport| (-report.reported_ms, report.capture.as_ref().unwrap().taken);
    let mut expected: Vec<_> = each.iter().map(key).collect();
    expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
    expected.truncate(most);
    assert_eq!(slowest.reports.iter().map(key).collect::<Vec<_>>(), expected);
    assert!(slowest.gaps.plans >= each.len());
}

fn check_totals(totals: &LogReport) {
    for total in totals.statements.iter().map(|statement| &statement.total).chain([&totals.total]) {
        let LogTotal { reported_ms, corrected_ms, clock_ms, overhead_share, clock_share, .. } = *total;
        for (range, most) in
            [(corrected_ms, reported_ms), (clock_ms, reported_ms), (overhead_share, 1.0), (clock_share, 1.0)]
        {
            assert_ordered(range, most);
        }
    }
    let page = document::log::document(totals);
    assert_fits(&page);
    _ = html::page(document::log::TITLE, &page, None);
    _ = pg_timing::json::json(totals);
}

fn check_plan(report: &ExplainReport) {
    assert_ordered(report.corrected_ms, report.reported_ms);
    for node in &report.nodes {
        assert_ordered(node.corrected_ms, f64::MAX);
        assert!(node.calls.is_finite() && node.reported_ms.is_finite() && node.clock_share <= 1.0, "{node:?}");
    }
    assert!(!pg_timing::json::json_line(report).trim_end().contains('\n'));
    assert_fits(&document::explain::document(report));
}

/// A plan is the same if its number selects it and its document is read, too.
fn check_nth(paths: &[PathBuf], format: PlanFormat, plan: &ExplainReport) {
    let number = plan.capture.as_ref().unwrap().taken;
    let nth = read(paths, Some(format), |log| log.nth(number)).unwrap().reports.remove(0);
    assert_eq!(
        (pg_timing::json::json(&nth.nodes), nth.corrected_ms),
        (pg_timing::json::json(&plan.nodes), plan.corrected_ms)
    );
    // A plan in another format is an error.
    _ = writer::plan(&nth, format, "");
}

fn assert_ordered(range: Range, most: f64) {
    let Range { low, estimate, high } = range;
    assert!(0.0 <= low && low <= estimate && estimate <= high && high <= most, "{range:?} {most}");
}

/// On a terminal, each line has at most 80 columns, or its last word does not fit into the space beside the facts' names.
fn assert_fits(document: &Document) {
    const WIDTH: usize = 80;
    const NAMES: usize = 12;
    let styled = text(document, Output::terminal(WIDTH, false));
    let text = strip_str(&styled).to_string();
    for line in text.lines() {
        let last = line.split_whitespace().next_back().unwrap_or_default();
        assert!(line.width() <= WIDTH || last.width() > WIDTH - NAMES, "{line}\n{text}");
    }
}
