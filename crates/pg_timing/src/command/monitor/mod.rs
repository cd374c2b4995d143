//! `pg_timing monitor`: watches this host's clocks until it is stopped: as a live screen, or as an exporter.

mod outputs;
pub mod screen;

use super::values::{count, seconds};
use super::{NOT_DONE, interrupt};
use crate::host::watch::LiveMachine;
use crate::human::reason;
use crate::monitor::{Monitor, ServerFigures, run as watch, server};
use crate::report::MonitorReport;
use crate::server::connection::require_libpq;
use anyhow::anyhow;
use clap::{Args, ValueHint};
use outputs::Outputs;
use ratatui::crossterm::terminal::disable_raw_mode;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use timing_clock::Nanos;

/// The shortest interval. A sample takes some milliseconds.
const LEAST_INTERVAL_S: f64 = 0.02;
/// More samples would take decades.
const MOST_SAMPLES: u64 = 1_000_000_000;

const EXAMPLES: &str = "\
Show a live screen with a new sample every second. With less than 10 s, lost time is not judged:
  pg_timing monitor --interval 1

Serve metrics for Prometheus, and write a log of events:
  pg_timing monitor --listen 9864 --events events.jsonl";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MonitorArguments {
    /// Time between two samples, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds(LEAST_INTERVAL_S), allow_negative_numbers = true)]
    pub interval: Nanos,
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics; a port alone means 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub listen: Option<String>,
    /// Write metrics to FILE after each sample, for node_exporter's textfile collector; the name must end in .prom
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub textfile: Option<PathBuf>,
    /// Append each event to FILE, one line of JSON per event
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub events: Option<PathBuf>,
    /// Also watch this server: what its settings cost, and what pg_fast_timing does (a database name, a connection string or a
    /// URI)
    #[arg(long, value_name = "CONNINFO")]
    pub server: Option<String>,
    /// Stop after N samples
    #[arg(long, value_name = "N", value_parser = count(MOST_SAMPLES))]
    pub samples: Option<u64>,
}

pub fn run(arguments: &MonitorArguments) -> anyhow::Result<u8> {
    let stop = interrupt::flag_of_service()?;
    let has_screen = has_screen(arguments);
    if arguments.server.is_some() {
        // A server can answer later. A missing library stays missing.
        require_libpq()?;
    }
    // All outputs are opened first: an error in an argument ends the program at once.
    let mut outputs = Outputs::open(arguments, !has_screen)?;
    let server = observe_server(arguments, &stop)?;
    let screen = has_screen.then(|| start_screen(stop.clone())).transpose()?;
    outputs.announce();
    let mut monitor = Monitor::new(LiveMachine::new(stop.clone()), arguments.interval.secs(), server);
    watch(
        &mut monitor,
        arguments.samples,
        || stop.load(Ordering::Relaxed),
        |report, events| {
            let report = outputs.publish(report.clone(), events);
            // A screen that is blocked must not collect reports.
            if let Some((reports, _)) = &screen {
                _ = reports.try_send(report);
            }
        },
    );
    let shown = screen.map_or(Ok(()), |(_, end)| end.recv_timeout(SCREEN_END).unwrap_or_else(|_| give_up()));
    let exit_status = outputs.finish();
    shown.map(|()| exit_status)
}

/// Starts to observe the server of `--server`.
fn observe_server(arguments: &MonitorArguments, stop: &Arc<AtomicBool>) -> anyhow::Result<Option<ServerFigures>> {
    let Some(conninfo) = &arguments.server else { return Ok(None) };
    let figures = server::start(conninfo, arguments.interval.secs(), stop.clone())
        .map_err(|error| anyhow!("no second thread can be created: {}", reason(&error)))?;
    // A monitor that takes only a few samples would end before the first figures.
    if arguments.samples.is_some() {
        figures.wait(stop);
    }
    Ok(Some(figures))
}

/// Returns whether the live screen is shown: on a terminal, if no option makes the program an exporter.
fn has_screen(arguments: &MonitorArguments) -> bool {
    let is_exporter = arguments.listen.is_some() || arguments.textfile.is_some() || arguments.samples.is_some();
    !is_exporter && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// How long the end waits for the screen. A terminal that is slow takes the last characters in this time.
const SCREEN_END: Duration = Duration::from_secs(3);

/// Ends the program without the screen: a terminal that takes no output blocks it forever, for example if a network fails.
fn give_up() -> ! {
    // A program that reads the terminal later gets its keys.
    _ = disable_raw_mode();
    std::process::exit(NOT_DONE.into())
}

/// Shows the live screen in another thread, because the samples must not wait for the terminal. Returns where it takes reports,
/// and what it returns at its end.
fn start_screen(stop: Arc<AtomicBool>) -> anyhow::Result<(SyncSender<MonitorReport>, Receiver<anyhow::Result<()>>)> {
    let (reports, shown_reports) = sync_channel(1);
    let (ended, end) = sync_channel(1);
    let show = move || {
        let shown = screen::run(&shown_reports, &stop);
        // The samples must not go on without the screen.
        stop.store(true, Ordering::Relaxed);
        _ = ended.send(shown);
    };
    std::thread::Builder::new().name("screen".into()).spawn(show)?;
    Ok((reports, end))
}
