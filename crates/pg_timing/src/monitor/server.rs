//! Observes a server in its own thread, because an observation takes seconds and a connection can hang.

use super::lines::without_signals;
use crate::error::{Error, SqlState};
use crate::host::watch::STOP_CHECK;
use crate::report::{Collector, ServerReport};
use crate::server::advise::advise;
use crate::server::clock::Clocks;
use crate::server::connection::{Connection, Password, Target};
use crate::server::fast_timing_info;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// The longest wait for the first figures: the time of two observations. The timer in deploy/ gives a sample 30 s.
const FIRST_FIGURES: Duration = Duration::from_secs(20);

/// The last figures of the server: one thread observes it, and another one takes the samples.
#[derive(Clone)]
pub struct ServerFigures {
    /// the figures, and the seconds that they took
    last: Arc<Mutex<Option<(ServerReport, f64)>>>,
    /// time of the server's last answer
    answered: Arc<Mutex<Instant>>,
    /// after this time without an answer, the figures are too old
    longest_silence: Duration,
}

impl ServerFigures {
    /// Returns shared figures that are empty. The silence of the server begins now.
    pub fn new(longest_silence: Duration) -> ServerFigures {
        ServerFigures { last: Arc::default(), answered: Arc::new(Mutex::new(Instant::now())), longest_silence }
    }

    /// Replaces the figures. `seconds` is the time that they took.
    pub fn set(&self, report: ServerReport, seconds: f64) {
        *lock(&self.last) = Some((report, seconds));
    }

    /// Waits for the first figures, for a monitor that takes only a few samples. If there are none in time, that is their
    /// error.
    pub fn wait(&self, stop: &AtomicBool) {
        self.wait_for(FIRST_FIGURES, stop);
    }

    fn wait_for(&self, limit: Duration, stop: &AtomicBool) {
        let end = Instant::now() + limit;
        while lock(&self.last).is_none() && !stop.load(Ordering::Relaxed) {
            if Instant::now() > end {
                let error = format!("the first observation did not end within {} s", limit.as_secs());
                return self.set(failed(error), limit.as_secs_f64());
            }
            std::thread::sleep(STOP_CHECK);
        }
    }

    /// Returns the figures, or an error if they are too old. `None` before the first answer. `stopped_s` is the time for
    /// which this process was stopped: it does not count.
    pub fn latest(&self, stopped_s: f64) -> Option<(ServerReport, Collector)> {
        self.latest_at(Instant::now(), stopped_s)
    }

    fn latest_at(&self, now: Instant, stopped_s: f64) -> Option<(ServerReport, Collector)> {
        let stopped = Duration::try_from_secs_f64(stopped_s).unwrap_or_default();
        let silence = now.saturating_duration_since(*lock(&self.answered)).saturating_sub(stopped);
        let last = lock(&self.last).clone();
        let is_error = last.as_ref().is_some_and(|(report, _)| report.error.is_some());
        // An error names a cause. Old figures would look like new ones.
        let (report, seconds) = match silence > self.longest_silence && !is_error {
            true => {
                let error = format!("the server has not answered for {} s", silence.as_secs());
                (failed(error), silence.as_secs_f64())
            }
            false => last?,
        };
        let collector = Collector { name: Collector::SERVER, seconds, error: report.error.clone() };
        Some((report, collector))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a report without figures. Old figures would look like new ones.
fn failed(error: String) -> ServerReport {
    ServerReport { error: Some(error), ..ServerReport::default() }
}

/// Starts to observe the server until `stop` is set.
pub fn start(conninfo: &str, interval_s: f64, stop: Arc<AtomicBool>) -> std::io::Result<ServerFigures> {
    let window_s = interval_s.clamp(MIN_WINDOW_S, MAX_WINDOW_S);
    // The server answers at least once per interval. It has the time of an observation for one answer.
    let figures = ServerFigures::new(Duration::from_secs_f64(interval_s + window_s));
    let target = Target { database: Some(conninfo.into()), password: Password::Never, ..Target::default() };
    let for_thread = figures.clone();
    // libpq's connection stays in its thread.
    let observe = move || {
        let window = Nanos::from_secs(window_s);
        let (connection, clocks) = (None, None);
        Observer { target, window, stop, figures: for_thread, connection, clocks, observations: 0 }.run(interval_s);
    };
    // The thread is not joined: a connection can hang for minutes.
    without_signals(|| std::thread::Builder::new().name("server".into()).spawn(observe))?;
    Ok(figures)
}

struct Observer {
    target: Target,
    window: Nanos,
    stop: Arc<AtomicBool>,
    figures: ServerFigures,
    connection: Option<Connection>,
    clocks: Option<Clocks>,
    observations: u64,
}

impl Observer {
    fn run(mut self, interval_s: f64) {
        let mut report = ServerReport::default();
        for interval in 0u64.. {
            let start = Instant::now();
            let observe = interval.is_multiple_of(OBSERVE_EVERY) || report.advise.is_none();
            match self.look(observe, &mut report) {
                Ok(()) => report.error = None,
                Err(error) => {
                    report = failed(with_hint(&error));
                    self.connection = None;
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            self.figures.set(report.clone(), start.elapsed().as_secs_f64());
            let next = start + Duration::from_secs_f64(interval_s);
            while Instant::now() < next && !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(STOP_CHECK);
            }
        }
    }

    fn look(&mut self, observe: bool, report: &mut ServerReport) -> Result<(), Error> {
        // Settings of ALTER ROLE and ALTER DATABASE are those of new sessions, so each observation has a new connection.
        if observe {
            self.connection = None;
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(connect(&self.target, &self.figures, &self.stop)?),
        };
        report.fast_timing = fast_timing_info(connection, &self.stop)?;
        if observe {
            if self.observations.is_multiple_of(CLOCKS_EVERY) {
                self.clocks = None;
            }
            report.advise = Some(advise(connection, self.window, &mut self.clocks, &self.stop, &mut |_| ())?);
            self.observations += 1;
        }
        Ok(())
    }
}

fn connect(target: &Target, figures: &ServerFigures, stop: &AtomicBool) -> Result<Connection, Error> {
    let no_prompt = || Err(Error::new("the server requires a password", "add it to ~/.pgpass"));
    let mut connection = Connection::open(target, no_prompt, stop).map_err(|error| {
        match error.state.is(SqlState::NO_SERVER) {
            // The hint of other commands names options that the monitor does not have.
            true => Error { hint: "check that the server runs, and check the address in --server".into(), ..error },
            false => error,
        }
    })?;
    connection.record_answers(figures.answered.clone());
    Ok(connection)
}

/// Returns the error and its hint in one line.
fn with_hint(error: &Error) -> String {
    let separator = if error.hint.is_empty() { "" } else { "; " };
    format!("{}{separator}{}", error.what, error.hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::FastTiming;

    const LIMIT_S: u64 = 17;

    fn with_figures() -> ServerFigures {
        let figures = ServerFigures::new(Duration::from_secs(LIMIT_S));
        let report = ServerReport { fast_timing: Some(FastTiming::default()), ..ServerReport::default() };
        figures.set(report, 0.5);
        figures
    }

    fn after(figures: &ServerFigures, seconds: u64, stopped_s: f64) -> Option<(ServerReport, Collector)> {
        let answered = *lock(&figures.answered);
        figures.latest_at(answered + Duration::from_secs(seconds), stopped_s)
    }

    #[test]
    fn figures_of_a_silent_server_go_away() {
        let figures = with_figures();
        let (report, collector) = after(&figures, LIMIT_S, 0.0).unwrap();
        assert!(report.fast_timing.is_some() && report.error.is_none());
        assert_eq!(collector, Collector { name: Collector::SERVER, seconds: 0.5, error: None });
        let (report, collector) = after(&figures, LIMIT_S + 1, 0.0).unwrap();
        assert!(report.fast_timing.is_none());
        assert_eq!(report.error.as_deref(), Some("the server has not answered for 18 s"));
        assert_eq!((collector.seconds, collector.error), (18.0, report.error));
    }

    #[test]
    fn a_server_that_answers_during_a_long_observation_is_not_silent() {
        let figures = with_figures();
        let start = *lock(&figures.answered);
        *lock(&figures.answered) = start + Duration::from_secs(60);
        assert!(figures.latest_at(start + Duration::from_secs(61), 0.0).unwrap().0.error.is_none());
    }

    #[test]
    fn a_silent_server_is_an_error_before_the_first_figures() {
        let figures = ServerFigures::new(Duration::from_secs(LIMIT_S));
        assert!(after(&figures, LIMIT_S, 0.0).is_none());
        assert!(after(&figures, LIMIT_S + 1, 0.0).unwrap().0.error.is_some());
    }

    #[test]
    fn a_known_cause_stays() {
        let figures = with_figures();
        figures.set(ServerReport { error: Some("refused".into()), ..ServerReport::default() }, 0.1);
        let (report, collector) = after(&figures, 100, 0.0).unwrap();
        assert_eq!(report.error.as_deref(), Some("refused"));
        assert_eq!((collector.seconds, collector.error), (0.1, report.error));
    }

    #[test]
    fn the_server_is_not_blamed_if_this_process_was_stopped() {
        assert!(after(&with_figures(), 100, 90.0).unwrap().0.error.is_none());
    }

    #[test]
    fn the_first_sample_has_an_error_if_there_are_no_figures_in_time() {
        let figures = ServerFigures::new(Duration::from_secs(3600));
        figures.wait_for(Duration::ZERO, &AtomicBool::new(false));
        let (_, collector) = figures.latest(0.0).unwrap();
        assert_eq!(collector.error.as_deref(), Some("the first observation did not end within 0 s"));
    }

    #[test]
    fn an_error_has_its_hint() {
        assert_eq!(with_hint(&Error::new("it failed", "try again")), "it failed; try again");
        assert_eq!(with_hint(&Error::new("it failed", "")), "it failed");
    }
}
