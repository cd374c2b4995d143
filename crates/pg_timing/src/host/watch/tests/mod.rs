//! Samples of a synthetic machine. `monitor` tests the events.

use super::{Machine, Watch};
pub mod synthetic;

use synthetic::SyntheticMachine;
use timing_clock::Nanos;

impl<M: Machine> Watch<M> {
    /// Reads each clock for one block only, in each interval.
    pub fn read_briefly(&mut self) {
        (self.pace.limit, self.pace.allowed_s) = (Nanos(0.0), f64::INFINITY);
    }
}

#[test]
fn the_duration_of_drift_covers_all_pairs_and_no_pause() {
    let mut watch = Watch::new(SyntheticMachine::default(), 15.0);
    watch.read_briefly();
    // A read takes 1 ms, so that reading is the only part that takes time.
    watch.machine.hardware.cost_ns.set(1e6);
    let drift_s = |watch: &mut Watch<SyntheticMachine>| {
        let before_s = std::mem::take(&mut watch.requested_s);
        assert_eq!(before_s, 0.0);
        let sample = watch.sample();
        let drift = sample.collectors.iter().find(|collector| collector.name == "drift").unwrap();
        (drift.seconds, std::mem::take(&mut watch.requested_s))
    };
    let (_, paused_s) = drift_s(&mut watch);
    assert_eq!(paused_s, 2.0, "the first rate needs two pauses");
    let (all_s, paused_s) = drift_s(&mut watch);
    assert_eq!(paused_s, 0.0);
    watch.instruments.offsets.clear();
    let (counter_s, _) = drift_s(&mut watch);
    assert!(counter_s > 0.0 && all_s > 3.0 * counter_s, "{all_s} s for all pairs, {counter_s} s for the counter");
    watch.counter = Default::default();
    let (first_s, paused_s) = drift_s(&mut watch);
    assert_eq!(paused_s, 2.0);
    // Three comparisons instead of one, without the two seconds of pauses.
    assert!(first_s < 4.0 * counter_s, "{first_s} s without pauses, {counter_s} s for one comparison");
}
