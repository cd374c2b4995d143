//! The page of `explain --plan LOG --all`: all statements of a log, with a bar for the time of each.

use super::page;
use crate::human::{grouped, percent};
use crate::render::log_text::{answer, corrected, facts, ranks, time, title};
use crate::report::{LogReport, LoggedStatement};
use maud::{Markup, html};

pub fn html(report: &LogReport) -> String {
    let max_ms = report.statements.iter().map(|statement| statement.total.reported_ms).fold(0.0, f64::max);
    let body = html! {
        h1 { (answer(report)) }
        table {
            thead {
                tr {
                    th { "lost" }
                    th { "share" }
                    th { "reported" }
                    th { "corrected" }
                    th { "runs" }
                    th { "ranks" }
                    th.node { span.corrected { "corrected" } ", " span.reported { "lost" } }
                    th.node { "statement" }
                }
            }
            tbody { @for statement in &report.statements { (line(statement, max_ms)) } }
        }
        dl {
            @for (name, fact) in facts(report, report.statements.len()) { dt { (name) } dd { (fact) } }
        }
    };
    page("Overhead of timing in a log", body)
}

fn line(statement: &LoggedStatement, max_ms: f64) -> Markup {
    let total = &statement.total;
    let lost_ms = total.overhead_ms().estimate;
    let width = |ms: f64| format!("width: {:.1}%", if max_ms > 0.0 { 100.0 * ms / max_ms } else { 0.0 });
    html! {
        tr {
            td { (time(lost_ms)) }
            td { (percent(total.overhead_share.estimate)) }
            td { (time(total.reported_ms)) }
            td { (corrected(total)) }
            td { (grouped(total.runs)) }
            td { (ranks(statement)) }
            td.bars title=(format!("{} without timing, {} lost", time(total.corrected_ms.estimate), time(lost_ms))) {
                div.bar.corrected style=(width(total.corrected_ms.estimate)) {}
                div.bar.reported style=(width(lost_ms)) {}
            }
            td.node { (title(statement)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_escaped() {
        let statement = LoggedStatement { statement: Some("select 1 < 2".into()), ..Default::default() };
        let page = html(&LogReport { statements: vec![statement], ..Default::default() });
        assert!(page.contains("select 1 &lt; 2") && !page.contains("NaN") && !page.contains("<script"), "{page}");
    }
}
