//! The outputs of the monitor besides the screen.

use crate::command::arguments::MonitorArguments;
use crate::command::{Hint, note, print};
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
    /// whether events and errors are printed; not with the live screen
    log: bool,
    page: SharedPage,
    endpoint: Option<Endpoint>,
    textfile: Option<Textfile>,
    /// whether the textfile stays after the end, because a timer starts the program again
    keep_textfile: bool,
    events: Option<EventsFile>,
    /// the last error of each output, so that it is reported once
    textfile_error: Option<String>,
    events_error: Option<String>,
}

impl Outputs {
    /// Opens every output that the arguments name. `log` prints events and errors.
    pub fn open(arguments: &MonitorArguments, log: bool) -> anyhow::Result<Outputs> {
        crate::command::interrupt::ignore_file_size_signal();
        if arguments.events.as_deref().is_some_and(|path| path.as_os_str() == "-") {
            return Err(anyhow!("--events takes the name of a file").context(EVENTS_HINT));
        }
        // The file of events is created, so it comes after what can fail without a trace.
        let mut endpoint = arguments.listen.as_deref().map(Endpoint::bind).transpose()?;
        let textfile = arguments.textfile.as_deref().map(Textfile::open).transpose()?;
        let events = arguments.events.as_deref().map(EventsFile::open).transpose()?;
        let page = SharedPage::default();
        if let Some(endpoint) = &mut endpoint {
            endpoint.start(page.clone())?;
        }
        Ok(Outputs {
            log,
            page,
            endpoint,
            textfile,
            keep_textfile: arguments.samples.is_some(),
            events,
            textfile_error: None,
            events_error: None,
        })
    }

    /// Prints where the metrics are.
    pub fn announce(&self) {
        if let Some(endpoint) = &self.endpoint {
            note(&format!("metrics are at http://{}/metrics", endpoint.address()));
        }
    }

    /// Writes the state and its events to every output. Returns the state with what only the outputs know.
    pub fn publish(&mut self, mut report: MonitorReport, events: &[MonitorEvent]) -> MonitorReport {
        let log = self.log;
        if log {
            for event in events {
                // If stdout has no reader, the other outputs continue.
                _ = print(&line(event));
            }
        }
        report.http_requests = self.endpoint.as_ref().map(Endpoint::requests).unwrap_or_default();
        let text = openmetrics::text(&report);
        if let Some(textfile) = &mut self.textfile {
            let error = textfile.write(&text).err();
            report_change(&mut self.textfile_error, error, "the textfile is written again", log);
        }
        if let Some(file) = &mut self.events {
            let written = file.append(events);
            if let Ok(dropped @ 1..) = written
                && log
            {
                note(&format!("{dropped} events were dropped while the file of events could not be written"));
            }
            report_change(&mut self.events_error, written.err(), "the file of events is written again", log);
        }
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
        report
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        if !self.log {
            self.textfile_error.iter().chain(&self.events_error).for_each(|error| note(error));
        }
        if let Some(textfile) = self.textfile.as_mut().filter(|_| !self.keep_textfile) {
            // Prometheus would take its old figures for new ones.
            textfile.remove();
        }
    }
}

/// Prints an error when it begins, and its end. With the live screen, the error is printed after the end of the screen, if it
/// still exists.
fn report_change(known: &mut Option<String>, now: Option<String>, recovered: &str, log: bool) {
    match &now {
        Some(error) if known.is_none() && log => note(error),
        None if known.is_some() && log => note(recovered),
        _ => {}
    }
    *known = now;
}

/// Returns an event as a line of a log.
fn line(event: &MonitorEvent) -> String {
    let subject = event.subject.as_ref().map(|subject| format!(" [{subject}]")).unwrap_or_default();
    let severity = event.severity.map(|severity| format!(" {}:", severity.word())).unwrap_or_default();
    let text = format!("{} {}{subject}:{severity} {}", event.time, event.event.name(), event.summary);
    format!("{}\n", escape::line(&text))
}
