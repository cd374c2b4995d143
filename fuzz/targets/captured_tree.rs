//! Any texts as the files of a captured tree: all facts, all findings and the screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pg_timing::document;
use pg_timing::host::check::judge;
use pg_timing::host::facts::{Host, KernelLog};
use pg_timing::host::survey;
use std::sync::LazyLock;

/// The files, in the order of their texts in the input. tests/fuzz/seeds.py writes seeds in this order.
const FILES: &str = include_str!("captured_tree.files");
/// Texts end with this byte, because no file in proc or sys has it.
const END: u8 = 0;

static DIR: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fuzz_target!(|data: &[u8]| {
    let mut texts = data.split(|&byte| byte == END);
    for name in FILES.lines() {
        let file = DIR.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        // A missing text is a missing file.
        match texts.next() {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => _ = std::fs::remove_file(&file),
        }
    }
    let host = Host::captured(DIR.path().into());
    let mut report = survey::captured(&host, &KernelLog::own(&host));
    judge(&mut report);
    _ = document::text::text(&document::host::document(&report, None), document::text::Output::PIPE);
    _ = pg_timing::json::json(&report);
});
