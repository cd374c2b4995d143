//! Lines that a thread of their own writes, because a pipe without a reader or a full disk must not stop the samples.

use crate::error::Error;
use crate::human::reason;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines that wait. A busy day has fewer events, and they take less than 1 MB.
const MAX_WAITING: usize = 1000;
/// How long the end waits until the lines are written. A reader that has time takes them within milliseconds.
const END_WAIT: Duration = Duration::from_secs(1);
/// Pause before another attempt after an error, for example on a full disk.
const RETRY: Duration = Duration::from_millis(250);
/// The end looks this often whether everything is written.
const LOOK: Duration = Duration::from_millis(5);

/// The lines that one thread writes to an output, each once.
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
    error: Mutex<Option<Error>>,
}

impl Lines {
    /// Starts the thread. `write` gets the rest of a line, and returns how many of its bytes were written.
    pub fn start(mut write: impl FnMut(&[u8]) -> Result<usize, Error> + Send + 'static) -> std::io::Result<Lines> {
        let (queue, lines) = sync_channel::<String>(MAX_WAITING);
        let state = Arc::<State>::default();
        let of_thread = state.clone();
        let write_all = move || {
            for line in lines {
                let mut rest = line.as_bytes();
                while !rest.is_empty() {
                    match write(rest) {
                        Ok(written) => rest = &rest[written..],
                        Err(error) => {
                            *of_thread.error() = Some(error);
                            std::thread::sleep(RETRY);
                        }
                    }
                }
                *of_thread.error() = None;
                of_thread.waiting.fetch_sub(1, Ordering::Relaxed);
            }
        };
        // The thread is not joined: a write can block forever.
        without_signals(|| std::thread::Builder::new().name("lines".into()).spawn(write_all))?;
        Ok(Lines { queue, state })
    }

    /// Starts the thread for stdout or stderr, which errors call `name`.
    pub fn to(file: File, name: &'static str) -> std::io::Result<Lines> {
        const HINT: &str = "let a program read stdout, or free space; --events FILE writes the events to a file, too";
        Lines::start(move |rest| match (&file).write(rest) {
            Ok(written) => Ok(written),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            // Another program has made the pipe so that a write does not block. An error of poll comes again from write.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                _ = poll(&mut [PollFd::new(&file, PollFlags::OUT)], None);
                Ok(0)
            }
            // A pipe whose reader has ended: `head` has read what it wanted.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(rest.len()),
            Err(error) => Err(Error::new(format!("could not write to {name}: {}", reason(&error)), HINT)),
        })
    }

    /// Adds lines, after those that wait.
    pub fn append(&self, lines: impl IntoIterator<Item = String>) {
        let State { waiting, dropped, .. } = &*self.state;
        for line in lines {
            waiting.fetch_add(1, Ordering::Relaxed);
            if self.queue.try_send(line).is_err() {
                waiting.fetch_sub(1, Ordering::Relaxed);
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Returns why lines wait, if the output cannot be written.
    pub fn error(&self) -> Option<Error> {
        self.state.error().clone()
    }

    /// Returns the number of lines that are not written.
    pub fn unwritten(&self) -> u64 {
        self.state.waiting.load(Ordering::Relaxed) + self.state.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of lines that were dropped since the last call, because too many had to wait: 0 until those are
    /// written.
    pub fn take_dropped(&self) -> u64 {
        match self.state.waiting.load(Ordering::Relaxed) {
            0 => self.state.dropped.swap(0, Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Waits until all lines are written, at most for a second. Returns the number of lines that are not written, and why.
    pub fn finish(self, name: &str) -> Option<(u64, Error)> {
        let end = Instant::now() + END_WAIT;
        while self.state.waiting.load(Ordering::Relaxed) > 0 && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        let not_read =
            || Error::new(format!("could not write to {name}: nothing read it in time"), "let a program read it");
        (self.unwritten() > 0).then(|| (self.unwritten(), self.error().unwrap_or_else(not_read)))
    }
}

impl State {
    fn error(&self) -> MutexGuard<'_, Option<Error>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `work` while all signals of this thread are blocked. Threads that it starts keep them blocked, so that signals
/// reach the threads that handle them.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let mask = crate::guardian::SignalMask::block_all();
    let result = work();
    mask.restore();
    result
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

    fn start(file: impl Into<OwnedFd>) -> Lines {
        Lines::to(File::from(file.into()), "it").unwrap()
    }

    fn until(condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_pipe_that_is_read_gets_each_line() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines = start(writer);
        lines.append((0..100).map(line));
        assert_eq!(lines.finish("it"), None);
        let expected: String = (0..100).map(line).collect();
        let mut text = vec![0; expected.len()];
        reader.read_exact(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn a_pipe_that_nobody_reads_does_not_block_and_the_loss_is_counted() {
        const LINES: u64 = 3000;
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines = start(writer);
        lines.append((0..LINES).map(line));
        assert_eq!(lines.take_dropped(), 0, "lines wait");
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        until(|| lines.state.waiting.load(Ordering::Relaxed) == 0);
        let dropped = lines.take_dropped();
        // A pipe contains 64 kB, so the writer has taken some lines before.
        assert!((LINES - 2 * MAX_WAITING as u64..=LINES - MAX_WAITING as u64).contains(&dropped), "{dropped}");
        assert_eq!((lines.take_dropped(), lines.finish("it")), (0, None));
        let text = reader.join().unwrap().unwrap();
        assert_eq!(text.lines().count() as u64, LINES - dropped);
    }

    #[test]
    fn the_end_does_not_wait_for_a_pipe_that_nobody_reads() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let lines = start(writer);
        lines.append((0..MAX_WAITING as u64).map(line));
        let (unwritten, why) = lines.finish("it").unwrap();
        // A pipe contains 64 kB.
        assert!((300..1000).contains(&unwritten), "{unwritten}");
        assert_eq!(why.what, "could not write to it: nothing read it in time");
    }

    #[test]
    fn a_slow_reader_of_a_pipe_that_does_not_block_gets_each_line() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
        let lines = start(writer.try_clone().unwrap());
        let expected: String = (0..MAX_WAITING as u64).map(line).collect();
        lines.append((0..MAX_WAITING as u64).map(line));
        // The pipe fills, and a further write would block.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(lines.error(), None);
        let reader = std::thread::spawn(move || {
            let mut text = vec![0; expected.len()];
            reader.read_exact(&mut text).map(|()| text == expected.as_bytes())
        });
        until(|| lines.unwritten() == 0);
        drop(writer);
        assert!(reader.join().unwrap().unwrap());
    }

    #[test]
    fn a_reader_that_has_ended_is_no_error() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let lines = start(writer);
        lines.append([line(1)]);
        assert_eq!(lines.finish("it"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let lines = start(File::options().write(true).open("/dev/full").unwrap());
        lines.append([line(1), line(2)]);
        until(|| lines.error().is_some());
        let (unwritten, error) = lines.finish("it").unwrap();
        assert_eq!((unwritten, error.what.as_str()), (2, "could not write to it: No space left on device"));
    }

    #[test]
    fn lines_are_written_once_if_a_full_disk_has_room_again() {
        let name = "monitor::lines::tests::lines_are_written_once_if_a_full_disk_has_room_again";
        in_process_with_file_limit(name, 500, || {
            let path = tempfile::NamedTempFile::new().unwrap();
            // Reading through another descriptor leaves the position of the writing one unchanged.
            let text = || std::fs::read_to_string(path.path()).unwrap();
            let mut file = path.reopen().unwrap();
            let lines = start(file.try_clone().unwrap());
            lines.append((0..6).map(line));
            until(|| lines.error().is_some());
            assert_eq!(lines.error().unwrap().what, "could not write to it: File too large");
            assert_eq!(text().len(), 500);
            // Room for the rest: both descriptors have one position.
            file.set_len(0).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            until(|| lines.unwritten() == 0);
            assert_eq!(lines.finish("it"), None);
            let all = (0..6).map(line).collect::<String>();
            assert_eq!(text(), all[500..]);
        });
    }

    fn is_blocked(signal: libc::c_int) -> bool {
        // SAFETY: the first call only reads the mask, and the second one only reads the set.
        unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
            libc::sigismember(&mask, signal) == 1
        }
    }

    #[test]
    fn only_the_new_thread_blocks_signals() {
        let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGWINCH];
        let thread = without_signals(|| std::thread::spawn(move || signals.map(is_blocked)));
        assert_eq!(thread.join().unwrap(), [true; 4]);
        assert_eq!(signals.map(is_blocked), [false; 4]);
    }
}
