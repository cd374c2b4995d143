//! pg_test_timing: its measurement, its output formats and their parser, and its options.

pub mod getopt;
mod parse;
mod print;
pub mod report;
mod timing;
mod tsc;

pub use parse::{ClockKind, ClockTable, Output, ParseError, TscLines, parse};

use crate::host::measure::{self, Budget};
use anyhow::Context;
use std::sync::atomic::AtomicBool;
use timing::{Timing, Warp, time};
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
    /// the rate in use differs too much from the calibrated one
    Warning(String),
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
    let limit = Nanos::from_secs(f64::from(options.duration_s));
    let mut timings: Vec<Timing> = Vec::new();
    let mut show = |timings: &mut Vec<Timing>, timed: Result<Timing, Warp>| -> anyhow::Result<Option<Ended>> {
        let timing = match timed {
            Ok(timing) => timing,
            Err(warp) => return Ok(Some(Ended::Warp(warp.text(options.format)))),
        };
        match options.format {
            Format::Nineteen => out(&print::nineteen(&timing, options.cutoff))?,
            Format::Classic => out(&print::classic(&timing))?,
            Format::Json => {}
        }
        timings.push(timing);
        Ok(stop.load(std::sync::atomic::Ordering::Relaxed).then_some(Ended::Interrupted))
    };
    let mut ended = match counter::permitted() {
        Ok(()) => {
            let system = measure::clock(measure::SYSTEM, Ok(())).context("could not read PostgreSQL's clock")?;
            show(&mut timings, time(timing::SYSTEM, &*system, NANOSECONDS, &Budget::new(limit, stop)))?
        }
        // Under PostgreSQL's name the program prints no hints, so this line must be enough.
        Err(why) => anyhow::bail!("could not read PostgreSQL's clock: the vDSO reads the CPU's counter, and {why}"),
    };
    let mut lines = None;
    if ended.is_none() && options.format != Format::Classic {
        let (timed, tsc) = tsc::time_counters(limit, stop);
        for timing in timed {
            ended = ended.map_or_else(|| show(&mut timings, timing), |ended| Ok(Some(ended)))?;
        }
        if printed && ended.is_none() {
            out(&tsc.text())?;
        }
        if let (None, Some(warning)) = (&ended, tsc.warning()) {
            ended = Some(Ended::Warning(warning));
        }
        lines = Some(tsc);
    }
    if !printed {
        out(&print::json(options, &timings, lines.as_ref(), ended == Some(Ended::Interrupted)))?;
    }
    Ok(ended.unwrap_or(Ended::Done))
}
