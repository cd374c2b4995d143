//! Reads a command's input from a file or from stdin.

use crate::error::{Error, require};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

pub struct Input {
    /// the file name in quotes, or `stdin`, for error messages
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Returns whether stdin is a pipe or a file, as in `echo ... | pg_timing`.
pub fn stdin_may_have_text() -> bool {
    let stdin = std::fs::metadata("/dev/stdin").map(|stdin| stdin.file_type());
    stdin.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

/// Reads a file, or stdin if the path is `-`. An input of more than `max_bytes` is an error with the given hint: the
/// user probably gave the wrong file.
pub fn read(path: &Path, max_bytes: u64, too_long_hint: &str) -> Result<Input, Error> {
    let stdin = path.as_os_str() == "-";
    let name = if stdin { "stdin".into() } else { format!("\"{}\"", path.display()) };
    let mut bytes = Vec::new();
    let read = match stdin {
        true => std::io::stdin().take(max_bytes + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(max_bytes + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Error::io(format!("could not read {name}"), &error, "give a file, or - for stdin"))?;
    let is_short = bytes.len() as u64 <= max_bytes;
    require(is_short, format!("{name} is longer than {} MB", max_bytes >> 20), too_long_hint)?;
    // Some editors on Windows write a byte order mark at the beginning of a file.
    bytes.drain(..if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 });
    Ok(Input { name, bytes })
}
