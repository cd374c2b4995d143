//! The file of `--events`: one line of JSON for each event, in docs/monitor-event.schema.json.
//!
//! Each event is written once. If the disk is full, no part of a line remains, and the event waits. The file is opened again
//! after logrotate has moved it. It is opened for appending, so `copytruncate` works, too.

use crate::error::Error;
use crate::output_file::{OutputFile, READABLE, check_regular, identity, is_root};
use crate::render::json::json_line;
use crate::report::MonitorEvent;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Result, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Events that wait for a full disk. A busy day has fewer, and they take less than 1 MB.
const MAX_WAITING: usize = 1000;

/// A file of events.
pub struct EventsFile {
    output: OutputFile,
    file: Option<File>,
    /// lines that are not written yet
    waiting: VecDeque<String>,
    /// events that were dropped since the last success
    dropped: u64,
}

impl EventsFile {
    /// Opens the file, or creates it.
    pub fn open(path: &Path) -> std::result::Result<EventsFile, Error> {
        let mut events = EventsFile { output: OutputFile::of(path)?, file: None, waiting: VecDeque::new(), dropped: 0 };
        let opened = events.current().map(|_| ());
        opened.map_err(|error| events.output.not_writable(&error))?;
        Ok(events)
    }

    /// Appends new events, after those that wait. Call it also without events, so that those that wait are tried again.
    ///
    /// Returns the number of events that were dropped since the last success, because too many had to wait.
    pub fn append<'a>(
        &mut self,
        events: impl IntoIterator<Item = &'a MonitorEvent>,
    ) -> std::result::Result<u64, String> {
        for event in events {
            self.waiting.push_back(json_line(event));
            if self.waiting.len() > MAX_WAITING {
                self.waiting.pop_front();
                self.dropped += 1;
            }
        }
        self.write_waiting().map_err(|error| {
            // A part of a line may remain if it could not be cut off. The next open ends that line.
            self.file = None;
            self.output.failed(&error)
        })?;
        Ok(std::mem::take(&mut self.dropped))
    }

    /// Returns the number of events that are not written.
    pub fn unwritten(&self) -> u64 {
        self.waiting.len() as u64 + self.dropped
    }

    /// Tries once more to write the events that wait. Returns the number of events that are not written, and the error.
    pub fn finish(mut self) -> Option<(u64, Error)> {
        let error = self.write_waiting().err()?;
        Some((self.unwritten(), self.output.not_writable(&error)))
    }

    fn write_waiting(&mut self) -> Result<()> {
        while let Some(line) = self.waiting.pop_front() {
            let written = self.current().and_then(|file| append_line(file, &line));
            if let Err(error) = written {
                self.waiting.push_front(line);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the open file with this name.
    fn current(&mut self) -> Result<&File> {
        let open = self.output.open_directory()?;
        let in_folder = rustix::fs::statat(&open, &self.output.name, AtFlags::empty()).ok();
        let in_folder = in_folder.as_ref().map(identity);
        let still = match &self.file {
            Some(file) => Some(identity(&rustix::fs::fstat(file)?)) == in_folder,
            None => false,
        };
        let kept = self.file.take().filter(|_| still);
        let file = match kept {
            Some(file) => file,
            None => self.open_in(&open)?,
        };
        Ok(self.file.insert(file))
    }

    fn open_in(&self, open: &OwnedFd) -> Result<File> {
        // A named pipe must not block.
        let mut flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if is_root() {
            flags |= OFlags::NOFOLLOW;
        }
        let name = &self.output.name;
        let file = match rustix::fs::openat(open, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                let file = rustix::fs::openat(open, name, flags | OFlags::CREATE | OFlags::EXCL, READABLE)?;
                // The umask may have removed permissions.
                rustix::fs::fchmod(&file, READABLE)?;
                file
            }
            Err(Errno::LOOP) => return Err(std::io::Error::other("it is a symlink, which root does not follow")),
            opened => opened?,
        };
        let state = rustix::fs::fstat(&file)?;
        check_regular(&state)?;
        // Another user can give a second name to a file of root.
        if is_root() && state.st_nlink > 1 {
            return Err(std::io::Error::other("it has several hard links, and root writes only to a file with one"));
        }
        let file = File::from(file);
        end_last_line(&file)?;
        Ok(file)
    }
}

/// Ends the last line if it has no end, because the machine stopped during a write.
fn end_last_line(file: &File) -> Result<()> {
    let mut last = *b"\n";
    if let Some(before) = file.metadata()?.len().checked_sub(1) {
        file.read_exact_at(&mut last, before)?;
    }
    if last == *b"\n" { Ok(()) } else { append_line(file, "\n") }
}

/// Appends a line, or nothing.
fn append_line(mut file: &File, line: &str) -> Result<()> {
    let before = file.metadata()?.len();
    file.write_all(line.as_bytes()).inspect_err(|_| _ = file.set_len(before))
}

#[cfg(test)]
mod tests {
    use super::super::tests::in_process_with_file_limit;
    use super::*;
    use crate::report::{EventKind, Severity};
    use std::os::unix::fs::{PermissionsExt, symlink};

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
        let mut file = EventsFile::open(&path).unwrap();
        let small = MonitorEvent { subject: None, severity: None, value: Some(-1.5), ..event("a\n\"b\" \x1b") };
        let all = EventKind::ALL.map(|event| MonitorEvent { event, ..small.clone() });
        assert_eq!(file.append(all.iter().chain([&event("c")])), Ok(0));
        assert_eq!(file.append([]), Ok(0));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), EventKind::ALL.len() + 1);
        for (line, kind) in text.lines().zip(EventKind::ALL.map(EventKind::name).iter().chain(&["finding_appeared"])) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(validator.is_valid(&value) && !line.contains('\x1b'), "{line}");
            assert_eq!(value["event"], *kind);
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
            EventsFile::open(&path).unwrap().append([&event("new")]).unwrap();
            assert_eq!(summaries(&path), ["old", "new"], "{nth}");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
        }
    }

    #[test]
    fn it_works_with_both_ways_of_logrotate() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mut file = EventsFile::open(&path("events")).unwrap();
        file.append([&event("1")]).unwrap();
        std::fs::rename(path("events"), path("events.1")).unwrap();
        file.append([&event("2")]).unwrap();
        std::fs::rename(path("events"), path("events.2")).unwrap();
        std::fs::write(path("events"), "").unwrap();
        file.append([&event("3")]).unwrap();
        std::fs::copy(path("events"), path("events.3")).unwrap();
        File::options().write(true).open(path("events")).unwrap().set_len(0).unwrap();
        file.append([&event("4")]).unwrap();
        std::fs::remove_file(path("events")).unwrap();
        file.append([&event("5")]).unwrap();
        for (name, events) in [("events.1", ["1"]), ("events.2", ["2"]), ("events.3", ["3"]), ("events", ["5"])] {
            assert_eq!(summaries(&path(name)), events, "{name}");
        }
    }

    #[test]
    fn a_full_disk_leaves_no_half_line_and_loses_no_event() {
        let name = "monitor::events_file::tests::a_full_disk_leaves_no_half_line_and_loses_no_event";
        in_process_with_file_limit(name, 500, || {
            let dir = tempfile::tempdir().unwrap();
            let path = |name: &str| dir.path().join(name);
            let mut file = EventsFile::open(&path("events")).unwrap();
            let events: Vec<MonitorEvent> = (0..10).map(|n| event(&format!("{n}"))).collect();
            let error = file.append(&events).unwrap_err();
            assert_eq!(error, format!("could not write \"{}\": File too large", path("events").display()));
            let before = summaries(&path("events"));
            assert!((1..10).contains(&before.len()), "{before:?}");
            assert_eq!(file.append([]).unwrap_err(), error, "the same text each time");
            assert_eq!(summaries(&path("events")), before);
            let mut all = before;
            // Each new file has room for some.
            for nth in 0.. {
                std::fs::rename(path("events"), path(&format!("events.{nth}"))).unwrap();
                let result = file.append([]);
                all.extend(summaries(&path("events")));
                if result == Ok(0) {
                    break;
                }
                assert!(nth < 10);
            }
            assert_eq!(all, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
        });
    }

    #[test]
    fn too_many_waiting_events_are_dropped_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("events");
        let mut file = EventsFile::open(&path).unwrap();
        let moved = dir.path().join("moved");
        std::fs::rename(&folder, &moved).unwrap();
        for n in 0..MAX_WAITING + 3 {
            file.append([&event(&n.to_string())]).unwrap_err();
        }
        assert_eq!(file.unwritten(), MAX_WAITING as u64 + 3);
        std::fs::rename(&moved, &folder).unwrap();
        assert_eq!(file.append([]), Ok(3));
        assert_eq!(file.unwritten(), 0);
        let written = summaries(&path);
        assert_eq!((written.len(), written[0].as_str(), written[999].as_str()), (MAX_WAITING, "3", "1002"));
        assert_eq!(file.append([&event("later")]), Ok(0));
    }

    #[test]
    fn the_end_tries_again_and_counts_what_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, moved) = (dir.path().join("folder"), dir.path().join("moved"));
        for is_back in [true, false] {
            std::fs::create_dir_all(&folder).unwrap();
            let mut file = EventsFile::open(&folder.join("events")).unwrap();
            std::fs::rename(&folder, &moved).unwrap();
            file.append(&[event("1"), event("2")]).unwrap_err();
            if is_back {
                std::fs::rename(&moved, &folder).unwrap();
            }
            let result = file.finish();
            assert_eq!(result.is_none(), is_back);
            if let Some((unwritten, error)) = result {
                assert_eq!(unwritten, 2);
                assert!(error.hint.starts_with("create the directory"), "{}", error.hint);
            }
        }
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
            let error = EventsFile::open(&path(name)).err().unwrap_or_else(|| panic!("{name}"));
            assert!(!error.hint.is_empty() && !error.what.contains('\n'), "{error}");
        }
        assert_eq!(EventsFile::open(&path("symlink")).is_err(), is_root());
        std::fs::hard_link(path("victim"), path("link")).unwrap();
        assert_eq!(EventsFile::open(&path("link")).is_err(), is_root());
        if is_root() {
            assert_eq!(std::fs::read_to_string(path("victim")).unwrap(), "secret");
        }
    }

    /// After logrotate, another user could put a symlink in place of the file.
    #[test]
    fn root_does_not_follow_a_later_symlink() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mut file = EventsFile::open(&path("events")).unwrap();
        std::fs::write(path("victim"), "secret\n").unwrap();
        std::fs::rename(path("events"), path("events.1")).unwrap();
        symlink("victim", path("events")).unwrap();
        assert_eq!(file.append([&event("1")]).is_err(), is_root());
        assert_eq!(std::fs::read_to_string(path("victim")).unwrap() == "secret\n", is_root());
    }
}
