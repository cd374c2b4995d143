//! Any two lines as reports of hosts in JSON: the comparison, its screen and its JSON. A report is the same as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::document;
use pg_timing::host::check::judge;
use pg_timing::report::Report;
use pg_timing::report::compare::{Effect, compare};

fn report(json: &[u8]) -> Option<Report> {
    let mut report = Report::from_json(json).ok()?;
    judge(&mut report);
    Some(report)
}

fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let Some(before) = lines.next().and_then(report) else { return };
    let same = compare(("a", &before), ("a", &before));
    let is_same = |effect: Effect| matches!(effect, Effect::Same | Effect::NotCompared);
    assert!(same.changes.iter().all(|change| is_same(change.effect)), "{same:?}");
    let Some(after) = lines.next().and_then(report) else { return };
    let comparison = compare(("a", &before), ("b", &after));
    _ = document::text::text(&document::compare::document(&comparison), document::text::Output::PIPE);
    _ = pg_timing::json::json(&comparison);
});
