//! Estimates the overhead in a captured plan. Nothing is run: the cost of a timed call comes from the report of the
//! server's host, from the read cost of its clock, or from the statement's time without EXPLAIN.

mod analysis;
mod document;
pub mod errors;
mod expected;
mod extract;
#[cfg(test)]
mod formats_proptests;
mod frame;
mod host_report;
mod json_text;
mod json_values;
mod lists;
pub mod node_line;
#[cfg(test)]
mod old_versions;
#[cfg(test)]
mod proptests;
mod repair;
mod select;
pub mod structured;
#[cfg(test)]
mod tests;
pub mod text;
mod unreadable;
mod xml;
mod yaml;
mod yaml_json;

pub use analysis::Analysis;
pub use extract::each_plan;
pub use select::{Selected, executed};
pub use unreadable::{Found, Source, Unreadable};

use super::plan::Explained;
use crate::error::Error;
use crate::plan_format::PlanFormat;
use crate::report::ExplainReport;
#[cfg(test)]
use select::last_usable_plan;

/// The clock of the plan's server.
#[derive(Clone, Debug)]
pub struct ServerClock {
    pub read_ns: f64,
    /// what timing adds to a call of a small function, if it was measured
    pub timed_call_ns: Option<f64>,
    /// read cost of the system clock, if known: it shows how fast the processor is
    pub system_read_ns: Option<f64>,
    /// number of CPUs of the server's host, if known
    pub cpus: Option<usize>,
    /// what the user should know about this figure
    pub note: Option<String>,
}

/// Returns the clock that timed a plan; the plan's settings select it.
pub type ClockOf<'a> = dyn Fn(&Explained) -> Result<ServerClock, Error> + Sync + 'a;

/// What the user knows about the plan's server.
pub struct Inputs<'a> {
    pub clock: Option<&'a ClockOf<'a>>,
    /// the statement's time without EXPLAIN
    pub plain_ms: Option<f64>,
    /// the report must contain the plan, as a document in this format
    pub document: Option<PlanFormat>,
}

/// Estimates the time without overhead of the last plan in a text.
#[cfg(test)]
pub fn captured(text: &str, inputs: &Inputs) -> Result<ExplainReport, Error> {
    report(last_usable_plan(text, inputs.document.is_some())?, inputs)
}

/// Estimates the time without overhead of a plan.
pub fn report(selected: Selected, inputs: &Inputs) -> Result<ExplainReport, Error> {
    let Selected { explained, execution_ms, plans, taken, source, notes } = selected;
    let document = source.zip(inputs.document).map(|(source, format)| document::new(&source, format, &explained));
    let report = Analysis::of(explained, execution_ms, inputs)?.report(plans, taken, notes);
    Ok(ExplainReport { document, ..report })
}
