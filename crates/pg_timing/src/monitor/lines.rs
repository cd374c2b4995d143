//! Lines for an output that must not stop the samples: a pipe without a reader, or a full disk. They wait until the output takes
//! them.

use crate::error::Error;
use crate::human::reason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};

/// Lines that wait. A busy day has fewer events, and they take less than 1 MB.
const MAX_WAITING: usize = 1000;
/// How long the end waits until the lines are written. A reader that has time takes them within milliseconds.
const END_WAIT: Duration = Duration::from_secs(1);
/// Pause between two attempts at the end.
const RETRY: Duration = Duration::from_millis(20);
/// If poll finds room in a pipe, a write of so many bytes does not block.
const PIPE_BUF: usize = 4096;

/// Writes the beginning of a line. Returns the number of bytes: 0 if the output takes no more now.
type Writer = Box<dyn FnMut(&[u8]) -> Result<usize, Error> + Send>;

/// The lines of an output, each written once.
pub struct Lines {
    write: Writer,
    /// lines that are not written
    waiting: VecDeque<String>,
    /// written bytes of the first one
    written: usize,
    /// lines that were dropped, because too many had to wait
    dropped: u64,
    error: Option<Error>,
}

impl Lines {
    pub fn new(write: impl FnMut(&[u8]) -> Result<usize, Error> + Send + 'static) -> Lines {
        Lines { write: Box::new(write), waiting: VecDeque::new(), written: 0, dropped: 0, error: None }
    }

    /// Returns the lines of stdout or stderr, which errors call `name`.
    pub fn to(file: File, name: &'static str) -> Lines {
        const HINT: &str = "let a program read stdout, or free space; --events FILE writes the events to a file, too";
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        Lines::new(move |line| {
            if poll(&mut [PollFd::new(&file, PollFlags::OUT)], Some(&NOW)) == Ok(0) {
                return Ok(0);
            }
            match (&file).write(&line[..line.len().min(PIPE_BUF)]) {
                Err(error) if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&error.kind()) => Ok(0),
                // A pipe whose reader has ended: `head` has read what it wanted.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(line.len()),
                written => {
                    written.map_err(|error| Error::new(format!("could not write to {name}: {}", reason(&error)), HINT))
                }
            }
        })
    }

    /// Adds lines, and writes what the output takes now.
    pub fn append(&mut self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.push_back(line);
            } else {
                self.dropped += 1;
            }
        }
        self.error = None;
        while let Some(line) = self.waiting.front() {
            match (self.write)(&line.as_bytes()[self.written..]) {
                Ok(0) => return,
                Ok(written) if self.written + written < line.len() => self.written += written,
                Ok(_) => {
                    self.waiting.pop_front();
                    self.written = 0;
                }
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }

    /// Returns why the last write failed.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Returns the number of lines that are not written.
    pub fn unwritten(&self) -> u64 {
        self.waiting.len() as u64 + self.dropped
    }

    /// Waits until all lines are written, at most for a second. Returns the number of lines that are not written, and why.
    pub fn finish(mut self, name: &str) -> Option<(u64, Error)> {
        let end = Instant::now() + END_WAIT;
        self.append([]);
        while !self.waiting.is_empty() && Instant::now() < end {
            std::thread::sleep(RETRY);
            self.append([]);
        }
        let not_read =
            || Error::new(format!("could not write to {name}: nothing read it in time"), "let a program read it");
        (self.unwritten() > 0).then(|| (self.unwritten(), self.error.take().unwrap_or_else(not_read)))
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

    fn lines_to(file: impl Into<OwnedFd>) -> Lines {
        Lines::to(File::from(file.into()), "it")
    }

    #[test]
    fn a_pipe_that_is_read_gets_each_line() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut lines = lines_to(writer);
        lines.append((0..100).map(line).chain([format!("{}\n", "x".repeat(10_000))]));
        assert_eq!(lines.finish("it"), None);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, (0..100).map(line).collect::<String>() + &"x".repeat(10_000) + "\n");
    }

    #[test]
    fn a_pipe_that_nobody_reads_does_not_block_and_the_loss_is_counted() {
        const LINES: u64 = 3000;
        for blocks in [true, false] {
            let (mut reader, writer) = std::io::pipe().unwrap();
            if !blocks {
                rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
            }
            let mut lines = lines_to(writer);
            (0..LINES).for_each(|n| lines.append([line(n)]));
            // A pipe contains 64 kB.
            assert!(lines.waiting.len() == MAX_WAITING && (1000..2000).contains(&lines.dropped), "{}", lines.dropped);
            let lost = lines.dropped;
            let reader = std::thread::spawn(move || {
                let mut text = String::new();
                reader.read_to_string(&mut text).map(|_| text)
            });
            let (unwritten, why) = lines.finish("it").unwrap();
            assert_eq!((unwritten, why.what.as_str()), (lost, "could not write to it: nothing read it in time"));
            let text = reader.join().unwrap().unwrap();
            assert_eq!(text.lines().count() as u64, LINES - lost);
        }
    }

    #[test]
    fn the_end_does_not_wait_for_a_pipe_that_nobody_reads() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let mut lines = lines_to(writer);
        lines.append((0..MAX_WAITING as u64).map(line));
        let (unwritten, why) = lines.finish("it").unwrap();
        assert!((300..1000).contains(&unwritten), "{unwritten}");
        assert_eq!(why.what, "could not write to it: nothing read it in time");
    }

    #[test]
    fn a_reader_that_has_ended_is_no_error() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut lines = lines_to(writer);
        lines.append([line(1)]);
        assert_eq!(lines.finish("it"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let mut lines = lines_to(File::options().write(true).open("/dev/full").unwrap());
        lines.append([line(1), line(2)]);
        assert!(lines.error().is_some());
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
            let mut lines = lines_to(file.try_clone().unwrap());
            lines.append((0..6).map(line));
            assert_eq!(lines.error().unwrap().what, "could not write to it: File too large");
            assert_eq!(text().len(), 500);
            // Room for the rest: both descriptors have one position.
            file.set_len(0).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            assert_eq!(lines.finish("it"), None);
            let all = (0..6).map(line).collect::<String>();
            assert_eq!(text(), all[500..]);
        });
    }
}
