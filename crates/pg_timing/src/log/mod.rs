//! Reads all plans of logs, or of any text. A log can have gigabytes, so it is read once, from its beginning to its end, and
//! only figures are kept.

mod entry;
mod input;
mod messages;
mod normalize;
mod parse;
mod pipeline;
#[cfg(test)]
mod tests;
mod totals;
mod values;

pub use input::{Sources, quoted_name};

use crate::error::Error;
use crate::human::grouped;
use crate::plan::errors;
use crate::plan::{Inputs, Selected, report};
use crate::report::{ExplainReport, LogHost, LogPlace, LogReport, SkippedPlans};
use entry::{Damage, Format, Place};
use parse::LoggedPlan;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use totals::{AnalyzedPlan, Totals};

/// A log that is read once.
pub struct Log<'a> {
    pub sources: Sources,
    /// what the user knows about the server
    pub inputs: Inputs<'a>,
    /// ends the reading; the results then contain what was read
    pub stop: &'a AtomicBool,
    /// called with the fraction that was read, if it is known
    pub progress: &'a dyn Fn(f64),
}

/// Single plans of a log.
pub struct Plans {
    pub reports: Vec<ExplainReport>,
    /// what was skipped, and what could not be read
    pub gaps: Gaps,
}

/// What the results do not contain.
#[derive(Default)]
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
    /// messages of the server that cannot be read
    pub damaged_messages: u64,
}

/// A log has the plans of few hosts. A hostile one has a new name in each message.
const MAX_HOSTS: usize = 1000;
/// One thread finds the messages, and cannot feed more threads than this.
const MAX_THREADS: usize = 4;

impl Log<'_> {
    /// Reads all plans, and adds up their overhead by statement.
    pub fn totals(self) -> Result<LogReport, Error> {
        self.totals_with(threads())
    }

    fn totals_with(self, threads: usize) -> Result<LogReport, Error> {
        let mut totals = Totals::default();
        let gaps = self.read(threads, false, &|logged| AnalyzedPlan::of(logged, &self.inputs), &mut |_, plan| {
            totals.add(plan?);
            Ok(ControlFlow::Continue(()))
        })?;
        let sums = totals.into_report(&self.sources);
        let errors = gaps.errors.iter().map(|error| error.what.clone());
        Ok(LogReport {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            files: (0..self.sources.paths.len()).map(|file| self.sources.file(file)).collect(),
            plans: gaps.plans as u64,
            notes: sums.notes.into_iter().chain(gaps.notes).chain(errors).collect(),
            is_incomplete: gaps.was_stopped || !gaps.errors.is_empty(),
            skipped: gaps.skipped,
            hosts: gaps.hosts,
            ..sums
        })
    }

    /// Returns the last usable plan.
    pub fn last(self) -> Result<Plans, Error> {
        let mut last = None;
        let mut gaps = self.read(threads(), true, &Ok, &mut |number, single| {
            last = Some((number, single?));
            Ok(ControlFlow::Continue(()))
        })?;
        // The last plan may be in a file that could not be read.
        if let Some(error) = gaps.errors.pop() {
            return Err(error);
        }
        let Some((taken, single)) = last else { return Err(Skips::default().error()) };
        let mut notes = position(gaps.plans, taken).into_iter().chain(gaps.notes.drain(..)).collect::<Vec<_>>();
        notes.extend(gaps.skipped.drain(..).map(|skipped| not_usable(&skipped)));
        notes.extend(single.selected.notes);
        let selected = Selected { notes, plans: gaps.plans, taken, ..single.selected };
        let mut report = report(selected, &self.inputs)?;
        if let Some(capture) = &mut report.capture {
            capture.is_nested = single.is_nested;
        }
        Ok(Plans { reports: vec![report], gaps })
    }

    /// Returns the slowest plans, the slowest one first.
    pub fn slowest(self, most: usize) -> Result<Plans, Error> {
        let mut slowest: Vec<ExplainReport> = Vec::new();
        let gaps = self.read(threads(), false, &Ok, &mut |number, single| {
            let single = single?;
            let ms = single.selected.execution_ms;
            // Of equally slow plans, the first ones of the log count.
            let at = slowest.partition_point(|known| known.reported_ms >= ms);
            if at < most {
                slowest.insert(at, single.report(number, &self)?);
                slowest.truncate(most);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        slowest.iter_mut().filter_map(|report| report.capture.as_mut()).for_each(|capture| capture.plans = gaps.plans);
        Ok(Plans { reports: slowest, gaps })
    }

    /// Returns plan number `nth`, from 1.
    pub fn nth(self, nth: usize) -> Result<Plans, Error> {
        let mut found: Option<Result<ExplainReport, Error>> = None;
        let gaps = self.read(threads(), false, &Ok, &mut |number, single| {
            if number != nth {
                return single.map(|_| ControlFlow::Continue(()));
            }
            let report = single.and_then(|single| single.report(number, &self));
            let result = report.as_ref().err().cloned().map_or(Ok(ControlFlow::Continue(())), Err);
            found = Some(report);
            result
        });
        let mut report = match found {
            Some(report) => report?,
            None => {
                let what = format!("there is no plan number {nth}: the input has {}", gaps?.plans);
                return Err(Error::new(what, "give a smaller number"));
            }
        };
        let gaps = gaps?;
        report.capture.iter_mut().for_each(|capture| capture.plans = gaps.plans);
        Ok(Plans { reports: vec![report], gaps })
    }

    /// Passes the report of each plan to `found`, in the order of the log, until it returns false.
    pub fn each(self, found: &mut dyn FnMut(ExplainReport) -> bool) -> Result<Gaps, Error> {
        self.read(threads(), false, &Ok, &mut |number, single| {
            let is_wanted = found(single?.report(number, &self)?);
            Ok(if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })
    }

    /// Reads the log. `work` receives each usable plan in one of several threads. `collect` receives the numbers of the plans,
    /// from 1, and the results in the order of the log; an error is the reason why a plan is skipped. `accepts_cut_end`: the last
    /// plan may end without a line end. Returns what the results do not contain, or an error if there are no results.
    fn read<T: Send>(
        &self,
        threads: usize,
        accepts_cut_end: bool,
        work: &(dyn Fn(LoggedPlan) -> Result<T, Error> + Sync),
        collect: &mut dyn FnMut(usize, Result<T, Error>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<Gaps, Error> {
        let needs_source = self.inputs.document.is_some();
        let parse = |entry, results: &mut Vec<_>| {
            parse::each(entry, needs_source, &mut |logged| {
                let origin = (logged.place, logged.host, logged.format, logged.is_message);
                results.push((origin, logged.plan.and_then(work)));
            });
        };
        let (mut gaps, mut skips, mut hosts, mut formats) =
            (Gaps::default(), Skips::default(), BTreeMap::<_, u64>::new(), BTreeSet::new());
        let errors = pipeline::read(self, threads, accepts_cut_end, &parse, &mut |(
            (place, host, format, is_message),
            result,
        )| {
            gaps.plans += 1;
            formats.extend(format);
            if let Some(host) = host.filter(|host| hosts.len() < MAX_HOSTS || hosts.contains_key(host)) {
                *hosts.entry(host).or_default() += 1;
            }
            collect(gaps.plans, result).unwrap_or_else(|error| {
                gaps.damaged_messages += u64::from(is_message && is_damage(&error));
                skips.add(place, error);
                ControlFlow::Continue(())
            })
        });
        let was_stopped = self.stop.load(Ordering::Relaxed);
        if gaps.plans as u64 <= skips.plans() {
            return Err(match errors.into_iter().next() {
                _ if was_stopped => Error::new("stopped before a plan was read", "wait until the progress bar moves"),
                Some(error) => error,
                None => skips.error(),
            });
        }
        let hosts = several_hosts(hosts);
        let notes = notes(&self.sources, &hosts, &formats);
        Ok(Gaps { skipped: skips.into_plans(&self.sources), notes, hosts, errors, was_stopped, ..gaps })
    }
}

impl LoggedPlan {
    /// Returns the report of the plan. The number of all plans is not known yet.
    fn report(self, number: usize, log: &Log) -> Result<ExplainReport, Error> {
        let LoggedPlan { place, is_nested, selected, .. } = self;
        let mut report = report(Selected { taken: number, plans: number, ..selected }, &log.inputs)?;
        if let Some(capture) = &mut report.capture {
            capture.place = Some(LogPlace { file: log.sources.file(place.file), line: place.line });
            capture.is_nested = is_nested;
        }
        Ok(report)
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// Returns a note about an input with several plans.
fn position(plans: usize, taken: usize) -> Option<String> {
    match taken {
        _ if plans == 1 => None,
        _ if plans == taken => {
            Some(format!("the input has {plans} plans; this is the last one; --nth N shows another one"))
        }
        _ => Some(format!("the input has {plans} plans; this is number {taken}, the last usable one")),
    }
}

fn not_usable(SkippedPlans { plans, reason, first, .. }: &SkippedPlans) -> String {
    let plans = if *plans == 1 { "1 plan is".into() } else { format!("{} plans are", grouped(*plans)) };
    format!("{plans} not usable: {reason} (first: {} line {})", first.file, first.line)
}

/// The number of hosts whose names a note has.
const NAMED_HOSTS: usize = 5;

/// Returns what the user should know about the files: plans that count twice, and plans of several servers.
fn notes(sources: &Sources, hosts: &[LogHost], formats: &BTreeSet<Format>) -> Vec<String> {
    let mut notes = Vec::new();
    if !hosts.is_empty() {
        let named = hosts.iter().take(NAMED_HOSTS).map(|host| format!("{} ({})", host.name, grouped(host.plans)));
        let more = if hosts.len() > NAMED_HOSTS { ", ..." } else { "" };
        notes.push(format!(
            "the plans are from {} hosts or containers (number of plans): {}{more}. Each host has its own clock, so the figures \
             are right only for plans of the host whose clock was given: read the lines of one host at a time",
            hosts.len(),
            named.collect::<Vec<_>>().join(", ")
        ));
    }
    if formats.len() > 1 {
        notes.push(format!(
            "the input has the server's logs in several formats ({}). A server writes each plan to all of them, so plans may \
             count several times: give the files of one format",
            formats.iter().map(Format::name).collect::<Vec<_>>().join(", ")
        ));
    }
    let repeated = sources.repeated.iter();
    notes.extend(repeated.map(|path| format!("{} is given more than once; it was read once", quoted_name(path))));
    notes
}

/// All reasons by their hints. Errors with the same hint count as one reason: their texts can contain figures.
#[derive(Default)]
struct Skips(BTreeMap<String, Skipped>);

/// Plans that were skipped for one reason.
struct Skipped {
    plans: u64,
    /// of the first plan
    error: Error,
    first: Place,
}

impl Skips {
    fn add(&mut self, place: Place, error: Error) {
        let plans = &mut self.0.entry(error.hint.clone()).or_insert(Skipped { plans: 0, error, first: place }).plans;
        *plans += 1;
    }

    fn plans(&self) -> u64 {
        self.0.values().map(|skipped| skipped.plans).sum()
    }

    /// Returns the error if all plans were skipped.
    fn error(&self) -> Error {
        let plans = self.plans();
        match self.0.values().max_by_key(|skipped| skipped.plans) {
            None => errors::no_plan(),
            Some(most) if plans == 1 => most.error.clone(),
            Some(Skipped { plans: most, error, .. }) => {
                let what = format!("none of the {plans} plans can be used; {most} of them: {}", error.what);
                Error::new(what, error.hint.clone())
            }
        }
    }

    /// Returns the reasons, the most frequent one first.
    fn into_plans(self, sources: &Sources) -> Vec<SkippedPlans> {
        let of_one_reason = |Skipped { plans, error, first }: Skipped| {
            let is_damaged = is_damage(&error);
            let first = LogPlace { file: sources.file(first.file), line: first.line };
            SkippedPlans { plans, reason: error.what, hint: error.hint, first, is_damaged }
        };
        let mut all: Vec<SkippedPlans> = self.0.into_values().map(of_one_reason).collect();
        all.sort_by_key(|skipped| std::cmp::Reverse(skipped.plans));
        all
    }
}

/// Returns whether a part of the plan is missing or wrong. Otherwise it is complete, but has no times of this clock.
fn is_damage(error: &Error) -> bool {
    ![errors::not_executed(), errors::not_timed(), errors::timed_by_fast_timing()].contains(error)
}

/// Returns the error for a message that is damaged.
fn of_damage(damage: Damage) -> Error {
    let (what, hint) = match damage {
        Damage::Truncated => (
            "the end of the plan is missing: the log or its entry is truncated, or the log was rotated within the plan",
            "include all of the plan's lines; join the files of one log (cat FILE FILE), and give that",
        ),
        Damage::NoBeginning => (
            "the log begins in the middle of a plan",
            "join the file before it and this one (cat FILE FILE), and give that",
        ),
        Damage::Broken => (
            "a part of the plan is lost, or lines of something else are within it",
            "set logging_collector = on: the server then writes each entry as a whole; for syslog, set syslog_split_messages = off",
        ),
        Damage::TooLong => (
            "the plan is longer than 8 MB",
            "no real plan is that long, except over many thousand partitions; take it with EXPLAIN (FORMAT JSON)",
        ),
    };
    Error::new(what, hint)
}

/// Returns the hosts with their numbers of plans, the one with the most plans first, if the plans are not all from one.
fn several_hosts(plans: BTreeMap<Arc<str>, u64>) -> Vec<LogHost> {
    let mut all: Vec<LogHost> =
        plans.iter().map(|(name, plans)| LogHost { name: name.to_string(), plans: *plans }).collect();
    all.sort_by_key(|host| std::cmp::Reverse(host.plans));
    if all.len() > 1 { all } else { Vec::new() }
}
