//! pg_test_timing: its measurement, its output formats and their parser, and its options.

pub mod getopt;
mod parse;
pub mod report;
mod writer;

pub use parse::{KERNEL_LOG, Output, parse};

use crate::host::measure::{self, Budget};
use crate::report::TestReport;
use anyhow::{Context, anyhow};
use std::sync::atomic::{AtomicBool, Ordering};
use timing_clock::{NANOSECONDS, Nanos, counter};

/// The options of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// measuring time for each clock
    pub duration_s: u32,
    /// share of the observed durations that are listed, in percent
    pub cutoff: f64,
    pub format: Format,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// as in PostgreSQL 19: nanoseconds, every clock
    #[value(name = "19")]
    Nineteen,
    /// as in PostgreSQL 15 to 18: microseconds, the system clock
    Classic,
    Json,
}

/// The unit of the readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    #[default]
    Nanoseconds,
    /// Up to version 18, PostgreSQL cuts each reading to whole microseconds and then subtracts.
    Microseconds,
}

impl Unit {
    fn ns(self) -> u64 {
        if self == Unit::Microseconds { 1000 } else { 1 }
    }
}

/// The end of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Done,
    /// A clock went back, which ends the test, or the rate in use differs too much from the calibrated one. The text is for
    /// stderr. It is empty if stdout has it
    Failed(String),
    /// Ctrl-C; the results until then have been printed
    Interrupted,
}

/// Prints a part of the output.
pub type Print<'a> = &'a mut dyn FnMut(&str) -> anyhow::Result<()>;

/// Measures the clocks one after the other, and prints the result of each.
pub fn run(options: &Options, stop: &AtomicBool, out: Print) -> anyhow::Result<Ended> {
    let Options { duration_s, cutoff, format } = *options;
    let printed = format != Format::Json;
    if printed {
        let plural = if duration_s == 1 { "" } else { "s" };
        out(&format!("Testing timing overhead for {duration_s} second{plural}.\n"))?;
    }
    // Under PostgreSQL's name the program prints no hints, so this line must be enough.
    counter::permitted()
        .map_err(|why| anyhow!("could not read PostgreSQL's clock: the vDSO reads the CPU's counter, and {why}"))?;
    let system = measure::clock(measure::SYSTEM, Ok(())).context("could not read PostgreSQL's clock")?;
    let (unit, (counters, mut tsc)) = match format {
        Format::Classic => (Unit::Microseconds, Default::default()),
        _ => (Unit::Nanoseconds, writer::counters(stop)),
    };
    let counted = counters.iter().flat_map(|counters| counters.clocks.iter().map(|clock| (clock, counters.rate)));
    let (mut clocks, mut tested, mut ended) = (Vec::new(), 0, None);
    for (clock, rate) in [(&system, NANOSECONDS)].into_iter().chain(counted) {
        // If the clock goes back, this line says which clock it was.
        if format == Format::Nineteen {
            out(match clock.name {
                "rdtscp" => "\nClock source: RDTSCP\n",
                "rdtsc" => "\nFast clock source: RDTSC\n",
                _ => "\nSystem clock source: clock_gettime (CLOCK_MONOTONIC)\n",
            })?;
        }
        match writer::time(clock, rate, unit, &Budget::new(Nanos::from_secs(f64::from(duration_s)), stop)) {
            Err(message) => ended = Some(Ended::Failed(message)),
            Ok(mut timed) => {
                match format {
                    Format::Nineteen => out(&writer::nineteen(&timed, cutoff))?,
                    Format::Classic => out(&writer::classic(&timed))?,
                    Format::Json => timed.loop_ns = (timed.loop_ns * 100.0).round() / 100.0,
                }
                clocks.push(timed);
                ended = stop.load(Ordering::Relaxed).then_some(Ended::Interrupted);
            }
        }
        tested += 1;
        if ended.is_some() {
            break;
        }
    }
    counters.iter().for_each(|counters| tsc.calibrate(counters));
    if format == Format::Nineteen && ended.is_none() {
        out(&tsc.text())?;
    }
    if !printed {
        let report = TestReport {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            duration_s: duration_s.into(),
            interrupted: ended == Some(Ended::Interrupted),
            tsc: (ended.is_none() || tested > 1).then(|| tsc.clone()),
            clocks,
        };
        out(&crate::json::json(&report))?;
    }
    let warning = || tsc.warning().map(|warning| Ended::Failed(if printed { String::new() } else { warning }));
    Ok(ended.or_else(warning).unwrap_or(Ended::Done))
}
