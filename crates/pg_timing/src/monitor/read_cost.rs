//! Whether a read cost rose beyond its noise.
//!
//! The noise is measured: the costs of the last hour. A cost counts as risen if it exceeds each of them by a quarter, and their
//! median by half, in two readings of one interval. CPUs change their frequency and share their core with other programs, so a
//! cost can rise by a third for seconds on a healthy host.

use super::changes::Events;
use crate::human::duration;
use crate::report::{ClockReport, EventKind};
use std::collections::VecDeque;

/// The number of samples whose costs are the noise: one hour by default.
const NOISE_SAMPLES: usize = 240;
/// With fewer samples, the noise is unknown.
const MIN_SAMPLES: usize = 8;
/// A risen cost exceeds the median of the samples by this factor, and their maximum by `ABOVE_MAX`.
const ABOVE_MEDIAN: f64 = 1.5;
const ABOVE_MAX: f64 = 1.25;
/// A smaller rise adds less than 10 ns to a row, which no plan shows.
const MIN_RISE_NS: f64 = 5.0;

/// The noise of each clock's read cost.
#[derive(Default)]
pub struct ReadCosts {
    clocks: Vec<Cost>,
}

struct Cost {
    name: String,
    samples: VecDeque<f64>,
    /// the cost before it rose, while it is risen
    risen_from_ns: Option<f64>,
    /// samples since it rose
    risen_for: usize,
}

impl ReadCosts {
    /// Forgets all samples, because another clock source has another cost.
    pub fn forget(&mut self) {
        self.clocks.clear();
    }

    /// Returns whether a cost rose, so that a second reading must confirm it.
    pub fn is_suspicious(&self, clocks: &[ClockReport]) -> bool {
        clocks.iter().any(|clock| {
            let known = self.clocks.iter().find(|known| known.name == clock.name);
            known.zip(calm_ns(clock)).is_some_and(|(known, ns)| known.risen_from_ns.is_none() && known.exceeds(ns))
        })
    }

    /// Adds the costs of a sample, and the events.
    pub fn update(&mut self, clocks: &[ClockReport], events: &mut Events) {
        for clock in clocks {
            let Some(ns) = calm_ns(clock) else { continue };
            let known = match self.clocks.iter_mut().position(|known| known.name == clock.name) {
                Some(at) => &mut self.clocks[at],
                None => {
                    let name = clock.name.clone();
                    self.clocks.push(Cost { name, samples: VecDeque::new(), risen_from_ns: None, risen_for: 0 });
                    self.clocks.last_mut().expect("one was added")
                }
            };
            known.update(ns, events);
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

    fn update(&mut self, ns: f64, events: &mut Events) {
        let exceeds = self.exceeds(ns);
        match self.risen_from_ns {
            None if exceeds => {
                let before = self.median();
                let summary =
                    format!("one read of clock {} takes {} instead of {}", self.name, duration(ns), duration(before));
                self.add_event(EventKind::ReadCostRose, summary, ns, events);
                (self.risen_from_ns, self.risen_for) = (Some(before), 0);
            }
            // A cost that stays is the new normal.
            Some(_) if exceeds && self.risen_for < NOISE_SAMPLES => self.risen_for += 1,
            Some(before) => {
                if exceeds {
                    self.samples.clear();
                } else {
                    let summary = format!(
                        "one read of clock {} takes {}; before the rise it took {}",
                        self.name,
                        duration(ns),
                        duration(before)
                    );
                    self.add_event(EventKind::ReadCostFell, summary, ns, events);
                }
                self.risen_from_ns = None;
                self.push(ns);
            }
            None => self.push(ns),
        }
    }

    fn push(&mut self, ns: f64) {
        if self.samples.len() == NOISE_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(ns);
    }

    fn add_event(&self, kind: EventKind, summary: String, ns: f64, events: &mut Events) {
        let event = events.add(kind, summary);
        (event.subject, event.value) = (Some(self.name.clone()), Some(ns));
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
        let mut events = Events::at(0.0);
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
