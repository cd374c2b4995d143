//! `pg_timing [check]`: measures this host's clocks, or reads a captured tree, and judges them.

use super::values::{Format, limits, seconds};
use super::{Input, interrupt, print, print_as, progress, read_input, with_details};
use crate::document;
use crate::error::{Error, require};
use crate::host::check::judge;
use crate::host::facts::{Host, KernelLog, capture};
use crate::host::measure::Budget;
use crate::host::survey;
use crate::report::Report;
use crate::report::thresholds::{Limits, Thresholds, Watched};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use timing_clock::Nanos;

/// In less time, each clock cannot be read several times.
const LEAST_S: f64 = 0.1;
/// The measuring time that no option changes. It gives each clock some hundred thousand reads or more.
pub const DEFAULT_S: f64 = 4.0;
const LONG_S: f64 = 300.0;

const KERNEL_LOG_HINT: &str = "give the output of dmesg: sudo dmesg | pg_timing check --kernel-log -";
const LONG_LOG_HINT: &str = "give only the kernel's messages since the last boot: journalctl -k -b";
const ROOT_HINT: &str = "give a captured tree: a directory that contains proc/ and sys/";

const LIMITS_HINT: &str = "a warning comes first: give it the lower limit, as in -w read=100ns -c read=1us";

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/check.txt").trim_end())]
pub struct CheckArguments {
    /// Total measuring time, in seconds [default: 4, or 300 with --long]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds(LEAST_S), allow_negative_numbers = true)]
    pub duration: Option<Nanos>,
    /// Measure for minutes, to detect clocks that drift apart
    #[arg(long)]
    pub long: bool,
    /// Check the captured tree in DIR instead of this machine; nothing is measured
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Read the kernel log from FILE, or from stdin (-)
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub kernel_log: Option<PathBuf>,
    /// Write the facts and measurements of this machine to DIR, for --root on another host; the host's name, serial
    /// numbers and addresses are left out
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "root")]
    pub capture: Option<PathBuf>,
    /// Show everything: the reasons and risks of the findings, other clocks, other sources and more kernel messages
    #[arg(long, conflicts_with = "nagios")]
    pub details: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Print one line with performance data, as monitoring plugins do
    #[arg(long, conflicts_with = "format")]
    pub nagios: bool,
    /// With --nagios, also warn above these limits, like read=100ns,lost=5%,skew=1us: the cost of a read of PostgreSQL's
    /// clock (ns, us, ms, s; default ns), the time that interruptions took (%), the certain offset between the clocks of two
    /// CPUs (as read). The worst of the limits and the verdict counts
    #[arg(short, long, value_name = "LIMITS", value_parser = limits, requires = "nagios")]
    pub warning: Option<Limits>,
    /// The same for the status critical
    #[arg(short, long, value_name = "LIMITS", value_parser = limits, requires = "nagios")]
    pub critical: Option<Limits>,
}

pub fn run(arguments: CheckArguments) -> anyhow::Result<u8> {
    let (warning, critical) = (arguments.warning.unwrap_or_default(), arguments.critical.unwrap_or_default());
    let thresholds = Thresholds { warning, critical };
    for (Watched { name, .. }, limits) in thresholds.figures() {
        let is_ordered = !matches!(limits, [Some(warning), Some(critical)] if warning > critical);
        let what = format!("the limit of {name} for a warning (-w) is above the one for critical (-c)");
        require(is_ordered, what, LIMITS_HINT)?;
    }
    let host = host(arguments.root.as_deref())?;
    let log = arguments.kernel_log.as_deref().map(kernel_log).unwrap_or_else(|| Ok(KernelLog::own(&host)))?;
    // Refuse an unusable name before the measurement, which takes seconds.
    let target = arguments.capture.as_deref().map(capture::Target::create).transpose()?;
    let limit = arguments.duration.unwrap_or(Nanos::from_secs(if arguments.long { LONG_S } else { DEFAULT_S }));
    let mut report = match survey::of_other_host(&host, &log) {
        Some(report) => report,
        None if host.is_live() => measure(limit, &host, &log)?,
        None => survey::captured(&host, &log),
    };
    judge(&mut report);
    if let Some(target) = &target {
        interrupt::ignore_file_size_signal();
        target.write(&capture::files(&host, &log, &report))?;
    }
    // The captured figures need no second measurement.
    let root = arguments.root.as_deref().or(arguments.capture.as_deref());
    let paths = [(" --root ", root), (" --kernel-log ", arguments.kernel_log.as_deref())];
    let command = with_details(if arguments.long { "check --long" } else { "check" }, &paths);
    let details = (!arguments.details).then_some(command.as_str());
    match arguments.nagios {
        true => print(&document::nagios::check(&report, &thresholds))?,
        false => print_as(arguments.format, &report, || document::host::document(&report, details))?,
    }
    // Without --nagios there are no thresholds.
    Ok(thresholds.severity(&report).exit_status())
}

/// In practice the kernel's ring buffer has at most 16 MB. A journal can contain more.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// Reads the kernel log that the user named.
fn kernel_log(path: &Path) -> Result<KernelLog, Error> {
    let Input { name, bytes } = read_input(path, MAX_LOG_BYTES, LONG_LOG_HINT)?;
    KernelLog::named(&bytes).map_err(|why| Error::new(format!("the kernel log {name} {why}"), KERNEL_LOG_HINT))
}

/// Returns the captured tree in `root`, or this machine.
pub fn host(root: Option<&Path>) -> anyhow::Result<Host> {
    let Some(root) = root else { return Ok(Host::live()) };
    require(root.is_dir(), format!("--root \"{}\" is not a directory", root.display()), ROOT_HINT)?;
    Ok(Host::captured(root.into()))
}

/// Measures this host for this time, and judges the result.
pub fn this_host(limit: Nanos) -> anyhow::Result<Report> {
    let host = Host::live();
    let log = KernelLog::own(&host);
    let mut report = measure(limit, &host, &log)?;
    judge(&mut report);
    Ok(report)
}

fn measure(limit: Nanos, host: &Host, log: &KernelLog) -> anyhow::Result<Report> {
    let stop = interrupt::flag()?;
    let budget = Budget::new(limit, &stop);
    Ok(survey::live(host, log, limit, &budget, &mut progress("measuring")))
}
