//! The thread that reads the log and splits it into entries.

use super::{Batch, ReadLog};
use crate::error::Error;
use crate::server::explain::log::budget::Budget;
use crate::server::explain::log::entry::{Destination, Entry};
use crate::server::explain::log::lines::Lines;
use crate::server::explain::log::source::Sources;
use crate::server::explain::log::splitter::Splitter;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// Text per message between the threads. A message costs about a microsecond.
const BATCH_BYTES: usize = 128 << 10;

/// Text that the analyzing threads have not finished. A batch that is longer is sent when all before it are finished, because
/// the memory for a plan of several MB is several times its text.
const UNFINISHED_BYTES: usize = 8 * BATCH_BYTES;

/// Splits the log into batches of entries.
pub struct Reader {
    batches: Sender<Batch>,
    unfinished: Budget,
    /// number of the next batch
    number: usize,
    entries: Vec<Entry>,
    /// length of their texts
    bytes: usize,
    /// the other threads have ended
    is_alone: bool,
    destinations: BTreeSet<Destination>,
}

impl Reader {
    pub fn new(batches: Sender<Batch>) -> Reader {
        let unfinished = Budget::new(UNFINISHED_BYTES);
        let (entries, destinations) = (Vec::new(), BTreeSet::new());
        Reader { batches, unfinished, number: 0, entries, bytes: 0, is_alone: false, destinations }
    }

    pub fn read(mut self, sources: &Sources, stop: &AtomicBool) -> ReadLog {
        let mut splitter = Splitter::default();
        let mut errors = Vec::new();
        for file in (0..sources.paths.len()).filter(|file| !sources.is_repeated(*file)) {
            if let Err(error) = self.read_file(file, sources, &mut splitter, stop) {
                errors.push(error);
            }
        }
        splitter.end(&mut |entry| self.add(entry));
        self.send();
        ReadLog { destinations: self.destinations, errors }
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
