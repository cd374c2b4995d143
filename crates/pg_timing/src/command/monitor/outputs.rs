//! The outputs of the monitor besides the screen. None of them stops the samples.

use super::MonitorArguments;
use crate::command::{NOT_DONE, error_text, interrupt};
use crate::error::{Error, require};
use crate::escape;
use crate::json::json_line;
use crate::monitor::files::{Lines, textfile};
use crate::monitor::http::Endpoint;
use crate::monitor::openmetrics;
use crate::output_file::{OutputFile, READABLE};
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
    textfile: Option<OutputFile>,
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
        let is_file = arguments.events.as_deref().is_none_or(|path| path.as_os_str() != "-");
        require(is_file, "--events takes the name of a file", EVENTS_HINT)?;
        let lines = |stream: &dyn AsFd, name| -> anyhow::Result<Lines> {
            Ok(Lines::to(File::from(stream.as_fd().try_clone_to_owned()?), name))
        };
        let stdout = prints.then(|| lines(&std::io::stdout(), STDOUT)).transpose()?;
        let stderr = lines(&std::io::stderr(), "stderr")?;
        // The file of events is created, so it comes after what can fail without a trace.
        let endpoint = arguments.listen.as_deref().map(Endpoint::start).transpose()?;
        let textfile = arguments.textfile.as_deref().map(textfile).transpose()?;
        let events = arguments.events.as_deref().map(OutputFile::to_append).transpose()?;
        let events = events.map(|file| Lines::new(move |line| file.append(line).map(|()| line.len())));
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
            lines.error.as_ref().map(|error| error.what.clone())
        };
        report.http_requests = self.endpoint.as_ref().map(Endpoint::requests).unwrap_or_default();
        let page = openmetrics::text(&report);
        if let Some(endpoint) = &self.endpoint {
            endpoint.publish(&page);
        }
        let textfile = self.textfile.as_ref().map(|file| file.replace(page.as_bytes(), Some(READABLE)));
        let textfile = textfile.and_then(Result::err).map(|error| error.what);
        let [stdout, events_file] = [append(&mut self.stdout, line), append(&mut self.events, json_line)];
        for (name, error) in [(STDOUT, stdout), (TEXTFILE, textfile), (EVENTS_FILE, events_file)] {
            // An error is printed when it begins, and its end.
            match (self.failing.remove(name), &error) {
                (None, Some(error)) => self.note(error),
                (Some(_), None) => self.note(&format!("{name} is written again")),
                _ => {}
            }
            self.failing.extend(error.map(|error| (name, error)));
        }
        let unwritten = self.events.as_ref().map(Lines::unwritten).zip(self.failing.get(EVENTS_FILE));
        report.unwritten = unwritten.map(|(number, error)| format!("{}: {error}", self::events(number)));
        report
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
        let mut exit_status = 0;
        let lines = [(self.events.take(), EVENTS_FILE, "written"), (self.stdout.take(), STDOUT, "printed")];
        for (lines, name, verb) in lines {
            if let Some((number, Error { what, hint, .. })) = lines.and_then(|lines| lines.finish(name)) {
                let were = if number == 1 { "was" } else { "were" };
                self.stderr.append([error_text(&format!("{} {were} not {verb}: {what}", events(number)), &hint)]);
                exit_status = NOT_DONE;
            }
        }
        if let Some(textfile) = self.textfile.as_ref().filter(|_| !self.keep_textfile) {
            textfile.remove();
        }
        self.stderr.finish("stderr");
        exit_status
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
