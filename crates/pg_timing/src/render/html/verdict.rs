//! A severity as a word, a shape and a color, and the verdict of a host.

use super::page::{first_sentence, signed};
use crate::human::duration;
use crate::render::host_text::{access, one_read};
use crate::report::{Report, Severity};
use maud::{Markup, html};

/// Returns the name of a severity's class in the style sheet.
pub fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
        Severity::Unknown => "unknown",
    }
}

/// The shapes differ, so that the meaning does not depend on color: a check mark, a triangle, an octagon, a question mark.
fn shape(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm-1.2 10.2L3.6 8l1.2-1.2 2 2 4.4-4.4 1.2 1.2z",
        Severity::Warning => "M8 1 .6 14.5h14.8zM7.1 6h1.8v4.4H7.1zm0 5.4h1.8v1.7H7.1z",
        Severity::Critical => "M5 1h6l4 4v6l-4 4H5l-4-4V5zm2.1 2.8h1.8v5.4H7.1zm0 6.6h1.8v1.8H7.1z",
        Severity::Unknown => {
            "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm-.9 9.9h1.8v1.8H7.1zM8 3.4c1.6 0 2.8 1 2.8 2.5 0 1.9-1.9 2-1.9 3.6H7.1c0-2.3 1.8-2.4 \
             1.8-3.5 0-.6-.4-1-1-1s-1.1.5-1.1 1.2H5c0-1.7 1.3-2.8 3-2.800z"
        }
    }
}

/// Returns the severity's word with its shape.
pub fn badge(severity: Severity) -> Markup {
    html! {
        span class={ "severity " (class(severity)) } {
            svg viewBox="0 0 16 16" aria-hidden="true" { path fill-rule="evenodd" d=(shape(severity)) {} }
            (severity.word())
        }
    }
}

/// Returns the verdict: its first sentence in large letters, and the others.
pub fn verdict(report: &Report) -> Markup {
    let (first, others) = first_sentence(&report.verdict.summary);
    html! {
        div class={ "verdict " (class(report.verdict.severity)) } {
            (badge(report.verdict.severity))
            p.headline { (signed(first)) }
            @if !others.is_empty() { p { (signed(others)) } }
        }
    }
}

/// Returns the figures that matter most.
pub fn key_figures(report: &Report) -> Markup {
    let system = report.system();
    let read = system.map(|clock| {
        if clock.read_ns.is_some() { one_read(clock) } else { clock.cost_ns().map_or("-".into(), duration) }
    });
    let added = system.and_then(|clock| clock.overhead_per_node_ns());
    let path = system.and_then(|clock| clock.access_path);
    html! {
        dl.figures {
            div { dt { "one read of PostgreSQL's clock" } dd { (signed(read.as_deref().unwrap_or("not measured"))) } }
            div {
                dt { "EXPLAIN ANALYZE adds per row and plan node" }
                dd { @match added { Some(ns) => { small { "up to " } (duration(ns)) } None => "not measured" } }
            }
            div {
                dt { "clock source" }
                dd {
                    (report.clocksource.current.known().map_or("unknown", String::as_str))
                    @if let Some(path) = path { " " small { "read by " (access(path)) } }
                }
            }
            div { dt { "alarms" } (alarms(report)) }
        }
    }
}

/// Returns the number of alarms, and how many there are of each severity.
fn alarms(report: &Report) -> Markup {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let (critical, warnings) = (count(Severity::Critical), count(Severity::Warning));
    html! {
        dd {
            (critical + warnings)
            @if critical > 0 { " " small { @if warnings > 0 { "of them " (critical) " " } "critical" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;

    #[test]
    fn a_verdict_has_its_word_and_is_escaped() {
        let mut report = Report::empty(Origin::Measured, "x");
        for severity in [Severity::Ok, Severity::Warning, Severity::Critical, Severity::Unknown] {
            report.verdict.severity = severity;
            report.verdict.summary = "<img src=x>. \"Yes\"".into();
            let text = verdict(&report).into_string();
            assert!(text.contains(severity.word()) && text.contains("&lt;img") && !text.contains("<img"), "{text}");
        }
        assert!(key_figures(&report).into_string().contains("not measured"));
    }
}
