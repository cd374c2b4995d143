//! The figures of the last intervals. A finding describes this window, so that it can be seen for some minutes, and does not
//! depend on a single short reading.

use crate::report::{Activity, ClockReport, Clocksource, Fact, Gaps};
use std::collections::VecDeque;

/// The number of intervals: five minutes by default.
pub const LENGTH: usize = 20;

/// Lost time is judged only after this much reading. One interruption of 4 ms, the usual time slice of another program, then
/// has a share below the limit of 10%.
const MIN_MEASURED_NS: f64 = 50e6;

/// The last intervals.
pub struct Window {
    readings: VecDeque<Reading>,
    clocksources: VecDeque<Option<String>>,
}

/// One reading of all clocks.
struct Reading {
    clocks: Vec<Counts>,
    activity: Fact<Activity>,
}

struct Counts {
    name: String,
    backward_steps: u64,
    largest_backward_ns: f64,
    gaps: Option<Gaps>,
    measured_ns: f64,
}

impl Counts {
    fn of(clock: &ClockReport) -> Counts {
        Counts {
            name: clock.name.clone(),
            backward_steps: clock.backward_steps,
            largest_backward_ns: clock.largest_backward_ns,
            gaps: clock.gaps,
            measured_ns: clock.measured_ns().unwrap_or(0.0),
        }
    }
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
        push(&mut self.clocksources, now.clone());
        before.zip(now).filter(|(before, now)| before != now)
    }

    /// Returns the clock source before the last change in the window.
    pub fn clocksource_before(&self) -> Option<String> {
        let mut known = self.clocksources.iter().rev().flatten();
        let now = known.next()?;
        known.find(|before| *before != now).cloned()
    }

    /// Adds a reading of all clocks.
    pub fn add_reading(&mut self, figures: &[ClockReport], activity: Fact<Activity>) {
        push(&mut self.readings, Reading { clocks: figures.iter().map(Counts::of).collect(), activity });
    }

    /// Returns the figures of the last reading, with the backward steps and the lost time of the window.
    pub fn apply(&self, figures: &[ClockReport]) -> Vec<ClockReport> {
        figures.iter().cloned().map(|clock| self.with_counts(clock)).collect()
    }

    fn with_counts(&self, mut clock: ClockReport) -> ClockReport {
        let name = clock.name.clone();
        let counts: Vec<&Counts> =
            self.readings.iter().flat_map(|reading| &reading.clocks).filter(|counts| counts.name == name).collect();
        clock.backward_steps = counts.iter().map(|counts| counts.backward_steps).sum();
        clock.largest_backward_ns = counts.iter().map(|counts| counts.largest_backward_ns).fold(0.0, f64::max);
        let measured_ns: f64 = counts.iter().map(|counts| counts.measured_ns).sum();
        let gaps = counts.iter().filter_map(|counts| counts.gaps).reduce(|a, b| Gaps {
            threshold_ns: a.threshold_ns.max(b.threshold_ns),
            count: a.count + b.count,
            total_ns: a.total_ns + b.total_ns,
            largest_ns: a.largest_ns.max(b.largest_ns),
            share: 0.0,
        });
        clock.gaps = gaps
            .filter(|_| measured_ns >= MIN_MEASURED_NS)
            .map(|gaps| Gaps { share: gaps.total_ns / measured_ns, ..gaps });
        clock
    }

    /// Returns the time for which PostgreSQL's clock was read.
    pub fn measured_s(&self) -> f64 {
        let system = self
            .readings
            .iter()
            .flat_map(|reading| &reading.clocks)
            .filter(|counts| counts.name == crate::report::SYSTEM);
        system.map(|counts| counts.measured_ns).sum::<f64>() / 1e9
    }

    /// Returns the activity in the window, if the clocks were read for long enough.
    pub fn activity(&self) -> Fact<Activity> {
        let known: Vec<&Activity> = self.readings.iter().filter_map(|reading| reading.activity.known()).collect();
        let period_ms: f64 = known.iter().filter_map(|activity| activity.period_ms).sum();
        if period_ms * 1e6 < MIN_MEASURED_NS {
            return Fact::unavailable("the clocks were not read for long enough yet");
        }
        let sum = |of: fn(&Activity) -> Option<f64>| known.iter().map(|activity| of(activity)).sum::<Option<f64>>();
        let count = |of: fn(&Activity) -> Option<u64>| known.iter().map(|activity| of(activity)).sum::<Option<u64>>();
        Fact::Known(Activity {
            involuntary_context_switches: known.iter().map(|activity| activity.involuntary_context_switches).sum(),
            steal_ms: sum(|activity| activity.steal_ms),
            suspends: count(|activity| activity.suspends),
            period_ms: Some(period_ms),
            run_delay_ms: sum(|activity| activity.run_delay_ms),
            timeslices: count(|activity| activity.timeslices),
            throttled_ms: sum(|activity| activity.throttled_ms),
        })
    }
}

fn push<T>(queue: &mut VecDeque<T>, value: T) {
    if queue.len() == LENGTH {
        queue.pop_front();
    }
    queue.push_back(value);
}
