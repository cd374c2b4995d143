//! Steps of the kernel's clocks against each other.

use super::clocks::NO_SLEW;
use super::{OffsetMeter, OffsetStep};
use crate::host::measure::{Step, Trend, trend_beyond};
use crate::host::survey::drift::drift;
use crate::report::Drift;

/// Smaller steps are not reported. EXPLAIN prints microseconds.
const VISIBLE_NS: f64 = 1_000.0;

fn trend(offset: &OffsetMeter) -> Option<(Trend, Option<Step>)> {
    let samples = offset.meter.samples(1.0);
    let trend = trend_beyond(offset.slew, &samples)?;
    let last = samples.last()?.at;
    let step = trend.steps.last().copied().filter(|step| step.at == last && step.by.abs() > VISIBLE_NS + step.error);
    Some((trend, step))
}

/// Returns the step between two samples that have no others before them. Their offset is constant, so two are enough.
fn first_step(offset: &OffsetMeter) -> Option<Step> {
    let samples = offset.meter.samples(1.0);
    let [before, now] = samples[..] else { return None };
    let step = Step { at: now.at, by: now.offset - before.offset, error: before.error + now.error };
    let slew = offset.slew * (now.at - before.at);
    Some(step).filter(|step| offset.slew <= NO_SLEW && step.by.abs() > VISIBLE_NS + step.error + slew)
}

/// Returns the steps between the last two samples.
pub fn steps(offsets: &[OffsetMeter]) -> Vec<OffsetStep> {
    let step = |offset: &OffsetMeter| {
        let step = trend(offset).map_or_else(|| first_step(offset), |trend| trend.1)?;
        Some(OffsetStep { clock: offset.clock, reference: offset.reference, by_ns: step.by, error_ns: step.error })
    };
    offsets.iter().filter_map(step).collect()
}

/// Returns the time for which the machine was suspended, if CLOCK_BOOTTIME shows it.
pub fn suspended_s(steps: &[OffsetStep]) -> Option<f64> {
    steps.iter().find(|step| step.clock == "boottime" && step.by_ns > 0.0).map(|step| step.by_ns / 1e9)
}

/// Returns the drift of each pair for the report. CLOCK_REALTIME is left out: an administrator may set it, and no interval is
/// wrong because of that.
pub fn drifts(offsets: &[OffsetMeter]) -> Vec<Drift> {
    let shown = offsets.iter().filter(|offset| offset.clock != "realtime");
    shown.filter_map(|offset| Some(drift(offset.clock, offset.reference, &trend(offset)?.0))).collect()
}
