//! Several hosts side by side, the worst first.

use super::page::{extent, scrolling, signed};
use super::verdict::badge;
use crate::human::duration;
use crate::render::host_text::{self, one_read};
use crate::report::{Report, Severity};
use maud::{Markup, html};

/// A row of the table.
pub struct Row<'a> {
    pub report: &'a Report,
    /// the fragment of its section
    pub id: String,
    pub file: Option<&'a str>,
}

/// Sorts the hosts: critical, warning, unknown, ok. Of equal hosts, the one with the slowest clock is the first.
pub fn worst_first(rows: &mut [Row]) {
    let place = |row: &Row| match row.report.verdict.severity {
        Severity::Critical => 0,
        Severity::Warning => 1,
        Severity::Unknown => 2,
        Severity::Ok => 3,
    };
    let cost = |row: &Row| row.report.system().and_then(|clock| clock.cost_ns()).unwrap_or_default();
    rows.sort_by(|a, b| place(a).cmp(&place(b)).then(cost(b).total_cmp(&cost(a))));
}

/// Returns the number of hosts of each severity.
pub fn counts(rows: &[Row]) -> Markup {
    let severities = [Severity::Critical, Severity::Warning, Severity::Unknown, Severity::Ok];
    let count = |severity| rows.iter().filter(|row| row.report.verdict.severity == severity).count();
    html! {
        ul.counts {
            @for (severity, count) in severities.map(|severity| (severity, count(severity))) {
                @if count > 0 { li { b { (count) } " " (badge(severity)) } }
            }
        }
    }
}

/// The ends of the bars' axis. No clock is read in less than 1 ns. Few are slower than 10 us, and their bars are full.
const AXIS_NS: [f64; 2] = [1.0, 1e4];

fn position(ns: f64) -> f64 {
    let [low, high] = AXIS_NS.map(f64::ln);
    (ns.max(1.0).ln() - low) / (high - low)
}

pub fn table(rows: &[Row]) -> Markup {
    let limit = rows.iter().find_map(|row| row.report.read_cost_limits_ns).map(|limits| limits.warning);
    html! {
        @if let Some(ns) = limit {
            p.muted { "The bars of one read are logarithmic, from 1 ns to 10 us. The line is at " (duration(ns)) ", where the check clock-slow warns." }
        }
        (scrolling("hosts", html! {
            table.overview {
                thead {
                    tr {
                        th scope="col" { "verdict" }
                        th scope="col" { "host" }
                        th.wide scope="col" { "one read of PostgreSQL's clock" }
                        th.number scope="col" { "per row and node" }
                        th scope="col" { "clock source" }
                        th scope="col" { "alarms" }
                    }
                }
                tbody { @for row in rows { (line(row, limit, is_unique(rows, row))) } }
            }
        }))
    }
}

fn is_unique(rows: &[Row], row: &Row) -> bool {
    let name = |row: &Row| name(row.report, row.file).to_string();
    rows.iter().filter(|other| name(other) == name(row)).count() == 1
}

/// Returns the row of a host. If several reports have its name, they differ only by their file.
fn line(Row { report, id, file }: &Row, limit: Option<f64>, is_unique: bool) -> Markup {
    let system = report.system();
    let cost = system.and_then(|clock| clock.cost_ns());
    let alarms: Vec<&str> =
        report.findings.iter().filter(|f| f.severity >= Severity::Warning).map(|f| f.id.as_str()).collect();
    html! {
        tr {
            td { (badge(report.verdict.severity)) }
            th.text scope="row" {
                a href={ "#" (id) } { (name(report, *file)) }
                @if let Some(file) = file.filter(|_| !is_unique) { small.file { (file) } }
                small { (host_text::machine(report).join(", ")) }
            }
            td {
                @match (cost, system) {
                    (Some(ns), Some(clock)) => {
                        (if clock.read_ns.is_some() { signed(&one_read(clock)) } else { duration(ns) })
                        div.track.meter aria-hidden="true" {
                            i style=(extent(0.0, position(ns))) {}
                            @if let Some(limit) = limit { i.limit style=(format!("left: {:.2}%", 100.0 * position(limit))) {} }
                        }
                    }
                    _ => "not measured",
                }
            }
            td.number { (system.and_then(|clock| clock.overhead_per_node_ns()).map_or("-".into(), duration)) }
            td { (report.clocksource.current.known().map_or("-", String::as_str)) }
            td.ids { @if alarms.is_empty() { (if report.verdict.severity == Severity::Unknown { "not determined" } else { "none" }) } @for id in alarms { code { (id) } " " } }
        }
    }
}

/// Returns the host's name. Captured hosts have none, so they have that of their file.
pub fn name<'a>(report: &'a Report, file: Option<&'a str>) -> &'a str {
    match (report.host.name.known(), file) {
        (None, Some(file)) => file,
        _ => host_text::name(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ClockReport, Fact, Origin, SYSTEM};

    fn report(severity: Severity, read_ns: f64) -> Report {
        let mut report = Report::empty(Origin::Measured, "x");
        report.verdict.severity = severity;
        report.clocks = vec![ClockReport { name: SYSTEM.into(), read_ns: Some(read_ns), ..ClockReport::default() }];
        report
    }

    fn row(report: &Report) -> Row<'_> {
        Row { report, id: "host-1".into(), file: Some("a<b>.json") }
    }

    #[test]
    fn the_worst_host_is_the_first() {
        let severities = [Severity::Ok, Severity::Unknown, Severity::Critical, Severity::Warning, Severity::Critical];
        let reports: Vec<Report> = severities.iter().zip(1..).map(|(s, n)| report(*s, f64::from(n))).collect();
        let mut rows: Vec<Row> = reports.iter().map(row).collect();
        worst_first(&mut rows);
        let order: Vec<_> = rows.iter().map(|row| row.report.system().unwrap().read_ns.unwrap()).collect();
        assert_eq!(order, [5.0, 3.0, 4.0, 2.0, 1.0]);
    }

    #[test]
    fn reports_of_one_host_show_their_files() {
        let named = |name: &str| {
            let mut report = report(Severity::Ok, 1.0);
            report.host.name = Fact::Known(name.into());
            report
        };
        let (db1, db2) = (named("db1"), named("db2"));
        assert!(!table(&[row(&db1), row(&db2)]).into_string().contains("a&lt;b&gt;.json"));
        assert_eq!(table(&[row(&db1), row(&db1)]).into_string().matches("a&lt;b&gt;.json").count(), 2);
    }

    #[test]
    fn an_unknown_host_is_not_a_host_without_alarms() {
        let cell = |severity| line(&row(&report(severity, 1.0)), None, true).into_string();
        assert!(cell(Severity::Unknown).contains(">not determined<") && cell(Severity::Ok).contains(">none<"));
    }

    #[test]
    fn a_host_without_a_name_has_that_of_its_file() {
        let mut report = report(Severity::Critical, 1e9);
        let text = line(&row(&report), Some(100.0), true).into_string();
        assert!(text.contains("<a href=\"#host-1\">a&lt;b&gt;.json</a>") && text.contains("CRITICAL"), "{text}");
        assert!(text.contains("width: 100.00%") && text.contains("left: 50.00%"), "{text}");
        report.host.name = Fact::Known("<db1>".into());
        assert!(line(&row(&report), None, true).into_string().contains("&lt;db1&gt;"));
    }
}
