//! `pg_timing explain`: shows how much of an EXPLAIN ANALYZE is timing overhead.

use super::explain_arguments::{ExplainArguments, ExplainFormat, render_report};
use super::{Hint, NOT_DONE, connection, input, interrupt, note, output, plan, print, progress};
use crate::document::{self, pages};
use crate::error::Error;
use crate::render;
use crate::report::ClassicReport;
use crate::server::explain::{NOT_ROLLED_BACK, RunOptions, Script, classic, explain};
use crate::server::node_read;
use anyhow::anyhow;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A larger input is refused. No statement is that long, so the user probably gave the wrong file.
const MAX_STATEMENT_BYTES: u64 = 16 << 20;

pub fn run(arguments: &ExplainArguments) -> anyhow::Result<u8> {
    if !arguments.plan.is_empty() {
        return plan::run(arguments);
    }
    let (output, was_stopped) = run_on_server(arguments)?;
    print(&output)?;
    if was_stopped {
        note("interrupted: the output shows what was measured until then");
    }
    Ok(if was_stopped { NOT_DONE } else { 0 })
}

/// Runs the statement, or the classic test if there is no statement. Returns the rendered report, and whether the user stopped
/// the runs.
fn run_on_server(arguments: &ExplainArguments) -> anyhow::Result<(String, bool)> {
    let script = script(arguments)?;
    let stop = interrupt::flag()?;
    if arguments.allow_writes {
        note(&format!("each run is rolled back; {NOT_ROLLED_BACK}"));
    }
    let options = RunOptions {
        allow_writes: arguments.allow_writes,
        limit: Duration::from_secs(arguments.limit),
        time: Duration::from_secs(arguments.time),
        document: arguments.format.plan(),
        note,
    };
    let mut server = connection::open_or_start(&arguments.connection, arguments.ephemeral, &stop)?;
    let connection = &mut server.connection;
    // For the statements before the first run.
    connection.lower_limit(options.limit);
    let bar = progress::bar("running");
    let mut show = |done| progress::show(bar.as_ref(), done);
    let output = match script {
        Some(script) => explain(connection, &script, options, &stop, &mut show)
            .and_then(|report| render_report(&report, arguments.format)),
        None => node_read(connection, &stop)
            .and_then(|read| classic(connection, read, options, &stop, &mut show))
            .and_then(|report| render_classic(&report, arguments.format)),
    };
    show(1.0);
    Ok((output?, stop.load(Ordering::Relaxed)))
}

fn render_classic(report: &ClassicReport, format: ExplainFormat) -> Result<String, Error> {
    Ok(match format {
        ExplainFormat::Text => document::text::text(&document::explain::classic(report), output()),
        ExplainFormat::Json => render::json::json(report),
        ExplainFormat::Jsonl => render::json::json_line(report),
        ExplainFormat::Html => pages::of_classic(report),
        ExplainFormat::PlanText | ExplainFormat::PlanJson => return Err(no_plan()),
    })
}

/// Some editors on Windows write it at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The hint if the statement is missing.
const HINT: Hint = Hint("give the statement with -c, in a file with -f FILE, or on stdin with -f -");

/// Returns the error for a format that shows a plan, if there is no statement.
fn no_plan() -> Error {
    Error::new("the formats plan-text and plan-json need a statement or a plan", HINT.0)
}

/// Returns the statement with its values, and the lines before it.
fn script(arguments: &ExplainArguments) -> anyhow::Result<Option<Script>> {
    let is_missing = arguments.command.is_empty() && arguments.file.is_none();
    if let Some(text) = arguments.connection.database.as_deref().filter(|text| is_missing && is_statement(text)) {
        return Err(anyhow!("\"{text}\" looks like a statement, and stands where a database is expected").context(HINT));
    }
    if is_missing && !arguments.param.is_empty() {
        return Err(anyhow!("--param needs a statement").context(HINT));
    }
    if is_missing && arguments.format.plan().is_some() {
        return Err(no_plan().into());
    }
    let texts = texts(arguments)?;
    Ok((!texts.is_empty()).then(|| Script::new(&texts, &arguments.param)).transpose()?)
}

/// Returns whether a text begins like a statement that can be explained.
fn is_statement(text: &str) -> bool {
    const FIRST: [&str; 9] = ["select", "with", "insert", "update", "delete", "merge", "values", "table", "explain"];
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    words.next().is_some() && FIRST.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Returns the texts from `-c`, or the one from a file or stdin with `-f`. It has none without these options.
fn texts(arguments: &ExplainArguments) -> anyhow::Result<Vec<String>> {
    if !arguments.command.is_empty() {
        return Ok(arguments.command.clone());
    }
    let Some(file) = arguments.file.as_deref() else {
        if input::stdin_may_have_text() {
            note("stdin is not read; for a statement on stdin: pg_timing explain -f -");
        }
        return Ok(Vec::new());
    };
    let input = input::read(file, MAX_STATEMENT_BYTES, HINT)?;
    String::from_utf8(input.bytes)
        .map(|text| vec![text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text).into()])
        .map_err(|_| anyhow!("{} is not UTF-8 text", input.name).context(Hint("convert it, for example with iconv")))
}
