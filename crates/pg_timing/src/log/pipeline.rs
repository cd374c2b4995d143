//! One thread reads the log and finds its messages, several parse and analyze the plans, and the caller's thread receives the
//! results in the order of the log. The memory does not depend on the size of the log: the reader waits for the others.

use super::Log;
use super::entry::Entry;
use super::input::Sources;
use super::messages::Messages;
use crate::error::Error;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Text per batch of entries. To send a batch costs some microseconds.
const BATCH_BYTES: usize = 128 << 10;

/// Batches of a thread that wait, besides the one that it parses.
const WAITING_BATCHES: usize = 1;

/// Longer texts are parsed one after the other, because a plan needs about 40 times the memory of its text.
const LARGE_BYTES: usize = 1 << 20;

/// The progress is shown at least this often, also if the log has no plans.
const UPDATE: Duration = Duration::from_millis(100);

/// Reads all sources. `work` turns an entry into results, in several threads, and `collect` receives them in the order of the
/// log, until it breaks. Returns the errors of files that could not be read to their end.
pub fn read<T: Send>(
    log: &Log,
    threads: usize,
    accepts_cut_end: bool,
    work: &(dyn Fn(Entry, &mut Vec<T>) + Sync),
    collect: &mut dyn FnMut(T) -> ControlFlow<()>,
) -> Vec<Error> {
    let Log { sources, stop, progress, .. } = log;
    let large = &Mutex::new(());
    thread::scope(|scope| {
        // The threads take turns, so the results have the order of the log.
        let (batches, results): (Vec<_>, Vec<_>) = (0..threads)
            .map(|_| {
                let (batches, to_do) = sync_channel::<Vec<Entry>>(WAITING_BATCHES);
                let (done, results) = sync_channel(WAITING_BATCHES);
                scope.spawn(move || {
                    for entries in to_do {
                        let mut results = Vec::new();
                        for entry in entries {
                            let is_large = entry.text.len() > LARGE_BYTES;
                            let _lock = is_large.then(|| large.lock().unwrap_or_else(PoisonError::into_inner));
                            work(entry, &mut results);
                        }
                        // After the end of the collection, the channel is closed.
                        if done.send(results).is_err() {
                            return;
                        }
                    }
                });
                (batches, results)
            })
            .unzip();
        let reader = Reader { batches, next: 0, entries: Vec::new(), bytes: 0, is_alone: false };
        let reader = scope.spawn(move || reader.read(sources, stop, accepts_cut_end));
        receive(results, &|| sources.done().into_iter().for_each(progress), collect);
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Passes the results on, until there are no more, or `collect` breaks.
fn receive<T>(results: Vec<Receiver<Vec<T>>>, progress: &dyn Fn(), collect: &mut dyn FnMut(T) -> ControlFlow<()>) {
    let mut next = 0;
    loop {
        match results[next % results.len()].recv_timeout(UPDATE) {
            Ok(batch) => {
                next += 1;
                if batch.into_iter().try_for_each(&mut *collect).is_break() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        progress();
    }
}

/// The thread that reads the log.
struct Reader {
    /// one for each thread that parses
    batches: Vec<SyncSender<Vec<Entry>>>,
    /// number of the next batch
    next: usize,
    entries: Vec<Entry>,
    bytes: usize,
    /// nobody receives the results anymore
    is_alone: bool,
}

impl Reader {
    fn read(mut self, sources: &Sources, stop: &AtomicBool, accepts_cut_end: bool) -> Vec<Error> {
        let mut messages = Messages::new(accepts_cut_end);
        let mut errors = Vec::new();
        for file in 0..sources.paths.len() {
            errors.extend(self.read_file(file, sources, &mut messages, stop).err());
        }
        if !stop.load(Ordering::Relaxed) {
            messages.end();
            self.add(&mut messages);
        }
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
                Ok(Some(line)) if !self.is_alone => {
                    messages.line(&line);
                    self.add(messages);
                }
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // What a signal cut off is not damaged. Then the end of a compressed file is missing.
        if stop.load(Ordering::Relaxed) {
            return lines.check_nuls();
        }
        messages.end_file(lines.is_unfinished);
        self.add(messages);
        result.and_then(|()| lines.check_nuls())
    }

    /// Takes what was found.
    fn add(&mut self, messages: &mut Messages) {
        for entry in messages.found.drain(..) {
            self.bytes += size_of::<Entry>() + entry.text.len();
            self.entries.push(entry);
            if self.bytes >= BATCH_BYTES {
                self.send();
            }
        }
    }

    fn send(&mut self) {
        let thread = &self.batches[self.next % self.batches.len()];
        self.is_alone |= thread.send(std::mem::take(&mut self.entries)).is_err();
        (self.next, self.bytes) = (self.next + 1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_is_shown_while_there_are_no_results() {
        let (sender, results) = sync_channel::<Vec<()>>(1);
        let sender = std::cell::Cell::new(Some(sender));
        // The reading ends at the first progress, which no result causes.
        receive(vec![results], &|| drop(sender.take()), &mut |()| unreachable!());
        assert!(sender.take().is_none());
    }
}
