//! Any text as an SQL statement: what is accepted is accepted again, and unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::server::explain::Script;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(script) = Script::new(&[text], &[]) else { return };
    assert_eq!(Script::new(&[&script.text], &[]).as_ref(), Ok(&script));
});
