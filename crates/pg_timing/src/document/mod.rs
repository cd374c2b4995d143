//! Reports as documents. A report becomes blocks once, and each back end lays out the blocks.
//!
//! ```text
//! host, compare, advise, clocksource, log, explain      report -> Document, in the words of the screen
//!                          |
//!            .-------------+-------------.
//!            v                           v
//!     text: a terminal or a pipe    html: pages in one file
//! ```
//!
//! | block | on the screen | on the page |
//! |---|---|---|
//! | `Verdict` | a colored word and its sentence | a box with its first sentence in large letters |
//! | `Text`, `Command` | wrapped; a command never is, because users paste it | paragraphs, and text to select |
//! | `Facts` | names with sentences beside them | the same |
//! | `Table` | columns as wide as their cells; a tree is the last column | a table with bars; on a phone, a card for each row |
//! | `Finding` | evidence, reason, and what to type | the same; consequences are folded |
//! | `Part` | nothing but its blocks | a heading before its blocks |
//! | `Code`, `Shares`, `Histograms`, `Folded` | - | a statement, one bar of parts, pictures, a folded part |
//! | `Beside` | - | its blocks, side by side |
//! | `Screen`, `Page` | what only one of both shows | |
//! | `Details` | the command that shows what was left out | - |
//!
//! Blocks contain text as it came from outside. The back ends escape it while they write it.

pub mod advise;
pub mod clocksource;
pub mod compare;
pub mod explain;
mod histogram;
pub mod host;
pub mod html;
pub mod log;
pub mod nagios;
pub mod pages;
pub mod statements;
pub mod text;

use crate::report::{Finding, Severity, Verdict};

/// What a screen or a section of a page shows.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// the name of what is reported, or the first sentence of the answer
    pub title: String,
    /// what follows the title
    pub lead: String,
    /// the title is a name, which the screen emphasizes
    pub is_name: bool,
    pub blocks: Vec<Block>,
}

impl Document {
    /// Returns a document that begins with a name and facts about it.
    pub fn named(name: impl Into<String>, facts: impl Into<String>) -> Document {
        Document { title: name.into(), lead: facts.into(), is_name: true, blocks: Vec::new() }
    }

    /// Returns a document that begins with the answer. Its first sentence is the title.
    pub fn answer(answer: &str) -> Document {
        let (first, others) = first_sentence(answer);
        Document { title: first.into(), lead: others.into(), ..Document::default() }
    }

    pub fn with(mut self, blocks: Vec<Block>) -> Document {
        self.blocks = blocks;
        self
    }
}

#[derive(Clone, Debug)]
pub enum Block {
    /// the severity decides the color
    Verdict {
        severity: Severity,
        word: String,
        summary: String,
    },
    Text(String),
    Command(String),
    Facts(Facts),
    Table(Table),
    /// a finding, and the findings that follow from it
    Finding(Finding, Vec<Finding>),
    Part(&'static str, Vec<Block>),
    Code(String),
    Shares(Shares),
    Histograms(Vec<histogram::Histogram>),
    Folded(String, Vec<Block>),
    Screen(Vec<Block>),
    Page(Vec<Block>),
    /// on a wide page, side by side
    Beside(Vec<Block>),
    /// the command that shows what was left out, after its label. Empty if nothing was
    Details(String),
}

impl From<&Verdict> for Block {
    fn from(Verdict { severity, summary }: &Verdict) -> Block {
        Block::Verdict { severity: *severity, word: severity.word().into(), summary: summary.clone() }
    }
}

/// Names with sentences.
#[derive(Clone, Debug)]
pub struct Facts {
    /// columns that the names take on the screen
    pub width: usize,
    /// less important than the rest of the screen
    pub is_dim: bool,
    /// the name is empty if the fact belongs to the one before
    pub facts: Vec<(String, String)>,
}

impl Facts {
    pub fn new<N: Into<String>, T: Into<String>>(width: usize, facts: impl IntoIterator<Item = (N, T)>) -> Facts {
        let facts = facts.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
        Facts { width, is_dim: false, facts }
    }

    pub fn dim(self) -> Facts {
        Facts { is_dim: true, ..self }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    /// for screen readers
    pub name: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// how to read it
    pub note: String,
}

impl Table {
    pub fn new(name: &str, columns: impl IntoIterator<Item = Column>, rows: impl IntoIterator<Item = Row>) -> Table {
        let (columns, rows) = (columns.into_iter().collect(), rows.into_iter().collect());
        Table { name: name.into(), columns, rows, note: String::new() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Column {
    pub head: String,
    /// what this column and its neighbors have in common
    pub group: &'static str,
    pub is_right: bool,
    pub position: Position,
    /// classes of the bars in this column, with their names: the page shows them instead of the head
    pub keys: &'static [(&'static str, &'static str)],
}

/// Where a column stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    #[default]
    Here,
    /// on the page only
    Page,
    /// on the screen, a line below the row
    Below,
    /// names, which take the rest of the line; in a tree, they are indented by their depth
    Tree,
}

impl Column {
    pub fn left(head: impl Into<String>) -> Column {
        Column { head: head.into(), ..Column::default() }
    }

    pub fn right(head: impl Into<String>) -> Column {
        Column { is_right: true, ..Column::left(head) }
    }

    pub fn at(self, position: Position) -> Column {
        Column { position, ..self }
    }

    pub fn group(self, group: &'static str) -> Column {
        Column { group, ..self }
    }

    /// Returns whether its cells name the rows, wherever the column stands.
    fn names_rows(&self) -> bool {
        matches!(self.position, Position::Below | Position::Tree)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// the second cell takes all columns but the first
    pub is_wide: bool,
    pub is_bold: bool,
}

impl Row {
    pub fn new<C: Into<Cell>>(cells: impl IntoIterator<Item = C>) -> Row {
        Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() }
    }

    pub fn wide(name: impl Into<String>, text: impl Into<String>) -> Row {
        Row { is_wide: true, ..Row::new([name.into(), text.into()]) }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub text: String,
    /// the rest of the texts is for the page: smaller lines below
    pub notes: Vec<String>,
    /// the fragment that it links to
    pub link: Option<String>,
    /// decides the color
    pub severity: Option<Severity>,
    /// one bar below the other
    pub bars: Vec<Vec<Bar>>,
    /// in a tree
    pub depth: usize,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
}

/// A part of a bar, as fractions of its axis.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// in the style sheet
    pub class: &'static str,
    pub start: f64,
    pub end: f64,
}

/// One bar whose parts have names, and an interval below it.
#[derive(Clone, Debug)]
pub struct Shares {
    pub parts: Vec<(Bar, String)>,
    pub interval: Bar,
}

/// Returns `part` as a fraction of `whole`, or 0 if there is no whole.
fn fraction(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Returns a statement in one line.
fn without_line_ends(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Splits a text after its first sentence.
fn first_sentence(text: &str) -> (&str, &str) {
    let is_end = |at: &usize| text[at + 2..].starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    let end = text.match_indices(". ").map(|(at, _)| at).find(is_end);
    end.map_or((text, ""), |at| (&text[..=at], &text[at + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_ends_before_a_capital_letter_or_a_number() {
        assert_eq!(first_sentence("It takes 7 ms. 51% is overhead."), ("It takes 7 ms.", "51% is overhead."));
        assert_eq!(first_sentence("It costs 7.3 us. The kernel. Yes."), ("It costs 7.3 us.", "The kernel. Yes."));
        assert_eq!(first_sentence("Linux 6. x, no end"), ("Linux 6. x, no end", ""));
        assert_eq!(first_sentence(""), ("", ""));
    }
}
