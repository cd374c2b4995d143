//! `pg_timing advise`: shows what each setting that reads the clock costs on a server.

use super::arguments::{AdviseArguments, Format};
use super::{connection, interrupt, message, print, progress};
use crate::render::{self, escape};
use crate::report::AdviseReport;
use crate::server::advise::advise;

pub fn run(arguments: AdviseArguments) -> anyhow::Result<u8> {
    let report = match observe(&arguments) {
        Err(error) if arguments.nagios => {
            // The error also goes to stderr, with its hint.
            print(&render::nagios::advise::failed(&message(&error)))?;
            return Err(error);
        }
        report => report?,
    };
    print(&match (arguments.nagios, arguments.format) {
        (true, _) => render::nagios::advise::line(&escape::report(&report)?),
        (false, Format::Text) => render::text::advise::text(&escape::report(&report)?),
        (false, Format::Json) => render::json::json(&report),
    })?;
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
