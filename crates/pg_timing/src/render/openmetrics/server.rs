//! The metrics of the server of `--server`.

use super::page::Page;
use super::table;
use crate::report::{Action, AdviseReport, FastTiming, ServerReport};

const NS_PER_S: f64 = 1e9;

/// Adds the metrics of the server. If it gave no figures in the last interval, its older ones are not added: they would look
/// like new ones.
pub fn add(page: &mut Page, server: &ServerReport) {
    page.add(&table::SERVER_UP, &[], f64::from(server.error.is_none()));
    if server.error.is_some() {
        return;
    }
    if let Some(report) = &server.advise {
        advise(page, report);
    }
    if let Some(figures) = &server.fast_timing {
        fast_timing(page, figures);
    }
}

fn advise(page: &mut Page, report: &AdviseReport) {
    let node_read = report.node_read.as_ref().unwrap_or(&report.read);
    page.add(&table::SERVER_INFO, &[&report.server, &report.server_version, &node_read.clock], 1.0);
    for read in [Some(&report.read), report.node_read.as_ref()].into_iter().flatten() {
        page.add(&table::SERVER_READ_COST, &[&read.clock, "low"], read.low_ns.map(|ns| ns / NS_PER_S));
        page.add(&table::SERVER_READ_COST, &[&read.clock, "high"], read.high_ns.map(|ns| ns / NS_PER_S));
    }
    for setting in &report.settings {
        let name = setting.name.as_str();
        page.add(&table::SETTING_ON, &[name], f64::from(setting.on));
        page.add(&table::SETTING_EVENTS, &[name], setting.events_per_s);
        page.add(&table::SETTING_COST, &[name, "low"], setting.core_share.map(|share| share.low));
        page.add(&table::SETTING_COST, &[name, "high"], setting.core_share.and_then(|share| share.high));
        page.add(&table::SETTING_ADVICE, &[name, advice(setting.advice)], 1.0);
    }
}

fn advice(action: Action) -> &'static str {
    match action {
        Action::Keep => "keep",
        Action::TurnOn => "turn_on",
        Action::TurnOff => "turn_off",
        Action::None => "none",
        Action::SampleLess => "sample_less",
        Action::Unknown => "unknown",
    }
}

fn fast_timing(page: &mut Page, figures: &FastTiming) {
    let FastTiming { method, clock, ticker, scope, .. } = figures;
    page.add(&table::FAST_TIMING_INFO, &[method, clock, ticker, scope], 1.0);
    page.add(&table::FAST_TIMING_CALL_COST, &[], figures.call_cost_ns.map(|ns| ns / NS_PER_S));
    // The counts of the monitor's own session say nothing about the server.
    if scope != "server" {
        return;
    }
    page.add(&table::FAST_TIMING_STATEMENTS, &[], figures.statements);
    page.add(&table::FAST_TIMING_NODES, &["exact"], figures.exact_nodes);
    page.add(&table::FAST_TIMING_NODES, &["estimated"], figures.estimated_nodes);
    page.add(&table::FAST_TIMING_CALLS, &[], figures.node_calls);
    page.add(&table::FAST_TIMING_WITHOUT, &["tsc"], figures.without_tsc);
    page.add(&table::FAST_TIMING_WITHOUT, &["ticks"], figures.without_ticks);
}
