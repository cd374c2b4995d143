//! The loop: one sample per interval.

use super::Monitor;
use crate::host::watch::Machine;
use crate::report::{MonitorEvent, MonitorReport};

/// When samples are taken.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub interval_s: f64,
    /// the number of samples; `None` means: until the monitor is stopped
    pub samples: Option<u64>,
}

/// Takes samples until the schedule ends or `stopped` returns true. `publish` receives the state and the new events.
pub fn run<M: Machine>(
    monitor: &mut Monitor<M>,
    schedule: Schedule,
    stopped: impl Fn() -> bool,
    mut publish: impl FnMut(&MonitorReport, &[MonitorEvent]),
) {
    let mut due_s = monitor.machine().monotonic_s();
    let mut late_s = 0.0;
    while !stopped() && schedule.samples.is_none_or(|samples| monitor.report().samples < samples) {
        let events = monitor.sample(late_s);
        let sampled_s = monitor.machine().monotonic_s();
        publish(monitor.report(), &events);
        let now_s = monitor.machine().monotonic_s();
        // Samples that are missed are not taken later.
        due_s += schedule.interval_s * ((now_s - due_s) / schedule.interval_s).floor().max(0.0) + schedule.interval_s;
        if schedule.samples.is_none_or(|samples| monitor.report().samples < samples) {
            let stopped_s = monitor.machine().sleep(due_s - now_s);
            // A stop that ends before the next sample is due does not delay that sample.
            // The same applies to a stop while the outputs were written.
            late_s = stopped_s.max(now_s - sampled_s).max(monitor.machine().monotonic_s() - due_s);
        }
    }
    let events = monitor.stop();
    publish(monitor.report(), &events);
}
