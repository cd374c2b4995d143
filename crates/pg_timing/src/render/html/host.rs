//! The section of one host.

use super::page::{Place, document, facts, part};
use super::{clocks, findings, hosts, kernel, skew, verdict};
use crate::render::host_text;
use crate::report::{Origin, Report};
use maud::{Markup, html};

pub fn section(report: &Report, place: Place) -> Markup {
    let alarms = findings::alarms(report, place);
    // Hosts without a name are shown with the name of their file.
    let shown_name = hosts::name(report, place.file.filter(|_| !place.is_alone()));
    let place = Place { file: place.file.filter(|file| *file != shown_name), ..place };
    let line = host_text::host_facts(report).join(", ");
    let parts = html! {
        (verdict::verdict(report))
        (verdict::key_figures(report))
        @if !alarms.0.is_empty() { (part(place, "Findings", alarms)) }
        @if !report.clocks.is_empty() { (part(place, "Clocks", clocks::clocks(report))) }
        @if let Some(cpus) = cpus(report) { (part(place, "Counter and CPUs", cpus)) }
        @if let Some(timeline) = kernel::timeline(report) { (part(place, "Kernel log", timeline)) }
        (part(place, "Limits of this report", limits(report)))
    };
    let below_title = html! {
        @if !line.is_empty() { p.muted { (line) } }
        @if let Some(at) = &report.measured_at {
            p.muted { "measured on " (at.replace('T', ", ").replace('Z', " UTC")) }
        }
    };
    document(place, html! { (shown_name) }, below_title, parts)
}

fn cpus(report: &Report) -> Option<Markup> {
    let offsets = skew::offsets(report);
    let mut lines: Vec<(&str, String)> = Vec::new();
    lines.extend(host_text::tsc(report).map(|tsc| (host_text::counter(report), tsc)));
    lines.extend(host_text::claims(report).map(|claims| ("", claims)));
    lines.extend(host_text::cpus(report).map(|cpus| ("CPUs", cpus.replace(" below", ""))));
    (!lines.is_empty() || offsets.is_some())
        .then(|| html! { (facts(lines)) @if let Some(offsets) = offsets { (offsets) } })
}

/// Returns what the figures do not include.
fn limits(report: &Report) -> Markup {
    let mut limits: Vec<(&str, String)> = Vec::new();
    limits.extend(host_text::interrupted(report).map(|sentence| ("interrupted", sentence)));
    let measured = match report.origin {
        _ if report.clocks.is_empty() => "nothing".into(),
        Origin::Measured => format!("{:.1} s", report.measured_seconds),
        Origin::Captured => format!("{:.1} s, on the host that was captured", report.measured_seconds),
        Origin::PgTestTiming => "by pg_test_timing: the read cost, and nothing else".into(),
    };
    limits.push(("measured", measured));
    limits.extend(report.read_cost_limits_ns.map(|ns| {
        let limit = crate::human::duration;
        ("clock-slow", format!("warns above {} per read; critical above {}", limit(ns.warning), limit(ns.critical)))
    }));
    limits.extend(report.cpus.skew_unavailable.clone().map(|why| ("CPUs", why)));
    if report.origin != Origin::PgTestTiming {
        limits.extend(findings::not_determined(report).map(|(id, why)| (id, format!("not determined: {why}"))));
    }
    html! { (facts(limits)) (findings::all_checks(report)) }
}
