//! The page of `report`: any number of hosts, plans and logs.

use super::page::{Place, page, titled};
use super::{explain, host, hosts, log, plans};
use crate::report::document::Document;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// A document with the file that it is from.
pub struct Entry {
    /// `None` for a measurement of this host
    pub file: Option<String>,
    pub document: Document,
}

/// Renders the documents on one page: hosts first, the worst one first.
pub fn html(entries: &[Entry]) -> String {
    match entries {
        [entry] => {
            let place = Place { file: entry.file.as_deref(), ..Place::ALONE };
            page(&title(entry), section(&entry.document, place))
        }
        entries => several(entries),
    }
}

fn title(Entry { file, document }: &Entry) -> String {
    match document {
        Document::Host(report) => format!("{}: clocks", hosts::name(report, file.as_deref())),
        Document::Explain(_) => explain::TITLE.into(),
        Document::Log(_) => log::TITLE.into(),
    }
}

fn section(document: &Document, place: Place) -> Markup {
    match document {
        Document::Host(report) => host::section(report, place),
        Document::Explain(report) => explain::section(report, place),
        Document::Log(report) => log::section(report, place),
    }
}

fn several(entries: &[Entry]) -> String {
    let mut host_rows = Vec::new();
    let mut plan_rows = Vec::new();
    let mut others = Vec::new();
    for (entry, nth) in entries.iter().zip(1..) {
        let file = entry.file.as_deref();
        match &entry.document {
            Document::Host(report) => host_rows.push(hosts::Row { report, id: format!("host-{nth}"), file }),
            Document::Explain(report) => plan_rows.push(plans::Row { report, id: format!("plan-{nth}"), file }),
            Document::Log(_) => others.push((entry, format!("list-{nth}"))),
        }
    }
    hosts::worst_first(&mut host_rows);
    // One host can have several reports.
    let names: BTreeSet<&str> = host_rows.iter().map(|row| hosts::name(row.report, row.file)).collect();
    let host = if names.len() == host_rows.len() { "host" } else { "host report" };
    let numbers = [(host_rows.len(), host), (plan_rows.len(), "plan"), (others.len(), "list of statements")];
    let plural = |name: &str| if name.starts_with("list") { "lists of statements".into() } else { format!("{name}s") };
    let name = |(count, name): &(usize, &str)| {
        format!("{count} {}", if *count == 1 { name.to_string() } else { plural(name) })
    };
    let heading = numbers.iter().filter(|(count, _)| *count > 0).map(name).collect::<Vec<_>>().join(", ");
    let body = html! {
        (titled(1, Some("top"), html! { (heading) }))
        @if !host_rows.is_empty() { @if host_rows.len() > 1 { (hosts::counts(&host_rows)) } (hosts::table(&host_rows)) }
        @if !plan_rows.is_empty() { (plans::table(&plan_rows)) }
        @if !others.is_empty() {
            ul.links {
                @for (entry, id) in &others {
                    li { a href={ "#" (id) } { (title(entry)) } @if let Some(file) = &entry.file { ": " (file) } }
                }
            }
        }
        @for row in &host_rows { (host::section(row.report, Place { level: 2, id: &row.id, file: row.file })) }
        @for row in &plan_rows { (explain::section(row.report, Place { level: 2, id: &row.id, file: row.file })) }
        @for (entry, id) in &others { (section(&entry.document, Place { level: 2, id, file: entry.file.as_deref() })) }
    };
    page(&heading, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ExplainReport, LogReport, Origin, Report};

    fn entry(document: Document) -> Entry {
        Entry { file: Some("<file>.json".into()), document }
    }

    fn host() -> Document {
        Document::Host(Report::empty(Origin::Measured, "x").into())
    }

    #[test]
    fn a_single_document_has_no_table_of_documents() {
        let page = html(&[entry(host())]);
        assert!(page.contains("<h1 id=\"document-name\">this host</h1>") && !page.contains("id=\"top\""), "{page}");
        assert!(page.contains("&lt;file&gt;.json"), "{page}");
    }

    #[test]
    fn each_row_links_to_a_section() {
        let documents = [
            host(),
            Document::Explain(ExplainReport::default().into()),
            Document::Log(LogReport::default().into()),
            host(),
        ];
        let page = html(&documents.map(entry));
        // Both reports are of the same host.
        assert!(page.contains("<h1 id=\"top\">2 host reports, 1 plan, 1 list of statements</h1>"), "{page}");
        for id in ["host-1", "plan-2", "list-3", "host-4"] {
            assert!(page.contains(&format!("href=\"#{id}\"")) && page.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
}
