//! Documents on a terminal or in a pipe.

use super::{Block, Cell, Column, Document, Facts, Position, Row, Table, without_line_ends};
use crate::escape;
use crate::human;
use crate::report::{Finding, Fix, Severity};
use anstyle::{AnsiColor, Style};
use unicode_truncate::UnicodeTruncateStr;
use unicode_width::UnicodeWidthStr;

/// What the text is for.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// columns of a line
    pub width: usize,
    /// it shows `±`
    pub is_utf8: bool,
    /// titles are cut at the width, and not wrapped by the terminal
    pub is_terminal: bool,
}

impl Output {
    /// The columns of the smallest usual terminal.
    const LEAST: usize = 80;
    /// Longer lines are hard to read.
    const MOST: usize = 120;

    /// A pipe or a file. Programs that read it expect whole names.
    pub const PIPE: Output = Output { width: Output::LEAST, is_utf8: false, is_terminal: false };

    pub fn terminal(width: usize, is_utf8: bool) -> Output {
        Output { width: width.clamp(Output::LEAST, Output::MOST), is_utf8, is_terminal: true }
    }
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();

fn style(severity: Severity) -> Style {
    use AnsiColor::{Cyan, Green, Red, Yellow};
    // Unknown, OK, warning and critical.
    BOLD.fg_color(Some([Cyan, Green, Yellow, Red][severity as usize].into()))
}

/// Returns a document with styles. The writer removes them if the output is not a terminal.
pub fn text(document: &Document, output: Output) -> String {
    let mut screen = Screen { output, text: String::new() };
    screen.title(document);
    let mut before: Option<&Block> = None;
    for block in on_screen(&document.blocks) {
        let continues = match (before, block) {
            (Some(Block::Facts(above)), Block::Facts(facts)) => above.width == facts.width,
            // Without reasons, findings are a list.
            (Some(Block::Finding(above, _)), Block::Finding(..)) => above.why.is_empty(),
            (_, block) => matches!(block, Block::Command(_) | Block::Details(_)),
        };
        if !screen.text.is_empty() && !continues {
            screen.text.push('\n');
        }
        screen.block(block);
        before = Some(block);
    }
    screen.text
}

/// Returns the blocks that the screen shows, one after the other.
fn on_screen(blocks: &[Block]) -> Vec<&Block> {
    let shown = blocks.iter().flat_map(|block| match block {
        Block::Part(_, blocks) | Block::Screen(blocks) => on_screen(blocks),
        Block::Page(_) | Block::Folded(..) | Block::Code(_) | Block::Beside(_) => Vec::new(),
        Block::Shares(_) | Block::Histograms(_) => Vec::new(),
        Block::Facts(facts) if facts.facts.is_empty() => Vec::new(),
        Block::Details(line) if line.is_empty() => Vec::new(),
        block => vec![block],
    });
    shown.collect()
}

struct Screen {
    output: Output,
    text: String,
}

impl Screen {
    fn title(&mut self, Document { title, lead, is_name, .. }: &Document) {
        let title = &without_line_ends(title);
        match (is_name, lead.as_str()) {
            (_, "") if title.is_empty() => {}
            (true, "") => self.labeled(BOLD, title, "", title),
            (true, lead) => self.labeled(BOLD, title, "", &format!("{title}: {lead}")),
            (false, lead) => self.wrapped("", &format!("{title} {lead}")),
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Verdict { severity, word, summary } => {
                self.labeled(style(*severity), word, &format!("{word}  "), summary);
            }
            Block::Text(text) => self.wrapped("", text),
            Block::Command(command) => self.command("    ", command),
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => self.table(table),
            Block::Finding(finding, consequences) => self.finding(finding, consequences),
            Block::Details(line) => self.text += &format!("{DIM}{}{DIM:#}\n", escape::line(line)),
            _ => {}
        }
    }

    /// Returns a text from outside as it can be printed.
    fn safe(&self, text: &str) -> String {
        let text = escape::line(text);
        if self.output.is_utf8 { human::with_sign(&text) } else { text }
    }

    /// Returns a text in lines of at most the width. The first line starts with `first`; the others are indented by the
    /// same width.
    fn lines(&self, first: &str, text: &str) -> String {
        let mut start = self.safe(first);
        let indent = columns(&start);
        let mut lines = String::new();
        for line in wrap(&self.safe(text), self.output.width.saturating_sub(indent)) {
            lines += format!("{start}{line}").trim_end();
            lines.push('\n');
            start = " ".repeat(indent);
        }
        lines
    }

    fn wrapped(&mut self, first: &str, text: &str) {
        self.text += &self.lines(first, text);
    }

    /// Writes a text whose beginning, `label`, has a style.
    fn labeled(&mut self, style: Style, label: &str, first: &str, text: &str) {
        let (lines, label) = (self.lines(first, text), self.safe(label));
        match lines.strip_prefix(&label) {
            Some(rest) => self.text += &format!("{style}{label}{style:#}{rest}"),
            None => self.text += &lines,
        }
    }

    fn command(&mut self, indent: &str, command: &str) {
        self.text += &format!("{indent}{BOLD}{}{BOLD:#}\n", escape::line(command));
    }

    fn facts(&mut self, Facts { width, is_dim, facts }: &Facts) {
        let dim = if *is_dim { DIM } else { PLAIN };
        self.text += &dim.to_string();
        for (name, text) in facts {
            // A name that is wider than its column is followed by one space.
            let name = left(&self.safe(name), *width);
            let gap = if name.is_empty() || name.ends_with(' ') { "" } else { " " };
            self.wrapped(&format!("{name}{gap}"), text);
        }
        self.text += &format!("{dim:#}");
    }

    fn finding(&mut self, finding: &Finding, consequences: &[Finding]) {
        let label = format!("{}  {}", finding.id, finding.severity.word());
        self.labeled(style(finding.severity), &label, &format!("{label}  "), &finding.summary);
        for line in &finding.evidence {
            self.wrapped("  seen   ", line);
        }
        if !finding.why.is_empty() {
            self.wrapped("  why    ", &finding.why);
        }
        for Fix { what, command, undo, lasting, risk } in &finding.fix {
            self.wrapped("  do     ", what);
            if let Some(command) = command {
                self.command("             ", command);
            }
            // An undo is a command, too.
            self.text +=
                &undo.as_ref().map_or(String::new(), |undo| format!("         undo: {}\n", escape::line(undo)));
            for (name, text) in [("permanent", lasting), ("risk", risk)] {
                if let Some(text) = text {
                    self.wrapped(&format!("         {name}: "), text);
                }
            }
        }
        if !consequences.is_empty() {
            let ids: Vec<&str> = consequences.iter().map(|finding| finding.id.as_str()).collect();
            self.wrapped("  also   ", &format!("consequence: {} (details: --format json)", ids.join(", ")));
        }
    }

    fn table(&mut self, table: &Table) {
        let grid = Grid::of(table, self);
        if !table.rows.iter().all(|row| row.is_wide) {
            self.text += &format!("{BOLD}{}{BOLD:#}\n", grid.heads());
        }
        for (row, cells) in table.rows.iter().zip(&grid.cells) {
            if row.is_wide { self.wide_row(row, grid.widths[0]) } else { self.row(row, cells, &grid) }
        }
        if !table.note.is_empty() {
            let note = self.lines("", &table.note);
            self.text += &format!("{DIM}{}{DIM:#}\n", note.trim_end());
        }
    }

    fn wide_row(&mut self, row: &Row, name_width: usize) {
        let [name, text] = [0, 1].map(|nth| row.cells.get(nth).map_or("", |cell| cell.text.as_str()));
        self.wrapped(&format!("{}{GAP}", left(&self.safe(name), name_width)), text);
    }

    fn row(&mut self, row: &Row, cells: &[String], grid: &Grid) {
        let mut line = String::new();
        for (nth, column, gap) in grid.shown() {
            let (text, width) = (cells[nth].as_str(), grid.widths[nth]);
            let padding = " ".repeat(width.saturating_sub(columns(text)));
            let (before, after) = if column.is_right { (padding, String::new()) } else { (String::new(), padding) };
            let style = row.cells[nth].severity.filter(|_| !text.is_empty()).map_or(PLAIN, style);
            line += &format!("{before}{style}{text}{style:#}{after}{gap}");
        }
        self.text += &format!("{}\n", line.trim_end());
        for (_, text) in grid.columns.iter().zip(cells).filter(|(column, _)| column.position == Position::Below) {
            let room = if self.output.is_terminal { self.output.width - BELOW.len() } else { usize::MAX };
            self.text += &format!("{BELOW}{}\n", cut(text, room));
        }
    }
}

/// Between two columns.
const GAP: &str = "  ";
/// Before a line below its row.
const BELOW: &str = "    ";
/// The least width of a tree. It shows the first word of most nodes.
const LEAST_TREE: usize = 12;

/// Deeper names of a tree are below each other: the output of a deep plan would have a quadratic size.
const MOST_INDENT: usize = 120;

/// The texts of a table as they are printed, with the widths of its columns.
struct Grid<'a> {
    columns: &'a [Column],
    cells: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Grid<'_> {
    fn of<'a>(table: &'a Table, screen: &Screen) -> Grid<'a> {
        // A statement or a name has no margin.
        let text = |(cell, column): (&Cell, &Column)| match column.position {
            Position::Below | Position::Tree => escape::line(&cell.text),
            _ => screen.safe(&cell.text),
        };
        let safe = |row: &Row| row.cells.iter().zip(&table.columns).map(text).collect::<Vec<_>>();
        let cells: Vec<Vec<String>> = table.rows.iter().map(safe).collect();
        let width = |(nth, column): (usize, &Column)| {
            // A tree takes the rest of the line. The text of a wide row belongs to no column.
            let rows = table.rows.iter().zip(&cells).filter(|(row, _)| nth == 0 || !row.is_wide);
            let rows = rows.filter(|_| column.position != Position::Tree);
            rows.map(|(_, cells)| columns(&cells[nth])).fold(columns(&column.head), usize::max)
        };
        let widths = table.columns.iter().enumerate().map(width).collect();
        let mut grid = Grid { columns: &table.columns, cells, widths };
        if let Some(tree) = table.columns.iter().position(|column| column.position == Position::Tree) {
            grid.indent(table, tree, screen.output);
        }
        grid
    }

    /// Indents the names of a tree. On a terminal they are cut, so that each node has one line.
    fn indent(&mut self, table: &Table, tree: usize, output: Output) {
        let shown = self.shown();
        let others = shown.iter().filter(|(nth, ..)| *nth != tree);
        let others: usize = others.map(|(nth, _, gap)| self.widths[*nth] + gap.len()).sum();
        let room = if output.is_terminal { output.width.saturating_sub(others).max(LEAST_TREE) } else { usize::MAX };
        let nodes = || table.rows.iter().map(|row| &row.cells[tree]);
        let fit = |indent: usize| nodes().all(|cell| indent * cell.depth + columns(&cell.text) <= room);
        let indent = if fit(2) { 2 } else { 1 };
        for (cells, node) in self.cells.iter_mut().zip(nodes()) {
            // A damaged plan can be nested so deeply that no column is left for the name.
            let indent = (indent * node.depth).min(room - LEAST_TREE).min(MOST_INDENT);
            cells[tree] = format!("{:indent$}{}", "", cut(&cells[tree], room - indent));
        }
    }

    /// Returns the columns on the screen with their numbers and the spaces after them. Those of a group stand closer.
    fn shown(&self) -> Vec<(usize, &Column, &'static str)> {
        let is_shown = |column: &Column| !matches!(column.position, Position::Page | Position::Below);
        let shown: Vec<_> = self.columns.iter().enumerate().filter(|(_, column)| is_shown(column)).collect();
        let next = shown.iter().skip(1).map(|(_, column)| column.group).chain([""]);
        let gap = |group: &str, next: &str| if !group.is_empty() && group == next { " " } else { GAP };
        shown.iter().zip(next).map(|(&(nth, column), next)| (nth, column, gap(column.group, next))).collect()
    }

    /// Returns the names of the columns, and above them those of groups of columns.
    fn heads(&self) -> String {
        let (mut groups, mut heads) = (String::new(), String::new());
        let mut start = 0;
        for (nth, Column { head, group, is_right, .. }, gap) in self.shown() {
            let width = self.widths[nth];
            heads += &if *is_right { format!("{head:>width$}") } else { format!("{head:width$}") };
            let room = (columns(&heads) - start).saturating_sub(columns(group));
            heads += gap;
            if gap == GAP && !group.is_empty() {
                let is_single = start + width + GAP.len() == columns(&heads);
                groups = left(&groups, start + if is_single { room } else { room / 2 }) + group;
            }
            if gap == GAP {
                start = columns(&heads);
            }
        }
        let groups = if groups.is_empty() { groups } else { groups + "\n" };
        groups + heads.trim_end()
    }
}

const ELLIPSIS: &str = "...";

/// Returns the number of columns. East Asian characters take two, and accents of other characters none.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Returns the text, or its beginning with an ellipsis if it takes more than this number of columns.
pub fn cut(text: &str, most: usize) -> String {
    match columns(text) > most {
        true => format!("{}{ELLIPSIS}", text.unicode_truncate(most.saturating_sub(ELLIPSIS.len())).0.trim_end()),
        false => text.into(),
    }
}

/// Returns the text with spaces after it.
pub fn left(text: &str, width: usize) -> String {
    format!("{text}{:1$}", "", width.saturating_sub(columns(text)))
}

/// Returns the words of the text in lines of at most this number of columns. A longer word has its own line.
pub fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = columns(word);
        if used > 0 && used + 1 + length > most {
            lines.push(String::new());
            used = 0;
        }
        let gap = if used > 0 { " " } else { "" };
        lines.last_mut().expect("there is one").extend([gap, word]);
        used += gap.len() + length;
    }
    lines
}

#[cfg(test)]
pub use testing::piped;

#[cfg(test)]
mod testing {
    use super::*;

    /// Returns a document without styles.
    pub fn plain(document: &Document, output: Output) -> String {
        anstream::adapter::strip_str(&text(document, output)).to_string()
    }

    /// Returns the text in a pipe.
    pub fn piped(document: &Document) -> String {
        plain(document, Output::PIPE)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::plain;
    use super::*;
    use proptest::prelude::*;

    fn screen(blocks: Vec<Block>, output: Output) -> String {
        plain(&Document::default().with(blocks), output)
    }

    /// Returns a table with a name, a figure and a node for each depth.
    fn tree(depths: &[usize]) -> Block {
        let node = |depth: usize| Cell { depth, ..format!("Index Scan using {} on orders", "x".repeat(50)).into() };
        let row = |&depth: &usize| Row::new(["\u{65e5}\u{672c}".into(), "1.5 +-0.1".into(), node(depth)]);
        let columns =
            vec![Column::left("name"), Column::right("ms").group("corrected"), Column::left("node").at(Position::Tree)];
        Block::Table(Table { columns, rows: depths.iter().map(row).collect(), ..Table::default() })
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut row = Row::new(["a", "1000", "x"]);
        row.cells[1].notes.push("only on the page".into());
        let rows = vec![row, Row::wide("\u{65e5}\u{672c}", "not measured: ".repeat(6))];
        let columns = vec![Column::left("name"), Column::right("n"), Column::left("statement").at(Position::Below)];
        let table = Block::Table(Table { columns, rows, note: "how to read it".into(), ..Table::default() });
        insta::assert_snapshot!(screen(vec![table], Output::PIPE), @"
        name     n
        a     1000
            x
        日本  not measured: not measured: not measured: not measured: not measured: not
              measured:
        how to read it
        ");
    }

    #[test]
    fn names_are_cut_on_a_terminal_and_not_in_a_pipe() {
        let piped = screen(vec![tree(&[0, 1, 90])], Output::PIPE);
        let lines: Vec<&str> = piped.lines().collect();
        assert_eq!(lines[..2], ["      corrected", "name         ms  node"]);
        assert!(lines[2..].iter().all(|line| line.ends_with("x on orders")), "{piped}");
        assert!(lines[3].starts_with("\u{65e5}\u{672c}  1.5 +-0.1    Index"), "{piped}");
        for width in [80, 100] {
            let cut = screen(vec![tree(&[0, 1, 90])], Output::terminal(width, true));
            assert!(cut.lines().all(|line| columns(line) <= width) && cut.contains("1.5 ±0.1"), "{cut}");
            assert_eq!(cut.matches("Index").count(), 3, "{cut}");
        }
        assert_eq!([Output::terminal(20, false).width, Output::terminal(500, false).width], [80, 120]);
    }

    #[test]
    fn text_from_outside_stays_in_its_line() {
        let evil = "x\nOK  fine \u{1b}[2J";
        let blocks = vec![
            Block::Text(evil.into()),
            Block::Facts(Facts::new(4, [(evil, evil)])),
            Block::Command(evil.into()),
            Block::Finding(Finding::new(evil, Severity::Ok, evil).evidence(evil), Vec::new()),
        ];
        let text = screen(blocks, Output::terminal(120, true));
        assert!(!text.contains('\u{1b}') && !text.lines().any(|line| line.starts_with("OK")), "{text}");
        assert_eq!(text.matches("\\u{1b}[2J").count(), 7, "{text}");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!([columns("ab"), columns("\u{65e5}\u{672c}"), columns("a\u{301}")], [2, 4, 1]);
        assert_eq!(cut("\u{65e5}\u{672c}\u{8a9e}\u{65e5}", 7), "\u{65e5}\u{672c}...");
        assert_eq!(left("\u{65e5}", 4), "\u{65e5}  ");
    }

    proptest! {
        #[test]
        fn a_cut_text_fits(text in "(a|\u{65e5}|\u{301}| ){0,20}", most in 3..20usize) {
            prop_assert!(columns(&cut(&text, most)) <= most);
        }
    }
}
