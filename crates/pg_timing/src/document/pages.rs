//! Pages about several reports: tables that link to a section for each report.

use super::html::{self, Section};
use super::{Bar, Block, Cell, Column, Document, Row, Table, explain, host, log, one_line};
use crate::human::{duration, percent};
use crate::render::columns::cut;
use crate::render::explain_text::{interval, ms};
use crate::report::document::Document as Read;
use crate::report::{ClassicReport, ExplainReport, Report, Severity};
use std::collections::BTreeSet;

/// A report with the file that it is from.
pub struct Entry {
    /// `None` for a measurement of this host
    pub file: Option<String>,
    pub document: Read,
}

/// Returns a page about any number of reports: hosts first, the worst one first.
pub fn of_entries(mut entries: Vec<Entry>) -> String {
    if entries.len() == 1
        && let Some(Entry { file, document }) = entries.pop()
    {
        return html::page(&title(file.as_deref(), &document), document_of(&document), file);
    }
    let mut sections: Vec<(Section, Entry)> =
        entries.into_iter().zip(1..).map(|(entry, nth)| section(entry, nth)).collect();
    sections.sort_by(|(_, a), (_, b)| place(a).partial_cmp(&place(b)).unwrap_or(std::cmp::Ordering::Equal));
    let (overview, heading) = overview(&sections);
    let sections: Vec<Section> = sections.into_iter().map(|(section, _)| section).collect();
    html::pages(&heading, overview, &sections)
}

/// Returns a page about one or several plans.
pub fn of_plans(reports: &[ExplainReport]) -> String {
    match reports {
        [report] => html::page(explain::TITLE, explain::document(report), None),
        reports => plans(Document { title: format!("{} plans", reports.len()), ..Document::default() }, reports.iter()),
    }
}

/// Returns a page about the test without a statement.
pub fn of_classic(report: &ClassicReport) -> String {
    plans(explain::classic(report), [&report.count, &report.nested].into_iter())
}

fn plans<'a>(mut overview: Document, reports: impl Iterator<Item = &'a ExplainReport>) -> String {
    let (rows, sections) = reports
        .zip(1..)
        .map(|(report, nth)| {
            let id = format!("plan-{nth}");
            (plan_row(report, &id, None), Section { document: explain::document(report), id, file: None })
        })
        .unzip();
    overview.blocks.push(plan_table(rows));
    let sections: Vec<Section> = sections;
    html::pages(explain::TITLE, overview, &sections)
}

fn document_of(document: &Read) -> Document {
    match document {
        Read::Host(report) => host::document(report),
        Read::Explain(report) => explain::document(report),
        Read::Log(report) => log::document(report),
    }
}

fn title(file: Option<&str>, document: &Read) -> String {
    match document {
        Read::Host(report) => format!("{}: clocks", host_name(report, file)),
        Read::Explain(_) => explain::TITLE.into(),
        Read::Log(_) => log::TITLE.into(),
    }
}

fn section(entry: Entry, nth: usize) -> (Section, Entry) {
    let mut document = document_of(&entry.document);
    let kind = match &entry.document {
        Read::Host(report) => {
            document.title = host_name(report, entry.file.as_deref()).into();
            "host"
        }
        Read::Explain(_) => "plan",
        Read::Log(_) => "list",
    };
    (Section { document, id: format!("{kind}-{nth}"), file: entry.file.clone() }, entry)
}

/// Returns the order of a report: hosts (critical, warning, unknown, ok; the slowest clock first), plans, lists.
fn place(entry: &Entry) -> (u8, f64) {
    match &entry.document {
        Read::Host(report) => {
            let cost = report.system().and_then(|clock| clock.cost_ns()).unwrap_or_default();
            (SEVERITIES.iter().position(|s| *s == report.verdict.severity).unwrap_or_default() as u8, -cost)
        }
        Read::Explain(_) => (SEVERITIES.len() as u8, 0.0),
        Read::Log(_) => (SEVERITIES.len() as u8 + 1, 0.0),
    }
}

/// The worst first.
const SEVERITIES: [Severity; 4] = [Severity::Critical, Severity::Warning, Severity::Unknown, Severity::Ok];

/// Returns the tables of all reports, and the heading above them.
fn overview(sections: &[(Section, Entry)]) -> (Document, String) {
    let (mut hosts, mut plans, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    let mut reports = Vec::new();
    for (Section { id, .. }, entry) in sections {
        let file = entry.file.as_deref();
        match &entry.document {
            Read::Host(report) => {
                hosts.push(host_row(report, id, file));
                reports.push((report.as_ref(), file));
            }
            Read::Explain(report) => plans.push(plan_row(report, id, file)),
            Read::Log(_) => lists.push(Row::new([link(id, log::TITLE.into(), file)])),
        }
    }
    // One host can have several reports.
    let names: BTreeSet<&str> = reports.iter().map(|(report, file)| host_name(report, *file)).collect();
    let host = if names.len() == reports.len() { "host" } else { "host report" };
    let counted = |number: usize, name: &str, plural: &str| match number {
        0 => None,
        1 => Some(format!("1 {name}")),
        number => Some(format!("{number} {plural}")),
    };
    let heading = [
        counted(hosts.len(), host, &format!("{host}s")),
        counted(plans.len(), "plan", "plans"),
        counted(lists.len(), "list of statements", "lists of statements"),
    ];
    let heading = heading.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let of = |severity| reports.iter().filter(|(report, _)| report.verdict.severity == severity).count();
    let counts = SEVERITIES.map(|severity| (of(severity), severity.word()));
    let counts = counts.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}"));
    let mut overview =
        Document { title: heading.clone(), lead: counts.collect::<Vec<_>>().join(", "), ..Document::default() };
    if !hosts.is_empty() {
        overview.blocks.push(host_table(hosts, &reports));
    }
    if !plans.is_empty() {
        overview.blocks.push(plan_table(plans));
    }
    if !lists.is_empty() {
        overview.blocks.push(Block::Table(Table {
            name: "lists".into(),
            columns: vec![Column::left("list")],
            rows: lists,
            ..Table::default()
        }));
    }
    (overview, heading)
}

/// Returns a name that links to a section, with its file.
fn link(id: &str, name: String, file: Option<&str>) -> Cell {
    let notes = file.filter(|file| *file != name).map(String::from).into_iter().collect();
    Cell { link: Some(id.into()), notes, ..name.into() }
}

/// Returns the host's name. Captured hosts have none, so they have that of their file.
fn host_name<'a>(report: &'a Report, file: Option<&'a str>) -> &'a str {
    match (report.host.name.known(), file) {
        (None, Some(file)) => file,
        _ => host::name(report),
    }
}

/// The ends of the bars' axis. No clock is read in less than 1 ns. Few are slower than 10 us, and their bars are full.
const AXIS_NS: [f64; 2] = [1.0, 1e4];

fn position(ns: f64) -> f64 {
    let [low, high] = AXIS_NS.map(f64::ln);
    (ns.max(1.0).ln() - low) / (high - low)
}

fn host_row(report: &Report, id: &str, file: Option<&str>) -> Row {
    let severity = report.verdict.severity;
    let system = report.system();
    let alarms: Vec<&str> =
        report.findings.iter().filter(|f| f.severity >= Severity::Warning).map(|f| f.id.as_str()).collect();
    let alarms = match (alarms.is_empty(), severity) {
        (true, Severity::Unknown) => "not determined".into(),
        (true, _) => "none".into(),
        (false, _) => alarms.join(", "),
    };
    let mut name = link(id, host_name(report, file).into(), file);
    name.notes.push(host::machine(report).join(", "));
    let bar = |ns| vec![vec![Bar { class: "", start: 0.0, end: position(ns) }]];
    let cost = Cell {
        bars: system.and_then(|clock| clock.cost_ns()).map(bar).unwrap_or_default(),
        ..host::cost(report).unwrap_or_else(|| "not measured".into()).into()
    };
    Row::new([
        name,
        Cell { severity: Some(severity), ..severity.word().into() },
        cost,
        system.and_then(|clock| clock.overhead_per_node_ns()).map_or("-".into(), duration).into(),
        report.clocksource.current.known().map_or("-", String::as_str).into(),
        alarms.into(),
    ])
}

fn host_table(rows: Vec<Row>, reports: &[(&Report, Option<&str>)]) -> Block {
    let limit =
        reports.iter().find_map(|(report, _)| report.read_cost_limits_ns).map(|limits| duration(limits.warning));
    let limit = limit.map(|limit| format!(" The check clock-slow warns above {limit}."));
    let heads = ["host", "verdict", "one read of PostgreSQL's clock", "per row and node", "clock source", "alarms"];
    Block::Table(Table {
        name: "hosts".into(),
        columns: heads.map(Column::left).into(),
        rows,
        note: format!("The bars of one read are logarithmic, from 1 ns to 10 us.{}", limit.unwrap_or_default()),
    })
}

fn plan_table(rows: Vec<Row>) -> Block {
    let figures = ["reported", "corrected", "overhead"].map(Column::right);
    let columns = [Column::left("plan")].into_iter().chain(figures).collect();
    Block::Table(Table { name: "plans".into(), columns, rows, ..Table::default() })
}

fn plan_row(report: &ExplainReport, id: &str, file: Option<&str>) -> Row {
    /// Two lines of a phone's screen.
    const LONGEST: usize = 80;
    // The beginning of the statement, or the plan's first node.
    let name = report.statement.as_deref().map(one_line).filter(|name| !name.is_empty());
    let name = name.or_else(|| report.nodes.first().map(|node| node.title.clone())).unwrap_or_else(|| "plan".into());
    let corrected = report.corrected_ms;
    let overhead = super::fraction(report.reported_ms - corrected.estimate, report.reported_ms).max(0.0);
    let figures = match report.has_figures() {
        true => [
            Cell { notes: vec![format!("{} ms", interval(corrected))], ..ms(corrected.estimate).into() },
            percent(overhead).into(),
        ],
        false => ["-".into(), "-".into()],
    };
    let name = link(id, cut(&name, LONGEST), file);
    Row::new([name, ms(report.reported_ms).into()].into_iter().chain(figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fact, LiveRuns, LogReport, Origin, Range};

    fn entry(document: Read) -> Entry {
        Entry { file: Some("<file>.json".into()), document }
    }

    fn host() -> Read {
        Read::Host(Report::empty(Origin::Measured, "x").into())
    }

    #[test]
    fn a_single_document_has_no_table_of_documents() {
        let page = of_entries(vec![entry(host())]);
        assert!(page.contains("<h1 id=\"document-name\">this host</h1>") && !page.contains("id=\"top\""), "{page}");
        assert!(page.contains("&lt;file&gt;.json"), "{page}");
    }

    #[test]
    fn each_row_links_to_a_section() {
        let documents =
            [host(), Read::Explain(ExplainReport::default().into()), Read::Log(LogReport::default().into()), host()];
        let page = of_entries(documents.map(entry).into());
        // Both reports are of the same host.
        assert!(page.contains(">2 host reports, 1 plan, 1 list of statements</h1>"), "{page}");
        for id in ["host-1", "plan-2", "list-3", "host-4"] {
            assert!(page.contains(&format!("href=\"#{id}\"")) && page.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }

    #[test]
    fn an_unknown_host_is_not_a_host_without_alarms() {
        let alarms = |severity| {
            let mut report = Report::empty(Origin::Measured, "x");
            report.verdict.severity = severity;
            report.host.name = Fact::Known("db1".into());
            host_row(&report, "host-1", Some("file")).cells[5].text.clone()
        };
        assert_eq!([Severity::Unknown, Severity::Ok].map(alarms), ["not determined", "none"]);
    }

    #[test]
    fn a_plan_without_figures_has_no_overhead() {
        let overhead = |runs| {
            let corrected_ms = Range::between(40.0, 60.0);
            let report = ExplainReport { runs, reported_ms: 100.0, corrected_ms, ..Default::default() };
            plan_row(&report, "plan-1", None).cells[3].text.clone()
        };
        assert_eq!([overhead(None), overhead(Some(LiveRuns::default()))], ["50%", "-"]);
    }
}
