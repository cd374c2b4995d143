//! The outputs of the monitor besides the screen. None of them stops the samples.

use super::MonitorArguments;
use crate::command::{NOT_DONE, error_text, interrupt};
use crate::error::Error;
use crate::escape;
use crate::json::json_line;
use crate::monitor::files::{EventsFile, Lines, Textfile};
use crate::monitor::http::{Endpoint, Limits};
use crate::monitor::openmetrics;
use crate::report::{MonitorEvent, MonitorReport};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;

const EVENTS_HINT: &str = "without --events, each event is printed on stdout";

const STDOUT: &str = "stdout";
const TEXTFILE: &str = "the textfile";
const EVENTS_FILE: &str = "the file of events";

pub struct Outputs {
    /// events as text; `None` with the live screen
    stdout: Option<Lines>,
    /// notes and errors
    stderr: Lines,
    endpoint: Option<Endpoint>,
    textfile: Option<Textfile>,
    /// whether the textfile stays after the end, because a timer starts the program again
    keep_textfile: bool,
    events: Option<Lines>,
    /// the outputs that cannot be written, and why, so that each error is reported once
    failing: BTreeMap<&'static str, String>,
}

impl Outputs {
    /// Opens every output that the arguments name. `prints` means that events and errors are printed.
    pub fn open(arguments: &MonitorArguments, prints: bool) -> anyhow::Result<Outputs> {
        interrupt::ignore_file_size_signal();
        if arguments.events.as_deref().is_some_and(|path| path.as_os_str() == "-") {
            return Err(Error::new("--events takes the name of a file", EVENTS_HINT).into());
        }
        let lines = |stream: &dyn AsFd, name| -> anyhow::Result<Lines> {
            Ok(Lines::to(File::from(stream.as_fd().try_clone_to_owned()?), name))
        };
        let stdout = prints.then(|| lines(&std::io::stdout(), STDOUT)).transpose()?;
        let stderr = lines(&std::io::stderr(), "stderr")?;
        // The file of events is created, so it comes after what can fail without a trace.
        let endpoint = arguments.listen.as_deref().map(|address| Endpoint::start(address, Limits::default()));
        let endpoint = endpoint.transpose()?;
        let textfile = arguments.textfile.as_deref().map(Textfile::new).transpose()?;
        let events = arguments.events.as_deref().map(EventsFile::new).transpose()?;
        let events = events.map(|file| Lines::new(move |line| file.append(line)));
        let (keep_textfile, failing) = (arguments.samples.is_some(), BTreeMap::new());
        Ok(Outputs { stdout, stderr, endpoint, textfile, keep_textfile, events, failing })
    }

    /// Prints where the metrics are.
    pub fn announce(&mut self) {
        if let Some(address) = self.endpoint.as_ref().map(Endpoint::address) {
            self.note(&format!("metrics are at http://{address}/metrics"));
        }
    }

    /// Writes the state and its events to every output. Returns the state with what only the outputs know.
    pub fn publish(&mut self, mut report: MonitorReport, events: &[MonitorEvent]) -> MonitorReport {
        let append = |lines: &mut Option<Lines>, line: fn(&MonitorEvent) -> String| {
            let lines = lines.as_mut()?;
            lines.append(events.iter().map(line));
            lines.error().map(|error| error.what.clone())
        };
        let stdout_error = append(&mut self.stdout, line);
        let events_error = append(&mut self.events, json_line);
        report.http_requests = self.endpoint.as_ref().map(Endpoint::requests).unwrap_or_default();
        let text = openmetrics::text(&report);
        let textfile_error = self.textfile.as_mut().and_then(|textfile| textfile.write(&text).err());
        if let Some(endpoint) = &self.endpoint {
            endpoint.publish(&text);
        }
        for (name, error) in
            [(STDOUT, stdout_error), (TEXTFILE, textfile_error.map(|error| error.what)), (EVENTS_FILE, events_error)]
        {
            self.report_change(name, error);
        }
        let unwritten = self.events.as_ref().map(Lines::unwritten).zip(self.failing.get(EVENTS_FILE));
        report.unwritten = unwritten.map(|(number, error)| format!("{}: {error}", self::events(number)));
        report
    }

    /// Prints the error of an output when it begins, and its end.
    fn report_change(&mut self, name: &'static str, now: Option<String>) {
        let before = match &now {
            Some(error) => self.failing.insert(name, error.clone()),
            None => self.failing.remove(name),
        };
        match (before, now) {
            (None, Some(error)) => self.note(&error),
            (Some(_), None) => self.note(&format!("{name} is written again")),
            _ => {}
        }
    }

    /// Prints a note on stderr, except with the live screen. If stderr cannot be written, nothing can report that.
    fn note(&mut self, text: &str) {
        if self.stdout.is_some() {
            self.stderr.append([format!("pg_timing: {}\n", escape::line(text))]);
        }
    }

    /// Waits until everything is written, for some seconds at most. Returns the exit status: an error if events were not
    /// written.
    pub fn finish(mut self) -> u8 {
        let file = self.events.take().and_then(|events| events.finish(EVENTS_FILE));
        let stdout = self.stdout.take().and_then(|stdout| stdout.finish(STDOUT));
        for (unwritten, verb) in [(&file, "written"), (&stdout, "printed")] {
            if let Some((number, Error { what, hint, .. })) = unwritten {
                let were = if *number == 1 { "was" } else { "were" };
                let what = format!("{} {were} not {verb}: {what}", events(*number));
                self.stderr.append([error_text(&what, hint)]);
            }
        }
        if let Some(textfile) = self.textfile.as_mut().filter(|_| !self.keep_textfile) {
            textfile.remove();
        }
        self.stderr.finish("stderr");
        if file.is_none() && stdout.is_none() { 0 } else { NOT_DONE }
    }
}

/// Returns "1 event", or "2 events".
fn events(number: u64) -> String {
    if number == 1 { "1 event".into() } else { format!("{number} events") }
}

/// Returns an event as a line of a log.
fn line(event: &MonitorEvent) -> String {
    let subject = event.subject.as_ref().map(|subject| format!(" [{subject}]")).unwrap_or_default();
    let severity = event.severity.map(|severity| format!(" {}:", severity.word())).unwrap_or_default();
    let text = format!("{} {}{subject}:{severity} {}", event.time, event.event.name(), event.summary);
    format!("{}\n", escape::line(&text))
}
