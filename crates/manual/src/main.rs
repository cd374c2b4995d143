//! Writes the man pages and shell completions of pg_timing and pg_test_timing.
//!
//!     manual DIR
//!
//! Everything comes from the definitions of the command line, except sections that no help text has. The files depend only on
//! the source code, and not on the date.

mod completions;
mod page;

use anyhow::{Context, Result, anyhow};
use pg_timing::command::{arguments, pg_test_timing};
use std::fs;
use std::path::PathBuf;

fn main() -> Result<()> {
    let dir: PathBuf = std::env::args_os().nth(1).ok_or_else(|| anyhow!("usage: manual DIR"))?.into();
    let mut pg_timing = arguments::definition();
    let mut pg_test_timing = pg_test_timing::definition("pg_test_timing", false);
    let mut files = Vec::new();
    for command in [&mut pg_timing, &mut pg_test_timing] {
        command.build();
        files.extend(completions::of(command));
    }
    files.extend(page::all(&pg_timing, &pg_test_timing)?);
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&dir))
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}
