//! Reads all plans of a log. A log can have gigabytes, so it is read once, from its beginning to its end, and only figures
//! are kept.

mod analyzed;
mod auto_explain;
mod budget;
mod called;
mod calls;
mod chosen;
mod decompressed;
mod encoding;
mod entry;
mod evidence;
mod hosts;
mod in_order;
mod json_line;
mod lines;
mod log_line_prefix;
mod message;
mod mixed;
mod nesting;
mod normalize;
mod notes;
mod parse;
#[cfg(test)]
mod pasted_tests;
mod pipeline;
mod relation;
mod report;
mod server_line;
mod shapes;
mod signs;
mod skipped;
mod slowest;
mod source;
mod splitter;
mod statements;
#[cfg(test)]
mod tests;
mod totals;
mod zstd;

pub use source::Sources;

use super::captured::Inputs;
use crate::error::Error;
use crate::report::{ExplainReport, LogHost, LogReport, SkippedPlans};
use called::{CalledPlans, Chosen};
use chosen::{Each, Nth, number};
use pipeline::{Collector, Outcome};
use slowest::{AllSlowest, Slowest};
use std::sync::atomic::AtomicBool;
use totals::{Sums, Totals};

/// A log that is read once.
pub struct Log<'a> {
    pub sources: Sources,
    /// what the user knows about the server
    pub inputs: Inputs<'a>,
    /// ends the reading; the results then contain what was read
    pub stop: &'a AtomicBool,
    /// called with the fraction that was read, if it is known
    pub progress: &'a mut dyn FnMut(f64),
}

/// Single plans of a log.
pub struct Plans {
    pub reports: Vec<ExplainReport>,
    /// what was skipped, and what could not be read
    pub gaps: Gaps,
}

/// What the results do not contain.
pub struct Gaps {
    /// number of all plans
    pub plans: usize,
    pub skipped: Vec<SkippedPlans>,
    /// what the user should know about the files
    pub notes: Vec<String>,
    /// the hosts that wrote the plans, if there are several
    pub hosts: Vec<LogHost>,
    /// files that could not be read to their end
    pub errors: Vec<Error>,
    /// the user stopped the reading
    pub was_stopped: bool,
}

/// One thread splits the log, and cannot feed more threads than this.
const MAX_THREADS: usize = 4;

impl Log<'_> {
    /// Reads all plans, and adds up their overhead by statement.
    pub fn totals(self) -> Result<LogReport, Error> {
        self.totals_with(threads())
    }

    fn totals_with(self, threads: usize) -> Result<LogReport, Error> {
        let sums = Sums::default();
        let collectors = (0..threads).map(|_| Totals::new(&self.inputs, &sums)).collect();
        let outcome = pipeline::read(&self.sources, collectors, self.stop, self.progress);
        report::check_any(&outcome)?;
        let gaps = gaps(&self.sources, outcome);
        Ok(report::report(&self.sources, gaps, sums.into_sum()))
    }

    /// Returns the slowest plans, the slowest one first.
    pub fn slowest(self, most: usize) -> Result<Plans, Error> {
        let inputs = called::Inputs { clock: &self.inputs, sources: &self.sources };
        let all = AllSlowest::default();
        let collectors = (0..threads()).map(|_| Slowest::new(inputs, most, &all)).collect();
        let outcome = pipeline::read(&self.sources, collectors, self.stop, self.progress);
        report::check_any(&outcome)?;
        let plans = outcome.plans();
        let numbered = |mut plan: Chosen| {
            number(&mut plan.report, outcome.number(plan.number), plans);
            plan.report
        };
        let reports = all.take().into_iter().map(numbered).collect();
        Ok(Plans { reports, gaps: gaps(&self.sources, outcome) })
    }

    /// Returns plan number `nth`, from 1.
    pub fn nth(self, nth: usize) -> Result<Plans, Error> {
        let inputs = called::Inputs { clock: &self.inputs, sources: &self.sources };
        let collector = Nth { inputs, before: nth - 1, plan: None, called: CalledPlans::default() };
        let mut outcome = pipeline::read(&self.sources, vec![collector], self.stop, self.progress);
        let plans = outcome.plans();
        let mut chosen = match outcome.collectors.pop().and_then(|nth| nth.plan) {
            Some(plan) => plan?,
            None => {
                report::check_any(&outcome)?;
                let what = format!("there is no plan number {nth}: the input has {plans}");
                return Err(Error::new(what, "give a smaller number"));
            }
        };
        number(&mut chosen.report, nth, plans);
        Ok(Plans { reports: vec![chosen.report], gaps: gaps(&self.sources, outcome) })
    }

    /// Passes the report of each plan to `found`, in the order of the log, until it returns false.
    pub fn each(self, found: &mut (dyn FnMut(ExplainReport) -> bool + Send)) -> Result<Gaps, Error> {
        let inputs = called::Inputs { clock: &self.inputs, sources: &self.sources };
        let collector = Each { inputs, plans: 0, found, is_done: false, called: CalledPlans::default() };
        let outcome = pipeline::read(&self.sources, vec![collector], self.stop, self.progress);
        report::check_any(&outcome)?;
        Ok(gaps(&self.sources, outcome))
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

fn gaps<C: Collector>(sources: &Sources, outcome: Outcome<C>) -> Gaps {
    let plans = outcome.plans();
    let Outcome { skips, hosts, read, was_stopped, .. } = outcome;
    let hosts = hosts.several();
    let notes = notes::on_input(&hosts, &read, sources);
    Gaps { plans, skipped: report::skipped_plans(sources, skips), notes, hosts, errors: read.errors, was_stopped }
}
