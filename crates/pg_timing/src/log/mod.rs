//! Reads all plans of logs, or of any text. A log can have gigabytes, so it is read once, from its beginning to its end, and
//! of plans that are not printed only figures are kept.
//!
//! `totals`, `last`, `slowest` and the others call `Log::read`, and this `read_parallel`. There the `Reader` finds the entries in the
//! lines, and several threads read and judge their plans: `parse::each`, then `plan::overhead::estimate`.

mod entry;
mod input;
mod messages;
mod parse;
#[cfg(test)]
mod tests;
mod totals;
mod values;

pub use input::{Sources, quoted_name};

use crate::error::Error;
use crate::human::grouped;
use crate::plan::unusable::SUPPORTED;
use crate::plan::{Estimate, Explained, Inputs, Unusable, estimate};
use crate::report::{ExplainReport, LogHost, LogPlace, LogReport, SkippedPlans};
use entry::{Entry, Format};
use messages::Messages;
use parse::Logged;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use totals::{Run, Totals};

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

impl Plans {
    fn of(mut reports: Vec<ExplainReport>, gaps: Gaps) -> Plans {
        reports.iter_mut().filter_map(|report| report.capture.as_mut()).for_each(|capture| capture.plans = gaps.plans);
        Plans { reports, gaps }
    }
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

/// Whether the reading goes on. An error is the reason why this plan is skipped.
type Next = Result<ControlFlow<()>, Unusable>;
const CONTINUE: Next = Ok(ControlFlow::Continue(()));

impl Log<'_> {
    /// Reads all plans, and adds up their overhead by statement.
    pub fn totals(self) -> Result<LogReport, Error> {
        self.totals_with(threads())
    }

    fn totals_with(self, threads: usize) -> Result<LogReport, Error> {
        let mut totals = Totals::default();
        let (sources, inputs) = (&self.sources, &self.inputs);
        let work = |plan: Explained, logged: &Logged| {
            let query_id = plan.query_id;
            Ok(Run::of(estimate(plan, inputs)?, query_id, logged.is_nested, sources.place(logged.place)))
        };
        let gaps = self.read(threads, false, &work, &mut |_, run| {
            totals.add(run?);
            CONTINUE
        })?;
        let sums = totals.into_report();
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

    /// Returns the last usable plan. If what the user gave contradicts a later plan, that is an error.
    pub fn last(self) -> Result<Plans, Error> {
        let mut last = None;
        let mut gaps = self.estimates(true, false, &mut |_, estimate| match estimate {
            Err(why) if !why.contradicts_inputs() => Err(why),
            result => {
                last = Some(result);
                CONTINUE
            }
        })?;
        // The last plan may be in a file that could not be read.
        if let Some(error) = gaps.errors.pop() {
            return Err(error);
        }
        let mut report = last.transpose()?.map(Estimate::with_nodes).unwrap_or_default();
        let capture = report.capture.get_or_insert_default();
        capture.place = None;
        let notes = position(gaps.plans, capture.taken).into_iter().chain(gaps.notes.drain(..));
        let notes: Vec<String> = notes.chain(gaps.skipped.iter().map(not_usable)).collect();
        report.notes.splice(..0, notes);
        Ok(Plans::of(vec![report], gaps))
    }

    /// Returns the slowest plans, the slowest one first.
    pub fn slowest(self, most: usize) -> Result<Plans, Error> {
        let mut slowest = Vec::<Estimate>::new();
        let gaps = self.estimates(false, false, &mut |_, estimate| {
            let estimate = estimate?;
            // Of equally slow plans, the first ones of the log count.
            let at = slowest.partition_point(|known| known.report.reported_ms >= estimate.report.reported_ms);
            slowest.insert(at, estimate);
            slowest.truncate(most);
            CONTINUE
        })?;
        Ok(Plans::of(slowest.into_iter().map(Estimate::with_nodes).collect(), gaps))
    }

    /// Returns plan number `nth`, from 1. What the user gave need not belong to the other plans.
    pub fn nth(self, nth: usize) -> Result<Plans, Error> {
        let mut found = None;
        let gaps = self.estimates(false, false, &mut |number, estimate| {
            let skipped = estimate.as_ref().err().filter(|why| number == nth || !why.contradicts_inputs()).cloned();
            if number == nth {
                found = Some(estimate);
            }
            skipped.map_or(CONTINUE, Err)
        });
        let Some(estimate) = found else {
            let what = format!("there is no plan number {nth}: the input has {}", gaps?.plans);
            return Err(Error::new(what, "give a smaller number"));
        };
        Ok(Plans::of(vec![estimate?.with_nodes()], gaps?))
    }

    /// Passes the report of each plan to `found`, in the order of the log, until it returns false.
    pub fn each(self, found: &mut dyn FnMut(ExplainReport) -> bool) -> Result<Gaps, Error> {
        self.estimates(false, true, &mut |_, estimate| match found(estimate?.report) {
            true => CONTINUE,
            false => Ok(ControlFlow::Break(())),
        })
    }

    /// Reads the report of each plan. `has_nodes`: with the nodes, which the threads compute.
    fn estimates(
        &self,
        accepts_cut_end: bool,
        has_nodes: bool,
        collect: &mut dyn FnMut(usize, Result<Estimate, Unusable>) -> Next,
    ) -> Result<Gaps, Error> {
        let (sources, inputs) = (&self.sources, &self.inputs);
        let work = |plan: Explained, logged: &Logged| {
            let mut estimate = estimate(plan, inputs)?;
            let capture = estimate.report.capture.get_or_insert_default();
            (capture.place, capture.is_nested) = (Some(sources.place(logged.place)), logged.is_nested);
            if has_nodes {
                estimate.report.nodes = estimate.nodes();
            }
            Ok(estimate)
        };
        self.read(threads(), accepts_cut_end, &work, &mut |number, mut estimate| {
            if let Ok(estimate) = &mut estimate {
                let capture = estimate.report.capture.get_or_insert_default();
                // The number of all plans is not known yet.
                (capture.taken, capture.plans) = (number, number);
            }
            collect(number, estimate)
        })
    }

    /// Reads the log. `work` receives each usable plan, in one of several threads.
    /// `collect` receives the numbers of the plans, from 1, and the results in the order of the log. `accepts_cut_end`: the last
    /// plan may end without a line end. Returns what the results do not contain, or an error if there are no results.
    fn read<T: Send>(
        &self,
        threads: usize,
        accepts_cut_end: bool,
        work: &(dyn Fn(Explained, &Logged) -> Result<T, Unusable> + Sync),
        collect: &mut dyn FnMut(usize, Result<T, Unusable>) -> Next,
    ) -> Result<Gaps, Error> {
        let needs_source = self.inputs.document.is_some();
        let parse = |entry, results: &mut Vec<_>| {
            parse::each(entry, needs_source, &mut |logged, plan| {
                let result = plan.and_then(|plan| work(plan, &logged));
                results.push((logged, result));
            });
        };
        let (mut gaps, mut hosts, mut formats) = (Gaps::default(), BTreeMap::<_, u64>::new(), BTreeSet::new());
        let errors = read_parallel(self, threads, accepts_cut_end, &parse, &mut |(logged, result)| {
            gaps.plans += 1;
            formats.extend(logged.format);
            if let Some(host) = logged.host.filter(|host| hosts.len() < MAX_HOSTS || hosts.contains_key(host)) {
                *hosts.entry(host).or_default() += 1;
            }
            collect(gaps.plans, result).unwrap_or_else(|why| {
                gaps.damaged_messages += u64::from(logged.is_message && why.is_damage());
                skip(&mut gaps.skipped, self.sources.place(logged.place), why);
                ControlFlow::Continue(())
            })
        });
        let was_stopped = self.stop.load(Ordering::Relaxed);
        // The most frequent one first
        gaps.skipped.sort_by_key(|skipped| std::cmp::Reverse(skipped.plans));
        if gaps.plans as u64 <= gaps.skipped.iter().map(|skipped| skipped.plans).sum() {
            let stopped = || Error::new("stopped before a plan was read", "wait until the progress bar moves");
            let error = was_stopped.then(stopped).or(errors.into_iter().next());
            return Err(error.unwrap_or_else(|| none_is_usable(gaps.plans, gaps.skipped)));
        }
        let hosts = several_hosts(hosts);
        let notes = notes(&self.sources, &hosts, &formats);
        Ok(Gaps { notes, hosts, errors, was_stopped, ..gaps })
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// Returns a note about an input with several plans.
fn position(plans: usize, taken: usize) -> Option<String> {
    let which = match taken == plans {
        true => "the last one; --nth N shows another one".into(),
        false => format!("number {taken}, the last usable one"),
    };
    (plans > 1).then(|| format!("the input has {plans} plans; this is {which}"))
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

/// Adds a plan to the reasons why plans were skipped. Reasons with the same hint count as one: their texts can contain figures.
fn skip(skipped: &mut Vec<SkippedPlans>, first: LogPlace, why: Unusable) {
    let is_damaged = why.is_damage();
    let Error { what: reason, hint, .. } = why.into();
    match skipped.iter_mut().find(|known| known.hint == hint && known.is_damaged == is_damaged) {
        Some(known) => known.plans += 1,
        None => skipped.push(SkippedPlans { plans: 1, reason, hint, first, is_damaged }),
    }
}

/// Returns the error if all plans were skipped.
fn none_is_usable(plans: usize, skipped: Vec<SkippedPlans>) -> Error {
    match skipped.into_iter().next() {
        None => Error::new("there is no plan in the input", SUPPORTED),
        Some(most) if plans == 1 => Error::new(most.reason, most.hint),
        Some(SkippedPlans { plans: most, reason, hint, .. }) => {
            Error::new(format!("none of the {plans} plans can be used; {most} of them: {reason}"), hint)
        }
    }
}

/// Returns the hosts with their numbers of plans, the one with the most plans first, if the plans are not all from one.
fn several_hosts(plans: BTreeMap<Arc<str>, u64>) -> Vec<LogHost> {
    let mut all: Vec<_> = plans.into_iter().map(|(name, plans)| LogHost { name: name.to_string(), plans }).collect();
    all.sort_by_key(|host| std::cmp::Reverse(host.plans));
    if all.len() > 1 { all } else { Vec::new() }
}

// The caller's thread reads the log, finds its messages, and receives the results in the order of the log. Other threads
// parse and analyze the plans. The memory does not depend on the size of the log: the reader waits for the oldest batch.

/// Text per batch of entries. To start a thread for a batch takes some microseconds.
const BATCH_BYTES: usize = 256 << 10;

/// Batches per thread that are not collected. The oldest one can take long, and the other threads must not wait for it.
const WAITING: usize = 3;

/// Longer texts are parsed one after the other, because a plan needs about 40 times the memory of its text.
const LARGE_BYTES: usize = 1 << 20;

/// The progress is shown after this many lines, also if the log has no plans.
const LINES_PER_UPDATE: u64 = 1 << 10;

/// Reads all sources. `work` turns an entry into results, in several threads, and `collect` receives them in the order of the
/// log, until it breaks. Returns the errors of files that could not be read to their end.
fn read_parallel<T: Send>(
    log: &Log,
    threads: usize,
    accepts_cut_end: bool,
    work: &(dyn Fn(Entry, &mut Vec<T>) + Sync),
    collect: &mut dyn FnMut(T) -> ControlFlow<()>,
) -> Vec<Error> {
    let large = &Mutex::new(());
    let parse = move |entries: Vec<Entry>| {
        let mut results = Vec::new();
        for entry in entries {
            let is_large = entry.text.len() > LARGE_BYTES;
            let _lock = is_large.then(|| large.lock().unwrap_or_else(PoisonError::into_inner));
            work(entry, &mut results);
        }
        results
    };
    thread::scope(|scope| {
        let mut running = VecDeque::new();
        let mut send = |entries, most| {
            running.push_back(scope.spawn(move || parse(entries)));
            while running.len() > most
                && let Some(oldest) = running.pop_front()
            {
                let results = oldest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                results.into_iter().try_for_each(&mut *collect)?;
            }
            ControlFlow::Continue(())
        };
        let messages = Messages::new(accepts_cut_end);
        Reader { log, threads, messages, entries: Vec::new(), bytes: 0, send: &mut send, is_done: false }.read()
    })
}

/// Finds the entries of all files, and sends them in batches.
struct Reader<'a> {
    log: &'a Log<'a>,
    threads: usize,
    messages: Messages,
    entries: Vec<Entry>,
    bytes: usize,
    /// receives a batch, and waits until at most this number of batches is not collected
    send: &'a mut dyn FnMut(Vec<Entry>, usize) -> ControlFlow<()>,
    /// no more results are wanted
    is_done: bool,
}

impl Reader<'_> {
    fn read(mut self) -> Vec<Error> {
        let files = 0..self.log.sources.paths.len();
        let errors = files.filter_map(|file| self.read_file(file).err()).collect();
        if !self.log.stop.load(Ordering::Relaxed) {
            self.messages.end();
            self.add();
        }
        if !self.is_done {
            _ = (self.send)(self.entries, 0);
        }
        errors
    }

    fn read_file(&mut self, file: usize) -> Result<(), Error> {
        let Log { sources, stop, progress, .. } = self.log;
        let mut lines = sources.open(file, stop)?;
        self.messages.begin_file(file);
        let mut number = 0;
        let result = loop {
            match lines.next() {
                Ok(Some(line)) if !self.is_done => self.messages.line(&line),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
            if !self.messages.found.is_empty() {
                self.add();
            }
            number += 1;
            if number % LINES_PER_UPDATE == 0 {
                sources.done().into_iter().for_each(progress);
            }
        };
        // What a signal cut off is not damaged. Then the end of a compressed file is missing.
        if stop.load(Ordering::Relaxed) {
            return lines.check_nuls();
        }
        self.messages.end_file(lines.is_unfinished);
        self.add();
        result.and_then(|()| lines.check_nuls())
    }

    /// Adds what was found to the batch.
    fn add(&mut self) {
        for entry in self.messages.found.drain(..) {
            self.bytes += size_of::<Entry>() + entry.text.len();
            self.entries.push(entry);
            if self.bytes >= BATCH_BYTES && !self.is_done {
                self.bytes = 0;
                self.is_done = (self.send)(std::mem::take(&mut self.entries), WAITING * self.threads).is_break();
            }
        }
    }
}
