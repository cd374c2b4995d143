//! Selects single plans of a log: one by its number, or each of them in turn.

use super::called::{CalledPlans, Chosen, Inputs, analyze};
use super::nesting::{Nesting, Session};
use super::pipeline::{Collector, LoggedPlan};
use crate::error::Error;
use crate::report::ExplainReport;

/// The plan with a number. It must be the only collector, so that it receives the plans in their order.
pub struct Nth<'a> {
    pub inputs: Inputs<'a>,
    /// number of plans before the wanted one
    pub before: usize,
    pub plan: Option<Result<Chosen, Error>>,
    pub called: CalledPlans,
}

impl Collector for Nth<'_> {
    fn needs_source(&self) -> bool {
        self.inputs.needs_source()
    }

    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        if !self.is_next() {
            if self.plan.is_none() {
                self.called.pass(plan, &self.inputs);
            }
            return Ok(());
        }
        let nesting = plan.nesting.clone();
        match analyze(plan, &self.inputs) {
            Ok(mut chosen) => {
                self.called.add(nesting, &mut chosen);
                self.plan = Some(Ok(chosen));
                Ok(())
            }
            Err(error) => {
                self.plan = Some(Err(error.clone()));
                Err(error)
            }
        }
    }

    fn skipped(&mut self, error: &Error, nesting: Nesting) {
        self.called.end_statement(&nesting);
        if self.is_next() {
            self.plan = Some(Err(error.clone()));
        }
    }

    fn failed(&mut self, session: Session) {
        self.called.fail(session);
    }
}

impl Nth<'_> {
    /// Counts a plan. Returns whether it is the wanted one.
    fn is_next(&mut self) -> bool {
        let is_next = self.before == 0 && self.plan.is_none();
        self.before = self.before.saturating_sub(1);
        is_next
    }
}

/// Passes the report of each plan on. It must be the only collector.
pub struct Each<'a> {
    pub inputs: Inputs<'a>,
    pub plans: usize,
    /// returns whether it wants more
    pub found: &'a mut (dyn FnMut(ExplainReport) -> bool + Send),
    pub is_done: bool,
    pub called: CalledPlans,
}

impl Collector for Each<'_> {
    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        self.plans += 1;
        if !self.is_done {
            let nesting = plan.nesting.clone();
            let mut chosen = analyze(plan, &self.inputs).inspect_err(|_| self.called.end_statement(&nesting))?;
            self.called.add(nesting, &mut chosen);
            number(&mut chosen.report, self.plans, self.plans);
            self.is_done = !(self.found)(chosen.report);
        }
        Ok(())
    }

    fn skipped(&mut self, _: &Error, nesting: Nesting) {
        self.plans += 1;
        self.called.end_statement(&nesting);
    }

    fn failed(&mut self, session: Session) {
        self.called.fail(session);
    }

    fn wants_more(&self) -> bool {
        !self.is_done
    }
}

/// Sets the plan's number and the number of plans.
pub fn number(report: &mut ExplainReport, taken: usize, plans: usize) {
    if let Some(capture) = &mut report.capture {
        (capture.taken, capture.plans) = (taken, plans);
    }
}
