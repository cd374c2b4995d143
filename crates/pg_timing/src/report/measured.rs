//! The measured figures of a run, without conclusions. A captured tree contains them.

use super::{Activity, ClockReport, Drift, Report, Skew};
use serde::{Deserialize, Serialize};

/// The measured figures of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    pub seconds: f64,
    pub clocks: Vec<ClockReport>,
    pub frequency_khz: Option<f64>,
    pub uncertainty_ppm: Option<f64>,
    pub permitted: Option<bool>,
    pub skew: Vec<Skew>,
    pub skew_unavailable: Option<String>,
    pub activity: Option<Activity>,
    pub drift: Vec<Drift>,
}

impl Measured {
    /// Returns the measured figures of a report.
    pub fn of(report: &Report) -> Measured {
        Measured {
            seconds: report.measured_seconds,
            clocks: report.clocks.clone(),
            frequency_khz: report.tsc.frequency_khz.known().copied(),
            uncertainty_ppm: report.tsc.uncertainty_ppm,
            permitted: report.tsc.permitted,
            skew: report.cpus.skew.clone(),
            skew_unavailable: report.cpus.skew_unavailable.clone(),
            activity: report.activity.known().copied(),
            drift: report.drift.clone(),
        }
    }

    /// Returns the figures, or an error if one of them is impossible. A file may contain anything.
    pub fn plausible(self) -> Result<Measured, String> {
        // A century in ns.
        const MAX_NS: f64 = 3.2e18;
        let spans = self.clocks.iter().flat_map(|clock| {
            let gaps = clock.gaps.map_or([0.0; 4], |g| [g.threshold_ns, g.total_ns, g.largest_ns, g.share]);
            let percentiles = clock.percentiles.map_or([0.0; 3], |p| [p.min_ns, p.p99_9_ns, p.max_ns]);
            let own = [clock.read_ns, clock.read_spread_ns, clock.loop_ns, clock.granularity_ns, clock.stood_still_ns];
            let own = own.into_iter().chain([clock.undisturbed_ns, clock.timed_call_ns]);
            own.flatten().chain([clock.largest_backward_ns]).chain(gaps).chain(percentiles)
        });
        if !spans.chain([self.seconds]).all(|ns| (0.0..=MAX_NS).contains(&ns)) {
            return Err("a clock has an impossible figure".into());
        }
        let rate = self.frequency_khz.is_none_or(|khz| (1.0..=1e9).contains(&khz));
        if !rate || !self.uncertainty_ppm.is_none_or(|ppm| (0.0..=1e6).contains(&ppm)) {
            return Err("the counter's rate is impossible".into());
        }
        if !self.skew.iter().all(|s| s.low_ns <= s.high_ns && s.low_ns.abs() <= MAX_NS && s.high_ns.abs() <= MAX_NS) {
            return Err("a skew has impossible bounds".into());
        }
        if !self.drift.iter().all(|d| d.rate_ppm.abs() <= 1e9 && (0.0..=1e9).contains(&d.uncertainty_ppm)) {
            return Err("a drift has impossible figures".into());
        }
        Ok(self)
    }
}
