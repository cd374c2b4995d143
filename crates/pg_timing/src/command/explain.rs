//! `pg_timing explain`: how much of EXPLAIN ANALYZE is the clock.

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

/// A statement is typed or generated; beyond this it is a mistake.
const MOST: u64 = 16 << 20;

pub fn run(arguments: ExplainArguments) -> anyhow::Result<u8> {
    let out = match &arguments.plan {
        Some(plan) => explained(&plan::report(&arguments, plan)?, arguments.format),
        None => live(&arguments)?,
    };
    print(&out)?;
    Ok(0)
}

/// With a statement, or the classic test without.
fn live(arguments: &ExplainArguments) -> anyhow::Result<String> {
    let statement = statement(arguments)?.map(|text| Statement::new(&text)).transpose().map_err(Error::from)?;
    let stop = interrupt::flag()?;
    if arguments.allow_writes {
        note(&format!("each run is rolled back; {NOT_ROLLED_BACK}"));
    }
    let options = RunOptions { allow_writes: arguments.allow_writes, limit: Duration::from_secs(arguments.limit) };
    let mut server = connection::reach(&arguments.connection, arguments.ephemeral, &stop)?;
    let connection = &mut server.connection;
    let bar = progress::bar("running");
    let mut show = |done| progress::show(bar.as_ref(), done);
    let out = match statement {
        Some(statement) => explain(connection, &statement, options, &stop, &mut show)
            .map(|report| explained(&report, arguments.format)),
        None => node_read(connection, &stop)
            .and_then(|read| classic(connection, read, options, &stop, &mut show))
            .map(|report| tested(&report, arguments.format)),
    };
    show(1.0);
    Ok(out?)
}

fn explained(report: &ExplainReport, format: PageFormat) -> String {
    match format {
        PageFormat::Text => render::text::explain::text(report),
        PageFormat::Json => render::json::json(report),
        PageFormat::Html => render::html::explain::html(report),
    }
}

fn tested(report: &ClassicReport, format: PageFormat) -> String {
    match format {
        PageFormat::Text => render::text::classic::text(report),
        PageFormat::Json => render::json::json(report),
        PageFormat::Html => render::html::explain::classic(report),
    }
}

/// As typed, of a file, or of stdin; none if nobody gives one.
fn statement(arguments: &ExplainArguments) -> anyhow::Result<Option<String>> {
    const HINT: Hint = Hint("a statement is given with -c, in a file with -f, or on stdin");
    match arguments.command.as_slice() {
        [] => {}
        [text] => return Ok(Some(text.clone())),
        _ => return Err(Error::from(Rejection::Several).into()),
    }
    if arguments.file.is_none() && std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let file = arguments.file.as_deref().unwrap_or("-".as_ref());
    let input = input::read(file, MOST, HINT)?;
    // A job that runs without a terminal has an empty stdin.
    if arguments.file.is_none() && input.bytes.is_empty() {
        return Ok(None);
    }
    String::from_utf8(input.bytes)
        .map(Some)
        .map_err(|_| anyhow!("{} is not UTF-8 text", input.name).context(Hint("convert it, with iconv for example")))
}
