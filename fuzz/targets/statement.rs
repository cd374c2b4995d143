//! Any text as an SQL statement: an accepted statement is accepted again, and unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::server::explain::Statement;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(statement) = Statement::new(text) else { return };
    assert_eq!(Statement::new(statement.text()).as_ref(), Ok(&statement));
    _ = statement.rejection(None);
    _ = statement.explain("ANALYZE");
    _ = statement.without_output();
});
