//! Renders the report of `explain` on one statement or plan.

use super::arguments::ExplainFormat;
use crate::error::Error;
use crate::render::{self, escape};
use crate::report::ExplainReport;

pub fn render_report(report: &ExplainReport, format: ExplainFormat) -> Result<String, Error> {
    Ok(match format {
        ExplainFormat::Text => render::text::explain::text(&escape::report(report)?),
        ExplainFormat::Json => render::json::json(report),
        ExplainFormat::Jsonl => render::json::json_line(report),
        ExplainFormat::Html => render::html::explain::html(&escape::report(report)?),
        ExplainFormat::PlanText => render::plan::text(report)?,
        ExplainFormat::PlanJson => render::plan::json(report)?,
    })
}
