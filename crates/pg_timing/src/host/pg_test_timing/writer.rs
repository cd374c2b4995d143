//! Measures and prints as pg_test_timing does: one clock after the other, and PostgreSQL 19's lines about the TSC.

use super::Unit;
use crate::host::measure::{Budget, ClassicLoop, Meter, log2_rows};
use crate::report::{ObservedDuration, TestedClock, TscSummary};
use std::sync::atomic::AtomicBool;
use timing_clock::{Hertz, NANOSECONDS, Scale, ticks_between};

/// Reads `clock`, which has `rate` ticks per second, until the budget is spent. If the clock goes back, returns
/// PostgreSQL's message. A clock that is read in microseconds must have nanoseconds as ticks.
pub fn time(clock: &Meter, rate: Hertz, unit: Unit, budget: &Budget) -> Result<TestedClock, String> {
    debug_assert!(unit == Unit::Nanoseconds || rate == NANOSECONDS);
    let mut classic = ClassicLoop::default();
    let mut last: Option<u64> = None;
    while budget.go_on() || last.is_none() {
        let block = clock.clock.classic_block(&mut classic, unit == Unit::Microseconds);
        let since_last_block = last.map_or(0, |last| ticks_between(last / unit.ns(), block.first / unit.ns())).min(0);
        let largest = block.backward.largest.max(since_last_block.unsigned_abs());
        if largest > 0 {
            let (amount, unit) = match unit {
                Unit::Nanoseconds => (rate.nanos(largest as f64).0 as u64, "ns"),
                Unit::Microseconds => (largest, "us"),
            };
            // A step of less than 1 ns is a step, too.
            return Err(format!("Detected clock going backwards in time.\nTime warp: -{} {unit}\n", amount.max(1)));
        }
        last = Some(block.last);
    }
    let mut observed: Vec<ObservedDuration> = Vec::new();
    let scale = Scale::from_rate(rate);
    for (ticks, count) in classic.differences.iter() {
        let ns = match unit {
            Unit::Nanoseconds => scale.map_or(ticks, |scale| scale.nanos(ticks)),
            Unit::Microseconds => ticks,
        };
        match observed.last_mut() {
            Some(seen) if seen.ns == ns => seen.count += count,
            _ => observed.push(ObservedDuration { ns, count }),
        }
    }
    Ok(TestedClock {
        name: clock.name.into(),
        loop_ns: rate.nanos(classic.ticks as f64).0 / classic.reads as f64,
        reads: observed.iter().map(|seen| seen.count).sum(),
        observed,
    })
}

/// PostgreSQL 19 lists only durations below this many ns, and the longest one.
const LISTED_NS: u64 = 10_000;

/// Returns PostgreSQL 19's format: nanoseconds, one row per power of two, then each duration up to the cutoff. The
/// clock's title is printed before it is measured.
pub fn nineteen(clock: &TestedClock, cutoff: f64) -> String {
    let head = |unit: &str| format!("{unit:>19}   {:>10} {:>10} {:>10}\n", "% of total", "running %", "count");
    let percent = |n: u64| n as f64 * 100.0 / clock.reads.max(1) as f64;
    let row = |value: u64, running: u64, count: u64| {
        format!("{value:>19}   {:>10.4} {:>10.4} {count:>10}\n", percent(count), percent(running))
    };
    let mut out = format!("Average loop time including overhead: {:.2} ns\n", clock.loop_ns);
    out += &format!("Histogram of timing durations:\n{}", head("<= ns"));
    let mut running = 0;
    for (nth, count) in rows(clock).into_iter().enumerate() {
        running += count;
        out += &row((1u64 << nth) - 1, running, count);
    }
    out += &format!("\nObserved timing durations up to {cutoff:.4}%:\n{}", head("ns"));
    running = 0;
    let mut last = None;
    for seen in clock.observed.iter().take_while(|seen| seen.ns < LISTED_NS) {
        running += seen.count;
        out += &row(seen.ns, running, seen.count);
        last = Some(seen);
        // With a cutoff that is not a number, all are listed.
        if running as f64 * 100.0 >= cutoff * clock.reads as f64 {
            break;
        }
    }
    if let Some(longest) = clock.observed.last().filter(|longest| Some(*longest) != last) {
        out += &format!("...\n{}", row(longest.ns, clock.reads, longest.count));
    }
    out
}

/// Returns the format of PostgreSQL 15 to 18. The observed differences are microseconds.
pub fn classic(clock: &TestedClock) -> String {
    let row = |(nth, count): (usize, u64)| {
        let percent = count as f64 * 100.0 / clock.reads.max(1) as f64;
        format!("{:>6}   {percent:>10.5} {count:>10}\n", 1u64 << nth)
    };
    let head = format!("Per loop time including overhead: {:.2} ns\nHistogram of timing durations:\n", clock.loop_ns);
    let titles = format!("{:>6}   {:>10} {:>10}\n", "< us", "% of total", "count");
    head + &titles + &rows(clock).into_iter().enumerate().map(row).collect::<String>()
}

/// Returns counts by power of two.
fn rows(clock: &TestedClock) -> Vec<u64> {
    log2_rows(clock.observed.iter().map(|seen| (seen.ns, seen.count)))
}

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
        let (will, other) = if self.used_by_default { ("will", "system") } else { ("will not", "tsc") };
        let end = self.warning().unwrap_or_else(|| match in_use {
            0 => "\nTSC clock source is not usable. Likely unable to determine TSC frequency. \
                 Are you running in an unsupported virtualized environment?\n"
                .into(),
            _ => format!(
                "\nTSC clock source {will} be used by default, unless timing_clock_source is set to '{other}'.\n"
            ),
        });
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
    /// in their order
    pub clocks: Vec<Meter<'static>>,
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
    use crate::host::facts::Host;
    use crate::host::measure::clock;
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
        let clocks = ["rdtscp", "rdtsc"].into_iter().map(|name| clock(name, permission)).collect::<Option<_>>()?;
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
        summary.source.truncate(summary.source.trim_end_matches(", calibration").len());
    }
    (counters, summary)
}

/// Returns no clocks, because PostgreSQL 19 has none on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn counters(_stop: &AtomicBool) -> (Option<Counters>, TscSummary) {
    (None, TscSummary { source: "not x86".into(), ..TscSummary::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use timing_clock::Nanos;
    use timing_clock::sim::{Character, SimClock, World};

    fn timed(character: Character, unit: Unit) -> Result<TestedClock, String> {
        let world = World::new(5);
        let stop = AtomicBool::new(false);
        let meter = Meter::new("sim", SimClock::new(&world, character), 1.0, false);
        time(&meter, NANOSECONDS, unit, &Budget::new(Nanos::from_millis(5.0), &stop))
    }

    #[test]
    fn a_clock_without_faults_has_its_cost() {
        let timing = timed(Character::default(), Unit::Nanoseconds).unwrap();
        assert!((timing.loop_ns - 25.0).abs() < 0.5, "{}", timing.loop_ns);
        assert!(timing.observed.iter().all(|seen| (19..=31).contains(&seen.ns)), "{:?}", timing.observed);
    }

    /// PostgreSQL's documentation shows 72% in this row at 722.92 ns per loop.
    #[test]
    fn in_microseconds_the_second_row_is_the_loop_time_and_no_duration() {
        let character = Character { cost_ns: 722.92, jitter_ns: 0, ..Character::default() };
        let timing = timed(character, Unit::Microseconds).unwrap();
        let (none, one) = (timing.observed[0].count as f64, timing.observed[1].count as f64);
        assert_eq!(timing.observed.len(), 2, "{:?}", timing.observed);
        assert!((one / (none + one) - 0.7229).abs() < 0.001, "{:?}", timing.observed);
    }

    #[test]
    fn a_backward_step_ends_the_test_and_has_the_versions_unit() {
        let character = Character { origin: 1_000_000_000, back: vec![(500, 34_612_000)], ..Character::default() };
        let text = timed(character.clone(), Unit::Microseconds).unwrap_err();
        assert!(text.starts_with("Detected clock going backwards in time.\nTime warp: -3461"), "{text}");
        assert!(text.ends_with("34611 us\n") || text.ends_with("34612 us\n"), "{text}");
        let text = timed(character, Unit::Nanoseconds).unwrap_err();
        assert!(text.contains("warp: -3461") && text.ends_with(" ns\n"), "{text}");
    }

    const SEEN: [(u64, u64); 6] = [(0, 1), (24, 70), (25, 28), (31, 10), (1024, 1), (70_000, 1)];

    fn clock(seen: &[(u64, u64)]) -> TestedClock {
        let observed: Vec<_> = seen.iter().map(|&(ns, count)| ObservedDuration { ns, count }).collect();
        let reads = observed.iter().map(|seen| seen.count).sum();
        TestedClock { name: "system".into(), loop_ns: 25.016, reads, observed }
    }

    #[test]
    fn the_format_is_that_of_postgresql_19() {
        insta::assert_snapshot!(nineteen(&clock(&SEEN), 90.0));
    }

    #[test]
    fn durations_from_10_us_are_not_listed_except_the_longest() {
        let [first @ .., longest] = SEEN;
        let timing = clock(&[&first[..], &[(9_999, 1), (10_000, 1), longest]].concat());
        for cutoff in [100.0, f64::NAN] {
            let text = nineteen(&timing, cutoff);
            let end = "               9999       0.8850    98.2301          1\n...\n              \
                       70000       0.8850   100.0000          1\n";
            assert!(text.ends_with(end) && text.matches("...").count() == 1, "{text}");
        }
        assert!(nineteen(&timing, f64::NAN).contains("Observed timing durations up to NaN%:\n"));
    }

    #[test]
    fn a_cutoff_of_100_lists_all_durations_below_10_us() {
        let text = nineteen(&clock(&SEEN[..5]), 100.0);
        assert!(!text.contains("...") && text.ends_with(" 1024       0.9091   100.0000          1\n"), "{text}");
    }

    #[test]
    fn the_classic_format_is_that_of_postgresql_18() {
        insta::assert_snapshot!(classic(&clock(&[(0, 970), (1, 25), (2, 3), (70, 1), (4_000, 1)])));
    }

    #[cfg(target_arch = "x86_64")]
    mod tsc {
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
}
