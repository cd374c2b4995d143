//! Renders the report of `explain` on one statement or plan.

use super::arguments::ExplainFormat;
use super::output;
use crate::document::{self, pages};
use crate::error::Error;
use crate::render;
use crate::report::ExplainReport;

pub fn render_report(report: &ExplainReport, format: ExplainFormat) -> Result<String, Error> {
    Ok(match format {
        ExplainFormat::Text => document::text::text(&document::explain::document(report), output()),
        ExplainFormat::Json => render::json::json(report),
        ExplainFormat::Jsonl => render::json::json_line(report),
        ExplainFormat::Html => pages::of_plans(std::slice::from_ref(report)),
        ExplainFormat::PlanText => render::plan::text(report)?,
        ExplainFormat::PlanJson => render::plan::json(report)?,
    })
}
