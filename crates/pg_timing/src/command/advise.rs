//! `pg_timing advise`: shows what each setting that reads the clock costs on a server.

use super::values::{Format, seconds};
use super::{connection, interrupt, print, print_as, progress};
use crate::document;
use crate::report::AdviseReport;
use crate::server::advise::advise;
use crate::server::connection::Target;
use clap::Args;
use timing_clock::Nanos;

/// Backends report their statistics once per second, so a shorter observation shows nothing.
const LEAST_WINDOW_S: f64 = 2.0;

#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = include_str!("help/advise.txt").trim_end())]
pub struct AdviseArguments {
    /// Time to watch the server's statistics, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds(LEAST_WINDOW_S), allow_negative_numbers = true)]
    pub window: Nanos,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Print one line with performance data, as monitoring plugins do: the verdict, and the share of a core that each setting
    /// takes for certain
    #[arg(long, conflicts_with = "format")]
    pub nagios: bool,
    #[command(flatten, next_help_heading = "Connection options")]
    pub connection: Target,
}

pub fn run(arguments: AdviseArguments) -> anyhow::Result<u8> {
    let report = match observe(&arguments) {
        Err(error) if arguments.nagios => {
            // The error also goes to stderr, with its hint.
            print(&document::nagios::failed(&format!("{error:#}")))?;
            return Err(error);
        }
        report => report?,
    };
    match arguments.nagios {
        true => print(&document::nagios::advise(&report))?,
        false => print_as(arguments.format, &report, || document::advise::document(&report))?,
    }
    Ok(report.verdict.severity.exit_status())
}

fn observe(arguments: &AdviseArguments) -> anyhow::Result<AdviseReport> {
    let stop = interrupt::flag()?;
    let mut connection = connection::open(&arguments.connection, &stop)?;
    let mut progress = progress("watching");
    let report = advise(&mut connection, arguments.window, &mut None, &mut progress);
    progress(1.0);
    Ok(report?)
}
