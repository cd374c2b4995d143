//! `pg_timing advise`: shows what each setting that reads the clock costs on a server.

use super::arguments::{AdviseArguments, Format};
use super::{connection, interrupt, message, print, progress, show};
use crate::document;
use crate::render;
use crate::report::AdviseReport;
use crate::server::advise::advise;

pub fn run(arguments: AdviseArguments) -> anyhow::Result<u8> {
    let report = match observe(&arguments) {
        Err(error) if arguments.nagios => {
            // The error also goes to stderr, with its hint.
            print(&render::nagios::failed(&message(&error)))?;
            return Err(error);
        }
        report => report?,
    };
    match (arguments.nagios, arguments.format) {
        (true, _) => print(&render::nagios::advise(&report))?,
        (false, Format::Text) => show(&document::advise::document(&report))?,
        (false, Format::Json) => print(&render::json::json(&report))?,
    }
    Ok(report.verdict.severity.exit_status())
}

fn observe(arguments: &AdviseArguments) -> anyhow::Result<AdviseReport> {
    let stop = interrupt::flag()?;
    let mut connection = connection::open(&arguments.connection, &stop)?;
    let bar = progress::bar("watching");
    let report = advise(&mut connection, arguments.window, &stop, &mut |done| progress::show(bar.as_ref(), done));
    progress::show(bar.as_ref(), 1.0);
    Ok(report?)
}
