//! Any text as a kernel log: all findings and the screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::document;
use pg_timing::host::check::judge;
use pg_timing::host::facts::{Host, KernelLog};
use pg_timing::host::{kernel_log, survey};
use pg_timing::report::Fact;

fuzz_target!(|data: &[u8]| {
    let log = kernel_log::parse(&String::from_utf8_lossy(data));
    let log = KernelLog { entries: Fact::Known(log), named: true };
    // Only the log is fuzzed here: a directory that does not exist has no facts.
    let mut report = survey::captured(&Host::captured("/nonexistent".into()), &log);
    judge(&mut report);
    _ = document::text::text(&document::host::document(&report, None), document::text::Output::PIPE);
    _ = pg_timing::json::json(&report);
});
