//! What a run measured, apart from what it concluded: kept with a captured tree.

use super::{Activity, ClockReport, Drift, Report, Skew};
use serde::{Deserialize, Serialize};

/// The figures of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    pub seconds: f64,
    pub clocks: Vec<ClockReport>,
    pub frequency_khz: Option<f64>,
    pub uncertainty_ppm: Option<f64>,
    pub permitted: Option<bool>,
    pub skew: Vec<Skew>,
    pub activity: Option<Activity>,
    pub drift: Vec<Drift>,
}

impl Measured {
    /// The figures in a report.
    pub fn of(report: &Report) -> Measured {
        Measured {
            seconds: report.measured_seconds,
            clocks: report.clocks.clone(),
            frequency_khz: report.tsc.frequency_khz.known().copied(),
            uncertainty_ppm: report.tsc.uncertainty_ppm,
            permitted: report.tsc.permitted,
            skew: report.cpus.skew.clone(),
            activity: report.activity.known().copied(),
            drift: report.drift.clone(),
        }
    }
}
