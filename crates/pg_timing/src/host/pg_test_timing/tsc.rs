//! PostgreSQL 19's use of the TSC: two clocks, and the lines about its rate.

use crate::host::measure::ClockMeter;
use crate::report::TscSummary;
use std::sync::atomic::AtomicBool;
use timing_clock::Hertz;

/// The end of the list of sources, if PostgreSQL calibrates.
#[cfg(target_arch = "x86_64")]
const CALIBRATION: &str = ", calibration";

/// If the rates differ by more percent, PostgreSQL's pg_test_timing warns and exits with status 1.
const WARN_PERCENT: f64 = 10.0;

impl TscSummary {
    /// Returns PostgreSQL 19's lines. If they end with its warning, nothing follows, because PostgreSQL's program ends
    /// there.
    pub fn text(&self) -> String {
        if !cfg!(target_arch = "x86_64") {
            return String::new();
        }
        // PostgreSQL calibrates only a rate that it uses.
        let in_use = self.in_use_khz.filter(|_| self.usable).unwrap_or(0);
        let calibration = match self.calibrated_khz.filter(|_| in_use > 0) {
            Some(khz) => format!("TSC frequency from calibration: {khz} kHz"),
            None => "TSC calibration did not converge".into(),
        };
        let end = match (self.warning(), self.used_by_default) {
            (Some(warning), _) => warning,
            (None, _) if in_use == 0 => "\nTSC clock source is not usable. Likely unable to determine TSC frequency. \
                 Are you running in an unsupported virtualized environment?\n"
                .into(),
            (None, true) => {
                "\nTSC clock source will be used by default, unless timing_clock_source is set to 'system'.\n".into()
            }
            (None, false) => {
                "\nTSC clock source will not be used by default, unless timing_clock_source is set to 'tsc'.\n".into()
            }
        };
        format!("\nTSC frequency source: {}\nTSC frequency in use: {in_use} kHz\n{calibration}\n{end}", self.source)
    }

    /// Returns PostgreSQL 19's warning, if the rate in use is too far from the calibrated one.
    pub fn warning(&self) -> Option<String> {
        let (in_use, calibrated) = self.in_use_khz.zip(self.calibrated_khz).filter(|_| self.usable)?;
        let percent = (calibrated as f64 - in_use as f64).abs() / in_use as f64 * 100.0;
        (percent > WARN_PERCENT).then(|| {
            format!(
                "WARNING: Calibrated TSC frequency differs by {percent:.1}% from the TSC frequency in use\n\
                 HINT: Consider setting timing_clock_source to 'system'.\n"
            )
        })
    }

    /// Stores the calibrated rate after the measurement.
    pub fn calibrate(&mut self, counters: &Counters) {
        self.calibrated_khz = (counters.calibrated)().map(khz);
        self.in_use_khz = self.in_use_khz.or(self.calibrated_khz);
    }
}

/// The clocks that PostgreSQL 19 tests after the system clock.
pub struct Counters {
    /// in their order, each with its title
    pub clocks: Vec<(&'static str, Box<dyn ClockMeter>)>,
    /// converts their ticks
    pub rate: Hertz,
    /// returns the rate that is measured until now
    calibrated: Box<dyn Fn() -> Option<Hertz>>,
}

fn khz(rate: Hertz) -> u64 {
    rate.khz().round() as u64
}

/// Returns RDTSCP and RDTSC, or no clocks if PostgreSQL 19 would not use them. The rate in use is missing if PostgreSQL
/// would calibrate it.
#[cfg(target_arch = "x86_64")]
pub fn counters(stop: &AtomicBool) -> (Option<Counters>, TscSummary) {
    use super::timing::{RDTSC, RDTSCP};
    use crate::host::facts::Host;
    use crate::host::measure::{Budget, clock};
    use timing_clock::counter::Rdtsc;
    use timing_clock::{Features, Nanos, RateMeter, Reference, postgres19};
    let features = Features::of_this_cpu();
    let postgres = postgres19(&features, Host::live().clocksource().names().as_ref());
    let claimed = postgres.frequency.map(|claim| claim.rate);
    let mut summary = TscSummary {
        source: postgres.source,
        used_by_default: postgres.auto,
        usable: postgres.usable,
        in_use_khz: claimed.map(khz),
        calibrated_khz: None,
    };
    let counters = || {
        let permission = timing_clock::counter::permitted();
        let clocks = vec![(RDTSCP, clock("rdtscp", permission)?), (RDTSC, clock("rdtsc", permission)?)];
        let meter = RateMeter::start(Rdtsc::new().ok()?, Reference::default()).ok();
        // 20 ms give an error of 2 ppm, which is enough for the printed figures.
        let budget = Budget::new(Nanos::from_millis(20.0), stop);
        while budget.go_on() {
            std::hint::spin_loop();
        }
        let calibrated = Box::new(move || meter.as_ref()?.rate().ok().map(|rate| rate.rate));
        Some(Counters { rate: calibrated().or(claimed)?, clocks, calibrated })
    };
    let counters = if summary.usable { counters() } else { None };
    summary.usable = counters.is_some();
    if !summary.usable {
        summary.in_use_khz = None;
        // PostgreSQL names this source only if the calibration converges.
        summary.source.truncate(summary.source.trim_end_matches(CALIBRATION).len());
    }
    (counters, summary)
}

/// Returns no clocks, because PostgreSQL 19 has none on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn counters(_stop: &AtomicBool) -> (Option<Counters>, TscSummary) {
    (None, TscSummary { source: "not x86".into(), ..TscSummary::default() })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn guest() -> TscSummary {
        TscSummary {
            source: "x86, hypervisor, cpuid 0x40000010".into(),
            in_use_khz: Some(2_500_000),
            calibrated_khz: Some(2_500_100),
            usable: true,
            used_by_default: true,
        }
    }

    /// PostgreSQL 19 printed this on a CPU without RDTSCP.
    #[test]
    fn an_unusable_tsc_has_the_lines_for_debugging() {
        let source = "x86, no rdtscp".to_string();
        assert_eq!(
            TscSummary { source, ..TscSummary::default() }.text(),
            "\nTSC frequency source: x86, no rdtscp\nTSC frequency in use: 0 kHz\nTSC calibration did not converge\n\n\
             TSC clock source is not usable. Likely unable to determine TSC frequency. \
             Are you running in an unsupported virtualized environment?\n"
        );
    }

    #[test]
    fn a_usable_tsc_says_whether_it_is_the_default() {
        assert_eq!(
            guest().text(),
            "\nTSC frequency source: x86, hypervisor, cpuid 0x40000010\nTSC frequency in use: 2500000 kHz\n\
             TSC frequency from calibration: 2500100 kHz\n\n\
             TSC clock source will be used by default, unless timing_clock_source is set to 'system'.\n"
        );
        let text = TscSummary { used_by_default: false, calibrated_khz: None, ..guest() }.text();
        let end = "TSC calibration did not converge\n\nTSC clock source will not be used by default, unless \
                   timing_clock_source is set to 'tsc'.\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_rate_that_is_10_percent_off_ends_the_output_with_a_warning() {
        let at = |calibrated| TscSummary { calibrated_khz: Some(calibrated), ..guest() };
        assert_eq!((at(2_750_000).warning(), at(2_250_000).warning()), (None, None), "10.0% is not more");
        let text = at(2_750_100).text();
        let end = "TSC frequency from calibration: 2750100 kHz\n\
                   WARNING: Calibrated TSC frequency differs by 10.0% from the TSC frequency in use\n\
                   HINT: Consider setting timing_clock_source to 'system'.\n";
        assert!(text.ends_with(end), "{text}");
    }
}
