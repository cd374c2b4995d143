//! What the monitor writes besides the endpoint and the screen: lines on stdout and stderr, and in the file of `--events`; and the
//! file of `--textfile`. An output that takes nothing, such as a pipe without a reader or a full disk, never stops the samples.

use crate::error::{Error, require};
use crate::output_file::OutputFile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
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
    /// why the last write failed
    pub error: Option<Error>,
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
                written => written.map_err(|error| Error::io(format!("could not write to {name}"), &error, HINT)),
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
                Err(error) => return self.error = Some(error),
            }
        }
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

/// Returns the file for the textfile collector of node_exporter. A reader never sees a part of a page. The name of a partial file
/// does not end in `.prom`, so node_exporter ignores it.
pub fn textfile(path: &Path) -> Result<OutputFile, Error> {
    let what = format!("\"{}\" does not end in .prom, so node_exporter would ignore it", path.display());
    let is_read = path.as_os_str().as_encoded_bytes().ends_with(b".prom");
    require(is_read, what, "name the file like pg_timing.prom")?;
    OutputFile::to_replace(path)
}

#[cfg(test)]
mod tests {
    use super::super::tests::in_process_with_file_limit;
    use super::*;
    use crate::json::json_line;
    use crate::output_file::{READABLE, is_root};
    use crate::report::{EventKind, MonitorEvent, Severity};
    use clap::ValueEnum;
    use rustix::fs::{Mode, OFlags};
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn numbered(n: u64) -> String {
        format!("line {n} {}\n", "x".repeat(100))
    }

    fn lines_to(file: impl Into<OwnedFd>) -> Lines {
        Lines::to(File::from(file.into()), "it")
    }

    #[test]
    fn a_pipe_that_is_read_gets_each_line() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut lines = lines_to(writer);
        lines.append((0..100).map(numbered).chain([format!("{}\n", "x".repeat(10_000))]));
        assert_eq!(lines.finish("it"), None);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, (0..100).map(numbered).collect::<String>() + &"x".repeat(10_000) + "\n");
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
            (0..LINES).for_each(|n| lines.append([numbered(n)]));
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
        lines.append((0..MAX_WAITING as u64).map(numbered));
        let (unwritten, why) = lines.finish("it").unwrap();
        assert!((300..1000).contains(&unwritten), "{unwritten}");
        assert_eq!(why.what, "could not write to it: nothing read it in time");
    }

    #[test]
    fn a_reader_that_has_ended_is_no_error() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut lines = lines_to(writer);
        lines.append([numbered(1)]);
        assert_eq!(lines.finish("it"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let mut lines = lines_to(File::options().write(true).open("/dev/full").unwrap());
        lines.append([numbered(1), numbered(2)]);
        assert!(lines.error.is_some());
        let (unwritten, error) = lines.finish("it").unwrap();
        assert_eq!((unwritten, error.what.as_str()), (2, "could not write to it: No space left on device"));
    }

    #[test]
    fn lines_are_written_once_if_a_full_disk_has_room_again() {
        let name = "monitor::files::tests::lines_are_written_once_if_a_full_disk_has_room_again";
        in_process_with_file_limit(name, 500, || {
            let path = tempfile::NamedTempFile::new().unwrap();
            // Reading through another descriptor leaves the position of the writing one unchanged.
            let text = || std::fs::read_to_string(path.path()).unwrap();
            let mut file = path.reopen().unwrap();
            let mut lines = lines_to(file.try_clone().unwrap());
            lines.append((0..6).map(numbered));
            assert_eq!(lines.error.as_ref().unwrap().what, "could not write to it: File too large");
            assert_eq!(text().len(), 500);
            // Room for the rest: both descriptors have one position.
            file.set_len(0).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            assert_eq!(lines.finish("it"), None);
            let all = (0..6).map(numbered).collect::<String>();
            assert_eq!(text(), all[500..]);
        });
    }

    fn event(summary: &str) -> MonitorEvent {
        MonitorEvent {
            time: "2026-11-25T18:55:06Z".into(),
            unix_seconds: 1_795_632_906.25,
            event: EventKind::FindingAppeared,
            summary: summary.into(),
            subject: Some("clock-slow".into()),
            severity: Some(Severity::Warning),
            value: None,
        }
    }

    fn line(summary: &str) -> Vec<u8> {
        json_line(&event(summary)).into_bytes()
    }

    /// Returns the summaries in a file. Each line must be a whole event.
    fn summaries(path: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let summary = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["summary"].clone();
        text.lines().map(|line| summary(line).as_str().unwrap().to_string()).collect()
    }

    #[test]
    fn each_event_is_one_line_that_matches_the_schema() {
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitor-event.schema.json");
        let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let file = OutputFile::to_append(&path).unwrap();
        let small = MonitorEvent { subject: None, severity: None, value: Some(-1.5), ..event("a\n\"b\" \x1b") };
        for event in EventKind::value_variants() {
            file.append(json_line(&MonitorEvent { event: *event, ..small.clone() }).as_bytes()).unwrap();
        }
        file.append(&line("c")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), EventKind::value_variants().len() + 1);
        let kinds = EventKind::value_variants().iter().chain(&[EventKind::FindingAppeared]);
        for (line, kind) in text.lines().zip(kinds.map(|kind| kind.name())) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(validator.is_valid(&value) && !line.contains('\x1b'), "{line}");
            assert_eq!(value["event"], kind);
        }
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o644);
    }

    #[test]
    fn it_continues_an_existing_file_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        for (nth, before) in ["{\"summary\":\"old\"}\n", "{\"summary\":\"old\"}"].iter().enumerate() {
            std::fs::write(&path, before).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            OutputFile::to_append(&path).unwrap().append(&line("new")).unwrap();
            assert_eq!(summaries(&path), ["old", "new"], "{nth}");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
        }
    }

    #[test]
    fn it_works_with_both_ways_of_logrotate() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let file = OutputFile::to_append(&path("events")).unwrap();
        file.append(&line("1")).unwrap();
        std::fs::rename(path("events"), path("events.1")).unwrap();
        file.append(&line("2")).unwrap();
        std::fs::rename(path("events"), path("events.2")).unwrap();
        std::fs::write(path("events"), "").unwrap();
        file.append(&line("3")).unwrap();
        std::fs::copy(path("events"), path("events.3")).unwrap();
        File::options().write(true).open(path("events")).unwrap().set_len(0).unwrap();
        file.append(&line("4")).unwrap();
        std::fs::remove_file(path("events")).unwrap();
        file.append(&line("5")).unwrap();
        for (name, events) in [("events.1", ["1"]), ("events.2", ["2"]), ("events.3", ["3"]), ("events", ["5"])] {
            assert_eq!(summaries(&path(name)), events, "{name}");
        }
    }

    #[test]
    fn a_full_disk_leaves_no_half_line_and_loses_no_event() {
        let name = "monitor::files::tests::a_full_disk_leaves_no_half_line_and_loses_no_event";
        in_process_with_file_limit(name, 500, || {
            let dir = tempfile::tempdir().unwrap();
            let path = |name: &str| dir.path().join(name);
            let file = OutputFile::to_append(&path("events")).unwrap();
            let mut lines = Lines::new(move |line| file.append(line).map(|()| line.len()));
            lines.append((0..10).map(|n| json_line(&event(&n.to_string()))));
            let mut all = Vec::new();
            // Each new file has room for some.
            for nth in 0..10 {
                let written = summaries(&path("events"));
                assert!((1..10).contains(&written.len()), "{written:?}");
                all.extend(written);
                let Some(error) = &lines.error else { break };
                let expected = format!("could not write \"{}\": File too large", path("events").display());
                assert_eq!(error.what, expected);
                std::fs::rename(path("events"), path(&format!("events.{nth}"))).unwrap();
                lines.append([]);
            }
            assert_eq!(all, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
        });
    }

    #[test]
    fn only_regular_files_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("directory")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), Mode::RWXU).unwrap();
        std::fs::write(path("victim"), "secret").unwrap();
        symlink("victim", path("symlink")).unwrap();
        symlink("missing", path("dangling")).unwrap();
        for name in ["directory", "pipe", "directory/", "missing/events", "dangling"] {
            let error = OutputFile::to_append(&path(name)).err().unwrap_or_else(|| panic!("{name}"));
            assert!(!error.hint.is_empty() && !error.what.contains('\n'), "{error}");
        }
        assert_eq!(OutputFile::to_append(&path("symlink")).is_err(), is_root());
        if is_root() {
            assert_eq!(std::fs::read_to_string(path("victim")).unwrap(), "secret");
        }
    }

    /// Another user could put a symlink in place of the file.
    #[test]
    fn root_does_not_follow_a_later_symlink() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let file = OutputFile::to_append(&path("events")).unwrap();
        std::fs::write(path("victim"), "secret\n").unwrap();
        std::fs::rename(path("events"), path("events.1")).unwrap();
        symlink("victim", path("events")).unwrap();
        assert_eq!(file.append(&line("1")).is_err(), is_root());
        assert_eq!(std::fs::read_to_string(path("victim")).unwrap() == "secret\n", is_root());
    }

    fn write(textfile: &OutputFile, page: &str) -> Result<(), Error> {
        textfile.replace(page.as_bytes(), Some(READABLE))
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_file_is_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pg_timing.prom");
        let textfile = OutputFile::to_replace(&path).unwrap();
        assert_eq!(names(dir.path()), [""; 0]);
        for page in ["a 1\n", "a 2\n"] {
            write(&textfile, page).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
            assert_eq!(names(dir.path()), ["pg_timing.prom"]);
        }
        textfile.remove();
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn monitors_in_one_directory_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let page = "a 1\n".repeat(1000);
        std::thread::scope(|threads| {
            let writers = ["a.prom", "b.prom"].map(|name| {
                let (textfile, page) = (OutputFile::to_replace(&path(name)).unwrap(), &page);
                threads.spawn(move || (0..500).try_for_each(|_| write(&textfile, page)))
            });
            // Other monitors start meanwhile, also one with the same file.
            while !writers.iter().all(|writer| writer.is_finished()) {
                for name in ["a.prom", "b.prom", "c.prom"] {
                    OutputFile::to_replace(&path(name)).unwrap();
                }
            }
            for writer in writers {
                writer.join().unwrap().unwrap();
            }
        });
        for name in ["a.prom", "b.prom"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), page);
        }
        assert_eq!(names(dir.path()), ["a.prom", "b.prom"]);
    }

    #[test]
    fn a_name_that_node_exporter_ignores_is_refused() {
        let error = textfile(Path::new("a.txt")).err().unwrap();
        assert_eq!(error.what, "\"a.txt\" does not end in .prom, so node_exporter would ignore it");
    }

    #[test]
    fn a_directory_may_vanish_and_return() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("a.prom");
        let textfile = OutputFile::to_replace(&path).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        let error = write(&textfile, "a 1\n").unwrap_err();
        assert_eq!(error.what, format!("could not write \"{}\": No such file or directory", path.display()));
        textfile.remove();
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        in_process_with_file_limit("monitor::files::tests::a_failed_write_leaves_the_old_file", 100, || {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.prom");
            let textfile = OutputFile::to_replace(&path).unwrap();
            write(&textfile, "old\n").unwrap();
            let error = write(&textfile, &"new\n".repeat(50)).unwrap_err();
            assert!(error.what.contains("File too large"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\n");
            assert_eq!(names(dir.path()), ["a.prom"]);
            textfile.remove();
            assert_eq!(names(dir.path()), [""; 0]);
        });
    }
}
