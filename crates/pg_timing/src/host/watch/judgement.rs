//! Whether PostgreSQL's fast clock can use the counter. A judgement takes milliseconds on a host with many CPUs, so it is
//! repeated only if the facts or the counter's rate changed.

use super::Machine;
use crate::report::{Report, TscReport};
use timing_clock::Rate;

/// A smaller change of the rate changes no result.
const NOTICEABLE_PPM: f64 = 0.5;

/// The last judgement of the counter.
pub struct CounterJudgement {
    tsc: TscReport,
    /// the rate with which the counter was judged
    rate: Option<Rate>,
    /// whether the facts changed since the counter was judged
    facts_changed: bool,
}

impl CounterJudgement {
    pub fn new() -> CounterJudgement {
        CounterJudgement { tsc: TscReport::unavailable("not measured yet"), rate: None, facts_changed: true }
    }

    /// Call it after the facts were read again.
    pub fn facts_changed(&mut self) {
        self.facts_changed = true;
    }

    /// Returns the judgement for these facts and this rate.
    pub fn of(&mut self, machine: &impl Machine, facts: &Report, rate: Option<Rate>) -> TscReport {
        if self.facts_changed || is_new(rate, self.rate) {
            let measured: Result<Rate, String> = rate.ok_or_else(|| "not measured yet".into());
            self.tsc = machine.judge_counter(facts, &measured);
            (self.facts_changed, self.rate) = (false, rate);
        }
        self.tsc.clone()
    }
}

/// Returns whether the rate differs from that of the last judgement, or is much more precise.
fn is_new(now: Option<Rate>, judged: Option<Rate>) -> bool {
    match (now, judged) {
        (Some(now), Some(judged)) => {
            now.uncertainty.0 < judged.uncertainty.0 / 2.0
                || now.rate.ppm_from(judged.rate).0.abs() > judged.uncertainty.0 + NOTICEABLE_PPM
        }
        (now, judged) => now.is_some() != judged.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timing_clock::{Hertz, Nanos, Ppm};

    #[test]
    fn a_rate_is_new_if_it_changed_or_is_more_precise() {
        let rate = |hz, ppm| Some(Rate::new(Hertz(hz), Ppm(ppm), Nanos(1e9)));
        let judged = rate(1e9, 1.0);
        assert!(is_new(judged, None) && is_new(None, judged) && !is_new(None, None));
        // 1 ppm of 1 GHz is 1000 Hz.
        assert!(!is_new(rate(1e9 + 1400.0, 1.0), judged));
        assert!(is_new(rate(1e9 + 1600.0, 1.0), judged));
        assert!(!is_new(rate(1e9, 0.6), judged));
        assert!(is_new(rate(1e9, 0.4), judged));
    }
}
