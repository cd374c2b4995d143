//! Several plans on one page: a table that links to their sections.

use super::explain;
use super::page::{Place, facts, first_sentence, fraction, page, scrolling, signed, titled};
use crate::human::percent;
use crate::render::explain_text::{classic, interval, ms};
use crate::report::{ClassicReport, ExplainReport, Range};
use maud::{Markup, html};

/// A row of the table.
pub struct Row<'a> {
    pub report: &'a ExplainReport,
    /// the fragment of its section
    pub id: String,
    pub file: Option<&'a str>,
}

/// Renders several plans.
pub fn several(reports: &[ExplainReport]) -> String {
    match reports {
        [report] => explain::html(report),
        reports => page(explain::TITLE, sections(html! { (reports.len()) " plans" }, html! {}, reports)),
    }
}

/// Renders both statements of the classic test.
pub fn classic(report: &ClassicReport) -> String {
    let reports = [&report.count, &report.nested];
    let body = match (&report.count.runs, &report.nested.runs) {
        (Some(count), Some(nested)) => {
            let answer = classic::answer(count, nested);
            let (first, others) = first_sentence(&answer);
            let read = facts([("one read", classic::read(&report.read))]);
            sections(html! { (signed(first)) }, html! { p { (signed(others)) } (read) }, reports)
        }
        _ => sections(html! { "2 plans" }, html! {}, reports),
    };
    page(explain::TITLE, body)
}

/// Returns a heading, the table, and the sections of these plans.
fn sections<'a>(heading: Markup, lines: Markup, reports: impl IntoIterator<Item = &'a ExplainReport>) -> Markup {
    let row = |(report, nth)| Row { report, id: format!("plan-{nth}"), file: None };
    let rows: Vec<Row> = reports.into_iter().zip(1..).map(row).collect();
    html! {
        (titled(1, Some("top"), heading))
        (lines)
        (table(&rows))
        @for row in &rows { (explain::section(row.report, Place { level: 2, id: &row.id, file: row.file })) }
    }
}

pub fn table(rows: &[Row]) -> Markup {
    scrolling(
        "plans",
        html! {
            table.overview.plans {
                thead {
                    tr {
                        th scope="col" { "plan" }
                        th.number scope="col" { "reported" }
                        th.number scope="col" { "corrected" }
                        th.number scope="col" { "overhead" }
                    }
                }
                tbody { @for row in rows { (line(row)) } }
            }
        },
    )
}

fn line(Row { report, id, file }: &Row) -> Markup {
    let Range { estimate, .. } = report.corrected_ms;
    let overhead = fraction(report.reported_ms - estimate, report.reported_ms).max(0.0);
    html! {
        tr {
            th.text scope="row" {
                a href={ "#" (id) } { (name(report)) }
                @if let Some(file) = file { small { (file) } }
            }
            td.number { (ms(report.reported_ms)) }
            @if report.has_figures() {
                td.number { (ms(estimate)) small { (signed(&interval(report.corrected_ms))) " ms" } }
                td.number { (percent(overhead)) }
            } @else {
                td.number { "-" }
                td.number { "-" }
            }
        }
    }
}

/// Returns the beginning of the statement, or the plan's first node.
fn name(report: &ExplainReport) -> String {
    /// Two lines of a phone's screen.
    const LONGEST: usize = 80;
    let statement = report.statement.as_ref().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let name = statement.or_else(|| report.nodes.first().map(|node| node.title.clone()));
    crate::render::columns::cut(&name.filter(|name| !name.is_empty()).unwrap_or_else(|| "plan".into()), LONGEST)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LiveRuns;

    #[test]
    fn a_plan_without_figures_has_no_overhead() {
        let row = |runs| {
            let report = ExplainReport {
                runs,
                reported_ms: 100.0,
                corrected_ms: Range::between(40.0, 60.0),
                ..Default::default()
            };
            line(&Row { report: &report, id: "plan-1".into(), file: Some("<f>") }).into_string()
        };
        assert!(
            row(None).contains("<td class=\"number\">50%</td>") && row(None).contains("&lt;f&gt;"),
            "{}",
            row(None)
        );
        assert!(!row(Some(LiveRuns::default())).contains('%'));
    }

    #[test]
    fn several_plans_have_a_table_that_links_to_them() {
        let report = || ExplainReport { statement: Some("select <1>".into()), ..Default::default() };
        let page = several(&[report(), report()]);
        for part in
            ["<h1 id=\"top\">2 plans</h1>", "href=\"#plan-1\"", "href=\"#plan-2\"", "id=\"plan-2\"", "select &lt;1&gt;"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
