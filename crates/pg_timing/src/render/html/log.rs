//! The page of `explain --plan LOG --all`: all statements of a log, with a bar for the time of each.

use super::page::{Place, document, extent, facts, first_sentence, fraction, page, part, scrolling, signed};
use crate::human::{grouped, percent};
use crate::render::log_text;
use crate::render::log_text::{answer, corrected, ranks, time, title};
use crate::report::{LogReport, LoggedStatement};
use maud::{Markup, html};

pub const TITLE: &str = "Overhead of timing in a log";

pub fn html(report: &LogReport) -> String {
    page(TITLE, section(report, Place::ALONE))
}

/// Returns the section of a log.
pub fn section(report: &LogReport, place: Place) -> Markup {
    let facts = facts(log_text::facts(report, report.statements.len()));
    let parts = html! {
        @if !report.statements.is_empty() { (part(place, "Statements", table(report))) }
        (part(place, "How to read these figures, and their limits", facts))
    };
    let answer = answer(report);
    let (first, others) = first_sentence(&answer);
    document(place, html! { (first) }, html! { @if !others.is_empty() { p { (others) } } }, parts)
}

fn table(report: &LogReport) -> Markup {
    let longest_ms = report.statements.iter().map(|statement| statement.total.reported_ms).fold(0.0, f64::max);
    scrolling(
        "statements",
        html! {
            table {
                thead {
                    tr {
                        th.number scope="col" { "lost" }
                        th.number scope="col" { "share" }
                        th.wide scope="col" { span.key {} "corrected, " span.key.reported {} "lost" }
                        th scope="col" { "statement" }
                        th.number scope="col" { "reported" }
                        th.number scope="col" { "corrected" }
                        th.number scope="col" { "runs" }
                        th.number scope="col" { "ranks" }
                    }
                }
                tbody { @for statement in &report.statements { (line(statement, longest_ms)) } }
            }
        },
    )
}

fn line(statement: &LoggedStatement, longest_ms: f64) -> Markup {
    let total = &statement.total;
    let lost_ms = total.overhead_ms().estimate;
    let at = |ms: f64| fraction(ms, longest_ms);
    let corrected_ms = total.corrected_ms.estimate;
    html! {
        tr {
            td.number { (time(lost_ms)) }
            td.number { (percent(total.overhead_share.estimate)) }
            td {
                div.track aria-hidden="true" {
                    i style=(extent(0.0, at(corrected_ms))) {}
                    i.reported style=(extent(at(corrected_ms), at(corrected_ms + lost_ms))) {}
                }
            }
            th.text scope="row" { code { (title(statement)) } }
            td.number { (time(total.reported_ms)) }
            td.number { (signed(&corrected(total))) }
            td.number { (grouped(total.runs)) }
            td.number { (ranks(statement)) }
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
