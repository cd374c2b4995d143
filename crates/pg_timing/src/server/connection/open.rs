//! Opens a connection without waiting forever: libpq's own functions for this wait as long as the server is silent.

use super::check::options;
use super::deadline::{Deadline, STUCK, latest_return};
use super::libpq::{Libpq, Opaque, code, owned};
use super::memory::{self, MemoryWatch};
use super::parameters::Parameters;
use super::secret::Secrets;
use super::wait::{Direction, wait};
use super::{CHECK_PSQL, PERHAPS_FAULTY, THREAD_REMAINS, Target};
use crate::error::Error;
use crate::human::reason;
use libc::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit without `connect_timeout`. A server answers within milliseconds, and through a slow network within
/// seconds.
const LIMIT: Duration = Duration::from_secs(10);
/// libpq uses at least this much: <https://www.postgresql.org/docs/current/libpq-connect.html>
const MIN_LIMIT: Duration = Duration::from_secs(2);
/// A day. More is as good as no limit.
const MAX_LIMIT: Duration = Duration::from_secs(86_400);

/// Time limit after Ctrl-C.
const STOP_LIMIT: Duration = Duration::from_secs(1);
/// Time between two looks at an attempt: short at first, because most attempts take milliseconds, and then longer, because
/// `monitor` may wait for a silent server all the time.
const INTERVAL: Duration = Duration::from_millis(1);
const MAX_INTERVAL: Duration = Duration::from_millis(20);
const BUG: &str = "please report this as a bug";

/// The result of an attempt to connect.
pub struct Attempt {
    /// an open or a failed connection
    pub conn: Opaque,
    /// a server accepted the connection, even if it refused the session later
    pub reached: bool,
    /// why the attempt ended early
    pub ended: Option<Ended>,
}

/// Why an attempt to connect ended early.
pub enum Ended {
    Stopped,
    TooSlow { host: String, reached: bool, limit: Duration },
}

impl Ended {
    /// Returns the error. The name of the host can contain secrets.
    pub fn error(self, secrets: &Secrets) -> Error {
        let Ended::TooSlow { host, reached, limit } = self else {
            return Error::new("stopped", "the connection was not open yet");
        };
        let (host, seconds) = (secrets.remove_from(&host), limit.as_secs());
        let what = match reached {
            true => format!("the server at {host} accepted the connection, but did not answer within {seconds} s"),
            false => format!("no connection to {host} within {seconds} s"),
        };
        Error::new(what, other_limit())
    }
}

/// Returns the hint for a time limit.
fn other_limit() -> String {
    format!("{CHECK_PSQL}; connect_timeout=SECONDS sets another limit")
}

// SAFETY: libpq's connections may move between threads. Only one thread has the connection.
unsafe impl Send for Attempt {}

unsafe extern "C" fn no_notices(_: *mut c_void, _: *const c_char) {}

/// Tries to connect.
///
/// libpq can compute or read without returning, if a server wants that: an iteration count of SCRAM, or endless
/// messages. So this happens in a thread. If it does not return in time, the thread remains, and the program should
/// end.
pub fn attempt(
    pq: &'static Libpq,
    target: &Target,
    password: Option<&str>,
    stop: &AtomicBool,
) -> Result<Attempt, Error> {
    let parameters = Parameters::of(target, password)?;
    let stopped = Arc::new(AtomicBool::new(false));
    let deadline = Arc::new(Deadline::new());
    let (thread_stopped, thread_deadline) = (Arc::clone(&stopped), Arc::clone(&deadline));
    let connect = move || attempt_in_turn(pq, parameters, &thread_stopped, &thread_deadline);
    let thread = std::thread::Builder::new().name("connect".into()).spawn(connect).map_err(|error| {
        Error::new(format!("could not create a thread: {}", reason(&error)), "raise the limit of processes (ulimit -u)")
    })?;
    let memory = MemoryWatch::new();
    match wait_for(&thread, stop, &stopped, &deadline, &memory) {
        Ok(()) => thread.join().unwrap_or_else(|_| Err(Error::new("the connection attempt failed unexpectedly", BUG))),
        Err(error) => {
            THREAD_REMAINS.store(true, Ordering::Relaxed);
            Err(error)
        }
    }
}

/// Waits for the thread. Returns an error if it does not end in time, or takes too much memory.
fn wait_for<T>(
    thread: &JoinHandle<T>,
    stop: &AtomicBool,
    stopped: &AtomicBool,
    deadline: &Deadline,
    memory: &MemoryWatch,
) -> Result<(), Error> {
    let mut stop_limit = None;
    while !thread.is_finished() {
        std::thread::sleep((deadline.elapsed() / 10).clamp(INTERVAL, MAX_INTERVAL));
        if stop.load(Ordering::Relaxed) {
            stopped.store(true, Ordering::Relaxed);
            stop_limit.get_or_insert_with(|| Instant::now() + STOP_LIMIT);
        }
        if stop_limit.is_some_and(|limit| Instant::now() > limit) {
            return Err(Ended::Stopped.error(&Secrets::default()));
        }
        if deadline.is_over() {
            let seconds = deadline.elapsed().as_secs();
            return Err(Error::new(format!("the connection was not open within {seconds} s"), other_limit()));
        }
        if memory.is_exceeded(0) {
            let what = format!("the server sent more than {} MB before the session was open", memory::LIMIT >> 20);
            return Err(Error::new(what, PERHAPS_FAULTY));
        }
    }
    Ok(())
}

/// Tries to connect. Like libpq, it goes on with the next host of a list if one does not answer in time.
fn attempt_in_turn(
    pq: &'static Libpq,
    mut parameters: Parameters,
    stop: &AtomicBool,
    deadline: &Deadline,
) -> Result<Attempt, Error> {
    loop {
        let (attempt, tried) = attempt_hosts(pq, &parameters, stop, deadline)?;
        if attempt.ended.is_none() || stop.load(Ordering::Relaxed) {
            return Ok(attempt);
        }
        if number_of_hosts(pq, attempt.conn) <= tried {
            return Ok(attempt);
        }
        for keyword in ["host", "hostaddr", "port"] {
            if let Some(list) = option(pq, attempt.conn, keyword).filter(|list| list.contains(',')) {
                let rest: Vec<&str> = list.split(',').skip(tried).collect();
                parameters.add(keyword, &rest.join(","))?;
            }
        }
        // SAFETY: the failed connection is not used any more.
        unsafe { (pq.PQfinish)(attempt.conn) };
    }
}

/// Tries the hosts of the parameters, until one is too slow. Also returns the number of hosts that were tried.
fn attempt_hosts(
    pq: &'static Libpq,
    parameters: &Parameters,
    stop: &AtomicBool,
    deadline: &Deadline,
) -> Result<(Attempt, usize), Error> {
    deadline.set(Instant::now() + STUCK);
    // SAFETY: both lists end with NULL, and what they point to outlives the call.
    let conn = unsafe { (pq.PQconnectStartParams)(parameters.keywords().as_ptr(), parameters.values().as_ptr(), 1) };
    if conn.is_null() {
        return Err(Error::new("libpq is out of memory", "free memory on this host, or raise its limit (ulimit -v)"));
    }
    // Notices are not printed: a server can send any text at any time. Errors come with the result.
    // SAFETY: the connection is not NULL, and the function exists as long as the program.
    unsafe { (pq.PQsetNoticeProcessor)(conn, no_notices, std::ptr::null_mut()) };
    let mut attempt = Attempt { conn, reached: false, ended: None };
    let tried = attempt.wait(pq, limit(pq, conn), stop, deadline);
    Ok((attempt, tried))
}

impl Attempt {
    /// Waits until the session is open, failed or too slow. As in libpq, each host has its own time. Returns the number
    /// of hosts that were tried.
    fn wait(&mut self, pq: &Libpq, limit: Duration, stop: &AtomicBool, deadline: &Deadline) -> usize {
        let mut step = code::POLLING_WRITING;
        let mut tried = 1;
        let (mut host, mut host_reached, mut start) = (name(pq, self.conn), false, Instant::now());
        let (hosts, has_key) = (number_of_hosts(pq, self.conn), has_key(pq, self.conn));
        // SAFETY: the connection is not NULL in this function.
        loop {
            // SAFETY: as above.
            let status = unsafe { (pq.PQstatus)(self.conn) };
            if status == code::CONNECTION_BAD {
                return tried;
            }
            let direction = match step {
                code::POLLING_READING => Direction::Read,
                code::POLLING_WRITING => Direction::Write,
                _ => return tried,
            };
            if name(pq, self.conn) != host {
                (host, host_reached, start) = (name(pq, self.conn), false, Instant::now());
                tried += 1;
            }
            if stop.load(Ordering::Relaxed) {
                self.ended = Some(Ended::Stopped);
                return tried;
            }
            if start.elapsed() > limit {
                self.ended = Some(Ended::TooSlow { host, reached: host_reached, limit });
                return tried;
            }
            let prompts = has_key && status == code::CONNECTION_SSL_STARTUP;
            deadline.set(latest_return(Instant::now(), host_reached.then_some(start + limit), hosts > tried, prompts));
            // SAFETY: as above.
            if wait(unsafe { (pq.PQsocket)(self.conn) }, direction) {
                let before = Instant::now();
                // SAFETY: as above.
                step = unsafe { (pq.PQconnectPoll)(self.conn) };
                // The time in which the user types does not count.
                if prompts {
                    start += before.elapsed();
                }
            }
            // SAFETY: as above.
            host_reached |= unsafe { (pq.PQstatus)(self.conn) } >= code::CONNECTION_MADE;
            self.reached |= host_reached;
        }
    }
}

/// Returns whether OpenSSL can have a private key: a named one, or the default file.
fn has_key(pq: &Libpq, conn: Opaque) -> bool {
    let default = || std::env::home_dir().is_some_and(|home| home.join(".postgresql/postgresql.key").exists());
    option(pq, conn, "sslkey").is_some_and(|key| !key.is_empty()) || default()
}

/// Returns the number of hosts in the list of hosts.
fn number_of_hosts(pq: &Libpq, conn: Opaque) -> usize {
    let lists = ["host", "hostaddr"].into_iter().filter_map(|keyword| option(pq, conn, keyword));
    lists.map(|list| list.split(',').count()).max().unwrap_or(1)
}

/// Returns the host or socket directory, and the port.
pub fn name(pq: &Libpq, conn: Opaque) -> String {
    // SAFETY: the connection is not NULL; the texts are copied at once.
    let [host, port] = unsafe { [(pq.PQhost)(conn), (pq.PQport)(conn)].map(|text| owned(text)) };
    format!("{}:{}", host.unwrap_or_default(), port.unwrap_or_default())
}

/// Returns `connect_timeout` from the connection string, the environment or a service file.
fn limit(pq: &Libpq, conn: Opaque) -> Duration {
    match option(pq, conn, "connect_timeout").and_then(|text| text.trim().parse::<u64>().ok()) {
        None | Some(0) => LIMIT,
        Some(seconds) => Duration::from_secs(seconds).clamp(MIN_LIMIT, MAX_LIMIT),
    }
}

/// Returns the value of a connection option, wherever it came from.
fn option(pq: &Libpq, conn: Opaque, keyword: &str) -> Option<String> {
    // SAFETY: the connection is not NULL, and the list is not used elsewhere.
    let options = unsafe { options(pq, (pq.PQconninfo)(conn)) };
    options.into_iter().find(|(name, _)| name == keyword).map(|(_, value)| value)
}
