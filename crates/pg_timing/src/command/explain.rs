//! `pg_timing explain`: shows how much of an EXPLAIN ANALYZE is timing overhead.

use super::arguments::{ExplainArguments, PageFormat};
use super::{Hint, connection, input, interrupt, note, plan, print, progress};
use crate::error::Error;
use crate::render;
use crate::report::{ClassicReport, ExplainReport};
use crate::server::advise::node_read;
use crate::server::explain::{NOT_ROLLED_BACK, Rejection, RunOptions, Statement, classic, explain};
use anyhow::anyhow;
use std::io::IsTerminal;
use std::time::Duration;

/// A larger input is refused. No statement is that long, so the user probably gave the wrong file.
const MAX_STATEMENT_BYTES: u64 = 16 << 20;

pub fn run(arguments: ExplainArguments) -> anyhow::Result<u8> {
    let output = match &arguments.plan {
        Some(plan) => render_report(&plan::report(&arguments, plan)?, arguments.format),
        None => run_on_server(&arguments)?,
    };
    print(&output)?;
    Ok(0)
}

/// Runs the statement, or the classic test if there is no statement. Returns the rendered report.
fn run_on_server(arguments: &ExplainArguments) -> anyhow::Result<String> {
    let statement = statement(arguments)?.map(|text| Statement::new(&text)).transpose().map_err(Error::from)?;
    let stop = interrupt::flag()?;
    if arguments.allow_writes {
        note(&format!("each run is rolled back; {NOT_ROLLED_BACK}"));
    }
    let options = RunOptions { allow_writes: arguments.allow_writes, limit: Duration::from_secs(arguments.limit) };
    let mut server = connection::open_or_start(&arguments.connection, arguments.ephemeral, &stop)?;
    let connection = &mut server.connection;
    let bar = progress::bar("running");
    let mut show = |done| progress::show(bar.as_ref(), done);
    let output = match statement {
        Some(statement) => explain(connection, &statement, options, &stop, &mut show)
            .map(|report| render_report(&report, arguments.format)),
        None => node_read(connection, &stop)
            .and_then(|read| classic(connection, read, options, &stop, &mut show))
            .map(|report| render_classic(&report, arguments.format)),
    };
    show(1.0);
    Ok(output?)
}

fn render_report(report: &ExplainReport, format: PageFormat) -> String {
    match format {
        PageFormat::Text => render::text::explain::text(report),
        PageFormat::Json => render::json::json(report),
        PageFormat::Html => render::html::explain::html(report),
    }
}

fn render_classic(report: &ClassicReport, format: PageFormat) -> String {
    match format {
        PageFormat::Text => render::text::classic::text(report),
        PageFormat::Json => render::json::json(report),
        PageFormat::Html => render::html::explain::classic(report),
    }
}

/// Returns the statement from `-c`, from a file or from stdin. Returns `None` if stdin is a terminal or empty.
fn statement(arguments: &ExplainArguments) -> anyhow::Result<Option<String>> {
    const HINT: Hint = Hint("give the statement with -c, in a file with -f, or on stdin");
    match arguments.command.as_slice() {
        [] => {}
        [text] => return Ok(Some(text.clone())),
        _ => return Err(Error::from(Rejection::Several).into()),
    }
    if arguments.file.is_none() && std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let file = arguments.file.as_deref().unwrap_or("-".as_ref());
    let input = input::read(file, MAX_STATEMENT_BYTES, HINT)?;
    // A job that runs without a terminal has an empty stdin.
    if arguments.file.is_none() && input.bytes.is_empty() {
        return Ok(None);
    }
    String::from_utf8(input.bytes)
        .map(Some)
        .map_err(|_| anyhow!("{} is not UTF-8 text", input.name).context(Hint("convert it, for example with iconv")))
}
