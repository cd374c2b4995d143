//! Selects the slowest plans of a log. Several threads analyze the plans, and pass them on in the order of the log: the nested
//! plans within a plan are before it.

use super::budget::Share;
use super::called::{CalledPlans, Chosen, Inputs, analyze, cost};
use super::calls::Cost;
use super::entry::Place;
use super::in_order::InOrder;
use super::nesting::{Nesting, Session};
use super::pipeline::{Collector, LoggedPlan};
use crate::error::Error;
use std::sync::{Mutex, PoisonError};

/// The collector of one thread.
pub struct Slowest<'a> {
    inputs: Inputs<'a>,
    /// how many plans are wanted
    most: usize,
    /// the times of this thread's slowest plans, the slowest one first
    times: Vec<f64>,
    /// the plans of the current batch
    batch: Vec<Found>,
    all: &'a AllSlowest,
}

/// The slowest plans of all threads.
#[derive(Default)]
pub struct AllSlowest(Mutex<(InOrder<Vec<Found>>, Sequence)>);

impl AllSlowest {
    /// Returns the plans when all threads have ended, the slowest one first.
    pub fn take(&self) -> Vec<Chosen> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).1.plans)
    }
}

/// The plans of a log in their order.
#[derive(Default)]
struct Sequence {
    called: CalledPlans,
    /// the slowest one first
    plans: Vec<Chosen>,
}

/// What a batch contains.
enum Found {
    /// a plan that may be one of the slowest
    Chosen(Nesting, Box<Chosen>),
    /// another plan, with its cost if it can be analyzed
    Other(Nesting, Place, Option<Cost>),
    Failed(Session),
}

impl<'a> Slowest<'a> {
    pub fn new(inputs: Inputs<'a>, most: usize, all: &'a AllSlowest) -> Slowest<'a> {
        Slowest { inputs, most, times: Vec::new(), batch: Vec::new(), all }
    }

    /// Returns whether a plan can be one of the slowest. Of equally slow plans, the first ones of the log count.
    fn is_slow(&self, ms: f64) -> bool {
        self.times.len() < self.most || self.times.last().is_some_and(|fastest| ms >= *fastest)
    }

    fn add_time(&mut self, ms: f64) {
        let at = self.times.partition_point(|known| *known >= ms);
        self.times.insert(at, ms);
        self.times.truncate(self.most);
    }
}

impl Collector for Slowest<'_> {
    fn needs_source(&self) -> bool {
        self.inputs.needs_source()
    }

    fn plan(&mut self, plan: LoggedPlan) -> Result<(), Error> {
        let (nesting, place) = (plan.nesting.clone(), plan.place);
        if !self.is_slow(plan.selected.execution_ms) {
            self.batch.push(Found::Other(nesting, place, cost(plan, &self.inputs).ok()));
            return Ok(());
        }
        match analyze(plan, &self.inputs) {
            Ok(chosen) => {
                self.add_time(chosen.report.reported_ms);
                self.batch.push(Found::Chosen(nesting, Box::new(chosen)));
                Ok(())
            }
            Err(error) => {
                self.batch.push(Found::Other(nesting, place, None));
                Err(error)
            }
        }
    }

    fn skipped(&mut self, _: &Error, nesting: Nesting) {
        self.batch.push(Found::Other(nesting, Place::default(), None));
    }

    fn failed(&mut self, session: Session) {
        self.batch.push(Found::Failed(session));
    }

    fn end_batch(&mut self, number: usize, unfinished: Share) {
        let (batch, most) = (std::mem::take(&mut self.batch), self.most);
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (in_order, sequence) = &mut *all;
        in_order.add(number, batch, unfinished, |batch| batch.into_iter().for_each(|found| sequence.add(found, most)));
    }
}

impl Sequence {
    fn add(&mut self, found: Found, most: usize) {
        match found {
            Found::Failed(session) => self.called.fail(session),
            Found::Other(nesting, place, cost) => self.called.pass_cost(nesting, place, cost),
            Found::Chosen(nesting, mut chosen) => {
                self.called.add(nesting, &mut chosen);
                let order = |chosen: &Chosen| (-chosen.report.reported_ms, chosen.number);
                let at = self.plans.partition_point(|known| order(known) < order(&chosen));
                self.plans.insert(at, *chosen);
                self.plans.truncate(most);
            }
        }
    }
}
