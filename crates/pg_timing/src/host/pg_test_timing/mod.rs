//! pg_test_timing: its measurement, its output formats and their parser, and its options.

pub mod getopt;
mod parse;
pub mod report;
mod writer;

pub use parse::{KERNEL_LOG, Output, parse};

use crate::host::measure::{self, Budget, Meter};
use crate::report::{TestReport, TestedClock};
use anyhow::Context;
use std::sync::atomic::{AtomicBool, Ordering};
use timing_clock::{Hertz, NANOSECONDS, Nanos, counter};

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

/// The end of a test. The texts are for stderr.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Done,
    /// The rate in use differs too much from the calibrated one. The text is missing if stdout has it.
    Warning(Option<String>),
    /// a clock went back, which ends the test
    Warp(String),
    /// Ctrl-C; the results until then have been printed
    Interrupted,
}

/// Measures the clocks one after the other, and prints the result of each.
pub fn run(
    options: &Options,
    stop: &AtomicBool,
    out: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Ended> {
    let printed = options.format != Format::Json;
    if printed {
        let plural = if options.duration_s == 1 { "" } else { "s" };
        out(&format!("Testing timing overhead for {} second{plural}.\n", options.duration_s))?;
    }
    // Under PostgreSQL's name the program prints no hints, so this line must be enough.
    counter::permitted().map_err(|why| {
        anyhow::anyhow!("could not read PostgreSQL's clock: the vDSO reads the CPU's counter, and {why}")
    })?;
    let system = measure::clock(measure::SYSTEM, Ok(())).context("could not read PostgreSQL's clock")?;
    let mut tester = Tester { options, stop, out, clocks: Vec::new() };
    let mut ended = tester.test(&system, NANOSECONDS)?;
    let mut lines = None;
    if ended.is_none() && options.format != Format::Classic {
        let (counters, mut tsc) = writer::counters(stop);
        if let Some(counters) = counters {
            for clock in &counters.clocks {
                ended = ended.map_or_else(|| tester.test(clock, counters.rate), |ended| Ok(Some(ended)))?;
            }
            tsc.calibrate(&counters);
        }
        if ended.is_none() {
            if printed {
                (tester.out)(&tsc.text())?;
            }
            ended = tsc.warning().map(|warning| Ended::Warning((!printed).then_some(warning)));
        }
        lines = Some(tsc);
    }
    if !printed {
        let report = TestReport {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            duration_s: options.duration_s.into(),
            interrupted: ended == Some(Ended::Interrupted),
            clocks: tester.clocks,
            tsc: lines,
        };
        (tester.out)(&crate::json::json(&report))?;
    }
    Ok(ended.unwrap_or(Ended::Done))
}

/// Measures one clock after the other.
struct Tester<'a> {
    options: &'a Options,
    stop: &'a AtomicBool,
    out: &'a mut dyn FnMut(&str) -> anyhow::Result<()>,
    clocks: Vec<TestedClock>,
}

impl Tester<'_> {
    /// Measures a clock and prints the result. Returns the reason if this ends the test.
    fn test(&mut self, clock: &Meter, rate: Hertz) -> anyhow::Result<Option<Ended>> {
        let Options { duration_s, cutoff, format } = *self.options;
        // If the clock goes back, this line says which clock it was.
        if format == Format::Nineteen {
            (self.out)(match clock.name {
                "rdtscp" => "\nClock source: RDTSCP\n",
                "rdtsc" => "\nFast clock source: RDTSC\n",
                _ => "\nSystem clock source: clock_gettime (CLOCK_MONOTONIC)\n",
            })?;
        }
        let unit = if format == Format::Classic { Unit::Microseconds } else { Unit::Nanoseconds };
        let budget = Budget::new(Nanos::from_secs(f64::from(duration_s)), self.stop);
        let mut timed = match writer::time(clock, rate, unit, &budget) {
            Ok(timed) => timed,
            Err(message) => return Ok(Some(Ended::Warp(message))),
        };
        match format {
            Format::Nineteen => (self.out)(&writer::nineteen(&timed, cutoff))?,
            Format::Classic => (self.out)(&writer::classic(&timed))?,
            Format::Json => timed.loop_ns = (timed.loop_ns * 100.0).round() / 100.0,
        }
        self.clocks.push(timed);
        Ok(self.stop.load(Ordering::Relaxed).then_some(Ended::Interrupted))
    }
}
