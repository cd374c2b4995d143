//! Any text as a host report in JSON: the clock of a plan's server, all findings, the screen and the page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::document::{self, pages};
use pg_timing::host::check::judge;
use pg_timing::plan::{Explained, ServerClock};
use pg_timing::report::document::Document;
use pg_timing::report::{Report, SYSTEM};

fuzz_target!(|data: &[u8]| {
    let Ok(mut report) = Report::from_json(data) else { return };
    if report.read_cost_ns(SYSTEM).is_some()
        && let Ok(clock) = ServerClock::on_host(&report, &Explained::default(), None)
    {
        assert!(clock.read_ns > 0.0 && clock.system_read_ns.is_some_and(|ns| ns > 0.0), "{clock:?}");
    }
    judge(&mut report);
    _ = document::text::text(&document::host::document(&report, None), document::text::Output::PIPE);
    _ = pg_timing::json::json(&report);
    _ = pages::of_entries(vec![pages::Entry { file: None, document: Document::Host(Box::new(report)) }]);
});
