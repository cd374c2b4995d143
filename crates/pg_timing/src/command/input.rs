//! What a command reads: a file, or stdin.

use super::Hint;
use anyhow::anyhow;
use std::io::Read;
use std::path::Path;

/// The contents, and how an error calls them.
pub struct Input {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Reads FILE, or stdin for `-`: `most` bytes, beyond which the file is another than was meant.
pub fn read(path: &Path, most: u64, too_long: Hint) -> anyhow::Result<Input> {
    let stdin = path.as_os_str() == "-";
    let name = if stdin { "stdin".into() } else { format!("\"{}\"", path.display()) };
    let mut bytes = Vec::new();
    let read = match stdin {
        true => std::io::stdin().take(most + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|e| {
        anyhow!("could not read {name}: {}", crate::human::reason(&e)).context(Hint("give a file, or - for stdin"))
    })?;
    if bytes.len() as u64 > most {
        return Err(anyhow!("{name}: longer than {} MB", most >> 20).context(too_long));
    }
    Ok(Input { name, bytes })
}
