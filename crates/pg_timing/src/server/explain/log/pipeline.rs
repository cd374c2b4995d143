//! One thread reads and splits the log, and the others parse and analyze its entries. The memory does not depend on the
//! size of the log: the reader waits if the others are slower.

use super::budget::{Budget, Share};
use super::entry::{Content, Entry, Place};
use super::lines::Lines;
use super::nesting::{Nesting, Session};
use super::parse;
use super::skipped::{self, Skips};
use super::source::Sources;
use super::splitter::Splitter;
use crate::error::Error;
use crate::server::explain::captured::{Selected, executed};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Text per message between the threads. A message costs about a microsecond.
const BATCH_BYTES: usize = 128 << 10;

/// Text that the analyzing threads have not finished. A batch that is longer is sent when all before it are finished, because
/// the memory for a plan of several MB is several times its text.
const UNFINISHED_BYTES: usize = 8 * BATCH_BYTES;

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
    /// number of plans in each batch
    plans: Vec<usize>,
    pub read: ReadLog,
    pub was_stopped: bool,
}

/// What the thread that reads the log has seen.
#[derive(Default)]
pub struct ReadLog {
    /// a few of the hosts or containers that wrote the log
    pub hosts: Vec<String>,
    /// the formats of the server's entries with plans, as in log_destination
    pub destinations: BTreeSet<&'static str>,
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
        let mut outcome =
            Outcome { collectors: Vec::new(), skips: Skips::default(), plans: Vec::new(), read, was_stopped };
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
        for (batch, plans) in worker.plans {
            if self.plans.len() <= batch {
                self.plans.resize(batch + 1, 0);
            }
            self.plans[batch] = plans;
        }
    }
}

/// Splits the log into batches of entries.
struct Reader {
    batches: Sender<Batch>,
    unfinished: Budget,
    /// number of the next batch
    number: usize,
    entries: Vec<Entry>,
    /// length of their texts
    bytes: usize,
    /// the other threads have ended
    is_alone: bool,
    destinations: BTreeSet<&'static str>,
}

impl Reader {
    fn new(batches: Sender<Batch>) -> Reader {
        let unfinished = Budget::new(UNFINISHED_BYTES);
        let (entries, destinations) = (Vec::new(), BTreeSet::new());
        Reader { batches, unfinished, number: 0, entries, bytes: 0, is_alone: false, destinations }
    }

    fn read(mut self, sources: &Sources, stop: &AtomicBool) -> ReadLog {
        let mut splitter = Splitter::default();
        let mut errors = Vec::new();
        for file in (0..sources.paths.len()).filter(|file| !sources.is_repeated(*file)) {
            if let Err(error) = self.read_file(file, sources, &mut splitter, stop) {
                errors.push(error);
            }
        }
        splitter.end(&mut |entry| self.add(entry));
        self.send();
        ReadLog { hosts: splitter.hosts.into_iter().collect(), destinations: self.destinations, errors }
    }

    fn read_file(
        &mut self,
        file: usize,
        sources: &Sources,
        splitter: &mut Splitter,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let mut lines = Lines::new(sources.open(file, stop)?);
        splitter.begin_file(file, &mut |entry| self.add(entry));
        let mut is_unfinished = false;
        let mut result = Ok(());
        // After a stop, the file has ended, and what is in the buffer is still split.
        while !self.is_alone {
            match lines.next() {
                Ok(Some(line)) => {
                    is_unfinished = line.is_unfinished;
                    splitter.line(&line, &mut |entry| self.add(entry));
                }
                Ok(None) => break,
                // The end of a compressed file is missing after a stop.
                Err(_) if stop.load(Ordering::Relaxed) => break,
                Err(error) => {
                    is_unfinished = true;
                    result = Err(sources.not_read_to_end(file, &error));
                    break;
                }
            }
        }
        // What a signal cut off is not damaged.
        if !stop.load(Ordering::Relaxed) {
            splitter.end_file(is_unfinished, &mut |entry| self.add(entry));
        }
        result.and_then(|()| sources.check_nuls(file, lines.nuls()))
    }

    fn add(&mut self, entry: Entry) {
        self.bytes += size_of::<Entry>() + entry.content.len();
        if let Some(destination) = entry.content.destination() {
            self.destinations.insert(destination);
        }
        self.entries.push(entry);
        if self.bytes >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let batch = Batch { number: self.number, entries, unfinished: self.unfinished.take(self.bytes) };
        (self.number, self.bytes) = (self.number + 1, 0);
        self.is_alone = self.batches.send(batch).is_err();
    }
}

/// Analyzes the entries of some batches.
struct Worker<C> {
    collector: C,
    skips: Skips,
    /// batches, and their numbers of plans
    plans: Vec<(usize, usize)>,
}

impl<C: Collector> Worker<C> {
    fn new(collector: C) -> Worker<C> {
        Worker { collector, skips: Skips::default(), plans: Vec::new() }
    }

    fn work(mut self, batches: &Mutex<Receiver<Batch>>) -> Worker<C> {
        loop {
            // The lock is released before the work begins.
            let batch = batches.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
            let Ok(Batch { number, entries, unfinished }) = batch else { return self };
            let mut plans = 0;
            for Entry { place, content } in entries {
                if let Content::Failed(session) = content {
                    self.collector.failed(session);
                    continue;
                }
                parse::each(content, self.collector.needs_source(), &mut |parsed| {
                    let plan = Number { batch: number, plan: plans };
                    plans += 1;
                    if let Err(error) = self.plan(place, plan, parsed) {
                        self.skips.add(place, error);
                    }
                });
            }
            self.plans.push((number, plans));
            self.collector.end_batch(number, unfinished);
            if !self.collector.wants_more() {
                return self;
            }
        }
    }

    fn plan(&mut self, place: Place, number: Number, parsed: parse::Parsed) -> Result<(), Error> {
        let explained = parsed.found.map_err(|unusable| skipped::error(&unusable));
        match explained.and_then(executed) {
            Ok(selected) => {
                let selected = Selected { source: parsed.source, ..selected };
                let parse::Parsed { query_id, nesting, .. } = parsed;
                self.collector.plan(LoggedPlan { place, number, query_id, nesting, selected })
            }
            Err(error) => {
                self.collector.skipped(&error, parsed.nesting);
                Err(error)
            }
        }
    }
}
