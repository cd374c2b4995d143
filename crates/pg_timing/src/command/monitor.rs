//! `pg_timing monitor`: watches this host's clocks until it is stopped.

use super::arguments::MonitorArguments;
use super::{interrupt, print};
use crate::escape;
use crate::host::watch::LiveMachine;
use crate::monitor::{Monitor, Schedule, run as watch};
use crate::report::MonitorEvent;
use std::sync::atomic::Ordering;

pub fn run(arguments: &MonitorArguments) -> anyhow::Result<u8> {
    let stop = interrupt::flag_of_service()?;
    let schedule = Schedule { interval_s: arguments.interval.secs(), samples: arguments.samples };
    let mut monitor = Monitor::new(LiveMachine::new(stop.clone()), schedule.interval_s);
    watch(
        &mut monitor,
        schedule,
        || stop.load(Ordering::Relaxed),
        |report, events| {
            for event in events {
                _ = print(&line(event));
            }
            if std::env::var("DUMP").is_ok() {
                eprintln!("{}", crate::render::openmetrics::text(report));
            }
        },
    );
    Ok(0)
}

/// Returns an event as a line of a log.
fn line(event: &MonitorEvent) -> String {
    let subject = event.subject.as_ref().map(|subject| format!(" [{subject}]")).unwrap_or_default();
    let severity = event.severity.map(|severity| format!(" {}:", severity.word())).unwrap_or_default();
    let text = format!("{} {}{subject}:{severity} {}", event.time, event.event.name(), event.summary);
    format!("{}\n", escape::line(&text))
}
