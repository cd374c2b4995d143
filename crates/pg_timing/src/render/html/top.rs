//! The page of `explain --top`: one row per statement.

use super::page;
use crate::render::top_text::{
    added, executions, headline, legend, mean, node_calls, one_line, period, share, skipped,
};
use crate::report::TopReport;
use maud::html;

pub fn html(report: &TopReport) -> String {
    let body = html! {
        h1 { (headline(report)) }
        p { (period(report)) }
        table {
            thead {
                tr {
                    th.node { "statement" }
                    th { "executions" }
                    th { "mean" }
                    th { "node calls" }
                    th { "timing adds" }
                    th { "share" }
                }
            }
            tbody {
                @for statement in &report.statements {
                    tr {
                        td.node { (one_line(statement)) }
                        td { (executions(statement)) }
                        td { (mean(statement)) }
                        td { (node_calls(statement)) }
                        td { (added(statement)) }
                        td { (share(statement)) }
                    }
                }
            }
        }
        p.error { (legend()) }
        dl {
            @if !report.skipped.is_empty() {
                dt { "skipped" }
                @for entry in &report.skipped { dd { (skipped(entry)) } }
            }
            @if let Some(why) = &report.unrecorded {
                dt { "missing" }
                dd { (why) }
            }
        }
    };
    page("Timing of the top statements", body)
}
