//! The caller's thread reads the log, finds its messages, and receives the results in the order of the log. Other threads
//! parse and analyze the plans. The memory does not depend on the size of the log: the reader waits for the oldest batch.

use super::Log;
use super::entry::Entry;
use super::messages::Messages;
use crate::error::Error;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Text per batch of entries. To start a thread for a batch takes some microseconds.
const BATCH_BYTES: usize = 128 << 10;

/// Longer texts are parsed one after the other, because a plan needs about 40 times the memory of its text.
const LARGE_BYTES: usize = 1 << 20;

/// The progress is shown after this many lines, also if the log has no plans.
const LINES_PER_UPDATE: u64 = 1 << 10;

/// Reads all sources. `work` turns an entry into results, in several threads, and `collect` receives them in the order of the
/// log, until it breaks. Returns the errors of files that could not be read to their end.
pub fn read<T: Send>(
    log: &Log,
    threads: usize,
    accepts_cut_end: bool,
    work: &(dyn Fn(Entry, &mut Vec<T>) + Sync),
    collect: &mut dyn FnMut(T) -> ControlFlow<()>,
) -> Vec<Error> {
    let large = &Mutex::new(());
    let parse = move |entries: Vec<Entry>| {
        let mut results = Vec::new();
        for entry in entries {
            let is_large = entry.text.len() > LARGE_BYTES;
            let _lock = is_large.then(|| large.lock().unwrap_or_else(PoisonError::into_inner));
            work(entry, &mut results);
        }
        results
    };
    thread::scope(|scope| {
        let mut running = VecDeque::new();
        let mut send = |entries, most| {
            running.push_back(scope.spawn(move || parse(entries)));
            while running.len() > most
                && let Some(oldest) = running.pop_front()
            {
                let results = oldest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                results.into_iter().try_for_each(&mut *collect)?;
            }
            ControlFlow::Continue(())
        };
        let messages = Messages::new(accepts_cut_end);
        Reader { log, threads, messages, entries: Vec::new(), bytes: 0, send: &mut send, is_done: false }.read()
    })
}

/// Finds the entries of all files, and sends them in batches.
struct Reader<'a> {
    log: &'a Log<'a>,
    threads: usize,
    messages: Messages,
    entries: Vec<Entry>,
    bytes: usize,
    /// receives a batch, and waits until at most this number of batches is not collected
    send: &'a mut dyn FnMut(Vec<Entry>, usize) -> ControlFlow<()>,
    /// no more results are wanted
    is_done: bool,
}

impl Reader<'_> {
    fn read(mut self) -> Vec<Error> {
        let files = 0..self.log.sources.paths.len();
        let errors = files.filter_map(|file| self.read_file(file).err()).collect();
        if !self.log.stop.load(Ordering::Relaxed) {
            self.messages.end();
            self.add();
        }
        if !self.is_done {
            _ = (self.send)(self.entries, 0);
        }
        errors
    }

    fn read_file(&mut self, file: usize) -> Result<(), Error> {
        let Log { sources, stop, progress, .. } = self.log;
        let mut lines = sources.open(file, stop)?;
        self.messages.begin_file(file);
        let mut number = 0;
        let result = loop {
            match lines.next() {
                Ok(Some(line)) if !self.is_done => self.messages.line(&line),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
            self.add();
            number += 1;
            if number % LINES_PER_UPDATE == 0 {
                sources.done().into_iter().for_each(progress);
            }
        };
        // What a signal cut off is not damaged. Then the end of a compressed file is missing.
        if stop.load(Ordering::Relaxed) {
            return lines.check_nuls();
        }
        self.messages.end_file(lines.is_unfinished);
        self.add();
        result.and_then(|()| lines.check_nuls())
    }

    /// Adds what was found to the batch.
    fn add(&mut self) {
        for entry in self.messages.found.drain(..) {
            self.bytes += size_of::<Entry>() + entry.text.len();
            self.entries.push(entry);
            if self.bytes >= BATCH_BYTES && !self.is_done {
                self.bytes = 0;
                self.is_done = (self.send)(std::mem::take(&mut self.entries), self.threads).is_break();
            }
        }
    }
}
