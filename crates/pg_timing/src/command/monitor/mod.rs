//! `pg_timing monitor`: watches this host's clocks until it is stopped: as a live screen, or as an exporter.

mod outputs;
pub mod screen;

use super::arguments::MonitorArguments;
use super::interrupt;
use crate::host::watch::LiveMachine;
use crate::monitor::{Monitor, Schedule, run as watch};
use crate::report::{MonitorEvent, MonitorReport};
use crate::server::connection::require_libpq;
use anyhow::anyhow;
use outputs::Outputs;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub fn run(arguments: &MonitorArguments) -> anyhow::Result<u8> {
    let stop = interrupt::flag_of_service()?;
    let has_screen = has_screen(arguments);
    if arguments.server.is_some() {
        // A server can answer later. A missing library stays missing.
        require_libpq()?;
    }
    // All outputs are opened first: an error in an argument ends the program at once.
    let mut outputs = Outputs::open(arguments, !has_screen, &stop)?;
    if has_screen {
        on_screen(arguments, &stop, outputs)?;
    } else {
        outputs.announce();
        sample(arguments, &stop, |report, events| _ = outputs.publish(report, events));
    }
    Ok(0)
}

/// Returns whether the live screen is shown: on a terminal, if no option makes the program an exporter.
fn has_screen(arguments: &MonitorArguments) -> bool {
    let is_exporter = arguments.listen.is_some() || arguments.textfile.is_some() || arguments.samples.is_some();
    !is_exporter && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// Takes samples until the program is stopped.
fn sample(arguments: &MonitorArguments, stop: &Arc<AtomicBool>, publish: impl FnMut(MonitorReport, &[MonitorEvent])) {
    let mut publish = publish;
    let schedule = Schedule { interval_s: arguments.interval.secs(), samples: arguments.samples };
    let mut monitor = Monitor::new(LiveMachine::new(stop.clone()), schedule.interval_s);
    let stopped = || stop.load(Ordering::Relaxed);
    watch(&mut monitor, schedule, stopped, |report, events| publish(report.clone(), events));
}

/// Shows the live screen. The samples are taken in another thread, because they must not wait for the terminal.
fn on_screen(arguments: &MonitorArguments, stop: &Arc<AtomicBool>, mut outputs: Outputs) -> anyhow::Result<()> {
    let latest = Mutex::new(MonitorReport::default());
    let changed = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let sampler = std::thread::Builder::new().name("sampler".into()).spawn_scoped(threads, || {
            sample(arguments, stop, |report, events| {
                let report = outputs.publish(report, events);
                *latest.lock().unwrap_or_else(PoisonError::into_inner) = report;
                changed.fetch_add(1, Ordering::Release);
            });
            // The sampler ends only if it is stopped, or if it failed. The screen must not wait for further samples.
            stop.store(true, Ordering::Relaxed);
        })?;
        let shown = screen::run(&latest, &changed, stop);
        stop.store(true, Ordering::Relaxed);
        sampler.join().map_err(|_| anyhow!("the thread that takes the samples failed"))?;
        shown
    })
}
