//! pg_test_timing: its measurement, its output formats and their parser, and its options.

pub mod getopt;
mod parse;
pub mod report;
mod table;
pub mod ticket;
mod writer;

pub use parse::{KERNEL_LOG, parse};
pub use table::Output;

use crate::host::measure::{self, Budget, ClockMeter};
use anyhow::Context;
use std::sync::atomic::{AtomicBool, Ordering};
use timing_clock::{Hertz, NANOSECONDS, Nanos, counter};
use writer::{Timing, Unit, time};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Nineteen,
    Classic,
    Json,
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
    let mut tester = Tester { options, stop, out, timings: Vec::new() };
    let mut ended = tester.test(writer::SYSTEM, &*system, NANOSECONDS)?;
    let mut lines = None;
    if ended.is_none() && options.format != Format::Classic {
        let (counters, mut tsc) = writer::counters(stop);
        if let Some(counters) = counters {
            for (title, clock) in &counters.clocks {
                ended = ended.map_or_else(|| tester.test(title, &**clock, counters.rate), |ended| Ok(Some(ended)))?;
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
    let timings = tester.timings;
    if !printed {
        out(&writer::json(options, &timings, lines.as_ref(), ended == Some(Ended::Interrupted)))?;
    }
    Ok(ended.unwrap_or(Ended::Done))
}

/// Measures one clock after the other.
struct Tester<'a> {
    options: &'a Options,
    stop: &'a AtomicBool,
    out: &'a mut dyn FnMut(&str) -> anyhow::Result<()>,
    timings: Vec<Timing>,
}

impl Tester<'_> {
    /// Measures a clock and prints the result. Returns the reason if this ends the test.
    fn test(&mut self, title: &'static str, clock: &dyn ClockMeter, rate: Hertz) -> anyhow::Result<Option<Ended>> {
        let Options { duration_s, cutoff, format } = *self.options;
        // If the clock goes back, this line says which clock it was.
        if format == Format::Nineteen {
            (self.out)(&format!("\n{title}\n"))?;
        }
        let budget = Budget::new(Nanos::from_secs(f64::from(duration_s)), self.stop);
        let timing = match time(title, clock, rate, Unit::of(format), &budget) {
            Ok(timing) => timing,
            Err(message) => return Ok(Some(Ended::Warp(message))),
        };
        match format {
            Format::Nineteen => (self.out)(&writer::nineteen(&timing, cutoff))?,
            Format::Classic => (self.out)(&writer::classic(&timing))?,
            Format::Json => {}
        }
        self.timings.push(timing);
        Ok(self.stop.load(Ordering::Relaxed).then_some(Ended::Interrupted))
    }
}
