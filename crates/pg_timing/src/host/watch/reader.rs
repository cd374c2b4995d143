//! Reads the clocks of this machine for a short time in each interval.

use super::Machine;
use crate::host::measure::Budget;
use crate::host::survey::clocks::{Instruments, correct_access};
use crate::report::{Activity, ClockReport, Collector, Fact, SYSTEM};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use timing_clock::{Hertz, Nanos};

/// The time for reading clocks, as a share of an interval. The evaluation, the comparison of CPUs and the outputs take about
/// 6 ms, so that all together stay below 0.1% of one CPU in an interval of 15 s.
const READING_SHARE: f64 = 0.25e-3;
/// The least time for reading clocks, so that each clock has some buffers.
const MIN_READING: Nanos = Nanos::from_millis(1.0);
/// The share of an interval, and the least time, that reading and evaluating the clocks may take. Who requests a short interval
/// accepts a larger share.
const ALLOWED_SHARE: f64 = 0.8e-3;
const MIN_ALLOWED_S: f64 = 20e-3;

/// Reads the clocks, and keeps the last figures.
pub struct ClockReader {
    /// time for reading all clocks
    limit: Nanos,
    /// time for reading and evaluating them; if they take longer, they are not read in each interval
    allowed_s: f64,
    /// intervals until the next reading, if a reading is expensive
    skip: u64,
    /// the clocks' figures of the last reading
    pub figures: Vec<ClockReport>,
}

impl ClockReader {
    pub fn new(interval_s: f64) -> ClockReader {
        ClockReader {
            limit: Nanos((interval_s * 1e9 * READING_SHARE).max(MIN_READING.0)),
            allowed_s: (interval_s * ALLOWED_SHARE).max(MIN_ALLOWED_S),
            skip: 0,
            figures: Vec::new(),
        }
    }

    /// Reads each clock for one block only.
    #[cfg(test)]
    pub fn brief() -> ClockReader {
        ClockReader { limit: Nanos(0.0), allowed_s: f64::INFINITY, skip: 0, figures: Vec::new() }
    }

    /// Makes the next call of [`ClockReader::read`] read the clocks, even if that is expensive.
    pub fn make_due(&mut self) {
        self.skip = 0;
    }

    /// Reads the clocks on the CPU whose turn it is, and returns the collector and the activity meanwhile. `rate` is the
    /// counter's rate, and `current` the clock source. Clocks that are slow to read are read in some intervals only: returns
    /// None in the others.
    pub fn read<M: Machine>(
        &mut self,
        machine: &mut M,
        instruments: &mut Instruments,
        rate: Option<Hertz>,
        current: Option<&str>,
        turn: usize,
    ) -> Option<(Collector, Fact<Activity>)> {
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let (start, cpu_start_s) = (Instant::now(), thread_cpu_s());
        let stop = AtomicBool::new(false);
        let pinned = machine.pin(turn);
        machine.start_activity();
        let budget = Budget::new(self.limit, &stop);
        instruments.read_once(&budget, self.limit);
        let activity = machine.activity();
        drop(pinned);
        self.figures = instruments.figures(rate);
        if let Some(current) = current {
            correct_access(&mut self.figures, current);
        }
        let seconds = start.elapsed().as_secs_f64();
        // A slow clock takes longer than the limit, because each clock is read for at least one block. An interruption takes
        // no CPU time: a pause of seconds must not stop the readings for an hour.
        self.skip = ((thread_cpu_s() - cpu_start_s).min(seconds) / self.allowed_s) as u64;
        Some((Collector { name: "clocks", seconds, error: no_figures(&self.figures) }, activity))
    }
}

/// Returns the CPU time of this thread in seconds.
fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns why PostgreSQL's clock has no figures.
fn no_figures(figures: &[ClockReport]) -> Option<String> {
    match figures.iter().find(|clock| clock.name == SYSTEM) {
        None => Some("PostgreSQL's clock is missing".into()),
        Some(clock) => clock.unavailable.clone(),
    }
}
