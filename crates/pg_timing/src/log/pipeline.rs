//! One thread reads the log and finds its messages, several parse and analyze the plans, and the caller's thread receives the
//! results in the order of the log. The memory does not depend on the size of the log: the reader waits for the others.

use super::entry::Entry;
use super::lines::Lines;
use super::messages::Messages;
use super::source::Sources;
use crate::error::Error;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Text per message between the threads. A message costs about a microsecond.
const BATCH_BYTES: usize = 128 << 10;

/// Text that is not finished. A batch that is longer waits until all before it are finished, because the memory for a plan of
/// several MB is several times its text.
const UNFINISHED_BYTES: usize = 8 * BATCH_BYTES;

/// Time between two updates of the progress bar.
const UPDATE: Duration = Duration::from_millis(100);

/// Entries, with their number in the order of the log.
struct Batch {
    number: usize,
    entries: Vec<Entry>,
    bytes: usize,
}

/// The results of a batch.
struct Done<T> {
    number: usize,
    results: Vec<T>,
    bytes: usize,
}

/// How a log is read.
pub struct Reading<'a> {
    pub sources: &'a Sources,
    /// ends the reading
    pub stop: &'a AtomicBool,
    /// called with the fraction that was read, if it is known
    pub progress: &'a mut dyn FnMut(f64),
    pub threads: usize,
    pub accepts_cut_end: bool,
}

/// Reads all sources. `work` turns an entry into results, in several threads, and `collect` receives them in the order of the
/// log, until it breaks. Returns the errors of files that could not be read to their end.
pub fn read<T: Send>(
    reading: Reading,
    work: &(dyn Fn(Entry, &mut Vec<T>) + Sync),
    collect: &mut dyn FnMut(T) -> ControlFlow<()>,
) -> Vec<Error> {
    let Reading { sources, stop, progress, threads, accepts_cut_end } = reading;
    let budget = Budget::default();
    let (batches, to_do) = channel();
    let to_do = Mutex::new(to_do);
    let (results, done) = channel();
    thread::scope(|scope| {
        let reader = Reader { batches, budget: &budget, number: 0, entries: Vec::new(), bytes: 0, is_alone: false };
        let reader = scope.spawn(move || reader.read(sources, stop, accepts_cut_end));
        for _ in 0..threads {
            let (results, to_do, budget) = (results.clone(), &to_do, &budget);
            scope.spawn(move || {
                let _closes = CloseOnPanic(budget);
                worker(to_do, work, &results);
            });
        }
        drop(results);
        receive(&done, &budget, &mut || sources.done().into_iter().for_each(&mut *progress), collect);
        drop(done);
        budget.close();
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn worker<T>(to_do: &Mutex<Receiver<Batch>>, work: &(dyn Fn(Entry, &mut Vec<T>) + Sync), done: &Sender<Done<T>>) {
    loop {
        // The lock is released before the work begins.
        let batch = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Batch { number, entries, bytes }) = batch else { return };
        let mut results = Vec::new();
        entries.into_iter().for_each(|entry| work(entry, &mut results));
        if done.send(Done { number, results, bytes }).is_err() {
            return;
        }
    }
}

/// Passes the results on in the order of the log.
fn receive<T>(
    done: &Receiver<Done<T>>,
    budget: &Budget,
    progress: &mut dyn FnMut(),
    collect: &mut dyn FnMut(T) -> ControlFlow<()>,
) {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    let mut updated = std::time::Instant::now();
    loop {
        match done.recv_timeout(UPDATE) {
            Ok(batch) => _ = waiting.insert(batch.number, batch),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(batch) = waiting.remove(&next) {
            if batch.results.into_iter().try_for_each(&mut *collect).is_break() {
                return;
            }
            budget.give_back(batch.bytes);
            next += 1;
        }
        if updated.elapsed() >= UPDATE {
            updated = std::time::Instant::now();
            progress();
        }
    }
}

/// Limits the text that is not finished. `None` in `used`: nobody receives the results anymore.
struct Budget {
    used: Mutex<Option<usize>>,
    less: Condvar,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { used: Mutex::new(Some(0)), less: Condvar::new() }
    }
}

impl Budget {
    /// Waits until these bytes fit. More than the whole budget waits until nothing is in use. Returns false if it is closed.
    fn take(&self, bytes: usize) -> bool {
        let is_full = |used: &mut Option<usize>| used.is_some_and(|used| used > 0 && used + bytes > UNFINISHED_BYTES);
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used = self.less.wait_while(used, is_full).unwrap_or_else(PoisonError::into_inner);
        *used = used.map(|used| used + bytes);
        used.is_some()
    }

    fn give_back(&self, bytes: usize) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.map(|used| used - bytes);
        self.less.notify_one();
    }

    fn close(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.less.notify_one();
    }
}

/// Without it, the reader would wait for a thread that has ended.
struct CloseOnPanic<'a>(&'a Budget);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}

/// The thread that reads the log.
struct Reader<'a> {
    batches: Sender<Batch>,
    budget: &'a Budget,
    /// number of the next batch
    number: usize,
    entries: Vec<Entry>,
    bytes: usize,
    /// nobody receives the results anymore
    is_alone: bool,
}

impl Reader<'_> {
    fn read(mut self, sources: &Sources, stop: &AtomicBool, accepts_cut_end: bool) -> Vec<Error> {
        let mut messages = Messages::new(accepts_cut_end);
        let files = (0..sources.paths.len()).filter(|file| !sources.is_repeated(*file));
        let mut errors = Vec::new();
        for file in files {
            errors.extend(self.read_file(file, sources, &mut messages, stop).err());
        }
        messages.end(&mut |entry| self.add(entry));
        self.send();
        errors
    }

    fn read_file(
        &mut self,
        file: usize,
        sources: &Sources,
        messages: &mut Messages,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let mut lines = Lines::new(sources.open(file, stop)?);
        messages.begin_file(file);
        let mut is_unfinished = false;
        let mut result = Ok(());
        while !self.is_alone {
            match lines.next() {
                Ok(Some(line)) => {
                    is_unfinished = line.is_unfinished;
                    messages.line(&line, &mut |entry| self.add(entry));
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
        match stop.load(Ordering::Relaxed) {
            true => messages.drop_open(),
            false => messages.end_file(is_unfinished, &mut |entry| self.add(entry)),
        }
        result.and_then(|()| sources.check_nuls(file, lines.nuls))
    }

    fn add(&mut self, entry: Entry) {
        self.bytes += size_of::<Entry>() + entry.content.len();
        self.entries.push(entry);
        if self.bytes >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        let batch = Batch { number: self.number, entries: std::mem::take(&mut self.entries), bytes: self.bytes };
        self.is_alone |= !self.budget.take(self.bytes) || self.batches.send(batch).is_err();
        (self.number, self.bytes) = (self.number + 1, 0);
    }
}
