//! Analyzes the plans of a log in several threads, and adds them up in the order of the log. So the limits for the memory
//! do not depend on the threads.

use super::analyzed::{AnalyzedPlan, Key};
use super::budget::Share;
use super::calls::{Calls, Cost, Executed, Uncertain};
use super::in_order::InOrder;
use super::nesting::{Nesting, Session};
use super::normalize::normalized;
use super::pipeline::{Collector, LoggedPlan};
use super::shapes::AnalyzedNodes;
use super::statements::Statements;
use crate::error::Error;
use crate::server::explain::captured::{Analysis, Inputs};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The collector of one thread.
pub struct Totals<'a> {
    inputs: &'a Inputs<'a>,
    /// the plans of the current batch
    batch: Vec<Analyzed>,
    sums: &'a Sums,
}

/// The sums of all threads.
#[derive(Default)]
pub struct Sums(Mutex<(InOrder<Vec<Analyzed>>, Sum)>);

impl Sums {
    pub fn into_sum(self) -> Sum {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// All plans so far.
#[derive(Default)]
pub struct Sum {
    pub statements: Statements,
    calls: Calls,
    /// nested plans
    pub nested_plans: u64,
    /// nested plans whose session is not known
    pub nested_without_session: u64,
    /// reported time of nested plans that is also in the time of their caller's plan
    pub nested_ms: f64,
    /// what the user should know about the clocks of the plans
    pub notes: BTreeSet<String>,
    /// relative error that the overhead of all plans has in common
    pub common_error: f64,
}

/// A plan of the current batch.
enum Analyzed {
    Plan(Box<AnalyzedPlan>),
    /// a plan that cannot be analyzed
    Skipped(Nesting),
    /// a statement of this session has failed
    Failed(Session),
}

impl<'a> Totals<'a> {
    pub fn new(inputs: &'a Inputs<'a>, sums: &'a Sums) -> Totals<'a> {
        Totals { inputs, batch: Vec::new(), sums }
    }
}

impl Collector for Totals<'_> {
    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        let LoggedPlan { place, query_id, nesting, selected, .. } = plan;
        let reported_ms = selected.execution_ms;
        let analysis = match Analysis::of(selected.explained, reported_ms, self.inputs) {
            Ok(analysis) => analysis,
            Err(error) => {
                self.batch.push(Analyzed::Skipped(nesting));
                return Err(error);
            }
        };
        let text = analysis.plan.query.as_deref().map(normalized);
        self.batch.push(Analyzed::Plan(Box::new(AnalyzedPlan {
            place,
            key: Key::new(query_id, text.as_deref()),
            text,
            reported_ms,
            corrected_ms: analysis.corrected_ms,
            clock_ms: analysis.clock_ms,
            nodes: AnalyzedNodes::of(&analysis),
            nesting,
            note: analysis.clock_note().map(String::from),
            common_error: analysis.common_error(),
        })));
        Ok(())
    }

    fn skipped(&mut self, _: &Error, nesting: Nesting) {
        self.batch.push(Analyzed::Skipped(nesting));
    }

    fn failed(&mut self, session: Session) {
        self.batch.push(Analyzed::Failed(session));
    }

    fn end_batch(&mut self, number: usize, unfinished: Share) {
        let batch = std::mem::take(&mut self.batch);
        let mut sums = self.sums.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (in_order, sum) = &mut *sums;
        in_order.add(number, batch, unfinished, |batch| batch.into_iter().for_each(|plan| sum.add(plan)));
    }
}

impl Sum {
    pub fn uncertain(&self) -> Uncertain {
        self.calls.uncertain
    }

    fn add(&mut self, analyzed: Analyzed) {
        let mut plan = match analyzed {
            Analyzed::Plan(plan) => *plan,
            Analyzed::Skipped(nesting) => return self.calls.end_statement(&nesting),
            Analyzed::Failed(session) => return self.calls.fail(session),
        };
        self.notes.extend(plan.note.take().filter(|note| !self.notes.contains(note)));
        self.common_error = self.common_error.max(plan.common_error);
        let nesting = std::mem::take(&mut plan.nesting);
        let (is_nested, is_known) = (nesting.is_nested(), nesting.session.is_known());
        let (place, text, own) = (plan.place, plan.text.as_deref(), plan.own_cost());
        let called = self.calls.add(Executed { nesting, place, text, own });
        self.nested_plans += u64::from(is_nested);
        self.nested_without_session += u64::from(is_nested && !is_known);
        self.nested_ms += called.reported_ms;
        // Without the session, the plans may be within another statement of about the same time.
        let called = if is_known { called } else { Cost::default() };
        self.statements.add(plan, is_nested, &called);
    }
}
