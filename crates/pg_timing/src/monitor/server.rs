//! Observes a server in its own thread, because an observation takes seconds and a connection can hang.

use crate::error::{Error, SqlState};
use crate::guardian::without_signals;
use crate::host::watch::STOP_CHECK;
use crate::report::{Collector, PlanNode, ServerReport};
use crate::server::advise::advise;
use crate::server::clock::Clocks;
use crate::server::connection::{Connection, Target};
use crate::server::{fast_timing_info, plan_nodes};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timing_clock::Nanos;

/// An observation plans statements on the server, so it is repeated only after this many intervals: five minutes by
/// default.
const OBSERVE_EVERY: u64 = 20;
/// The duration of an observation: long enough for the statistics that backends report once per second.
const MIN_WINDOW_S: f64 = 2.0;
const MAX_WINDOW_S: f64 = 10.0;
/// The clocks of the server are measured again after this many intervals: once per day by default.
const CLOCKS_EVERY: u64 = 5760;
/// The longest wait for the first figures: the time of two observations. The timer in deploy/ gives a sample 30 s.
const FIRST_FIGURES: Duration = Duration::from_secs(20);

/// The time that connections and statements may take besides an observation.
const MOST_WAIT_S: f64 = 30.0;

/// The last figures of the server: one thread observes it, and another one takes the samples.
#[derive(Clone)]
pub struct ServerFigures {
    last: Arc<Mutex<Figures>>,
    /// after this time, the figures are too old
    longest: Duration,
}

/// The report, the time in seconds that it took (`None` before the first one), and when it came.
type Figures = (ServerReport, Option<f64>, Instant);

impl ServerFigures {
    pub fn new(longest: Duration) -> ServerFigures {
        let none = (ServerReport::default(), None, Instant::now());
        ServerFigures { last: Arc::new(Mutex::new(none)), longest }
    }

    /// Replaces the figures. `seconds` is the time that they took.
    pub fn set(&self, report: ServerReport, seconds: f64) {
        *self.last.lock().unwrap() = (report, Some(seconds), Instant::now());
    }

    /// Waits for the first figures, for a monitor that takes only a few samples. If there are none in time, that is their
    /// error.
    pub fn wait(&self, stop: &AtomicBool) {
        let end = Instant::now() + FIRST_FIGURES;
        while self.last.lock().unwrap().1.is_none() && !stop.load(Ordering::Relaxed) {
            if Instant::now() > end {
                let error = format!("the first observation did not end within {} s", FIRST_FIGURES.as_secs());
                return self.set(failed(error), FIRST_FIGURES.as_secs_f64());
            }
            std::thread::sleep(STOP_CHECK);
        }
    }

    /// Returns the figures, or an error if they are too old. `None` before the first figures, until these are late. `stopped_s` is
    /// the time for which this process was stopped: it does not count.
    pub fn latest(&self, stopped_s: f64) -> Option<(ServerReport, Collector)> {
        let (mut report, seconds, at) = self.last.lock().unwrap().clone();
        let age = at.elapsed().saturating_sub(Duration::try_from_secs_f64(stopped_s).unwrap_or_default());
        let is_late = age > self.longest;
        if is_late && report.error.is_none() {
            report = failed(format!("the server has not answered for {} s", age.as_secs()));
        }
        let seconds = seconds.or(is_late.then_some(age.as_secs_f64()))?;
        let collector = Collector { name: Collector::SERVER, seconds, error: report.error.clone() };
        Some((report, collector))
    }
}

/// Returns a report without figures. Old figures would look like new ones.
fn failed(error: String) -> ServerReport {
    ServerReport { error: Some(error), ..ServerReport::default() }
}

/// Starts to observe the server until `stop` is set.
pub fn start(conninfo: &str, interval_s: f64, stop: Arc<AtomicBool>) -> std::io::Result<ServerFigures> {
    let window_s = interval_s.clamp(MIN_WINDOW_S, MAX_WINDOW_S);
    let figures = ServerFigures::new(Duration::from_secs_f64(interval_s + window_s + MOST_WAIT_S));
    let target = Target { database: Some(conninfo.into()), no_password: true, ..Target::default() };
    let for_thread = figures.clone();
    // libpq's connection stays in its thread.
    let observe = move || observe(&target, Nanos::from_secs(window_s), interval_s, &stop, &for_thread);
    // The thread is not joined: a connection can hang for minutes.
    without_signals(|| std::thread::Builder::new().name("server".into()).spawn(observe))?;
    Ok(figures)
}

fn observe(target: &Target, window: Nanos, interval_s: f64, stop: &Arc<AtomicBool>, figures: &ServerFigures) {
    let mut report = ServerReport::default();
    let mut last_connection: Option<Connection> = None;
    let mut clocks: Option<Clocks> = None;
    for interval in 0u64.. {
        let start = Instant::now();
        let mut look = || -> Result<(), Error> {
            let observe = interval.is_multiple_of(OBSERVE_EVERY) || report.advise.is_none();
            // Settings of ALTER ROLE and ALTER DATABASE are those of new sessions, so each observation has a new connection.
            let known = last_connection.take().filter(|_| !observe);
            let mut connection = known.map_or_else(|| connect(target, stop), Ok)?;
            report.fast_timing = fast_timing_info(&mut connection)?;
            let has_profile = report.fast_timing.as_ref().is_some_and(|fast| fast.scope == "server");
            let nodes = if has_profile { plan_nodes(&mut connection)? } else { Vec::new() };
            report.plan_nodes = without_small_falls(nodes, &report.plan_nodes);
            if observe {
                clocks.take_if(|_| interval.is_multiple_of(CLOCKS_EVERY));
                report.advise = Some(advise(&mut connection, window, &mut clocks, &mut |_| ())?);
            }
            last_connection = Some(connection);
            Ok(())
        };
        match look() {
            Ok(()) => report.error = None,
            Err(error) => report = failed(with_hint(&error)),
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        figures.set(report.clone(), start.elapsed().as_secs_f64());
        let next = start + Duration::from_secs_f64(interval_s);
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(STOP_CHECK);
        }
    }
}

/// Returns the nodes with sums that do not fall by chance: a node's own time is a difference of estimates, but Prometheus takes
/// each fall of a counter for a reset. A fall of up to 5% is chance here.
fn without_small_falls(mut nodes: Vec<PlanNode>, before: &[PlanNode]) -> Vec<PlanNode> {
    for node in &mut nodes {
        let is_same = |old: &&PlanNode| (&old.queryid, &old.plan, old.node) == (&node.queryid, &node.plan, node.node);
        let old = before.iter().find(is_same).map_or(0.0, |old| old.seconds);
        node.seconds = if node.seconds > 0.95 * old { node.seconds.max(old) } else { node.seconds };
    }
    nodes
}

fn connect(target: &Target, stop: &Arc<AtomicBool>) -> Result<Connection, Error> {
    let no_prompt = || Err(Error::new("the server requires a password", "add it to ~/.pgpass"));
    Connection::open(target, no_prompt, stop).map_err(for_monitor)
}

/// The hint of other commands names options that the monitor does not have.
fn for_monitor(error: Error) -> Error {
    match error.state.is(SqlState::NO_SERVER) {
        true => Error { hint: "check that the server runs, and check the address in --server".into(), ..error },
        false => error,
    }
}

/// Returns the error and its hint in one line.
fn with_hint(error: &Error) -> String {
    [&*error.what, &*error.hint].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::FastTiming;

    fn figures_of_age(seconds: u64, report: ServerReport) -> ServerFigures {
        let figures = ServerFigures::new(Duration::from_secs(17));
        figures.set(report, 0.5);
        figures.last.lock().unwrap().2 -= Duration::from_secs(seconds);
        figures
    }

    #[test]
    fn a_sum_falls_only_after_a_reset() {
        let node = |seconds| PlanNode { queryid: "1".into(), seconds, ..PlanNode::default() };
        let next = |old, new| without_small_falls(vec![node(new)], &[node(old)])[0].seconds;
        assert_eq!((next(5.0, 6.0), next(5.0, 4.9), next(5.0, 4.0)), (6.0, 5.0, 4.0));
        assert_eq!(without_small_falls(vec![node(3.0)], &[])[0].seconds, 3.0);
    }

    #[test]
    fn the_hint_names_the_option_of_the_monitor() {
        let error = |state: &str| Error { state: SqlState(state.into()), ..Error::new("down", "-h and -p") };
        assert!(for_monitor(error(SqlState::NO_SERVER)).hint.contains("--server"));
        assert_eq!(for_monitor(error("28P01")).hint, "-h and -p");
    }

    #[test]
    fn figures_of_a_silent_server_go_away() {
        let report = ServerReport { fast_timing: Some(FastTiming::default()), ..ServerReport::default() };
        let (new, collector) = figures_of_age(16, report.clone()).latest(0.0).unwrap();
        assert!(new.fast_timing.is_some() && collector.error.is_none());
        let (old, collector) = figures_of_age(18, report.clone()).latest(0.0).unwrap();
        assert!(old.fast_timing.is_none());
        assert_eq!(old.error.as_deref(), Some("the server has not answered for 18 s"));
        assert_eq!(collector.error, old.error);
        let (_, collector) = figures_of_age(100, report).latest(90.0).unwrap();
        assert_eq!(collector.error, None, "this process was stopped");
    }

    #[test]
    fn a_silent_server_is_an_error_before_the_first_figures() {
        let figures = ServerFigures::new(Duration::from_secs(17));
        figures.last.lock().unwrap().2 -= Duration::from_secs(16);
        assert!(figures.latest(0.0).is_none());
        figures.last.lock().unwrap().2 -= Duration::from_secs(2);
        let (report, collector) = figures.latest(0.0).unwrap();
        assert_eq!(report.error.as_deref(), Some("the server has not answered for 18 s"));
        assert_eq!((collector.error, collector.seconds.floor()), (report.error, 18.0));
        assert!(figures.latest(10.0).is_none(), "this process was stopped");
    }

    #[test]
    fn a_known_cause_stays() {
        let (report, _) = figures_of_age(100, failed("refused".into())).latest(0.0).unwrap();
        assert_eq!(report.error.as_deref(), Some("refused"));
    }

    #[test]
    fn an_error_has_its_hint() {
        assert_eq!(with_hint(&Error::new("it failed", "try again")), "it failed; try again");
        assert_eq!(with_hint(&Error::new("it failed", "")), "it failed");
    }
}
