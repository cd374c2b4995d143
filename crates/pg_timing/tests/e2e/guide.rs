//! The README and the guide: their examples, commands, findings and links.

mod commands;
mod examples;
mod findings;
mod links;

use std::path::{Path, PathBuf};

/// A page in Markdown.
struct Page {
    path: PathBuf,
    text: String,
}

/// A block of code in a page.
struct Block<'a> {
    /// number of the first line within the block, from 0
    first: usize,
    /// the words after the three backticks: `console`: an example that the tests run; `console live`: an example that needs a
    /// server or this host; nothing: commands
    info: &'a str,
    lines: Vec<&'a str>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the README and the pages of the guide.
fn pages() -> Vec<Page> {
    let entries = std::fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.push(repository().join("README.md"));
    paths.sort();
    paths.into_iter().map(|path| Page { text: std::fs::read_to_string(&path).unwrap(), path }).collect()
}

fn page(name: &str) -> Page {
    pages().into_iter().find(|page| page.path.ends_with(name)).unwrap()
}

impl Page {
    /// Returns the blocks of code.
    fn blocks(&self) -> Vec<Block<'_>> {
        blocks(&self.text)
    }

    /// Returns the lines that are not in a block of code.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut in_block = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.trim_start().starts_with("```");
            in_block ^= is_fence;
            !in_block && !is_fence
        })
    }
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            in_block = !in_block;
            if in_block {
                blocks.push(Block { first: number + 1, info: info.trim(), lines: vec![] });
            }
        } else if in_block {
            blocks.last_mut().unwrap().lines.push(line);
        }
    }
    assert!(!in_block, "the last block does not end");
    blocks
}

/// A visitor reads the README in a few minutes. Details belong in the guide.
#[test]
fn the_readme_is_short() {
    let lines = page("README.md").text.lines().count();
    assert!(lines < 150, "{lines}");
}
