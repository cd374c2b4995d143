//! Observes a server in its own thread, because an observation takes seconds and a connection can hang.

use super::server_figures::ServerFigures;
use super::signals::without_signals;
use crate::error::Error;
use crate::host::watch::STOP_CHECK;
use crate::report::ServerReport;
use crate::server::advise::advise_with;
use crate::server::clock::Clocks;
use crate::server::connection::{Connection, OpenError, Password, Target};
use crate::server::fast_timing;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use timing_clock::Nanos;

/// An observation plans statements on the server, so it is repeated only after this many intervals: five minutes by
/// default.
const OBSERVE_EVERY: u64 = 20;
/// The duration of an observation: long enough for the statistics that backends report once per second.
const MIN_WINDOW_S: f64 = 2.0;
const MAX_WINDOW_S: f64 = 10.0;
/// The clocks of the server are measured again after this many observations: once per day by default.
const CLOCKS_EVERY: u64 = 288;

/// Starts to observe the server until `stop` is set.
pub fn start(conninfo: &str, interval_s: f64, stop: Arc<AtomicBool>) -> std::io::Result<ServerFigures> {
    let window_s = interval_s.clamp(MIN_WINDOW_S, MAX_WINDOW_S);
    // The server answers at least once per interval. It has the time of an observation for one answer.
    let figures = ServerFigures::new(Duration::from_secs_f64(interval_s + window_s));
    let target = Target { database: Some(conninfo.into()), password: Password::Never, ..Target::default() };
    let for_thread = figures.clone();
    // libpq's connection stays in its thread.
    let observe = move || {
        let (session, clocks) = (Session::default(), None);
        let window = Nanos::from_secs(window_s);
        Observer { target, interval_s, window, stop, figures: for_thread, session, clocks, observations: 0 }.run();
    };
    // The thread is not joined: a connection can hang for minutes.
    without_signals(|| std::thread::Builder::new().name("server".into()).spawn(observe))?;
    Ok(figures)
}

/// The longest wait for the first figures: the time of two observations. The timer in deploy/ gives a sample 30 s.
const FIRST_FIGURES: Duration = Duration::from_secs(20);

/// Waits for the first figures, for a monitor that takes only a few samples. If there are none in time, that is their
/// error.
pub fn wait(figures: &ServerFigures, stop: &AtomicBool) {
    wait_for(figures, FIRST_FIGURES, stop);
}

fn wait_for(figures: &ServerFigures, limit: Duration, stop: &AtomicBool) {
    let end = Instant::now() + limit;
    while figures.is_empty() && !stop.load(Ordering::Relaxed) {
        if Instant::now() > end {
            let error = Some(format!("the first observation did not end within {} s", limit.as_secs()));
            return figures.set(ServerReport { error, ..ServerReport::default() }, limit.as_secs_f64());
        }
        std::thread::sleep(STOP_CHECK);
    }
}

struct Observer {
    target: Target,
    interval_s: f64,
    window: Nanos,
    stop: Arc<AtomicBool>,
    figures: ServerFigures,
    session: Session<Connection>,
    clocks: Option<Clocks>,
    observations: u64,
}

impl Observer {
    fn run(mut self) {
        let mut report = ServerReport::default();
        for interval in 0u64.. {
            let start = Instant::now();
            match self.look(interval.is_multiple_of(OBSERVE_EVERY) || report.advise.is_none(), &mut report) {
                Ok(()) => report.error = None,
                Err(error) => {
                    // Old figures would look like new ones.
                    report = ServerReport { error: Some(with_hint(&error)), ..ServerReport::default() };
                    self.session = Session::default();
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            self.figures.set(report.clone(), start.elapsed().as_secs_f64());
            let next = start + Duration::from_secs_f64(self.interval_s);
            while Instant::now() < next && !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(STOP_CHECK);
            }
        }
    }

    fn look(&mut self, observe: bool, report: &mut ServerReport) -> Result<(), Error> {
        let open = || connect(&self.target, &self.figures, &self.stop);
        let connection = self.session.get(observe, open)?;
        report.fast_timing = fast_timing::info(connection, &self.stop)?;
        if observe {
            if self.observations.is_multiple_of(CLOCKS_EVERY) {
                self.clocks = None;
            }
            report.advise = Some(advise_with(connection, self.window, &mut self.clocks, &self.stop, &mut |_| ())?);
            self.observations += 1;
        }
        Ok(())
    }
}

fn connect(target: &Target, figures: &ServerFigures, stop: &AtomicBool) -> Result<Connection, Error> {
    let no_prompt = || Err(Error::new("the server requires a password", "add it to ~/.pgpass"));
    let mut connection = Connection::open(target, no_prompt, stop).map_err(|OpenError { error, no_server }| {
        match no_server {
            // The hint of other commands names options that the monitor does not have.
            true => Error { hint: "check that the server runs, and check the address in --server".into(), ..error },
            false => error,
        }
    })?;
    connection.record_answers(figures.answered());
    Ok(connection)
}

/// Returns the error and its hint in one line.
fn with_hint(error: &Error) -> String {
    match error.hint.as_str() {
        "" => error.what.clone(),
        hint => format!("{}; {hint}", error.what),
    }
}

/// The present connection.
struct Session<C>(Option<C>);

impl<C> Default for Session<C> {
    fn default() -> Session<C> {
        Session(None)
    }
}

impl<C> Session<C> {
    /// Returns the connection. Opens it if there is none, or if `renew` is set.
    ///
    /// A connection limits the memory that libpq takes during its whole life. It would reach this limit after some days.
    /// So each observation needs a new connection.
    fn get(&mut self, renew: bool, open: impl FnOnce() -> Result<C, Error>) -> Result<&mut C, Error> {
        if renew {
            self.0 = None;
        }
        match &mut self.0 {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(open()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_observation_has_a_new_connection() {
        let (mut session, mut opened) = (Session::default(), 0);
        for interval in 0..3 * OBSERVE_EVERY {
            let connection = session.get(interval.is_multiple_of(OBSERVE_EVERY), || {
                opened += 1;
                Ok(opened)
            });
            assert_eq!(*connection.unwrap(), 1 + interval / OBSERVE_EVERY);
        }
        assert_eq!(opened, 3);
    }

    #[test]
    fn a_failed_connection_is_opened_again() {
        let mut session = Session::default();
        assert!(session.get(true, || Err(Error::new("refused", ""))).is_err());
        assert_eq!(session.get(false, || Ok(7)), Ok(&mut 7));
    }

    #[test]
    fn the_first_sample_has_an_error_if_there_are_no_figures_in_time() {
        let figures = ServerFigures::new(Duration::from_secs(3600));
        wait_for(&figures, Duration::ZERO, &AtomicBool::new(false));
        let (_, collector) = figures.latest(0.0).unwrap();
        assert_eq!(collector.error.as_deref(), Some("the first observation did not end within 0 s"));
    }

    #[test]
    fn an_error_has_its_hint() {
        assert_eq!(with_hint(&Error::new("it failed", "try again")), "it failed; try again");
        assert_eq!(with_hint(&Error::new("it failed", "")), "it failed");
    }
}
