//! Any text as the output of pg_test_timing: all findings and the screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::host::check::judge;
use pg_timing::host::pg_test_timing::{parse, report};
use pg_timing::render;

fuzz_target!(|data: &[u8]| {
    for output in parse(&String::from_utf8_lossy(data)).unwrap_or_default() {
        let mut report = report::report(&output);
        judge(&mut report);
        _ = render::text::text(&report);
        _ = render::json::json(&report);
    }
});
