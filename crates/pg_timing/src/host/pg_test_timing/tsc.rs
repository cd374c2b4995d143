//! PostgreSQL 19's use of the TSC: two clocks, and the lines about its rate.

use super::timing::{Timing, Warp};
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// The facts in the last lines of the output.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TscSummary {
    /// PostgreSQL 19's sources of the rate
    pub source: String,
    /// the rate that PostgreSQL 19 would use, or the measured rate if it would calibrate
    pub in_use_khz: Option<u64>,
    pub calibrated_khz: Option<u64>,
    pub usable: bool,
    pub used_by_default: bool,
}

/// If the rates differ by more percent, PostgreSQL's pg_test_timing warns and exits with status 1.
const WARN_PERCENT: f64 = 10.0;

impl TscSummary {
    /// Returns PostgreSQL 19's lines.
    pub fn text(&self) -> String {
        if !cfg!(target_arch = "x86_64") {
            return String::new();
        }
        let Some(in_use) = self.in_use_khz.filter(|_| self.usable) else {
            return "\nTSC clock source is not usable. Likely unable to determine TSC frequency. \
                    Are you running in an unsupported virtualized environment?\n"
                .into();
        };
        let calibration = match self.calibrated_khz {
            Some(khz) => format!("TSC frequency from calibration: {khz} kHz"),
            None => "TSC calibration did not converge".into(),
        };
        let default = match self.used_by_default {
            true => "TSC clock source will be used by default, unless timing_clock_source is set to 'system'.",
            false => "TSC clock source will not be used by default, unless timing_clock_source is set to 'tsc'.",
        };
        format!(
            "\nTSC frequency source: {}\nTSC frequency in use: {in_use} kHz\n{calibration}\n\n{default}\n",
            self.source
        )
    }

    /// Returns PostgreSQL 19's warning, if the rate in use is too far from the calibrated one.
    pub fn warning(&self) -> Option<String> {
        let (in_use, calibrated) = self.in_use_khz.zip(self.calibrated_khz)?;
        let percent = (calibrated as f64 - in_use as f64).abs() / in_use as f64 * 100.0;
        (percent > WARN_PERCENT).then(|| {
            format!(
                "WARNING: Calibrated TSC frequency differs by {percent:.1}% from the TSC frequency in use\n\
                 HINT: Consider setting timing_clock_source to 'system'.\n"
            )
        })
    }
}

/// Measures RDTSCP and RDTSC, each for `limit`. The result is empty if PostgreSQL 19 would not use them.
#[cfg(target_arch = "x86_64")]
pub fn time_counters(limit: Nanos, stop: &AtomicBool) -> (Vec<Result<Timing, Warp>>, TscSummary) {
    use super::timing::{RDTSC, RDTSCP, time};
    use crate::host::facts::Host;
    use crate::host::measure::{Budget, clock};
    use timing_clock::counter::Rdtsc;
    use timing_clock::{Features, RateMeter, Reference, postgres19};
    let features = Features::of_this_cpu();
    let postgres = postgres19(&features, Host::live().clocksource().verdict().as_ref());
    let mut summary = TscSummary {
        source: postgres.source,
        used_by_default: postgres.auto,
        usable: postgres.usable,
        ..TscSummary::default()
    };
    let permission = timing_clock::counter::permitted();
    let [Some(rdtscp), Some(rdtsc)] = ["rdtscp", "rdtsc"].map(|name| clock(name, permission)) else {
        summary.usable = false;
        return (Vec::new(), summary);
    };
    let counter = Rdtsc::new().ok().filter(|_| postgres.usable);
    let Some(Ok(meter)) = counter.map(|counter| RateMeter::start(counter, Reference::default())) else {
        summary.usable = false;
        return (Vec::new(), summary);
    };
    // 20 ms give an error of 2 ppm, which is enough for the printed figures.
    let budget = Budget::new(Nanos::from_millis(20.0), stop);
    while budget.go_on() {
        std::hint::spin_loop();
    }
    let Ok(rate) = meter.rate().map(|rate| rate.rate) else {
        summary.usable = false;
        return (Vec::new(), summary);
    };
    let mut timings = vec![time(RDTSCP, &*rdtscp, rate, &Budget::new(limit, stop))];
    if timings[0].is_ok() {
        timings.push(time(RDTSC, &*rdtsc, rate, &Budget::new(limit, stop)));
    }
    let measured = meter.rate().map_or(rate, |rate| rate.rate);
    summary.calibrated_khz = Some(measured.khz().round() as u64);
    let claimed = postgres.frequency.map(|claim| claim.rate.khz().round() as u64);
    summary.in_use_khz = claimed.or(summary.calibrated_khz);
    (timings, summary)
}

/// Returns no clocks, because PostgreSQL 19 has none on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn time_counters(_limit: Nanos, _stop: &AtomicBool) -> (Vec<Result<Timing, Warp>>, TscSummary) {
    (Vec::new(), TscSummary { source: "not x86".into(), ..TscSummary::default() })
}
