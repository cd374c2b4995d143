//! The short form of a document, which fits a terminal.

use super::{Block, Document};
use crate::report::Finding;

impl Document {
    /// Leaves out the details. If there are any, [`Block::Details`] names the command that shows them.
    pub fn brief(mut self, command: &str) -> Document {
        let mut left_out = "";
        self.blocks.iter_mut().for_each(|block| shorten(block, command, &mut left_out));
        self
    }
}

fn shorten(block: &mut Block, command: &str, left_out: &mut &'static str) {
    match block {
        Block::Detailed(all, brief) => {
            let is_risky = |finding: &Finding| finding.fix.iter().any(|fix| fix.risk.is_some());
            let has_risks = matches!(&**all, Block::Finding(finding, _) if is_risky(finding));
            // The longer one is the greater one.
            *left_out = (*left_out).max(if has_risks { "details and risks" } else { "details" });
            *block = std::mem::replace(brief, Block::Text(String::new()));
        }
        Block::Part(_, blocks) | Block::Screen(blocks) => {
            blocks.iter_mut().for_each(|block| shorten(block, command, left_out));
        }
        Block::Details(line) if !left_out.is_empty() => *line = format!("{left_out}: {command}"),
        _ => {}
    }
}
