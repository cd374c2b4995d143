//! Reads the clocks of this machine for a short time in each interval, and keeps the figures of the last intervals. A finding
//! describes this window, so that it can be seen for some minutes, and does not depend on a single short reading.

use super::*;
use crate::host::measure::Budget;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use timing_clock::{Clock, Nanos, Posix};

/// The time for reading clocks, as a share of an interval. The evaluation, the comparison of CPUs and the outputs take about
/// 6 ms, so that all together stay below 0.1% of one CPU in an interval of 15 s.
const READING_SHARE: f64 = 0.25e-3;
/// The least time for reading clocks, so that each clock has some buffers.
const MIN_READING: Nanos = Nanos::from_millis(1.0);
/// The share of an interval, and the least time, that reading and evaluating the clocks may take. Who requests a short interval
/// accepts a larger share.
const ALLOWED_SHARE: f64 = 0.8e-3;
const MIN_ALLOWED_S: f64 = 20e-3;

/// How long the clocks are read in each interval.
pub struct Pace {
    /// time for reading all clocks
    pub limit: Nanos,
    /// time for reading and evaluating them; if they take longer, they are not read in each interval
    pub allowed_s: f64,
    /// intervals until the next reading, if a reading is expensive
    pub skip: u64,
}

impl Pace {
    pub fn new(interval_s: f64) -> Pace {
        let limit = Nanos((interval_s * 1e9 * READING_SHARE).max(MIN_READING.0));
        Pace { limit, allowed_s: (interval_s * ALLOWED_SHARE).max(MIN_ALLOWED_S), skip: 0 }
    }
}

impl<M: Machine> Watch<M> {
    /// Reads the clocks on the CPU whose turn it is, and adds the figures to the window. Clocks that are slow to read are read in
    /// some intervals only.
    pub fn read_clocks(&mut self, sample: &mut Sample) {
        if self.pace.skip > 0 {
            self.pace.skip -= 1;
            return;
        }
        let (start, cpu_start_s) = (Instant::now(), thread_cpu_s());
        let (stop, limit) = (AtomicBool::new(false), self.pace.limit);
        let (budget, instruments) = (Budget::new(limit, &stop), &mut self.instruments);
        let activity = self.machine.on_cpu(self.samples as usize, &mut || instruments.read_once(&budget, limit));
        let current = self.facts.clocksource.current.known().map(String::as_str);
        self.figures = instruments.figures(self.counter.rate.map(|rate| rate.rate), current);
        let seconds = start.elapsed().as_secs_f64();
        // A slow clock takes longer than the limit, because each clock is read for at least one block. An interruption takes
        // no CPU time: a pause of seconds must not stop the readings for an hour.
        self.pace.skip = ((thread_cpu_s() - cpu_start_s).min(seconds) / self.pace.allowed_s) as u64;
        let system = self.figures.iter().find(|clock| clock.name == SYSTEM);
        let error = system.and_then(|clock| clock.unavailable.clone());
        sample.collectors.push(Collector { name: "clocks", seconds, error });
        sample.interval.extend(self.figures.iter().cloned());
        self.window.add_reading(&self.figures, activity);
    }
}

/// Returns the CPU time of this thread in seconds.
fn thread_cpu_s() -> f64 {
    Posix::<{ libc::CLOCK_THREAD_CPUTIME_ID }>.read() as f64 / 1e9
}

/// The number of intervals: five minutes by default.
pub const LENGTH: usize = 20;

/// The waits for a CPU are judged only after this much reading of all clocks, without the longest wait: it must not be the
/// reason that it is judged. One wait of 4 ms, the usual time slice of another program, then has a share below the limit of
/// 10%.
const MIN_PERIOD_NS: f64 = 50e6;
/// The gaps of PostgreSQL's clock are judged after this much reading of it. A full window of the default interval has 16 ms.
/// `clock-gaps` leaves out the longest gap, because it can be chance.
const MIN_MEASURED_NS: f64 = 10e6;

/// The last intervals.
pub struct Window {
    /// the figures of all clocks, and the activity meanwhile
    readings: VecDeque<(Vec<ClockReport>, Activity)>,
    clocksources: VecDeque<Option<String>>,
}

impl Window {
    pub fn new(clocksource: &Clocksource) -> Window {
        let clocksources = VecDeque::from([clocksource.current.known().cloned()]);
        Window { readings: VecDeque::new(), clocksources }
    }

    /// Adds the clock source of an interval. If it changed, returns its name before and now.
    pub fn add_clocksource(&mut self, clocksource: &Clocksource) -> Option<(String, String)> {
        let now = clocksource.current.known().cloned();
        // An unreadable file is no change.
        let before = self.clocksources.iter().rev().flatten().next().cloned();
        push(&mut self.clocksources, LENGTH, now.clone());
        before.zip(now).filter(|(before, now)| before != now)
    }

    /// Returns the clock source before the last change in the window.
    pub fn clocksource_before(&self) -> Option<String> {
        let mut known = self.clocksources.iter().rev().flatten();
        let now = known.next()?;
        known.find(|before| *before != now).cloned()
    }

    /// Adds a reading of all clocks.
    pub fn add_reading(&mut self, figures: &[ClockReport], activity: Activity) {
        push(&mut self.readings, LENGTH, (figures.to_vec(), activity));
    }

    /// Returns the figures of the last reading, with the number of reads, the backward steps and the lost time of the window.
    pub fn apply(&self, figures: &[ClockReport]) -> Vec<ClockReport> {
        figures.iter().cloned().map(|clock| self.with_counts(clock)).collect()
    }

    fn with_counts(&self, mut clock: ClockReport) -> ClockReport {
        let counts: Vec<&ClockReport> = self.of(&clock.name).collect();
        clock.reads = counts.iter().map(|counts| counts.reads).sum();
        clock.backward_steps = counts.iter().map(|counts| counts.backward_steps).sum();
        clock.largest_backward_ns = counts.iter().map(|counts| counts.largest_backward_ns).fold(0.0, f64::max);
        let measured_ns: f64 = counts.iter().filter_map(|counts| counts.measured_ns()).sum();
        let gaps = counts.iter().filter_map(|counts| counts.gaps).reduce(|a, b| Gaps {
            threshold_ns: a.threshold_ns.max(b.threshold_ns),
            count: a.count + b.count,
            total_ns: a.total_ns + b.total_ns,
            largest_ns: a.largest_ns.max(b.largest_ns),
            share: 0.0,
        });
        clock.gaps = gaps
            .filter(|gaps| measured_ns - gaps.largest_ns >= MIN_MEASURED_NS)
            .map(|gaps| Gaps { share: gaps.total_ns / measured_ns, ..gaps });
        clock
    }

    /// Returns the time for which PostgreSQL's clock was read.
    pub fn measured_s(&self) -> f64 {
        self.of(SYSTEM).filter_map(ClockReport::measured_ns).sum::<f64>() / 1e9
    }

    /// Returns the figures of one clock in each interval.
    fn of(&self, name: &str) -> impl Iterator<Item = &ClockReport> {
        self.readings.iter().flat_map(|(clocks, _)| clocks).filter(move |clock| clock.name == name)
    }

    /// Returns the activity in the window, if the clocks were read for long enough.
    pub fn activity(&self) -> Fact<Activity> {
        let known: Vec<&Activity> = self.readings.iter().map(|(_, activity)| activity).collect();
        let period_ms: f64 = known.iter().filter_map(|activity| activity.period_ms).sum();
        let longest_wait_ms = known.iter().filter_map(|activity| activity.run_delay_ms).fold(0.0, f64::max);
        if (period_ms - longest_wait_ms) * 1e6 < MIN_PERIOD_NS {
            return Fact::unavailable("the clocks were not read for long enough yet");
        }
        let sum = known.into_iter().copied().reduce(|a, b| a.combine(&b, |a, b| a + b, |a, b| a + b));
        let sum = sum.unwrap_or_default();
        // The longest wait is left out, because it can be chance.
        Fact::Known(Activity {
            run_delay_ms: sum.run_delay_ms.map(|sum| sum - longest_wait_ms),
            period_ms: Some(period_ms),
            ..sum
        })
    }
}

/// Adds a value to a queue. If the queue has `most` values, the oldest one is dropped.
pub fn push<T>(queue: &mut VecDeque<T>, most: usize, value: T) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        let unknown = || Fact::unavailable("");
        Window::new(&Clocksource { current: unknown(), available: Fact::unavailable(""), before: None })
    }

    /// A reading of 2 ms with this lost time.
    fn reading(gap_ns: f64) -> Vec<ClockReport> {
        let gaps =
            Gaps { threshold_ns: 1e3, count: 1, total_ns: gap_ns, largest_ns: gap_ns, share: gap_ns / (2e6 + gap_ns) };
        vec![ClockReport { name: SYSTEM.into(), gaps: Some(gaps), ..ClockReport::default() }]
    }

    fn waited(ms: f64) -> Activity {
        Activity { period_ms: Some(4.0 + ms), run_delay_ms: Some(ms), timeslices: Some(1), ..Activity::default() }
    }

    #[test]
    fn lost_time_is_the_share_of_the_whole_window() {
        let mut window = window();
        for _ in 0..10 {
            window.add_reading(&reading(1e6), waited(0.0));
        }
        let gaps = window.apply(&reading(0.0))[0].gaps.unwrap();
        assert_eq!((gaps.count, gaps.total_ns, gaps.largest_ns), (10, 10e6, 1e6));
        assert!((gaps.share - 1.0 / 3.0).abs() < 1e-9, "{gaps:?}");
    }

    #[test]
    fn a_short_reading_shows_no_lost_time() {
        let mut window = window();
        window.add_reading(&reading(4e6), waited(4.0));
        assert!(window.apply(&reading(0.0))[0].gaps.is_none() && window.activity().known().is_none());
    }

    #[test]
    fn one_long_wait_can_be_chance() {
        let mut window = window();
        (0..15).for_each(|_| window.add_reading(&reading(0.0), waited(0.0)));
        window.add_reading(&reading(0.0), waited(20.0));
        assert_eq!(window.activity().known().unwrap().run_delay_ms, Some(0.0));
        window.add_reading(&reading(0.0), waited(15.0));
        assert_eq!(window.activity().known().unwrap().run_delay_ms, Some(15.0));
    }

    #[test]
    fn readings_leave_the_window() {
        let mut window = window();
        window.add_reading(&reading(4e6), waited(0.0));
        (0..LENGTH).for_each(|_| window.add_reading(&reading(1.0), waited(0.0)));
        assert!(window.apply(&reading(0.0))[0].gaps.unwrap().largest_ns < 2.0);
    }

    #[test]
    fn a_long_interruption_is_not_the_reason_that_lost_time_is_judged() {
        let mut window = window();
        window.add_reading(&reading(60e6), waited(60.0));
        let judged =
            |window: &Window| (window.apply(&reading(0.0))[0].gaps.is_some(), window.activity().known().is_some());
        assert_eq!(judged(&window), (false, false));
        (0..12).for_each(|_| window.add_reading(&reading(1.0), waited(0.0)));
        assert_eq!(judged(&window), (true, true));
    }

    #[test]
    fn reads_and_backward_steps_are_those_of_the_window() {
        let reading = |backward_steps| {
            vec![ClockReport { name: SYSTEM.into(), reads: 1000, backward_steps, ..ClockReport::default() }]
        };
        let mut window = window();
        (0..=LENGTH).for_each(|nth| window.add_reading(&reading(u64::from(nth < 3)), waited(0.0)));
        let clock = &window.apply(&reading(0))[0];
        assert_eq!((clock.reads, clock.backward_steps), (1000 * LENGTH as u64, 2));
    }
}
