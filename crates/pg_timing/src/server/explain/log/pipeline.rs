//! One thread reads and splits the log, and the others parse and analyze its entries. The memory does not depend on the
//! size of the log: the reader waits if the others are slower.

mod reader;
mod worker;

use super::budget::Share;
use super::entry::{Destination, Entry, Place};
use super::hosts::Hosts;
use super::nesting::{Nesting, Session};
use super::skipped::Skips;
use super::source::Sources;
use crate::error::Error;
use crate::server::explain::captured::Selected;
use reader::Reader;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use worker::Worker;

/// Time between two updates of the progress bar.
const UPDATE: Duration = Duration::from_millis(100);

/// A plan that was executed and timed.
pub struct LoggedPlan {
    pub place: Place,
    pub number: Number,
    pub query_id: Option<i64>,
    pub nesting: Nesting,
    pub selected: Selected,
}

/// The number of a plan: its batch, and its position in the batch. The batches before it may not be read yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    batch: usize,
    plan: usize,
}

/// What becomes of the plans. Each thread has its own.
pub trait Collector: Send {
    /// Receives a plan. An error is the reason why it cannot be analyzed.
    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error>;

    /// Returns whether it needs the plan's own text.
    fn needs_source(&self) -> bool {
        false
    }

    /// A plan was not passed to this collector, because it cannot be analyzed.
    fn skipped(&mut self, _error: &Error, _nesting: Nesting) {}

    /// A statement has failed. The plans of the statements that it executed may be before it.
    fn failed(&mut self, _session: Session) {}

    /// All plans of a batch were passed on. `unfinished` limits the number of batches that are not finished.
    fn end_batch(&mut self, _number: usize, _unfinished: Share) {}

    /// Returns whether to read on.
    fn wants_more(&self) -> bool {
        true
    }
}

/// What was read.
pub struct Outcome<C> {
    pub collectors: Vec<C>,
    pub skips: Skips,
    pub hosts: Hosts,
    /// number of plans in each batch
    plans: Vec<usize>,
    pub read: ReadLog,
    pub was_stopped: bool,
}

/// What the thread that reads the log has seen.
#[derive(Default)]
pub struct ReadLog {
    /// the formats of the server's entries with plans
    pub destinations: BTreeSet<Destination>,
    /// files that could not be read, or not to their end
    pub errors: Vec<Error>,
}

impl<C> Outcome<C> {
    /// Returns the number of plans, with those that were skipped.
    pub fn plans(&self) -> usize {
        self.plans.iter().sum()
    }

    /// Returns the number of a plan, from 1.
    pub fn number(&self, number: Number) -> usize {
        self.plans.iter().take(number.batch).sum::<usize>() + number.plan + 1
    }
}

/// Entries, with their number in the order of the log.
struct Batch {
    number: usize,
    entries: Vec<Entry>,
    /// counts as unfinished until the batch is dropped
    unfinished: Share,
}

/// Reads all sources. Each collector has its own thread. One collector receives the plans in the order of the log.
/// `progress` is called with the fraction that was read, if it is known. `stop` ends the reading.
pub fn read<C: Collector>(
    sources: &Sources,
    collectors: Vec<C>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Outcome<C> {
    let (batches, received) = channel();
    let received = Arc::new(Mutex::new(received));
    let (done, all_done) = channel::<()>();
    thread::scope(|scope| {
        let reader = scope.spawn(move || Reader::new(batches).read(sources, stop));
        let workers: Vec<_> = collectors
            .into_iter()
            .map(|collector| {
                let (received, done) = (Arc::clone(&received), done.clone());
                scope.spawn(move || {
                    let worker = Worker::new(collector).work(&received);
                    drop(done);
                    worker
                })
            })
            .collect();
        drop((done, received));
        while all_done.recv_timeout(UPDATE) == Err(RecvTimeoutError::Timeout) {
            if let Some(fraction) = sources.done() {
                progress(fraction);
            }
        }
        let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let was_stopped = stop.load(Ordering::Relaxed);
        let mut outcome = Outcome {
            collectors: Vec::new(),
            skips: Skips::default(),
            hosts: Hosts::default(),
            plans: Vec::new(),
            read,
            was_stopped,
        };
        for worker in workers {
            let worker = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome.add(worker);
        }
        outcome
    })
}

impl<C> Outcome<C> {
    fn add(&mut self, worker: Worker<C>) {
        self.collectors.push(worker.collector);
        self.skips.merge(worker.skips);
        self.hosts.merge(&worker.hosts);
        for (batch, plans) in worker.plans {
            if self.plans.len() <= batch {
                self.plans.resize(batch + 1, 0);
            }
            self.plans[batch] = plans;
        }
    }
}
