//! Repairs plans that were changed on their way: by psql's formats, by web pages, mail programs and chats.

mod characters;
mod csv_cell;
pub mod folded;
mod html;
mod indentation;
mod latex;
mod psql_wrap;
mod signs;
#[cfg(test)]
pub mod tests;

use super::text::{self, TextError};
use crate::server::explain::plan::Explained;
use signs::Signs;
use std::borrow::Cow;

/// Returns the text with plain lines. A text without signs of a repair is not copied.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    let signs = Signs::of(text);
    let repairs = [
        (signs.html, html::decoded as fn(&str) -> String),
        (signs.special_characters, characters::plain),
        (signs.latex, latex::decoded),
        (signs.asciidoc, asciidoc_decoded),
        (signs.troff, troff_decoded),
        (signs.csv, csv_cell::unquoted),
        (signs.wrap, psql_wrap::joined),
    ];
    let mut text = Cow::Borrowed(text);
    for (_, repair) in repairs.into_iter().filter(|(needed, _)| *needed) {
        text = Cow::Owned(repair(&text));
    }
    text
}

/// Returns the text plan in these lines, with broken lines joined and lost indentation restored.
pub fn text_plan(plan: &str) -> Result<Explained, TextError> {
    match text::plan(plan.lines()) {
        Err(TextError::Cut | TextError::NoBeginning) => with_indentation(&folded::joined(plan)),
        // If a condition was folded, its second line can hide that the node uses an InitPlan.
        Ok(_) if plan.contains("InitPlan") && folded::has_broken_condition(plan) => {
            with_indentation(&folded::joined(plan))
        }
        Err(TextError::LostIndentation) => with_indentation(plan),
        read => read,
    }
}

/// Returns the text plan in these lines, with lost indentation restored.
fn with_indentation(plan: &str) -> Result<Explained, TextError> {
    match text::plan(plan.lines()) {
        Err(TextError::LostIndentation) => {
            let explained = text::plan(indentation::restored(plan)?.lines())?;
            let note = "the plan had lost its indentation. Its tree was reconstructed from the node types and figures: no other tree fits";
            Ok(Explained { notes: vec![note.into()], ..explained })
        }
        read => read,
    }
}

/// Returns the text without the escapes of psql's Asciidoc format.
fn asciidoc_decoded(text: &str) -> String {
    text.replace("\\|", "|")
}

/// Returns the text without the escapes of psql's troff format.
fn troff_decoded(text: &str) -> String {
    text.replace("\\(rs", "\\")
}
