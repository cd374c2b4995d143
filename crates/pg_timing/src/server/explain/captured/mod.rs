//! Reads captured plans from a log or a ticket. `crate::plan` does the rest.

mod csv_log;
pub mod csv_record;
mod encoding;
pub mod transport;

#[cfg(test)]
pub use crate::plan::ServerClock;
pub use crate::plan::{
    Analysis, Found, Inputs, Selected, Source, Unreadable, errors, executed, node_line, report, structured, text,
};
pub use encoding::text_of;

use crate::error::Error;
use crate::plan::{self, last_usable_plan};
use crate::report::ExplainReport;
use std::borrow::Cow;
use transport::{TAB, sent};

/// The line of a server's log that announces a plan.
pub mod announcement {
    pub use crate::plan::find::announced_ms;
}

/// Estimates the time without overhead of the last plan in a text.
pub fn captured(text: &str, inputs: &Inputs) -> Result<ExplainReport, Error> {
    report(last_usable_plan(&as_logged(text), inputs.document.is_some())?, inputs)
}

/// Passes each plan of a text to `found`, in the order of the text.
pub fn each_plan(text: &str, found: &mut plan::find::OnPlan) {
    plan::each_plan(&as_logged(text), found);
}

/// Returns the text without what syslog, containers and CSV put around the messages of a server's log.
fn as_logged(text: &str) -> Cow<'_, str> {
    let text = csv_log::expand_records(text);
    let is_sent = |line: &str| sent(line).text.len() < line.len();
    if !text.lines().any(is_sent) {
        return text;
    }
    let logged = |line| {
        let sent = sent(line);
        let has_octal_tab = sent.process.is_some();
        [if has_octal_tab { sent.text.strip_prefix(TAB).unwrap_or(sent.text) } else { sent.text }, "\n"]
    };
    text.lines().flat_map(logged).collect::<String>().into()
}
