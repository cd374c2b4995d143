//! Any text as a captured plan: every printed figure is finite, and bounds are in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::document::{self, pages};
use pg_timing::log::{Log, Sources};
use pg_timing::plan::{Explained, Inputs, ServerClock, writer};
use pg_timing::report::{PlanFormat, Range};
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

static FILE: LazyLock<tempfile::NamedTempFile> = LazyLock::new(|| tempfile::NamedTempFile::new().unwrap());

fuzz_target!(|data: &[u8]| {
    std::fs::write(FILE.path(), data).unwrap();
    let clock = |plan: &Explained| Ok(ServerClock::given(20.0, plan));
    for (plain_ms, format) in [(None, PlanFormat::Text), (Some(0.5), PlanFormat::Json)] {
        let inputs = Inputs { clock: plain_ms.is_none().then_some(&clock), plain_ms, document: Some(format) };
        let (sources, stop) = (Sources::new(vec![FILE.path().into()]), AtomicBool::new(false));
        let Ok(plans) = (Log { sources, inputs, stop: &stop, progress: &|_| {} }).last() else { continue };
        let report = &plans.reports[0];
        assert_ordered(report.corrected_ms);
        assert_ordered(report.capture.as_ref().unwrap().calls);
        assert_ordered(report.capture.as_ref().unwrap().clock_share);
        for node in &report.nodes {
            assert_ordered(node.corrected_ms);
            assert!(node.calls.is_finite() && node.reported_ms.is_finite() && node.clock_share <= 1.0, "{node:?}");
        }
        _ = document::text::text(&document::explain::document(report), document::text::Output::PIPE);
        _ = pg_timing::json::json(report);
        _ = pages::of_plans(std::slice::from_ref(report));
        // A plan in another format is an error.
        _ = writer::plan(report, format, "");
    }
});

fn assert_ordered(range: Range) {
    let Range { low, estimate, high } = range;
    assert!(low >= 0.0 && low <= estimate && estimate <= high && high.is_finite(), "{range:?}");
}
