//! The last figures of the server: one thread observes it, and another one takes the samples.

use crate::report::{Collector, ServerReport};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The figures that both threads share.
#[derive(Clone)]
pub struct ServerFigures {
    last: Arc<Mutex<Option<Last>>>,
    answered: Arc<Mutex<Instant>>,
    /// after this time without an answer, the figures are too old
    longest_silence: Duration,
}

/// The end of the last look at the server.
struct Last {
    report: ServerReport,
    seconds: f64,
}

impl ServerFigures {
    /// Returns shared figures that are empty. The silence of the server begins now.
    pub fn new(longest_silence: Duration) -> ServerFigures {
        ServerFigures { last: Arc::default(), answered: Arc::new(Mutex::new(Instant::now())), longest_silence }
    }

    /// Replaces the figures. `seconds` is the time that they took.
    pub fn set(&self, report: ServerReport, seconds: f64) {
        *lock(&self.last) = Some(Last { report, seconds });
    }

    /// Returns whether there are no figures and no error yet.
    pub fn is_empty(&self) -> bool {
        lock(&self.last).is_none()
    }

    /// Returns where a connection writes the time of the server's last answer.
    pub fn answered(&self) -> Arc<Mutex<Instant>> {
        self.answered.clone()
    }

    /// Returns the figures, or an error if they are too old. `None` before the first answer. `stopped_s` is the time for
    /// which this process was stopped: it does not count.
    pub fn latest(&self, stopped_s: f64) -> Option<(ServerReport, Collector)> {
        self.latest_at(Instant::now(), stopped_s)
    }

    fn latest_at(&self, now: Instant, stopped_s: f64) -> Option<(ServerReport, Collector)> {
        let stopped = Duration::try_from_secs_f64(stopped_s).unwrap_or_default();
        let silence = now.saturating_duration_since(*lock(&self.answered)).saturating_sub(stopped);
        let last = lock(&self.last);
        let is_error = last.as_ref().is_some_and(|last| last.report.error.is_some());
        // An error names a cause. Old figures would look like new ones.
        let (report, seconds) = if silence > self.longest_silence && !is_error {
            let error = Some(format!("the server has not answered for {} s", silence.as_secs()));
            (ServerReport { error, ..ServerReport::default() }, silence.as_secs_f64())
        } else {
            let last = last.as_ref()?;
            (last.report.clone(), last.seconds)
        };
        let collector = Collector { name: Collector::SERVER, seconds, error: report.error.clone() };
        Some((report, collector))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        *lock(&figures.answered()) = start + Duration::from_secs(60);
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
}
