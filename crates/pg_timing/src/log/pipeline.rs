//! One thread reads the log and finds its messages, several parse and analyze the plans, and the caller's thread receives the
//! results in the order of the log. The memory does not depend on the size of the log: the reader waits for the others.

use super::entry::Entry;
use super::input::Sources;
use super::messages::Messages;
use crate::error::Error;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Text per batch of entries. To send a batch costs some microseconds.
const BATCH_BYTES: usize = 128 << 10;

/// Batches per thread that are not finished: one is parsed, and another one waits.
const BATCHES_PER_THREAD: usize = 2;

/// Longer texts are parsed one after the other, because a plan needs about 40 times the memory of its text.
const LARGE_BYTES: usize = 1 << 20;

/// Time between two updates of the progress bar.
const UPDATE: Duration = Duration::from_millis(100);

/// How a log is read.
pub struct Reading<'a> {
    pub sources: &'a Sources,
    /// ends the reading
    pub stop: &'a AtomicBool,
    /// called with the fraction that was read, if it is known
    pub progress: &'a mut dyn FnMut(f64),
    pub threads: usize,
    /// the plans' own texts are needed
    pub needs_source: bool,
    /// the last plan may end without a line end
    pub accepts_cut_end: bool,
}

/// Entries, and where their results go.
type Batch<T> = (Vec<Entry>, SyncSender<Vec<T>>);

/// Reads all sources. `work` turns an entry into results, in several threads, and `collect` receives them in the order of the
/// log, until it breaks. Returns the errors of files that could not be read to their end.
pub fn read<T: Send>(
    reading: &mut Reading,
    work: &(dyn Fn(Entry, &mut Vec<T>) + Sync),
    collect: &mut dyn FnMut(T) -> ControlFlow<()>,
) -> Vec<Error> {
    let Reading { sources, stop, threads, accepts_cut_end, .. } = *reading;
    let progress = &mut *reading.progress;
    // The queue of results has the order of the log. It limits the batches that are not finished.
    let (results, in_order) = sync_channel(BATCHES_PER_THREAD * threads);
    let (batches, to_do) = sync_channel(BATCHES_PER_THREAD * threads);
    let to_do = Arc::new(Mutex::new(to_do));
    let large = Mutex::new(());
    thread::scope(|scope| {
        let reader = Reader { batches, results, entries: Vec::new(), bytes: 0, is_alone: false };
        let reader = scope.spawn(move || reader.read(sources, stop, accepts_cut_end));
        for _ in 0..threads {
            let (to_do, large) = (Arc::clone(&to_do), &large);
            let alone = |entry: Entry, results: &mut Vec<T>| {
                let is_large = entry.content.len() > LARGE_BYTES;
                let _lock = is_large.then(|| large.lock().unwrap_or_else(PoisonError::into_inner));
                work(entry, results);
            };
            scope.spawn(move || worker(&to_do, &alone));
        }
        // If all of these threads panic, their queue ends, and the reader does not wait for them.
        drop(to_do);
        receive(in_order, &mut || sources.done().into_iter().for_each(&mut *progress), collect);
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn worker<T>(to_do: &Mutex<Receiver<Batch<T>>>, work: &(dyn Fn(Entry, &mut Vec<T>) + Sync)) {
    loop {
        // The lock is released before the work begins.
        let batch = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((entries, done)) = batch else { return };
        let mut results = Vec::new();
        entries.into_iter().for_each(|entry| work(entry, &mut results));
        // Nobody receives the results after a break.
        _ = done.send(results);
    }
}

/// Passes the results on, until `collect` breaks.
fn receive<T>(
    in_order: Receiver<Receiver<Vec<T>>>,
    progress: &mut dyn FnMut(),
    collect: &mut dyn FnMut(T) -> ControlFlow<()>,
) {
    let mut updated = std::time::Instant::now();
    loop {
        match in_order.recv_timeout(UPDATE) {
            // A thread that panicked has no results.
            Ok(results) => {
                if results.recv().unwrap_or_default().into_iter().try_for_each(&mut *collect).is_break() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if updated.elapsed() >= UPDATE {
            updated = std::time::Instant::now();
            progress();
        }
    }
}

/// The thread that reads the log.
struct Reader<T> {
    batches: SyncSender<Batch<T>>,
    results: SyncSender<Receiver<Vec<T>>>,
    entries: Vec<Entry>,
    bytes: usize,
    /// nobody receives the results anymore
    is_alone: bool,
}

impl<T> Reader<T> {
    fn read(mut self, sources: &Sources, stop: &AtomicBool, accepts_cut_end: bool) -> Vec<Error> {
        let mut messages = Messages::new(accepts_cut_end);
        let mut errors = Vec::new();
        for file in 0..sources.paths.len() {
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
        let mut lines = sources.open(file, stop)?;
        messages.begin_file(file);
        let result = loop {
            match lines.next() {
                Ok(Some(line)) if !self.is_alone => messages.line(&line, &mut |entry| self.add(entry)),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // What a signal cut off is not damaged. Then the end of a compressed file is missing.
        if stop.load(Ordering::Relaxed) {
            messages.drop_open();
            return lines.check_nuls();
        }
        messages.end_file(lines.is_unfinished, &mut |entry| self.add(entry));
        result.and_then(|()| lines.check_nuls())
    }

    fn add(&mut self, entry: Entry) {
        self.bytes += size_of::<Entry>() + entry.content.len();
        self.entries.push(entry);
        if self.bytes >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        let (done, results) = sync_channel(1);
        let batch = (std::mem::take(&mut self.entries), done);
        self.is_alone |= self.results.send(results).is_err() || self.batches.send(batch).is_err();
        self.bytes = 0;
    }
}
