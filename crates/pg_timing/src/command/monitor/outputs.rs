//! The outputs of the monitor besides the screen.

use super::console::{Console, events, were};
use super::no_thread;
use crate::command::arguments::MonitorArguments;
use crate::command::{Hint, NOT_DONE, print_error};
use crate::escape;
use crate::monitor::events_file::EventsFile;
use crate::monitor::http::{Endpoint, SharedPage};
use crate::monitor::textfile::Textfile;
use crate::render::openmetrics;
use crate::report::{MonitorEvent, MonitorReport};
use anyhow::anyhow;
use std::sync::PoisonError;

const EVENTS_HINT: Hint = Hint("without --events, each event is printed on stdout");

pub struct Outputs {
    /// prints events and errors; `None` with the live screen
    console: Option<Console>,
    page: SharedPage,
    endpoint: Option<Endpoint>,
    textfile: Option<Textfile>,
    /// whether the textfile stays after the end, because a timer starts the program again
    keep_textfile: bool,
    events: Option<EventsFile>,
    /// the last error of each output, so that it is reported once
    textfile_error: Option<String>,
    events_error: Option<String>,
    stdout_error: Option<String>,
}

impl Outputs {
    /// Opens every output that the arguments name. `prints` means that events and errors are printed.
    pub fn open(arguments: &MonitorArguments, prints: bool) -> anyhow::Result<Outputs> {
        crate::command::interrupt::ignore_file_size_signal();
        if arguments.events.as_deref().is_some_and(|path| path.as_os_str() == "-") {
            return Err(anyhow!("--events takes the name of a file").context(EVENTS_HINT));
        }
        let console = prints.then(Console::start).transpose().map_err(no_thread)?;
        // The file of events is created, so it comes after what can fail without a trace.
        let mut endpoint = arguments.listen.as_deref().map(Endpoint::bind).transpose()?;
        let textfile = arguments.textfile.as_deref().map(Textfile::open).transpose()?;
        let events = arguments.events.as_deref().map(EventsFile::open).transpose()?;
        let page = SharedPage::default();
        if let Some(endpoint) = &mut endpoint {
            endpoint.start(page.clone())?;
        }
        Ok(Outputs {
            console,
            page,
            endpoint,
            textfile,
            keep_textfile: arguments.samples.is_some(),
            events,
            textfile_error: None,
            events_error: None,
            stdout_error: None,
        })
    }

    /// Prints where the metrics are.
    pub fn announce(&self) {
        if let (Some(endpoint), Some(console)) = (&self.endpoint, &self.console) {
            console.note(&format!("metrics are at http://{}/metrics", endpoint.address()));
        }
    }

    /// Writes the state and its events to every output. Returns the state with what only the outputs know.
    pub fn publish(&mut self, mut report: MonitorReport, events: &[MonitorEvent]) -> MonitorReport {
        let console = self.console.as_ref();
        if let Some(console) = console {
            let printed = console.print(events.iter().map(line));
            note_dropped(Some(console), &printed, "stdout");
            report_change(&mut self.stdout_error, printed.err(), "stdout is written again", Some(console));
        }
        report.http_requests = self.endpoint.as_ref().map(Endpoint::requests).unwrap_or_default();
        let text = openmetrics::text(&report);
        if let Some(textfile) = &mut self.textfile {
            let error = textfile.write(&text).err();
            report_change(&mut self.textfile_error, error, "the textfile is written again", console);
        }
        if let Some(file) = &mut self.events {
            let written = file.append(events);
            note_dropped(console, &written, "the file of events");
            report_change(&mut self.events_error, written.err(), "the file of events is written again", console);
        }
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
        report
    }

    /// Returns the events that are not in the file of events, and the reason.
    pub fn unwritten(&self) -> Option<String> {
        let (file, error) = (self.events.as_ref()?, self.events_error.as_ref()?);
        Some(format!("{}: {error}", events(file.unwritten())))
    }

    /// Tries once more to write the events that wait. Returns the exit status: an error if events were not written.
    pub fn finish(mut self) -> u8 {
        let unwritten = self.events.take().and_then(EventsFile::finish);
        let console = self.console.take();
        if let Some((number, error)) = &unwritten {
            let what = format!("{} not written: {}", were(*number), error.what);
            match &console {
                Some(console) => console.error(&what, &error.hint),
                None => print_error(&what, &error.hint),
            }
        }
        let all_printed = console.is_none_or(Console::finish);
        if all_printed && unwritten.is_none() { 0 } else { NOT_DONE }
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        if let Some(textfile) = self.textfile.as_mut().filter(|_| !self.keep_textfile) {
            // Prometheus would take its old figures for new ones.
            textfile.remove();
        }
    }
}

/// Prints an error when it begins, and its end.
fn report_change(known: &mut Option<String>, now: Option<String>, recovered: &str, console: Option<&Console>) {
    if let Some(console) = console {
        match &now {
            Some(error) if known.is_none() => console.note(error),
            None if known.is_some() => console.note(recovered),
            _ => {}
        }
    }
    *known = now;
}

/// Prints how many events were dropped while an output could not be written.
fn note_dropped(console: Option<&Console>, written: &Result<u64, String>, output: &str) {
    if let (Some(console), Ok(dropped @ 1..)) = (console, written) {
        console.note(&format!("{} dropped while {output} could not be written", were(*dropped)));
    }
}

/// Returns an event as a line of a log.
fn line(event: &MonitorEvent) -> String {
    let subject = event.subject.as_ref().map(|subject| format!(" [{subject}]")).unwrap_or_default();
    let severity = event.severity.map(|severity| format!(" {}:", severity.word())).unwrap_or_default();
    let text = format!("{} {}{subject}:{severity} {}", event.time, event.event.name(), event.summary);
    format!("{}\n", escape::line(&text))
}
