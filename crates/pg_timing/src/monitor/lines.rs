//! Writes lines to stdout or stderr in a separate thread: a pipe without a reader blocks a write, and the samples must continue.
//!
//! On a full disk, the rest of the line waits, so that each line is written whole and once.

use super::signals::without_signals;
use crate::human::reason;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines that wait. A busy day has fewer events, and they take less than 1 MB.
const MAX_WAITING: usize = 1000;
/// How long the end waits until the lines are written. A reader that has time takes them within milliseconds.
const END_WAIT: Duration = Duration::from_secs(1);
/// Pause before another attempt after an error, for example on a full disk.
const RETRY: Duration = Duration::from_millis(250);
/// The end looks this often whether everything is written.
const LOOK: Duration = Duration::from_millis(5);

/// The lines that one thread writes to a file.
pub struct Lines {
    queue: SyncSender<String>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// lines that are not written yet
    waiting: AtomicU64,
    /// lines that were dropped, because too many had to wait
    dropped: AtomicU64,
    /// why the last write failed
    error: Mutex<Option<String>>,
}

impl Lines {
    /// Starts the thread.
    pub fn start(file: File) -> std::io::Result<Lines> {
        let (queue, lines) = sync_channel::<String>(MAX_WAITING);
        let state = Arc::<State>::default();
        let for_thread = state.clone();
        let write = move || {
            for line in lines {
                for_thread.write(&file, &line);
            }
        };
        // The thread is not joined: a write can block forever.
        without_signals(|| std::thread::Builder::new().name("lines".into()).spawn(write))?;
        Ok(Lines { queue, state })
    }

    /// Adds lines, after those that wait.
    ///
    /// Returns the number of lines that were dropped since the last success, because too many had to wait. Returns an error
    /// while the file cannot be written.
    pub fn append(&self, lines: impl IntoIterator<Item = String>) -> Result<u64, String> {
        let State { waiting, dropped, .. } = &*self.state;
        for line in lines {
            waiting.fetch_add(1, Ordering::Relaxed);
            if self.queue.try_send(line).is_err() {
                waiting.fetch_sub(1, Ordering::Relaxed);
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        match self.state.error() {
            Some(error) => Err(error),
            None if waiting.load(Ordering::Relaxed) == 0 => Ok(dropped.swap(0, Ordering::Relaxed)),
            None => Ok(0),
        }
    }

    /// Waits until all lines are written, at most for a second. Returns the number of lines that are not written, and the
    /// reason.
    pub fn finish(self) -> Option<(u64, String)> {
        let end = Instant::now() + END_WAIT;
        while self.state.waiting.load(Ordering::Relaxed) > 0 && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        let unwritten = self.state.waiting.load(Ordering::Relaxed) + self.state.dropped.load(Ordering::Relaxed);
        let why = || self.state.error().unwrap_or_else(|| "nothing read it in time".into());
        (unwritten > 0).then(|| (unwritten, why()))
    }
}

impl State {
    fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_error(&self, error: Option<String>) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// Writes the whole line, as soon as that is possible.
    fn write(&self, mut file: &File, line: &str) {
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Another program has made the pipe so that a write does not block. An error of poll comes again from write.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    _ = poll(&mut [PollFd::new(file, PollFlags::OUT)], None);
                }
                // A pipe whose reader has ended: `head` has read what it wanted.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => {
                    self.set_error(Some(reason(&error)));
                    std::thread::sleep(RETRY);
                }
            }
        }
        self.set_error(None);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::in_process_with_file_limit;
    use super::*;
    use rustix::fs::OFlags;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    fn line(n: u64) -> String {
        format!("line {n} {}\n", "x".repeat(100))
    }

    /// Waits until the writer has tried to write everything.
    fn append_until(lines: &Lines, expected: impl Fn(&Result<u64, String>) -> bool) -> Result<u64, String> {
        for _ in 0..500 {
            let result = lines.append([]);
            if expected(&result) {
                return result;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("not within 5 s")
    }

    #[test]
    fn a_pipe_that_is_read_gets_each_line() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines = Lines::start(OwnedFd::from(writer).into()).unwrap();
        for n in 0..100 {
            assert_eq!(lines.append([line(n)]), Ok(0));
        }
        assert_eq!(lines.finish(), None);
        let expected: String = (0..100).map(line).collect();
        let mut text = vec![0; expected.len()];
        reader.read_exact(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn a_pipe_that_nobody_reads_does_not_block_and_the_loss_is_counted() {
        const LINES: u64 = 3000;
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines = Lines::start(OwnedFd::from(writer).into()).unwrap();
        assert_eq!(lines.append((0..LINES).map(line)), Ok(0));
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        let dropped = append_until(&lines, |result| matches!(result, Ok(1..))).unwrap();
        // A pipe contains 64 kB, so the writer has taken some lines before.
        assert!((LINES - 2 * MAX_WAITING as u64..=LINES - MAX_WAITING as u64).contains(&dropped), "{dropped}");
        assert_eq!(lines.finish(), None);
        let text = reader.join().unwrap().unwrap();
        assert_eq!(text.lines().count() as u64, LINES - dropped);
    }

    #[test]
    fn the_end_does_not_wait_for_a_pipe_that_nobody_reads() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let lines = Lines::start(OwnedFd::from(writer).into()).unwrap();
        _ = lines.append((0..MAX_WAITING as u64).map(line));
        let (unwritten, why) = lines.finish().unwrap();
        // A pipe contains 64 kB.
        assert!((300..1000).contains(&unwritten), "{unwritten}");
        assert_eq!(why, "nothing read it in time");
    }

    #[test]
    fn a_slow_reader_of_a_pipe_that_does_not_block_gets_each_line() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
        let lines = Lines::start(OwnedFd::from(writer.try_clone().unwrap()).into()).unwrap();
        let expected: String = (0..MAX_WAITING as u64).map(line).collect();
        assert_eq!(lines.append((0..MAX_WAITING as u64).map(line)), Ok(0));
        // The pipe fills, and a further write would block.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(lines.append([]), Ok(0));
        let reader = std::thread::spawn(move || {
            let mut text = vec![0; expected.len()];
            reader.read_exact(&mut text).map(|()| text == expected.as_bytes())
        });
        assert_eq!(lines.finish(), None);
        drop(writer);
        assert!(reader.join().unwrap().unwrap());
    }

    #[test]
    fn a_reader_that_has_ended_is_no_error() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let lines = Lines::start(OwnedFd::from(writer).into()).unwrap();
        assert_eq!(lines.append([line(1)]), Ok(0));
        assert_eq!(lines.finish(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let lines = Lines::start(File::options().write(true).open("/dev/full").unwrap()).unwrap();
        _ = lines.append([line(1), line(2)]);
        let error = "No space left on device".to_string();
        assert_eq!(append_until(&lines, Result::is_err), Err(error.clone()));
        assert_eq!(lines.finish(), Some((2, error)));
    }

    #[test]
    fn lines_are_written_once_if_a_full_disk_has_room_again() {
        let name = "monitor::lines::tests::lines_are_written_once_if_a_full_disk_has_room_again";
        in_process_with_file_limit(name, 500, || {
            let path = tempfile::NamedTempFile::new().unwrap();
            // Reading through another descriptor leaves the position of the writing one unchanged.
            let text = || std::fs::read_to_string(path.path()).unwrap();
            let mut file = path.reopen().unwrap();
            let lines = Lines::start(file.try_clone().unwrap()).unwrap();
            _ = lines.append((0..6).map(line));
            assert_eq!(append_until(&lines, Result::is_err), Err("File too large".into()));
            assert_eq!(text().len(), 500);
            // Room for the rest: both descriptors have one position.
            file.set_len(0).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            assert_eq!(append_until(&lines, Result::is_ok), Ok(0));
            assert_eq!(lines.finish(), None);
            let all = (0..6).map(line).collect::<String>();
            assert_eq!(text(), all[500..]);
        });
    }
}
