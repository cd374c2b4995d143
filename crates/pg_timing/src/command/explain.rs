//! `pg_timing explain`: how much of EXPLAIN ANALYZE is the clock.

use super::arguments::{ExplainArguments, Format};
use super::{Hint, connection, interrupt, print, progress};
use crate::explain::{Statement, Wishes, explain};
use crate::postgres::Error;
use crate::render;
use anyhow::anyhow;
use std::io::{IsTerminal, Read};
use std::time::Duration;

/// A statement is typed or generated; beyond this it is a mistake.
const MOST: u64 = 16 << 20;

pub fn run(arguments: ExplainArguments) -> anyhow::Result<u8> {
    let text = statement(&arguments)?;
    let statement = Statement::new(&text).map_err(Error::from)?;
    let stop = interrupt::flag()?;
    let wishes = Wishes { allow_writes: arguments.allow_writes, limit: Duration::from_secs(arguments.limit) };
    let mut server = connection::reach(&arguments.connection, arguments.ephemeral, &stop)?;
    let bar = progress::bar("running");
    let report =
        explain(&mut server.connection, &statement, wishes, &stop, &mut |done| progress::show(bar.as_ref(), done));
    progress::show(bar.as_ref(), 1.0);
    let report = report?;
    print(&match arguments.format {
        Format::Text => render::text::explain::text(&report),
        Format::Json => render::json::json(&report),
    })?;
    Ok(0)
}

fn statement(arguments: &ExplainArguments) -> anyhow::Result<String> {
    const HINT: Hint = Hint("a statement is given with -c, in a file with -f, or on stdin");
    if let Some(text) = &arguments.command {
        return Ok(text.clone());
    }
    let mut bytes = Vec::new();
    let (name, read) = match &arguments.file {
        Some(file) if file.as_os_str() != "-" => (
            format!("\"{}\"", file.display()),
            std::fs::File::open(file).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes)),
        ),
        None if std::io::stdin().is_terminal() => return Err(anyhow!("there is no statement").context(HINT)),
        _ => ("stdin".into(), std::io::stdin().take(MOST + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|e| anyhow!("could not read {name}: {}", crate::human::reason(&e)).context(HINT))?;
    if bytes.len() as u64 > MOST {
        return Err(anyhow!("{name}: longer than {} MB", MOST >> 20).context(HINT));
    }
    String::from_utf8(bytes)
        .map_err(|_| anyhow!("{name} is not UTF-8 text").context(Hint("convert it, with iconv for example")))
}
