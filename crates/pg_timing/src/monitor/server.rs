//! Watches a server in its own thread, because an observation takes seconds and a connection can hang.

use super::signals::without_signals;
use crate::error::Error;
use crate::report::ServerReport;
use crate::server::advise::advise_with;
use crate::server::clock::Clocks;
use crate::server::connection::{Connection, Password, Target};
use crate::server::fast_timing;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use timing_clock::Nanos;

/// An observation plans statements on the server, so it is repeated only after this many intervals: five minutes by default.
const OBSERVE_EVERY: u64 = 20;
/// The duration of an observation: long enough for the statistics that backends report once per second.
const MIN_WINDOW_S: f64 = 2.0;
const MAX_WINDOW_S: f64 = 10.0;
/// The clocks of the server are measured again after this many observations: once per day by default.
const CLOCKS_EVERY: u64 = 288;
/// A wait ends this soon after the stop flag was set. Each check wakes the process.
const STOP_CHECK: Duration = Duration::from_millis(250);

/// The last figures of the server.
pub type SharedServer = Arc<Mutex<Option<ServerReport>>>;

/// Starts to watch the server until `stop` is set.
pub fn start(conninfo: &str, interval_s: f64, stop: Arc<AtomicBool>) -> std::io::Result<SharedServer> {
    let shared = SharedServer::default();
    let target = Target { database: Some(conninfo.into()), password: Password::Never, ..Target::default() };
    let for_thread = shared.clone();
    // libpq's connection stays in its thread.
    let watch = move || {
        let (connection, clocks) = (None, None);
        ServerWatch { target, interval_s, stop, shared: for_thread, connection, clocks, observations: 0 }.run();
    };
    // The thread is not joined: a connection can hang for minutes.
    without_signals(|| std::thread::Builder::new().name("server".into()).spawn(watch))?;
    Ok(shared)
}

/// Waits for the first figures, for a monitor that takes only a few samples. Gives up after two observations.
pub fn wait(shared: &SharedServer, stop: &AtomicBool) {
    let end = Instant::now() + Duration::from_secs_f64(2.0 * MAX_WINDOW_S);
    let is_empty = || shared.lock().unwrap_or_else(PoisonError::into_inner).is_none();
    while is_empty() && Instant::now() < end && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STOP_CHECK);
    }
}

struct ServerWatch {
    target: Target,
    interval_s: f64,
    stop: Arc<AtomicBool>,
    shared: SharedServer,
    connection: Option<Connection>,
    clocks: Option<Clocks>,
    observations: u64,
}

impl ServerWatch {
    fn run(mut self) {
        let mut report = ServerReport::default();
        for interval in 0u64.. {
            let next = Instant::now() + Duration::from_secs_f64(self.interval_s);
            match self.look(interval.is_multiple_of(OBSERVE_EVERY) || report.error.is_some(), &mut report) {
                Ok(()) => report.error = None,
                Err(error) => {
                    // Old figures would look like new ones.
                    report = ServerReport { error: Some(error.what), ..ServerReport::default() };
                    self.connection = None;
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
            while Instant::now() < next && !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(STOP_CHECK);
            }
        }
    }

    fn look(&mut self, observe: bool, report: &mut ServerReport) -> Result<(), Error> {
        let no_prompt = || Err(Error::new("the server requires a password", "add it to ~/.pgpass"));
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(Connection::open(&self.target, no_prompt, &self.stop)?),
        };
        report.fast_timing = fast_timing::info(connection, &self.stop)?;
        if observe || report.advise.is_none() {
            if self.observations.is_multiple_of(CLOCKS_EVERY) {
                self.clocks = None;
            }
            let window = Nanos::from_secs(self.interval_s.clamp(MIN_WINDOW_S, MAX_WINDOW_S));
            report.advise = Some(advise_with(connection, window, &mut self.clocks, &self.stop, &mut |_| ())?);
            self.observations += 1;
        }
        Ok(())
    }
}
