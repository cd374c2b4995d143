//! Selects single plans of a log: the slowest ones, one by its number, or each of them in turn.

use super::nesting::Nesting;
use super::pipeline::{Collector, LoggedPlan, Number};
use super::source::Sources;
use crate::error::Error;
use crate::report::{ExplainReport, LogPlace};
use crate::server::explain::captured::{Inputs, report};

/// A plan's report. The number of all plans is not known before the end of the log.
pub struct Chosen {
    pub number: Number,
    pub report: ExplainReport,
}

fn analyze(plan: LoggedPlan, inputs: &Inputs, sources: &Sources) -> Result<Chosen, Error> {
    let LoggedPlan { place, number, nesting, selected, .. } = plan;
    let mut report = report(selected, inputs)?;
    if let Some(capture) = &mut report.capture {
        capture.place = Some(LogPlace { file: sources.file(place.file), line: place.line });
        capture.is_nested = nesting.is_nested();
    }
    Ok(Chosen { number, report })
}

/// The slowest plans of one thread.
pub struct Slowest<'a> {
    pub inputs: &'a Inputs<'a>,
    pub sources: &'a Sources,
    /// how many plans are wanted
    pub most: usize,
    /// the slowest one first
    pub plans: Vec<Chosen>,
}

impl Slowest<'_> {
    pub fn add(&mut self, plan: Chosen) {
        let order = |chosen: &Chosen| (-chosen.report.reported_ms, chosen.number);
        let at = self.plans.partition_point(|known| order(known) < order(&plan));
        self.plans.insert(at, plan);
        self.plans.truncate(self.most);
    }
}

impl Collector for Slowest<'_> {
    fn needs_source(&self) -> bool {
        self.inputs.document.is_some()
    }

    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        let is_full = self.plans.len() >= self.most;
        let slowest = self.plans.last().map_or(0.0, |last| last.report.reported_ms);
        if !is_full || plan.selected.execution_ms >= slowest {
            self.add(analyze(plan, self.inputs, self.sources)?);
        }
        Ok(())
    }
}

/// The plan with a number. It must be the only collector, so that it receives the plans in their order.
pub struct Nth<'a> {
    pub inputs: &'a Inputs<'a>,
    pub sources: &'a Sources,
    /// number of plans before the wanted one
    pub before: usize,
    pub plan: Option<Result<Chosen, Error>>,
}

impl Collector for Nth<'_> {
    fn needs_source(&self) -> bool {
        self.inputs.document.is_some()
    }

    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        if self.is_next() {
            match analyze(plan, self.inputs, self.sources) {
                Ok(chosen) => self.plan = Some(Ok(chosen)),
                Err(error) => {
                    self.plan = Some(Err(error.clone()));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn skipped(&mut self, error: &Error, _: Nesting) {
        if self.is_next() {
            self.plan = Some(Err(error.clone()));
        }
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
    pub inputs: &'a Inputs<'a>,
    pub sources: &'a Sources,
    pub plans: usize,
    /// returns whether it wants more
    pub found: &'a mut (dyn FnMut(ExplainReport) -> bool + Send),
    pub is_done: bool,
}

impl Collector for Each<'_> {
    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        self.plans += 1;
        if !self.is_done {
            let Chosen { mut report, .. } = analyze(plan, self.inputs, self.sources)?;
            number(&mut report, self.plans, self.plans);
            self.is_done = !(self.found)(report);
        }
        Ok(())
    }

    fn skipped(&mut self, _: &Error, _: Nesting) {
        self.plans += 1;
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
