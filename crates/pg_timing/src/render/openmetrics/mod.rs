//! Metrics in the text format of Prometheus, version 0.0.4:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

mod clocks;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod grammar;
mod page;
mod server;
pub mod table;
#[cfg(test)]
mod tests;

use crate::report::{EventKind, MonitorReport, Severity};
use page::Page;

/// Every severity, in the order of the exit status.
const SEVERITIES: [Severity; 4] = [Severity::Ok, Severity::Warning, Severity::Critical, Severity::Unknown];

/// The name of the collector of the kernel log.
const KERNEL_LOG: &str = "kernel_log";

/// Returns the page for Prometheus. A figure that is missing or not finite has no series.
pub fn text(report: &MonitorReport) -> String {
    let mut page = Page::default();
    page.add(&table::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
    findings(&mut page, report);
    clocks::add(&mut page, report);
    incidents(&mut page, report);
    if let Some(server) = &report.server {
        server::add(&mut page, server);
    }
    monitor(&mut page, report);
    page.text()
}

fn findings(page: &mut Page, report: &MonitorReport) {
    for severity in SEVERITIES {
        let is = |other: Severity| f64::from(severity == other);
        page.add(&table::VERDICT, &[name(severity)], report.verdict.as_ref().map(|verdict| is(verdict.severity)));
    }
    for watched in &report.findings {
        let id = &watched.finding.id;
        for severity in SEVERITIES {
            page.add(&table::FINDING, &[id, name(severity)], f64::from(severity == watched.finding.severity));
        }
        page.add(&table::FINDING_SINCE, &[id], watched.since);
    }
    for kind in EventKind::ALL {
        page.add(&table::EVENTS, &[kind.name()], report.event_counts.get(&kind).copied().unwrap_or(0));
    }
}

/// Adds what happened to the machine since the start.
fn incidents(page: &mut Page, report: &MonitorReport) {
    // An unreadable kernel log has no messages, and that is no good news.
    let unreadable = |collector: &crate::report::Collector| collector.name == KERNEL_LOG && collector.error.is_some();
    if report.kernel_messages > 0 || !report.collectors.iter().any(unreadable) {
        page.add(&table::KERNEL_MESSAGES, &[], report.kernel_messages);
    }
    page.add(&table::SUSPENDS, &[], report.suspends);
    page.add(&table::SUSPENDED, &[], report.suspended_s);
    page.add(&table::PAUSES, &[], report.pauses);
    page.add(&table::PAUSED, &[], report.paused_s);
}

/// Adds what the monitor knows about itself.
fn monitor(page: &mut Page, report: &MonitorReport) {
    page.add(&table::INTERVAL, &[], positive(report.interval_s));
    page.add(&table::INTERVALS, &[], report.samples);
    page.add(&table::LAST_SAMPLE, &[], (report.samples > 0).then_some(report.sampled_at));
    for collector in &report.collectors {
        page.add(&table::COLLECTOR_DURATION, &[collector.name], collector.seconds);
        page.add(&table::COLLECTOR_SUCCESS, &[collector.name], f64::from(collector.error.is_none()));
    }
    page.add(&table::CPU_SECONDS, &[], report.own.cpu_s);
    page.add(&table::MEMORY, &[], report.own.memory_bytes);
    for (code, count) in &report.http_requests {
        page.add(&table::HTTP_REQUESTS, &[code], *count);
    }
}

fn positive(figure: f64) -> Option<f64> {
    (figure > 0.0).then_some(figure)
}

/// Returns the name of a severity in labels and in JSON.
fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
        Severity::Unknown => "unknown",
    }
}
