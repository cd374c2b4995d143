//! `pg_timing explain --plan`: estimates the overhead in captured plans.

use super::explain_arguments::{ExplainArguments, ExplainFormat, render_report};
use super::{Hint, NOT_DONE, input, interrupt, note, output, print, progress};
use crate::document::{self, html, log, pages};
use crate::error::Error;
use crate::host::check::judge;
use crate::human::grouped;
use crate::log::{Gaps, Log, Plans, Sources, quoted_name};
use crate::plan::errors::unknown_clock;
use crate::plan::{Explained, Inputs, ServerClock};
use crate::render;
use crate::report::{ExplainReport, LogReport, Measured, Report, SYSTEM, SkippedPlans};
use anyhow::anyhow;
use std::path::Path;

/// A report has at most some hundred bytes per CPU and per bin of a histogram. Its parser needs up to 50 times its size.
const MAX_REPORT_BYTES: u64 = 4 << 20;

const HOST_REPORT_HINT: Hint = Hint("run on the server's host: pg_timing --format json > FILE");

/// Prints the overhead estimated from the read cost, the host report or the plain time. Returns the exit status.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<u8> {
    let host = arguments.host_report.as_deref().map(read_host_report).transpose()?;
    let clock_of = |plan: &Explained| match (&host, arguments.read_cost) {
        (Some(host), _) => ServerClock::on_host(host, plan, arguments.clock.as_deref()),
        (None, ns) => Ok(ServerClock::given(ns.unwrap_or_default(), plan)),
    };
    let inputs = Inputs {
        clock: (host.is_some() || arguments.read_cost.is_some()).then_some(&clock_of),
        plain_ms: arguments.plain_ms,
        document: arguments.format.plan(),
    };
    if inputs.clock.is_none() && inputs.plain_ms.is_none() {
        let is_several = arguments.all || arguments.slowest.is_some();
        return Err(unknown_clock(is_several).into());
    }
    run_log(arguments, inputs)
}

/// Reads the files, and prints what the options ask for: the last usable plan without an option.
fn run_log(arguments: &ExplainArguments, inputs: Inputs) -> anyhow::Result<u8> {
    let format = arguments.format;
    let is_several = arguments.all || arguments.slowest.is_some_and(|most| most > 1);
    if is_several && format.plan().is_some() {
        return Err(no_single_plan().into());
    }
    let stop = interrupt::flag()?;
    let bar = progress::bar("reading");
    let log = Log {
        sources: Sources::new(arguments.plan.clone()),
        inputs,
        stop: &stop,
        progress: &mut |done| progress::show(bar.as_ref(), done.min(LAST_STEP)),
    };
    if arguments.all && format != ExplainFormat::Jsonl {
        let report = log.totals();
        progress::show(bar.as_ref(), 1.0);
        let report = report?;
        print(&render_totals(&report, format)?)?;
        return Ok(status(&report.skipped, report.is_incomplete || !report.hosts.is_empty()));
    }
    let mut printed = Ok(());
    let plans = match (arguments.slowest, arguments.nth) {
        (Some(most), _) => log.slowest(most as usize),
        (_, Some(nth)) => log.nth(nth as usize),
        _ if arguments.all => {
            let gaps = log.each(&mut |report| {
                printed = print(&render::json::json_line(&report));
                printed.is_ok()
            });
            gaps.map(|gaps| Plans { reports: Vec::new(), gaps })
        }
        _ => log.last().map_err(|error| with_file_names(arguments, error)),
    };
    progress::show(bar.as_ref(), 1.0);
    printed?;
    let Plans { reports, gaps } = plans?;
    let text = match arguments.slowest {
        Some(_) => render_plans(&reports, format)?,
        None => reports.iter().map(|report| render_report(report, format)).collect::<Result<String, _>>()?,
    };
    print(&text)?;
    let is_last = !arguments.all && arguments.slowest.is_none() && arguments.nth.is_none();
    Ok(if is_last { report_unread(&gaps) } else { report_gaps(&gaps) })
}

/// The bar disappears at 1. The end of the input is not the end of the work.
const LAST_STEP: f64 = 0.99;

fn render_totals(report: &LogReport, format: ExplainFormat) -> Result<String, Error> {
    Ok(match format {
        ExplainFormat::Html => html::page(log::TITLE, log::document(report), None),
        ExplainFormat::Text => document::text::text(&log::document(report), output()),
        ExplainFormat::Json | ExplainFormat::Jsonl => render::json::json(report),
        ExplainFormat::PlanText | ExplainFormat::PlanJson => return Err(no_single_plan()),
    })
}

fn no_single_plan() -> Error {
    Error::new("the formats plan-text and plan-json show single plans", "use --nth N or --slowest 1")
}

/// Renders several plans: as blocks of text, as a JSON list, as lines of JSON, or as one page.
fn render_plans(reports: &[ExplainReport], format: ExplainFormat) -> Result<String, Error> {
    let each = || reports.iter().map(|report| render_report(report, format)).collect::<Result<Vec<_>, _>>();
    Ok(match format {
        ExplainFormat::Text => each()?.join("\n"),
        ExplainFormat::PlanText | ExplainFormat::PlanJson => each()?.concat(),
        ExplainFormat::Json => render::json::json(&reports),
        ExplainFormat::Jsonl => reports.iter().map(render::json::json_line).collect(),
        ExplainFormat::Html => pages::of_plans(reports),
    })
}

/// Prints what the output does not contain, on stderr. Returns the exit status.
fn report_gaps(gaps: &Gaps) -> u8 {
    for skipped in &gaps.skipped {
        let SkippedPlans { plans, reason, hint, first, .. } = skipped;
        note(&format!(
            "skipped {} of {} plans: {reason} (first: {} line {}); {hint}",
            grouped(*plans),
            grouped(gaps.plans as u64),
            first.file,
            first.line
        ));
    }
    gaps.notes.iter().for_each(|text| note(text));
    gaps.errors.iter().for_each(|error| note(&error.what));
    if gaps.was_stopped {
        note("stopped before the end of the input");
    }
    status(&gaps.skipped, gaps.was_stopped || !gaps.errors.is_empty() || !gaps.hosts.is_empty())
}

/// Prints what could not be read. Returns the exit status: damaged text that somebody pasted around a plan is no reason for
/// another one.
fn report_unread(gaps: &Gaps) -> u8 {
    if gaps.damaged_messages > 0 {
        note(&format!("messages with plans that cannot be read: {}", grouped(gaps.damaged_messages)));
    }
    if gaps.was_stopped {
        note("stopped before the end of the input");
    }
    if gaps.damaged_messages > 0 || gaps.was_stopped { NOT_DONE } else { 0 }
}

/// Returns the error with the names of the files.
fn with_file_names(arguments: &ExplainArguments, Error { what, hint, .. }: Error) -> Error {
    let names: Vec<String> = arguments.plan.iter().map(|path| quoted_name(path)).collect();
    match names.iter().any(|name| what.contains(name)) {
        true => Error::new(what, hint),
        false => Error::new(format!("{}: {what}", names.join(", ")), hint),
    }
}

/// Returns 0 if all plans could be read. `has_gaps`: something else is missing, or is not known.
fn status(skipped: &[SkippedPlans], has_gaps: bool) -> u8 {
    if has_gaps || skipped.iter().any(|skipped| skipped.is_damaged) { NOT_DONE } else { 0 }
}

fn read_host_report(path: &Path) -> anyhow::Result<Report> {
    let input = input::read(path, MAX_REPORT_BYTES, HOST_REPORT_HINT)?;
    let mut report = Report::from_json(&input.bytes)
        .ok_or_else(|| anyhow!("{} is not a host report", input.name).context(HOST_REPORT_HINT))?;
    if report.read_cost_ns(SYSTEM).is_none() {
        return Err(anyhow!("{} has no read cost of the system clock", input.name).context(HOST_REPORT_HINT));
    }
    if let Err(why) = Measured::of(&report).plausible() {
        return Err(anyhow!("{} is a damaged host report: {why}", input.name).context(HOST_REPORT_HINT));
    }
    // Another version may have written it, or only the figures.
    judge(&mut report);
    Ok(report)
}
