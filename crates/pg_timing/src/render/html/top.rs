//! The page of `explain --top`: one row per statement.

use super::page::{Place, document, facts, page, part, scrolling};
use crate::render::top_text::{
    added, executions, headline, legend, mean, node_calls, one_line, period, share, skipped,
};
use crate::report::TopReport;
use maud::{Markup, html};

pub const TITLE: &str = "Timing of the top statements";

pub fn html(report: &TopReport) -> String {
    page(TITLE, section(report, Place::ALONE))
}

/// Returns the section of a server's top statements.
pub fn section(report: &TopReport, place: Place) -> Markup {
    let mut limits = vec![("columns", legend().to_string())];
    limits.extend(report.skipped.iter().map(|entry| ("skipped", skipped(entry))));
    limits.extend(report.unrecorded.clone().map(|why| ("missing", why)));
    if report.interrupted {
        limits.push(("interrupted", "Stopped early: some statements are missing.".into()));
    }
    let parts = html! {
        @if !report.statements.is_empty() { (part(place, "Statements", table(report))) }
        (part(place, "How to read these figures, and their limits", facts(limits)))
    };
    document(place, html! { (headline(report)) }, html! { p.muted { (period(report)) } }, parts)
}

fn table(report: &TopReport) -> Markup {
    scrolling(
        "statements",
        html! {
            table {
                thead {
                    tr {
                        th scope="col" { "statement" }
                        th.number scope="col" { "executions" }
                        th.number scope="col" { "mean" }
                        th.number scope="col" { "node calls" }
                        th.number scope="col" { "timing adds" }
                        th.number scope="col" { "share" }
                    }
                }
                tbody {
                    @for statement in &report.statements {
                        tr {
                            th.text scope="row" { code { (one_line(statement)) } }
                            td.number { (executions(statement)) }
                            td.number { (mean(statement)) }
                            td.number { (node_calls(statement)) }
                            td.number { (added(statement)) }
                            td.number { (share(statement)) }
                        }
                    }
                }
            }
        },
    )
}
