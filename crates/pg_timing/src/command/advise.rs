//! `pg_timing advise`: shows what each setting that reads the clock costs on a server.

use super::arguments::{AdviseArguments, Format};
use super::{connection, interrupt, print, progress};
use crate::render::{self, escape};
use crate::server::advise::advise;

pub fn run(arguments: AdviseArguments) -> anyhow::Result<u8> {
    let stop = interrupt::flag()?;
    let mut connection = connection::open(&arguments.connection, &stop)?;
    let bar = progress::bar("watching");
    let report = advise(&mut connection, arguments.window, &stop, &mut |done| progress::show(bar.as_ref(), done));
    progress::show(bar.as_ref(), 1.0);
    let report = report?;
    print(&match arguments.format {
        Format::Text => render::text::advise::text(&escape::report(&report)?),
        Format::Json => render::json::json(&report),
    })?;
    Ok(report.verdict.severity.exit_status())
}
