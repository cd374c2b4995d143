//! Whether a read cost rose beyond its noise.
//!
//! The noise is measured: the costs of the last hour. A cost counts as risen if it exceeds each of them by a quarter, and their
//! median by half, in two readings of one interval. CPUs change their frequency and share their core with other programs, so a
//! cost can rise by a third for seconds on a healthy host.

use super::changes::Events;
use crate::human::duration;
use crate::report::{ClockReport, EventKind};
use std::collections::{BTreeMap, VecDeque};

/// The number of samples whose costs are the noise: one hour by default.
const NOISE_SAMPLES: usize = 240;
/// With fewer samples, the noise is unknown.
const MIN_SAMPLES: usize = 8;
/// A risen cost exceeds the median of the samples by this factor, and their maximum by `ABOVE_MAX`.
const ABOVE_MEDIAN: f64 = 1.5;
const ABOVE_MAX: f64 = 1.25;
/// A smaller rise adds less than 10 ns to a row, which no plan shows.
const MIN_RISE_NS: f64 = 5.0;

/// The noise of each clock's read cost, by the clock's name.
#[derive(Default)]
pub struct ReadCosts(BTreeMap<String, Cost>);

#[derive(Default)]
struct Cost {
    samples: VecDeque<f64>,
    /// the median before the cost rose, while it is risen
    risen_from_ns: Option<f64>,
    /// samples since it rose
    since: usize,
}

impl ReadCosts {
    /// Forgets all samples, because another clock source has another cost.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Returns whether a cost rose, so that a second reading must confirm it.
    pub fn is_suspicious(&self, clocks: &[ClockReport]) -> bool {
        clocks.iter().any(|clock| {
            let known = self.0.get(&clock.name);
            known.zip(calm_ns(clock)).is_some_and(|(known, ns)| known.risen_from_ns.is_none() && known.exceeds(ns))
        })
    }

    /// Adds the costs of a sample, and the events.
    pub fn update(&mut self, clocks: &[ClockReport], events: &mut Events) {
        for clock in clocks {
            let Some(ns) = calm_ns(clock) else { continue };
            if let Some((kind, summary)) = self.0.entry(clock.name.clone()).or_default().update(ns, &clock.name) {
                events.about(&clock.name, kind, Some(ns), summary);
            }
        }
    }
}

impl Cost {
    fn exceeds(&self, ns: f64) -> bool {
        let max = self.samples.iter().copied().fold(0.0, f64::max);
        let median = self.median();
        self.samples.len() >= MIN_SAMPLES
            && ns > max * ABOVE_MAX
            && ns > median * ABOVE_MEDIAN
            && ns > median + MIN_RISE_NS
    }

    fn median(&self) -> f64 {
        let mut sorted: Vec<f64> = self.samples.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }

    /// Adds the cost of a sample. Returns the event, if there is one.
    fn update(&mut self, ns: f64, name: &str) -> Option<(EventKind, String)> {
        let (now, median) = (duration(ns), self.median());
        let event = match (self.risen_from_ns, self.exceeds(ns)) {
            (None, true) => {
                (self.risen_from_ns, self.since) = (Some(median), 0);
                let before = duration(median);
                Some((EventKind::ReadCostRose, format!("one read of clock {name} takes {now} instead of {before}")))
            }
            (Some(from_ns), false) => {
                self.risen_from_ns = None;
                let before = duration(from_ns);
                let summary = format!("one read of clock {name} takes {now}; before the rise it took {before}");
                Some((EventKind::ReadCostFell, summary))
            }
            _ => None,
        };
        self.since += 1;
        // A cost that stays is the new normal.
        if self.risen_from_ns.is_some() && self.since > NOISE_SAMPLES {
            *self = Cost::default();
        }
        if self.risen_from_ns.is_none() {
            self.samples.push_back(ns);
        }
        if self.samples.len() > NOISE_SAMPLES {
            self.samples.pop_front();
        }
        event
    }
}

/// Returns the read cost without disturbance by other programs, in ns.
fn calm_ns(clock: &ClockReport) -> Option<f64> {
    let low = clock.read_ns? - clock.read_spread_ns.unwrap_or(0.0);
    Some(clock.undisturbed_ns.unwrap_or(low)).filter(|ns| ns.is_finite() && *ns > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(ns: f64) -> Vec<ClockReport> {
        vec![ClockReport {
            name: "system".into(),
            read_ns: Some(ns),
            undisturbed_ns: Some(ns),
            ..ClockReport::default()
        }]
    }

    fn events_of(costs: &mut ReadCosts, ns: f64) -> Vec<&'static str> {
        let mut events = Events(Vec::new(), 0.0);
        costs.update(&clock(ns), &mut events);
        events.0.iter().map(|event| event.event.name()).collect()
    }

    fn after_an_hour(noise: impl Fn(usize) -> f64) -> ReadCosts {
        let mut costs = ReadCosts::default();
        for nth in 0..NOISE_SAMPLES {
            assert!(events_of(&mut costs, noise(nth)).is_empty(), "{nth}");
        }
        costs
    }

    #[test]
    fn a_rise_and_its_end_are_one_event_each() {
        let mut costs = after_an_hour(|nth| 20.0 + (nth % 4) as f64);
        assert!(costs.is_suspicious(&clock(800.0)) && !costs.is_suspicious(&clock(26.0)));
        assert_eq!(events_of(&mut costs, 800.0), ["read_cost_rose"]);
        assert!(!costs.is_suspicious(&clock(800.0)), "it is known");
        assert!(events_of(&mut costs, 810.0).is_empty());
        assert_eq!(events_of(&mut costs, 21.0), ["read_cost_fell"]);
    }

    #[test]
    fn noise_is_no_rise() {
        // A host that is half as fast from time to time.
        let costs = after_an_hour(|nth| if nth % 30 == 7 { 42.0 } else { 20.0 });
        assert!(!costs.is_suspicious(&clock(50.0)), "within a quarter of the worst of the last hour");
        assert!(costs.is_suspicious(&clock(60.0)));
        let cheap = after_an_hour(|_| 1.0);
        assert!(!cheap.is_suspicious(&clock(5.0)), "a plan does not show 10 ns per row");
    }

    #[test]
    fn a_cost_that_stays_becomes_normal() {
        let mut costs = after_an_hour(|_| 20.0);
        let events: Vec<_> = (0..=NOISE_SAMPLES + 1).flat_map(|_| events_of(&mut costs, 800.0)).collect();
        assert_eq!(events, ["read_cost_rose"]);
        assert!(!costs.is_suspicious(&clock(800.0)));
    }
}
