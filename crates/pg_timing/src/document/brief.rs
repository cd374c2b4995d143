//! The short form of a document, which fits a terminal.

use super::{Block, Document};

impl Document {
    /// Leaves out the details. If there are any, [`Block::Details`] names the command that shows them.
    pub fn brief(mut self, command: &str) -> Document {
        let mut has_details = false;
        self.blocks.iter_mut().for_each(|block| shorten(block, command, &mut has_details));
        self
    }
}

fn shorten(block: &mut Block, command: &str, has_details: &mut bool) {
    match block {
        Block::Detailed(_, brief) => {
            *has_details = true;
            *block = std::mem::replace(brief, Block::Text(String::new()));
        }
        Block::Part(_, blocks) | Block::Screen(blocks) => {
            blocks.iter_mut().for_each(|block| shorten(block, command, has_details));
        }
        Block::Details(line) if *has_details => *line = command.into(),
        _ => {}
    }
}
