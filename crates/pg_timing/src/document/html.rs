//! Pages in one file: without scripts and external resources, for light and dark mode, for paper and phones.

use super::{Bar, Block, Cell, Column, Document, Facts, Position, Row, Shares, Table, first_sentence};
use crate::escape;
use crate::human::with_sign;
use crate::report::{Finding, Severity, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// Nothing is loaded and no script runs, even if a text from outside were not escaped.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A document on a page of several ones, with its row in the table of all.
pub struct Section {
    /// what it is. The fragment that links to it begins with it
    pub kind: &'static str,
    pub name: String,
    /// without a verdict, the document's title is the answer
    pub verdict: Option<Verdict>,
    /// the file that it is from
    pub file: Option<String>,
    pub document: Document,
}

/// Returns the page of one document.
pub fn page(title: &str, document: &Document, file: Option<&str>) -> String {
    frame(title, section(document, "document", file, 1))
}

/// Returns a page with a section for each document, below an overview with a table that links to them.
pub fn pages(mut overview: Document, sections: &[Section]) -> String {
    let id = |nth: usize, section: &Section| format!("{}-{}", section.kind, nth + 1);
    let row = |(nth, section): (usize, &Section)| {
        let notes = section.file.iter().cloned().collect();
        let name = Cell { link: Some(id(nth, section)), notes, ..section.name.as_str().into() };
        Row::new(match &section.verdict {
            Some(Verdict { severity, summary }) => {
                [name, Cell { severity: Some(*severity), ..severity.word().into() }, summary.as_str().into()]
            }
            None => [name, Cell::default(), section.document.title.as_str().into()],
        })
    };
    let heads = ["report", "verdict", "result"];
    let table = Table::new("reports", heads.map(Column::left), sections.iter().enumerate().map(row));
    overview.blocks.push(Block::Table(table));
    let below = html! {
        @for (nth, one) in sections.iter().enumerate() {
            (section(&one.document, &id(nth, one), one.file.as_deref(), 2))
        }
    };
    frame(&overview.title, html! { (section(&overview, "top", None, 1)) (below) })
}

fn frame(title: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(CONTENT_POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " - pg_timing" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header.masthead { strong { "pg_timing" } span { "what reading the clock costs PostgreSQL" } }
                main { (body) }
                footer { "pg_timing " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    // maud escapes what HTML would interpret. A browser also interprets control characters and marks of direction.
    escape::escaped(&page.into_string().replace("\r\n", "\n"), |c| escape::is_unsafe(c) && !matches!(c, '\n' | '\t'))
}

/// Returns the section of a document. `level` is that of its heading: 1 if it is alone on the page.
fn section(Document { title, lead, is_name, blocks }: &Document, id: &str, file: Option<&str>, level: u8) -> Markup {
    html! {
        section.document.several[level > 1] id=(id) aria-labelledby={ (id) "-name" } {
            header {
                @if level > 1 { a.back href="#top" { "back to the table" } }
                (heading(level, Some(&format!("{id}-name")), title))
                @if let Some(file) = file.filter(|file| file != title) { p.muted { (file) } }
                @if !lead.is_empty() { p.muted[*is_name] { (with_sign(lead)) } }
            }
            @for block in blocks { (self::block(block, level + 1)) }
        }
    }
}

fn heading(level: u8, id: Option<&str>, text: &str) -> Markup {
    let (level, id) = (level.min(4), id.map_or(String::new(), |id| format!(" id=\"{id}\"")));
    html! { (PreEscaped(format!("<h{level}{id}>"))) (with_sign(text)) (PreEscaped(format!("</h{level}>"))) }
}

/// Returns a block. `level` is that of a heading in it.
fn block(block: &Block, level: u8) -> Markup {
    let all = |blocks: &[Block], level| html! { @for block in blocks { (self::block(block, level)) } };
    match block {
        Block::Verdict { severity, word, summary } => verdict(*severity, word, summary),
        Block::Text(text) => html! { p { (with_sign(text)) } },
        Block::Command(command) => html! { pre.command { (command) } },
        Block::Facts(facts) => self::facts(facts),
        Block::Table(table) => self::table(table),
        Block::Finding(finding, consequences) => self::finding(finding, consequences, level),
        Block::Part(name, blocks) => {
            let content = all(blocks, level + 1);
            html! { @if !content.0.is_empty() { section.part { (heading(level, None, name)) (content) } } }
        }
        Block::Code(text) => html! { pre { (text) } },
        Block::Shares(shares) => self::shares(shares),
        Block::Histograms(histograms) => html! {
            p.muted {
                "Number of reads by the time from one reading to the next. Both axes are logarithmic."
                @if histograms.iter().any(|histogram| histogram.has_gaps()) {
                    " " span.key.reported {} "Interruptions: the system did other work."
                }
            }
            div.histograms { @for histogram in histograms { (histogram.figure()) } }
        },
        Block::Folded(name, blocks) => html! { details { summary { (name) } (all(blocks, level)) } },
        Block::Page(blocks) => all(blocks, level),
        Block::Beside(blocks) => html! { div.beside { (all(blocks, level)) } },
        Block::Screen(_) | Block::Details(_) => html! {},
    }
}

/// Returns a severity's class in the style sheet, and a sign, so that the meaning does not depend on the color.
fn class_and_sign(severity: Severity) -> (&'static str, &'static str) {
    [("unknown", "?"), ("ok", "✓"), ("warning", "▲"), ("critical", "⬣")][severity as usize]
}

/// Returns the severity's word with its sign.
fn badge(severity: Severity, word: &str) -> Markup {
    let (class, sign) = class_and_sign(severity);
    html! { span class={ "severity " (class) } { span aria-hidden="true" { (sign) } (word) } }
}

fn verdict(severity: Severity, word: &str, summary: &str) -> Markup {
    let (first, others) = first_sentence(summary);
    html! {
        div class={ "verdict " (class_and_sign(severity).0) } {
            (badge(severity, word))
            p.headline { (with_sign(first)) }
            @if !others.is_empty() { p { (with_sign(others)) } }
        }
    }
}

fn facts(Facts { facts, .. }: &Facts) -> Markup {
    html! {
        @if !facts.is_empty() {
            dl.facts {
                @for (name, text) in facts {
                    @if !name.is_empty() { dt { (with_sign(name)) } }
                    dd { (with_sign(text)) }
                }
            }
        }
    }
}

fn finding(finding: &Finding, consequences: &[Finding], level: u8) -> Markup {
    html! {
        article class={ "finding " (class_and_sign(finding.severity).0) } {
            p.label { (badge(finding.severity, finding.severity.word())) code { (finding.id) } }
            (heading(level, None, &finding.summary))
            dl.facts {
                @if !finding.evidence.is_empty() { dt { "seen" } }
                @for line in &finding.evidence { dd { (with_sign(line)) } }
                @if !finding.why.is_empty() { dt { "why" } dd { (finding.why) } }
                @if !finding.fix.is_empty() { dt { "do" } }
                @for fix in &finding.fix {
                    dd {
                        (fix.what)
                        @if let Some(command) = &fix.command { pre.command { (command) } }
                        @for (name, text) in [("undo", &fix.undo), ("permanent", &fix.lasting), ("risk", &fix.risk)] {
                            @if let Some(text) = text { p.aside { (name) ": " (text) } }
                        }
                    }
                }
            }
        }
        @if !consequences.is_empty() {
            details {
                summary { "consequence: " (consequences.iter().map(|f| f.id.as_str()).collect::<Vec<_>>().join(", ")) }
                @for consequence in consequences { (self::finding(consequence, &[], level)) }
            }
        }
    }
}

/// Returns a table that scrolls if it is wider than the page. The keyboard can scroll it, too.
fn table(table: &Table) -> Markup {
    let Table { name, columns, rows, note } = table;
    let has_groups = columns.iter().any(|column| !column.group.is_empty());
    let head = |column: &Column| {
        html! {
            th class=[column.is_right.then_some("number")] scope="col" {
                @for (class, name) in column.keys { span class={ "key " (class) } {} (name) " " }
                @if column.keys.is_empty() { (column.head) }
            }
        }
    };
    html! {
        @if !note.is_empty() { p.muted { (with_sign(note)) } }
        div.scroll role="group" tabindex="0" aria-label=(name) {
            table {
                thead {
                    @if has_groups {
                        tr {
                            @for group in columns.chunk_by(|a, b| a.group == b.group) {
                                th.number scope="colgroup" colspan=(group.len()) { (group[0].group) }
                            }
                        }
                    }
                    tr { @for column in columns { (head(column)) } }
                }
                tbody { @for row in rows { (self::row(row, columns)) } }
            }
        }
    }
}

fn row(row: &Row, columns: &[Column]) -> Markup {
    // Without such a column, the first one names the row.
    let named = columns.iter().position(Column::names_rows).unwrap_or_default();
    html! {
        tr class=[row.is_bold.then_some("first")] {
            @for (nth, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
                @if nth == named {
                    th.tree[column.position == Position::Tree] scope="row" data-column=(column.head) style=[depth(cell, column)] {
                        (self::cell(cell, column))
                    }
                } @else if row.is_wide {
                    td colspan=(columns.len() - 1) { (self::cell(cell, column)) }
                } @else {
                    td class=[column.is_right.then_some("number")] data-column=(column.head) { (self::cell(cell, column)) }
                }
            }
        }
    }
}

/// Deeper nodes of a tree get no further indentation. Their names would have no room.
const DEEPEST: usize = 12;

/// Returns the depth of a node for the style sheet, which draws a line for each level.
fn depth(cell: &Cell, column: &Column) -> Option<String> {
    (column.position == Position::Tree).then(|| format!("--depth: {}", cell.depth.min(DEEPEST)))
}

fn cell(cell: &Cell, column: &Column) -> Markup {
    // A statement or a name has no margin.
    let text = if column.names_rows() { cell.text.clone() } else { with_sign(&cell.text) };
    html! {
        @match (cell.severity, &cell.link) {
            (Some(severity), _) => (badge(severity, &text)),
            (None, Some(id)) => a href={ "#" (id) } { (text) },
            (None, None) => (text),
        }
        @for note in &cell.notes { small { (with_sign(note)) } }
        @for bar in &cell.bars { div.track aria-hidden="true" { @for part in bar { (self::part(part)) } } }
    }
}

/// Returns a part of a bar.
fn part(Bar { class, start, end }: &Bar) -> Markup {
    let [start, end] = [start, end].map(|at| 100.0 * if at.is_finite() { at.clamp(0.0, 1.0) } else { 0.0 });
    html! { i class=(class) style=(format!("left: {start:.2}%; width: {:.2}%", (end - start).max(0.0))) {} }
}

fn shares(Shares { parts, interval }: &Shares) -> Markup {
    html! {
        div.shares aria-hidden="true" { @for (bar, _) in parts { (part(bar)) } }
        div.interval aria-hidden="true" { (part(interval)) }
        ul.legend { @for (bar, text) in parts { li { span class={ "key " (bar.class) } {} (with_sign(text)) } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Fix;

    const EVIL: &str = "<img src=x>\u{202e}";

    #[test]
    fn text_from_outside_is_escaped_and_nothing_is_loaded() {
        let fix = Fix::new(EVIL).command("echo 'a' > \"b\"").undo(EVIL).lasting(EVIL).risk(EVIL);
        let finding = Finding::new("tsc-demoted", Severity::Warning, "5 +- 1 ns").evidence(EVIL).why(EVIL).fix(fix);
        let cell = Cell { notes: vec![EVIL.into()], severity: Some(Severity::Ok), ..EVIL.into() };
        let rows = vec![Row::new([cell, EVIL.into()]), Row::wide(EVIL, EVIL)];
        let columns = vec![Column::left(EVIL), Column::left(EVIL).at(Position::Tree)];
        let blocks = vec![
            Block::Finding(finding.clone(), vec![finding]),
            Block::Table(Table { name: EVIL.into(), columns, rows, note: EVIL.into() }),
            Block::Facts(Facts::new(0, [(EVIL, EVIL)])),
            Block::Code("SELECT 1 < 2\n".into()),
        ];
        let page = page(EVIL, &Document::named(EVIL, EVIL).with(blocks), Some("file"));
        for outside in ["<img", "<script", "http:", "https:", "url(", "@import", "\u{202e}"] {
            assert!(!page.contains(outside), "{outside}: {page}");
        }
        for part in [
            "<h2>5 ± 1 ns</h2>",
            "<pre class=\"command\">echo 'a' &gt; &quot;b&quot;</pre>",
            "<pre>SELECT 1 &lt; 2\n</pre>",
            "consequence: tsc-demoted",
            "&lt;img src=x&gt;\\u{202e}",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    /// A file can contain any figures.
    #[test]
    fn bars_stay_on_their_axis() {
        let style = |start, end| part(&Bar { class: "", start, end }).into_string();
        assert!(style(0.25, 0.5).contains("left: 25.00%; width: 25.00%"));
        assert!(style(-1.0, 7.0).contains("left: 0.00%; width: 100.00%"));
        assert!(style(0.5, 0.25).contains("left: 50.00%; width: 0.00%"));
        assert!(style(f64::NAN, f64::INFINITY).contains("left: 0.00%; width: 0.00%"));
    }
}
