//! `pg_timing explain`: how much of EXPLAIN ANALYZE is the clock.

use super::arguments::{ExplainArguments, Format};
use super::{Hint, connection, input, interrupt, plan, print, progress};
use crate::explain::{Statement, Wishes, explain};
use crate::postgres::Error;
use crate::render;
use crate::report::ExplainReport;
use anyhow::anyhow;
use std::io::IsTerminal;
use std::time::Duration;

/// A statement is typed or generated; beyond this it is a mistake.
const MOST: u64 = 16 << 20;

pub fn run(arguments: ExplainArguments) -> anyhow::Result<u8> {
    let report = match &arguments.plan {
        Some(plan) => plan::report(&arguments, plan)?,
        None => live(&arguments)?,
    };
    print(&match arguments.format {
        Format::Text => render::text::explain::text(&report),
        Format::Json => render::json::json(&report),
    })?;
    Ok(0)
}

fn live(arguments: &ExplainArguments) -> anyhow::Result<ExplainReport> {
    let text = statement(arguments)?;
    let statement = Statement::new(&text).map_err(Error::from)?;
    let stop = interrupt::flag()?;
    let wishes = Wishes { allow_writes: arguments.allow_writes, limit: Duration::from_secs(arguments.limit) };
    let mut server = connection::reach(&arguments.connection, arguments.ephemeral, &stop)?;
    let bar = progress::bar("running");
    let report =
        explain(&mut server.connection, &statement, wishes, &stop, &mut |done| progress::show(bar.as_ref(), done));
    progress::show(bar.as_ref(), 1.0);
    Ok(report?)
}

fn statement(arguments: &ExplainArguments) -> anyhow::Result<String> {
    const HINT: Hint = Hint("a statement is given with -c, in a file with -f, or on stdin");
    if let Some(text) = &arguments.command {
        return Ok(text.clone());
    }
    if arguments.file.is_none() && std::io::stdin().is_terminal() {
        return Err(anyhow!("there is no statement").context(HINT));
    }
    let file = arguments.file.as_deref().unwrap_or("-".as_ref());
    let input = input::read(file, MOST, HINT)?;
    String::from_utf8(input.bytes)
        .map_err(|_| anyhow!("{} is not UTF-8 text", input.name).context(Hint("convert it, with iconv for example")))
}
