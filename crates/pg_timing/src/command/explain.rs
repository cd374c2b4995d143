//! `pg_timing explain`: shows how much of an EXPLAIN ANALYZE is timing overhead, of a statement that it runs or of captured plans.

use super::connection;
use super::values::{DAY_S, count, number};
use super::{NOT_DONE, interrupt, note, output, print, progress, read_input, stdin_may_have_text};
use crate::document::{self, Document, html, log, pages, statements};
use crate::error::{Error, require};
use crate::host::check::judge;
use crate::human::{grouped, with_margin};
use crate::log::{Gaps, Log, Plans, Sources, quoted_name};
use crate::plan::{Explained, Inputs, ServerClock, writer};
use crate::report::{Difference, ExplainReport, LogPlace, PlanFormat, Report, SYSTEM, SkippedPlans};
use crate::server::connection::Target;
use crate::server::explain::{NOT_ROLLED_BACK, RunOptions, Script, compare_statements, explain};
use crate::server::own_sql;
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A longer list is not readable, and its plans would fill the memory.
const MOST_SHOWN: u64 = 1000;
/// No log has more plans.
const MOST_PLANS: u64 = 1_000_000_000;
/// A clock read takes at least 1 ns, which is about four cycles of a fast processor, and never more than one second.
const LEAST_NS: f64 = 1.0;
const MOST_NS: f64 = 1e9;
/// From one nanosecond to 30 years.
const LEAST_MS: f64 = 1e-6;
const MOST_MS: f64 = 1e12;

/// Options of live runs. They conflict with `--plan`, and with the options that require `--plan`: clap's `requires`
/// alone would accept `--read-cost 20 -c "SELECT 1"`.
const LIVE: [&str; 12] = [
    CONNECTION,
    "ephemeral",
    "command",
    "file",
    "param",
    "allow_writes",
    "limit",
    "time",
    "against",
    "against_file",
    "against_set",
    "same_rows",
];
/// The name of the group that clap creates for [`Target`].
const CONNECTION: &str = "Target";

/// The exit status if the second statement takes more time.
const SLOWER: u8 = 1;

const ONLY_SINGLE_PLANS: &str = "the formats plan-text and plan-json show single plans";

/// If an option is repeated, the last one counts, as in psql. This allows a shell alias with default options.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = include_str!("help/explain.txt").trim_end())]
pub struct ExplainArguments {
    /// SQL statement to measure. SET, RESET and PREPARE may come before it, also in their own -c. Without -c and -f, measure the
    /// overhead per call with a test statement, which counts 100 000 rows. If no option names a server and none
    /// answers on the default socket, a temporary server is started, as with --ephemeral
    #[arg(short, long, value_name = "SQL", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// File with the statement, or - for stdin
    #[arg(short, long, value_name = "FILE|-", value_hint = ValueHint::FilePath, conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// Compare the statement (A) with this one (B), without EXPLAIN: which takes less time, and in which nodes? B has its own SET
    /// lines before it. The exit status is 1 if B takes more time, by more than the error
    #[arg(long, value_name = "SQL", allow_hyphen_values = true, conflicts_with_all = ["against_file", "against_set"])]
    pub against: Option<String>,
    /// The same, with B in a file, or - for stdin
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, conflicts_with = "against_set")]
    pub against_file: Option<PathBuf>,
    /// Compare the statement with itself under another setting, like "work_mem = '64MB'"; repeat it for several settings
    #[arg(long, value_name = "NAME = VALUE")]
    pub against_set: Vec<String>,
    /// With --against: it is an error if the statements return different numbers of rows
    #[arg(long)]
    pub same_rows: bool,
    /// Value of $1 in the statement; repeat it for $2 and so on. The server infers the type. \N is NULL, and the word NULL
    /// is a string
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub param: Vec<String>,
    /// Run the statement even if it writes. Each run is rolled back, except sequences, effects of functions outside the
    /// transaction and dead tuples
    #[arg(long)]
    pub allow_writes: bool,
    /// Time limit of each run, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = count(DAY_S), allow_negative_numbers = true)]
    pub limit: u64,
    /// Time for all runs, in seconds. A long statement takes at least three rounds
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = count(DAY_S), allow_negative_numbers = true)]
    pub time: u64,
    /// Files with existing EXPLAIN ANALYZE plans (text, JSON, YAML or XML), as psql, auto_explain or a ticket shows them.
    /// Needs --read-cost, --host-report or --plain-ms. The last usable plan counts, without --all, --slowest and --nth
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, num_args = 1.., conflicts_with_all = LIVE)]
    pub plan: Vec<PathBuf>,
    /// Read all plans of the files, and add them up by statement. The files can be logs of any size (stderr, csvlog, jsonlog,
    /// syslog, journald, containers), also compressed with gzip or zstd
    #[arg(long, requires = "plan", conflicts_with_all = LIVE, conflicts_with_all = ["slowest", "nth", "plain_ms"])]
    pub all: bool,
    /// Show the N slowest plans of the files
    #[arg(long, value_name = "N", requires = "plan", conflicts_with_all = LIVE, conflicts_with_all = ["nth", "plain_ms"], value_parser = count(MOST_SHOWN), allow_negative_numbers = true)]
    pub slowest: Option<u64>,
    /// Show plan number N of the files, from 1
    #[arg(long, value_name = "N", requires = "plan", conflicts_with_all = LIVE, value_parser = count(MOST_PLANS), allow_negative_numbers = true)]
    pub nth: Option<u64>,
    /// Cost of one read of the server's clock, in ns
    #[arg(long, value_name = "NS", requires = "plan", conflicts_with = "host_report", conflicts_with_all = LIVE, value_parser = number(LEAST_NS..=MOST_NS), allow_negative_numbers = true)]
    pub read_cost: Option<f64>,
    /// File with the output of pg_timing --format json on the server's host: costs of the clock, number of CPUs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "plan", conflicts_with_all = LIVE)]
    pub host_report: Option<PathBuf>,
    /// Clock of the host report that the server reads: system, rdtsc or rdtscp. By default, the plan's settings select it
    #[arg(long, value_name = "NAME", requires = "host_report", conflicts_with_all = LIVE)]
    pub clock: Option<String>,
    /// Time of the statement without EXPLAIN, in ms, as psql's \timing shows it
    #[arg(long, value_name = "MS", requires = "plan", conflicts_with_all = LIVE, value_parser = number(LEAST_MS..=MOST_MS), allow_negative_numbers = true)]
    pub plain_ms: Option<f64>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: ExplainFormat,
    /// Run on a temporary server of the newest installed PostgreSQL, and remove it afterwards
    #[arg(long, conflicts_with = CONNECTION)]
    pub ephemeral: bool,
    #[command(flatten, next_help_heading = "Connection options")]
    pub connection: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    Text,
    Json,
    /// one JSON object per plan and line; for --all, --slowest and --nth
    Jsonl,
    /// a self-contained page
    Html,
    /// EXPLAIN's text format with corrected times, without their intervals, for a visualizer. A captured plan must be text
    PlanText,
    /// EXPLAIN's JSON format with corrected times, for a visualizer. A captured plan must be JSON, YAML or XML
    PlanJson,
}

impl ExplainFormat {
    /// Returns EXPLAIN's format, if the output is a plan.
    pub fn plan(self) -> Option<PlanFormat> {
        match self {
            ExplainFormat::PlanText => Some(PlanFormat::Text),
            ExplainFormat::PlanJson => Some(PlanFormat::Json),
            ExplainFormat::Text | ExplainFormat::Json | ExplainFormat::Jsonl | ExplainFormat::Html => None,
        }
    }
}

/// Returns a report in this format, which must not be one that shows only a plan.
fn render(
    report: &impl Serialize,
    document: impl FnOnce() -> Document,
    page: impl FnOnce() -> String,
    format: ExplainFormat,
) -> String {
    match format {
        ExplainFormat::Text => document::text::text(&document(), output()),
        ExplainFormat::Json => crate::json::json(report),
        ExplainFormat::Jsonl => crate::json::json_line(report),
        ExplainFormat::Html => page(),
        ExplainFormat::PlanText | ExplainFormat::PlanJson => unreachable!("the options were checked"),
    }
}

/// Returns a report on one statement or plan in this format.
fn render_report(report: &ExplainReport, format: ExplainFormat) -> Result<String, Error> {
    let page = || pages::of_plans(std::slice::from_ref(report));
    match format.plan() {
        Some(plan) => writer::plan(report, plan, &document::explain::answer(report)),
        None => Ok(render(report, || document::explain::document(report), page, format)),
    }
}

/// A larger input is refused. No statement is that long, so the user probably gave the wrong file.
const MAX_STATEMENT_BYTES: u64 = 16 << 20;

pub fn run(arguments: &ExplainArguments) -> anyhow::Result<u8> {
    if !arguments.plan.is_empty() {
        return run_plans(arguments);
    }
    let (output, status, was_stopped) = run_on_server(arguments)?;
    print(&output)?;
    if was_stopped {
        note("interrupted: the output shows what was measured until then");
    }
    Ok(if was_stopped { NOT_DONE } else { status })
}

/// Runs the statement, or both statements. Returns the rendered report, the exit status, and whether the user stopped the runs.
fn run_on_server(arguments: &ExplainArguments) -> anyhow::Result<(String, u8, bool)> {
    let script = script(arguments)?;
    let other = other_script(arguments, &script)?;
    let stop = interrupt::flag()?;
    if arguments.allow_writes {
        note(&format!("each run is rolled back; {NOT_ROLLED_BACK}"));
    }
    let (allow_writes, document) = (arguments.allow_writes, arguments.format.plan());
    let [limit, time] = [arguments.limit, arguments.time].map(Duration::from_secs);
    let options = RunOptions { allow_writes, limit, time, document, note };
    let mut server = connection::open_or_start(&arguments.connection, arguments.ephemeral, &stop)?;
    let connection = &mut server.0;
    // For the statements before the first run.
    connection.limit = connection.limit.min(options.limit);
    let mut show = progress("running");
    let format = arguments.format;
    let output = match other {
        Some(other) => {
            let compared = compare_statements(connection, [&script, &other], options, arguments.same_rows, &mut show);
            compared.map(|report| {
                let page = || statements::page(&report);
                let output = render(&report, || statements::document(&report), page, format);
                (output, status_of_comparison(report.difference))
            })
        }
        None => explain(connection, &script, options, &mut show).and_then(|mut report| {
            report.notes.extend(per_call(&report).filter(|_| is_missing(arguments)));
            Ok((render_report(&report, format)?, 0))
        }),
    };
    show(1.0);
    let (output, status) = output?;
    Ok((output, status, stop.load(Ordering::Relaxed)))
}

/// Returns what the test statement shows about other statements.
fn per_call(report: &ExplainReport) -> Option<String> {
    let runs = report.runs.as_ref().filter(|_| report.has_figures())?;
    let ns = with_margin(runs.clock_per_call_ns + runs.rows_per_call_ns);
    Some(format!(
        "no statement was given, so this is a test statement: EXPLAIN ANALYZE adds {ns} ns to each row of each plan node"
    ))
}

/// Returns the exit status of a comparison.
fn status_of_comparison(difference: Difference) -> u8 {
    match difference {
        Difference::Faster | Difference::NoneFound => 0,
        Difference::Slower => SLOWER,
        Difference::NotDetermined => NOT_DONE,
    }
}

/// Returns the statement to compare with, if an option names one.
fn other_script(arguments: &ExplainArguments, script: &Script) -> anyhow::Result<Option<Script>> {
    let of_b = |Error { what, hint, .. }: Error| Error::new(format!("statement B: {what}"), hint);
    let other = match (&arguments.against, arguments.against_file.as_deref()) {
        (Some(text), _) => Some(Script::new(&[text], &arguments.param).map_err(of_b)?),
        (None, Some(file)) => Some(Script::new(&[text_of(file)?], &arguments.param).map_err(of_b)?),
        (None, None) if arguments.against_set.is_empty() => None,
        (None, None) => {
            let mut settings = arguments.against_set.iter();
            Some(settings.try_fold(script.clone(), |script, setting| script.with_setting(setting)).map_err(of_b)?)
        }
    };
    require(other.is_some() || !arguments.same_rows, "--same-rows needs --against", "it compares two statements")?;
    let can_show = other.is_none() || arguments.format.plan().is_none();
    require(can_show, ONLY_SINGLE_PLANS, "use text, json or html with --against")?;
    Ok(other)
}

/// The hint if the statement is missing.
const HINT: &str = "give the statement with -c, in a file with -f FILE, or on stdin with -f -";

/// Rows of the test statement. They take some milliseconds.
const TEST_ROWS: u32 = 100_000;

fn is_missing(arguments: &ExplainArguments) -> bool {
    arguments.command.is_empty() && arguments.file.is_none()
}

/// Returns the statement with its values, and the lines before it, or the test statement if there is none.
fn script(arguments: &ExplainArguments) -> anyhow::Result<Script> {
    let is_missing = is_missing(arguments);
    if let Some(text) = arguments.connection.database.as_deref().filter(|text| is_missing && is_statement(text)) {
        let what = format!("\"{text}\" looks like a statement, and stands where a database is expected");
        return Err(Error::new(what, HINT).into());
    }
    require(!is_missing || arguments.param.is_empty(), "--param needs a statement", HINT)?;
    let has_other =
        arguments.against.is_some() || arguments.against_file.is_some() || !arguments.against_set.is_empty();
    require(!is_missing || !(has_other || arguments.same_rows), "--against needs a statement to compare with", HINT)?;
    let is_stdin = |file: &Option<PathBuf>| file.as_deref() == Some(Path::new("-"));
    let hint = "give one of the statements in a file or on the command line";
    let is_twice = is_stdin(&arguments.file) && is_stdin(&arguments.against_file);
    require(!is_twice, "stdin can be only one of the two statements", hint)?;
    Ok(Script::new(&texts(arguments)?, &arguments.param)?)
}

/// Returns whether a text begins like a statement that can be explained.
fn is_statement(text: &str) -> bool {
    const FIRST: [&str; 9] = ["select", "with", "insert", "update", "delete", "merge", "values", "table", "explain"];
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    words.next().is_some() && FIRST.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Returns the texts from `-c`, or the one from a file or stdin with `-f`, or the test statement without these options.
fn texts(arguments: &ExplainArguments) -> anyhow::Result<Vec<String>> {
    if !arguments.command.is_empty() {
        return Ok(arguments.command.clone());
    }
    let Some(file) = arguments.file.as_deref() else {
        if stdin_may_have_text() {
            note("stdin is not read; for a statement on stdin: pg_timing explain -f -");
        }
        return Ok(vec![own_sql::count_rows(TEST_ROWS)]);
    };
    Ok(vec![text_of(file)?])
}

/// Returns the statements in a file or on stdin.
fn text_of(file: &Path) -> anyhow::Result<String> {
    let input = read_input(file, MAX_STATEMENT_BYTES, HINT)?;
    let why = || Error::new(format!("{} is not UTF-8 text", input.name), "convert it, for example with iconv");
    Ok(String::from_utf8(input.bytes).map_err(|_| why())?)
}

/// A report has at most some hundred bytes per CPU and per bin of a histogram. Its parser needs up to 50 times its size.
const MAX_REPORT_BYTES: u64 = 4 << 20;

const HOST_REPORT_HINT: &str = "run on the server's host: pg_timing --format json > FILE";

/// Prints the overhead of captured plans, from the read cost, the host report or the plain time: of those that the options ask for,
/// or of the last usable plan. Returns the exit status.
fn run_plans(arguments: &ExplainArguments) -> anyhow::Result<u8> {
    let host = arguments.host_report.as_deref().map(read_host_report).transpose()?;
    let clock_of = |plan: &Explained| match (&host, arguments.read_cost) {
        (Some(host), _) => ServerClock::on_host(host, plan, arguments.clock.as_deref()),
        (None, ns) => Ok(ServerClock::given(ns.unwrap_or_default(), plan)),
    };
    let format = arguments.format;
    let inputs = Inputs {
        clock: (host.is_some() || arguments.read_cost.is_some()).then_some(&clock_of),
        plain_ms: arguments.plain_ms,
        document: format.plan(),
    };
    if inputs.clock.is_none() && inputs.plain_ms.is_none() {
        let hint = "give --read-cost NS, or --host-report FILE (pg_timing --format json on the server's host)";
        // The plans of a log have no common time without EXPLAIN.
        let is_several = arguments.all || arguments.slowest.is_some();
        let plain = if is_several { "" } else { ", or --plain-ms MS (psql's \\timing without EXPLAIN)" };
        return Err(Error::new("the read cost of the server's clock is not known", [hint, plain].concat()).into());
    }
    let is_single = !arguments.all && arguments.slowest.is_none_or(|most| most == 1);
    require(is_single || format.plan().is_none(), ONLY_SINGLE_PLANS, "use --nth N or --slowest 1")?;
    let stop = interrupt::flag()?;
    let bar = progress("reading");
    let sources = Sources::new(arguments.plan.clone());
    let log = Log { sources, inputs, stop: &stop, progress: &mut |done| bar(done.min(LAST_STEP)) };
    match arguments.all && format != ExplainFormat::Jsonl {
        true => print_totals(log, format, &bar),
        false => print_plans(log, arguments, &bar),
    }
}

/// Prints the sums over all plans. Returns the exit status.
fn print_totals(log: Log, format: ExplainFormat, bar: &dyn Fn(f64)) -> anyhow::Result<u8> {
    let report = log.totals();
    bar(1.0);
    let report = report?;
    let page = || html::page(log::TITLE, &log::document(&report), None);
    print(&render(&report, || log::document(&report), page, format))?;
    Ok(status_of_captured(&report.skipped, report.is_incomplete || !report.hosts.is_empty() || report.total.runs == 0))
}

/// Prints single plans, or a line for each plan. Returns the exit status.
fn print_plans(log: Log, arguments: &ExplainArguments, bar: &dyn Fn(f64)) -> anyhow::Result<u8> {
    let (format, mut printed) = (arguments.format, Ok(()));
    let plans = match (arguments.slowest, arguments.nth) {
        (Some(most), _) => log.slowest(most as usize),
        (_, Some(nth)) => log.nth(nth as usize),
        _ if arguments.all => {
            let gaps = log.each(&mut |report| {
                printed = print(&crate::json::json_line(&report));
                printed.is_ok()
            });
            gaps.map(|gaps| Plans { reports: Vec::new(), gaps })
        }
        _ => log.last().map_err(|error| with_file_names(arguments, error)),
    };
    bar(1.0);
    printed?;
    let Plans { reports, gaps } = plans?;
    let each = || reports.iter().map(|report| render_report(report, format)).collect::<Result<Vec<_>, _>>();
    print(&match (arguments.slowest, format) {
        (Some(_), ExplainFormat::Text) => each()?.join("\n"),
        (Some(_), ExplainFormat::Json) => crate::json::json(&reports),
        (Some(_), ExplainFormat::Html) => pages::of_plans(&reports),
        _ => each()?.concat(),
    })?;
    let is_last = !arguments.all && arguments.slowest.is_none() && arguments.nth.is_none();
    Ok(report_gaps(&gaps, is_last))
}

/// The bar disappears at 1. The end of the input is not the end of the work.
const LAST_STEP: f64 = 0.99;

/// Prints what the output does not contain, on stderr. Returns the exit status. With `is_last`, only the last plan counts:
/// damaged text around it does not change the status.
fn report_gaps(gaps: &Gaps, is_last: bool) -> u8 {
    if gaps.was_stopped {
        note("stopped before the end of the input");
    }
    if is_last {
        if gaps.damaged_messages > 0 {
            note(&format!("messages with plans that cannot be read: {}", grouped(gaps.damaged_messages)));
        }
        return status_of_captured(&[], gaps.was_stopped || gaps.damaged_messages > 0);
    }
    for SkippedPlans { plans, reason, hint, first: LogPlace { file, line }, .. } in &gaps.skipped {
        let (plans, all) = (grouped(*plans), grouped(gaps.plans as u64));
        note(&format!("skipped {plans} of {all} plans: {reason} (first: {file} line {line}); {hint}"));
    }
    gaps.notes.iter().for_each(|text| note(text));
    gaps.errors.iter().for_each(|error| note(&error.what));
    status_of_captured(&gaps.skipped, gaps.was_stopped || !gaps.errors.is_empty() || !gaps.hosts.is_empty())
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
fn status_of_captured(skipped: &[SkippedPlans], has_gaps: bool) -> u8 {
    if has_gaps || skipped.iter().any(|skipped| skipped.is_damaged) { NOT_DONE } else { 0 }
}

fn read_host_report(path: &Path) -> anyhow::Result<Report> {
    let input = read_input(path, MAX_REPORT_BYTES, HOST_REPORT_HINT)?;
    let name = input.name;
    let mut report =
        Report::from_json(&input.bytes).map_err(|why| Error::new(format!("{name} {why}"), HOST_REPORT_HINT))?;
    let has_cost = report.read_cost_ns(SYSTEM).is_some();
    require(has_cost, format!("{name} has no read cost of the system clock"), HOST_REPORT_HINT)?;
    // Another version may have written it, or only the figures.
    judge(&mut report);
    Ok(report)
}
