//! Any text as the output of pg_test_timing: all findings and the screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::document;
use pg_timing::host::check::judge;
use pg_timing::host::pg_test_timing::{parse, report};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let outputs = parse(&text).unwrap_or_default();
    let mut reports: Vec<_> = outputs.iter().map(report::report).collect();
    report::complete(&text, &outputs, &mut reports);
    for mut report in reports {
        judge(&mut report);
        _ = document::text::text(&document::host::document(&report, None), document::text::Output::PIPE);
        _ = pg_timing::json::json(&report);
    }
});
