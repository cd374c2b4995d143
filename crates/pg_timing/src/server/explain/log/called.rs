//! Reports of single plans of a log, with the overhead of the nested statements that they executed.

use super::calls::{Calls, Cost, Executed};
use super::entry::Place;
use super::nesting::{Nesting, Session};
use super::pipeline::{LoggedPlan, Number};
use super::source::Sources;
use crate::error::Error;
use crate::human::grouped;
use crate::report::{ExplainReport, LogPlace, Range};
use crate::server::explain::captured::{self, Analysis, report};

/// A plan's report. The number of all plans is not known before the end of the log.
pub struct Chosen {
    pub number: Number,
    pub place: Place,
    pub report: ExplainReport,
}

/// What the reports need.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub clock: &'a captured::Inputs<'a>,
    pub sources: &'a Sources,
}

impl Inputs<'_> {
    pub fn needs_source(&self) -> bool {
        self.clock.document.is_some()
    }
}

/// Returns the report of a plan.
pub fn analyze(plan: LoggedPlan, inputs: &Inputs) -> Result<Chosen, Error> {
    let LoggedPlan { place, number, nesting, selected, .. } = plan;
    let mut report = report(selected, inputs.clock)?;
    if let Some(capture) = &mut report.capture {
        capture.place = Some(LogPlace { file: inputs.sources.file(place.file), line: place.line });
        capture.is_nested = nesting.is_nested();
    }
    Ok(Chosen { number, place, report })
}

/// Returns the cost of a plan that is not shown. Only that of a nested plan can count for another one.
pub fn cost(plan: LoggedPlan, inputs: &Inputs) -> Result<Cost, Error> {
    let reported_ms = plan.selected.execution_ms;
    if !plan.nesting.is_nested() {
        return Ok(Cost { plans: 1, reported_ms, ..Cost::default() });
    }
    let analysis = Analysis::of(plan.selected.explained, reported_ms, inputs.clock)?;
    Ok(Cost::of(reported_ms, analysis.corrected_ms, analysis.clock_ms))
}

/// The plans of the log in their order.
#[derive(Default)]
pub struct CalledPlans(Calls);

impl CalledPlans {
    /// Adds the overhead of nested plans to a report.
    pub fn add(&mut self, nesting: Nesting, Chosen { place, report, .. }: &mut Chosen) {
        let own = Cost::of(report.reported_ms, report.corrected_ms, Range::default());
        let (is_known, uncertain) = (nesting.session.is_known(), self.0.uncertain.plans);
        let within = self.0.add(Executed { nesting, place: *place, text: report.statement.as_deref(), own });
        let Some(capture) = &mut report.capture else { return };
        // The statement's time without EXPLAIN is also without the overhead of nested statements.
        if capture.given_plain_ms.is_some() {
            return;
        }
        if within.plans > 0 && is_known {
            capture.called_overhead_ms = Some(within.overhead_ms);
        }
        let uncertain = self.0.uncertain.plans - uncertain;
        if uncertain > 0 {
            report.notes.push(format!(
                "nested plans before this one, and not certainly within it: {}. Their overhead is not included",
                grouped(uncertain)
            ));
        }
    }

    /// Receives a plan that is not shown.
    pub fn pass(&mut self, plan: LoggedPlan, inputs: &Inputs) {
        let (nesting, place) = (plan.nesting.clone(), plan.place);
        let own = cost(plan, inputs);
        self.pass_cost(nesting, place, own.ok());
    }

    /// Receives the cost of a plan that is not shown, or `None` if it cannot be analyzed.
    pub fn pass_cost(&mut self, nesting: Nesting, place: Place, own: Option<Cost>) {
        match own {
            Some(own) => _ = self.0.add(Executed { nesting, place, text: None, own }),
            None => self.0.end_statement(&nesting),
        }
    }

    pub fn end_statement(&mut self, nesting: &Nesting) {
        self.0.end_statement(nesting);
    }

    pub fn fail(&mut self, session: Session) {
        self.0.fail(session);
    }
}
