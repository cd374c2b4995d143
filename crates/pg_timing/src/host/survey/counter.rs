//! The counter: its rate, the claims of other sources, whether it can be used, and whether the clocks of the CPUs agree.

use super::*;
use crate::host::check;
use crate::statistics::round_up;
use timing_clock::{
    Claim, ClaimSource, Clock, Counter, NANOSECONDS, REFERENCE_NAME, Reference, System, counter, cpu_claims, distrust,
    firmware_claim, measure_rate, postgres19,
};

/// Returns the report about the counter.
pub fn judge(
    host: &Host,
    report: &Report,
    permission: Result<(), Refused>,
    rate: &Result<Rate, String>,
    log: &KernelLog,
) -> TscReport {
    let kernel = report.clocksource.names();
    let mut tsc = TscReport { permitted: Some(permission.is_ok()), ..TscReport::unavailable("") };
    if let Some("aarch64") = report.host.architecture.known().map(String::as_str) {
        tsc.counter = "cntvct".into();
    }
    match rate {
        Ok(rate) => {
            let shown = to_uncertainty(rate.rate.khz(), rate.uncertainty.0);
            let rounded = (shown - rate.rate.khz()).abs() / shown * 1e6;
            tsc.frequency_khz = Fact::Known(shown);
            tsc.uncertainty_ppm = Some(round_up(rate.uncertainty.0 + rounded));
            tsc.source = Some("measured".into());
            tsc.reference = Some(REFERENCE_NAME.into());
        }
        Err(why) => tsc.frequency_khz = Fact::unavailable(why),
    }
    tsc.independent = kernel.as_ref().map(|kernel| !kernel.uses_counter());
    tsc.accepted_by_kernel = kernel.as_ref().map(|kernel| kernel.accepts_counter());
    let mut claims = Vec::new();
    if let Fact::Known(features) = host.features() {
        let reasons = distrust(&features, permission, kernel.as_ref());
        tsc.usable = Some(reasons.is_empty() && rate.is_ok());
        tsc.distrust = reasons.iter().map(ToString::to_string).collect();
        // In a captured tree an unmeasured rate is not a reason for distrust.
        if let (Err(why), true, true) = (rate, host.is_live(), reasons.is_empty()) {
            tsc.distrust.push(format!("the counter's rate is unknown: {why}"));
        }
        tsc.invariant = Some(features.constant_rate());
        let postgres = postgres19(&features, kernel.as_ref());
        tsc.used_by_default = Some(postgres.auto && permission.is_ok());
        tsc.postgres19_source = Some(postgres.source);
        tsc.postgres19_frequency_khz = postgres.frequency.map(|claim| claim.rate.khz());
        claims = cpu_claims(&features);
    }
    // Without the kernel's list of clock sources, only its log shows that it rejected the counter.
    if let (None, Some(_), Some(demotion)) = (&kernel, log.of(host), report.demotion()) {
        tsc.usable = Some(false);
        tsc.distrust.push(format!("the kernel marked it unstable{}", demotion.how()));
    }
    let measured = rate.as_ref().ok().map(|rate| rate.rate);
    claims.extend(other_claims(host, report, log, measured));
    let report = |claim: Claim| ClaimReport {
        source: claim.source.to_string(),
        frequency_khz: claim.rate.khz(),
        rounding_ppm: round_up(claim.rounding.0 / claim.rate.0 * 1e6),
        disagreement_ppm: measured.map(|measured| (claim.rate.ppm_from(measured).0 * 100.0).round() / 100.0),
    };
    tsc.claims = claims.into_iter().map(report).collect();
    tsc
}

/// Rounds a rate to its uncertainty: 2299998.0263 +- 0.01 ppm (0.023 kHz) becomes 2299998.03.
fn to_uncertainty(khz: f64, ppm: f64) -> f64 {
    let unit = 10f64.powf((khz * ppm / 1e6).log10().floor().clamp(-6.0, 9.0));
    // The text of a number has no rounding errors.
    let decimals = (-unit.log10()).max(0.0) as usize;
    format!("{:.decimals$}", (khz / unit).round() * unit).parse().unwrap_or(khz)
}

/// If bogomips differ by more, the kernel's delay loop does not use the counter.
const DELAY_LOOP_PPM: f64 = 50_000.0;

/// Returns the claims of firmware, kernel and procfs.
fn other_claims(host: &Host, report: &Report, log: &KernelLog, measured: Option<Hertz>) -> Vec<Claim> {
    let mut claims: Vec<Claim> = host.is_live().then(firmware_claim).flatten().into_iter().collect();
    // The log's tsc lines and the delay loop describe the TSC, and no other counter.
    if report.host.architecture.known().is_some_and(|name| name == "x86_64") {
        claims.extend(log.of(host).into_iter().flat_map(kernel_claims));
        // If the kernel's delay loop does not use the counter, bogomips do not describe it.
        let describes = |claim: &Claim| measured.is_none_or(|rate| claim.rate.ppm_from(rate).0.abs() < DELAY_LOOP_PPM);
        let bogomips = host.read("/proc/cpuinfo").known().and_then(|text| bogomips_claim(text));
        claims.extend(bogomips.filter(describes));
    }
    claims
}

/// Returns the kernel's claims. If the CPU's rate differs from the counter's, the kernel logs both, the CPU's first. The refined
/// rate replaces the kernel's first calibration.
fn kernel_claims(log: &KernelClockLog) -> Vec<Claim> {
    // The kernel prints MHz with three decimals.
    let rounding = Hertz(500.0);
    let claim = |source, kind| Some(Claim { source, rate: Hertz(log.mhz(&[kind])? * 1e6), rounding });
    let detected = || [Kind::TscRate, Kind::CpuRate].iter().find_map(|&kind| claim(ClaimSource::KernelDetected, kind));
    let used = claim(ClaimSource::KernelRefined, Kind::RefinedRate).or_else(detected);
    used.into_iter().chain(claim(ClaimSource::KernelRecalibrated, Kind::RecalibratedRate)).collect()
}

/// The shortest time limit for one clock of a pair. Idle CPUs need 1 to 2 ms.
const MIN_PER_PAIR: Nanos = Nanos::from_millis(20.0);
/// The longest time limit for one clock of a pair. Within this time the kernel has run both threads at once.
const MAX_PER_PAIR: Nanos = Nanos::from_millis(250.0);
/// The usual time for both clocks of a pair.
const USUAL_PER_PAIR: Nanos = Nanos::from_millis(6.0);

/// The time that two busy CPUs need.
const MIN_TOTAL: Nanos = Nanos::from_millis(600.0);

/// Returns the part of `limit` for comparing `cpus` CPUs. It grows with their number, up to 40% of the limit.
pub fn time_share(cpus: usize, limit: Nanos) -> Nanos {
    let min = (limit.0 * 0.15).min(MIN_TOTAL.0);
    Nanos((cpus as f64 * USUAL_PER_PAIR.0).clamp(min, limit.0 * 0.4))
}

/// Measures bounds of the skew between the first CPU and each other CPU, for the counter and for PostgreSQL's clock.
pub fn between_cpus(cpus: Cpus, permission: Result<(), Refused>, rate: &Result<Rate, String>, budget: &Budget) -> Cpus {
    let (first, mut others) = match cpus.allowed.known().map(Vec::as_slice) {
        Some([first, rest @ .., last]) => (*first, [rest, &[*last]].concat()),
        allowed => {
            let why = allowed
                .map_or("the CPUs that this process may use are unknown", |_| "this process may use only one CPU");
            return Cpus { skew_unavailable: Some(why.into()), ..cpus };
        }
    };
    // The order is spread over the machine, so that every socket is compared even if time runs out.
    others.sort_by_key(|cpu| (*cpu as u32).wrapping_mul(0x9E37_79B1));
    let counter = Counter::new().ok().zip(rate.as_ref().ok());
    let counter = counter.map(|(counter, rate)| comparison(COUNTER, counter, rate.rate, budget));
    let system = permission.ok().map(|()| comparison(SYSTEM, System::default(), NANOSECONDS, budget));
    let comparisons: Vec<Comparison> = counter.into_iter().chain(system).collect();
    let (mut skew, mut failure) = (Vec::new(), None);
    for (nth, &other) in others.iter().enumerate() {
        let share = budget.left().0 / (2 * (others.len() - nth)) as f64;
        let limit = Nanos(share.clamp(MIN_PER_PAIR.0, MAX_PER_PAIR.0));
        if !budget.go_on() {
            failure = Some(if budget.interrupted() { "interrupted" } else { "the time limit was reached" }.into());
            break;
        }
        for compare in &comparisons {
            match compare(first, other, limit) {
                Ok(bounds) => skew.push(bounds),
                Err(why) => failure = Some(why),
            }
        }
    }
    if skew.is_empty() && failure.is_none() {
        failure = Some("this process cannot read a clock that can be compared".into());
    }
    Cpus { skew, skew_unavailable: failure, ..cpus }
}

/// Returns the bounds of the skew between two CPUs, or why there are none.
type Comparison<'a> = Box<dyn Fn(usize, usize, Nanos) -> Result<Skew, String> + 'a>;

/// Returns the comparison of two CPUs by a clock.
fn comparison<'a>(name: &'a str, clock: impl Clock + Sync + 'a, rate: Hertz, budget: &'a Budget) -> Comparison<'a> {
    // A reading can be late by one step, so without the step there is no bound.
    let step = measure_step(&clock, budget, MIN_PER_PAIR).granularity.step();
    let ns = move |ticks: i64| (rate.nanos(ticks as f64).0 * 10.0).round() / 10.0;
    Box::new(move |a, b, limit| {
        let step = step.ok_or_else(|| format!("{name}: the clock did not move"))?.ceil() as i64;
        let bounds = skew_between(&clock, step, (a, b), budget, limit).map_err(|error| match error {
            SkewError::Cpu(cpu, error) => format!("{name}: CPU {cpu}: {}", reason(&error)),
            SkewError::NoAnswer => format!("{name}: CPUs {a} and {b} did not answer each other in time"),
            SkewError::NoThread(error) => format!("no second thread can be created: {}", reason(&error)),
        })?;
        let (low_ns, high_ns) = (ns(bounds.low), ns(bounds.high));
        Ok(Skew { clock: name.into(), a, b, low_ns, high_ns, moving: bounds.moving, passes: bounds.passes })
    })
}

/// The skew is shown in ns, so a coarse rate is enough.
const RATE_ERROR: Ppm = Ppm(10.0);
/// The longest time for measuring the rate.
const RATE_TIME: Nanos = Nanos::from_millis(20.0);

/// Returns the known faults: from the kernel's log, and for the CPUs' counter, proven differences between CPUs.
pub fn known_faults(host: &Host, name: &str, budget: &Budget) -> Vec<String> {
    let is_demoted = KernelLog::own(host).entries.known().is_some_and(|entries| entries.demoted(name));
    let demotion = is_demoted.then(|| format!("the kernel log says that {name} was marked unstable"));
    let differences = if is_counter(name) { cpu_differences(host, budget) } else { Vec::new() };
    demotion.into_iter().chain(differences).collect()
}

/// Returns the proven differences between the CPUs' counters.
fn cpu_differences(host: &Host, budget: &Budget) -> Vec<String> {
    let rate_of =
        |counter| measure_rate(counter, Reference::default(), RATE_ERROR, RATE_TIME).map_err(|e| e.to_string());
    let rate = Counter::new().map_err(|e| e.to_string()).and_then(rate_of);
    let cpus = Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), ..Cpus::default() };
    let cpus = between_cpus(cpus, counter::permitted(), &rate, budget);
    cpus.skew.iter().filter(|skew| skew.clock == COUNTER).filter_map(check::differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_no_digit_beyond_its_uncertainty() {
        assert_eq!(to_uncertainty(2_299_998.026_3, 0.012), 2_299_998.03);
        assert_eq!(to_uncertainty(2_299_998.026_3, 2.0), 2_299_998.0);
        assert_eq!(to_uncertainty(2_299_998.026_3, 300.0), 2_300_000.0);
    }

    use crate::host::kernel_log::parse;

    #[test]
    fn rates_are_read_from_the_kernel_log() {
        let claims_in = |log: &str| -> Vec<(ClaimSource, f64)> {
            kernel_claims(&parse(log)).iter().map(|claim| (claim.source, claim.rate.0)).collect()
        };
        let detected = claims_in("[    0.000053] tsc: Detected 2299.998 MHz processor");
        assert_eq!(detected, [(ClaimSource::KernelDetected, 2_299_998_000.0)]);
        let both = claims_in("tsc: Detected 2500.000 MHz processor\ntsc: Detected 2400.000 MHz TSC\n");
        assert_eq!(both, [(ClaimSource::KernelDetected, 2_400_000_000.0)]);
        let refined = claims_in("tsc: Refined TSC clocksource calibration: 2596.098 MHz");
        assert_eq!(refined, [(ClaimSource::KernelRefined, 2_596_098_000.0)]);
        let recalibrated = claims_in("tsc: TSC freq recalibrated by [HPET]:\t 2400.000 MHz");
        assert_eq!(recalibrated, [(ClaimSource::KernelRecalibrated, 2_400_000_000.0)]);
        for junk in ["tsc: Detected", "tsc: Detected x MHz processor", "tsc: Detected -3 MHz processor", ""] {
            assert_eq!(claims_in(junk), [], "{junk}");
        }
    }
}

#[cfg(test)]
mod cpu_skew_tests {
    use super::*;

    #[test]
    fn the_time_grows_with_the_cpus_up_to_a_maximum() {
        let four = Nanos::from_secs(4.0);
        assert_eq!([2, 256].map(|cpus| time_share(cpus, four).secs()), [0.6, 1.536]);
        assert_eq!(time_share(10_000, four).secs(), 1.6);
    }
}
