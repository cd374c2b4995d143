//! Pages about several reports: a table that links to a section for each report.

use super::html::{self, Section};
use super::{Document, explain, host, log, without_line_ends};
use crate::document::text::cut;
use crate::report::ExplainReport;
use crate::report::document::Document as Read;
use std::cmp::Reverse;

/// A report with the file that it is from.
pub struct Entry {
    /// `None` for a measurement of this host
    pub file: Option<String>,
    pub document: Read,
}

/// Returns a page about any number of reports: hosts first, the worst one first.
pub fn of_entries(mut entries: Vec<Entry>) -> String {
    entries.sort_by_key(|entry| place(&entry.document));
    let sections: Vec<Section> = entries.iter().map(of_entry).collect();
    let words = [("host", "host report"), ("plan", "plan"), ("log", "log")].map(|(kind, name)| {
        let number = sections.iter().filter(|section| section.kind == kind).count();
        (number > 0).then(|| format!("{number} {name}{}", if number == 1 { "" } else { "s" }))
    });
    page(Document::named(words.into_iter().flatten().collect::<Vec<_>>().join(", "), ""), &sections)
}

/// Returns a page about one or several plans.
pub fn of_plans(reports: &[ExplainReport]) -> String {
    let sections: Vec<Section> = reports.iter().map(of_plan).collect();
    page(Document::named(format!("{} plans", reports.len()), ""), &sections)
}

/// Returns the page of these documents. A single one needs no table.
fn page(overview: Document, sections: &[Section]) -> String {
    match sections {
        [Section { kind: "host", name, file, document, .. }] => {
            html::page(&format!("{name}: clocks"), document, file.as_deref())
        }
        [Section { file, document, .. }] => html::page(explain::TITLE, document, file.as_deref()),
        sections => html::pages(overview, sections),
    }
}

/// Returns the order of a report: hosts (critical, warning, unknown, ok; the slowest clock first), plans, logs.
fn place(document: &Read) -> (u8, Reverse<u64>) {
    match document {
        Read::Host(report) => {
            let cost = report.system().and_then(|clock| clock.cost_ns()).unwrap_or_default();
            ([2, 3, 1, 0][report.verdict.severity as usize], Reverse(cost as u64))
        }
        Read::Explain(_) => (4, Reverse(0)),
        Read::Log(_) => (5, Reverse(0)),
    }
}

fn of_entry(Entry { file, document }: &Entry) -> Section {
    let section = match document {
        Read::Host(report) => {
            let mut document = host::document(report, None);
            // Captured hosts have no name, so they have that of their file.
            if let (None, Some(file)) = (report.host.name.known(), file) {
                document.title = file.clone();
            }
            let (name, verdict) = (document.title.clone(), Some(report.verdict.clone()));
            Section { kind: "host", name, verdict, file: None, document }
        }
        Read::Explain(report) => of_plan(report),
        Read::Log(report) => {
            let document = log::document(report);
            Section { kind: "log", name: log::TITLE.into(), verdict: None, file: None, document }
        }
    };
    Section { file: file.clone().filter(|file| *file != section.name), ..section }
}

/// Returns the section of a plan. Its name is the beginning of the statement, or the plan's first node.
fn of_plan(report: &ExplainReport) -> Section {
    /// Two lines of a phone's screen.
    const LONGEST: usize = 80;
    let name = report.statement.as_deref().map(without_line_ends).filter(|name| !name.is_empty());
    let name = name.or_else(|| report.nodes.first().map(|node| node.title.clone())).unwrap_or_else(|| "plan".into());
    let document = explain::document(report);
    Section { kind: "plan", name: cut(&name, LONGEST), verdict: None, file: None, document }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{LogReport, Origin, Report};

    fn entry(document: Read) -> Entry {
        Entry { file: Some("<file>.json".into()), document }
    }

    fn host() -> Read {
        Read::Host(Report::empty(Origin::Measured, "x").into())
    }

    #[test]
    fn a_single_document_has_no_table_of_documents() {
        let page = of_entries(vec![entry(host())]);
        assert!(
            page.contains("<h1 id=\"document-name\">&lt;file&gt;.json</h1>") && !page.contains("id=\"top\""),
            "{page}"
        );
    }

    #[test]
    fn each_row_links_to_a_section() {
        let documents =
            [host(), Read::Log(LogReport::default().into()), Read::Explain(ExplainReport::default().into()), host()];
        let page = of_entries(documents.map(entry).into());
        assert!(page.contains(">2 host reports, 1 plan, 1 log</h1>"), "{page}");
        for id in ["host-1", "host-2", "plan-3", "log-4"] {
            assert!(page.contains(&format!("href=\"#{id}\"")) && page.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
}
