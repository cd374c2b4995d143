//! EXPLAIN's own output with corrected times, for programs that read plans.

mod lines;
mod text;
mod times;

use super::explain_text::ExplainText;
use crate::error::Error;
use crate::human::percent;
use crate::plan_format::keys::{CORRECTION, EXECUTION_TIME};
use crate::plan_format::{PlanDocument, Properties};
use crate::render::escape;
use crate::report::ExplainReport;
use serde_json::{Value, json};

/// Returns the plan in EXPLAIN's text format.
pub fn text(report: &ExplainReport) -> Result<String, Error> {
    check(report)?;
    Ok(match document(report)? {
        PlanDocument::Text(plan) => lines::corrected(plan, report),
        PlanDocument::Json(plan) => text::text(&corrected(plan, report), report),
    })
}

/// Returns the plan in EXPLAIN's JSON format.
pub fn json(report: &ExplainReport) -> Result<String, Error> {
    check(report)?;
    let PlanDocument::Json(plan) = document(report)? else { return Err(no_document()) };
    Ok(escape::json(&format!("{:#}\n", json!([corrected(plan, report)]))))
}

/// Returns the plan with corrected times, and with one more property that says so.
fn corrected(plan: &Properties, report: &ExplainReport) -> Properties {
    let mut plan = plan.clone();
    times::correct(&mut plan, report);
    let after = plan.keys().position(|key| key == EXECUTION_TIME).map_or(plan.len(), |position| position + 1);
    plan.shift_insert(after, CORRECTION.into(), Value::from(summary(report)));
    plan
}

/// Returns what was removed from the times: `pg_timing 1.0.0 removed 35% (30% to 40%) of the reported 123.456 ms`.
fn summary(report: &ExplainReport) -> String {
    let removed = |corrected: f64| percent((1.0 - corrected / report.reported_ms.max(f64::MIN_POSITIVE)).max(0.0));
    let corrected = report.corrected_ms;
    let [low, estimate, high] = [corrected.high, corrected.estimate, corrected.low].map(removed);
    format!(
        "pg_timing {} removed {estimate} ({low} to {high}) of the reported {:.3} ms",
        report.version, report.reported_ms
    )
}

/// Returns the plan as EXPLAIN printed it.
fn document(report: &ExplainReport) -> Result<&PlanDocument, Error> {
    report.document.as_ref().ok_or_else(no_document)
}

fn no_document() -> Error {
    Error::new("the report has no plan in the format that EXPLAIN printed", "please report this as a bug")
}

/// Returns an error if the overhead could not be measured: a plan has no place for the reason.
fn check(report: &ExplainReport) -> Result<(), Error> {
    match report.has_figures() {
        true => Ok(()),
        false => Err(Error::new(ExplainText::of(report).answer, "the other formats show what was measured")),
    }
}

#[cfg(test)]
mod tests;
