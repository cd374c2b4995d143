//! Findings about the CPU's counter: access, constant rate, the rates that other sources state, and the kernel's trust in the TSC.

use super::*;
use timing_clock::ClaimSource;
use timing_clock::clocksource::is_tsc;

/// `tsc-demoted`: did the kernel demote a TSC that the CPU describes as invariant?
pub fn tsc_demoted(report: &Report) -> Judged {
    let demotion = report.demotion();
    match (report.tsc.invariant, report.tsc.accepted_by_kernel) {
        (_, Some(true)) => return ok("the kernel accepts the counter"),
        _ if demotion.is_some() => {}
        (Some(false), _) => return ok("there is no TSC with a constant rate"),
        (None, _) => return Err("the CPU's description of its TSC is unknown".into()),
        (_, None) => return Err("the available clock sources are unknown".into()),
        _ => {}
    }
    let logged = || Some(&report.kernel.known()?.switches.last()?.to).filter(|name| !is_tsc(name));
    let current = report.clocksource.current.known().or_else(logged).map_or("another one", String::as_str);
    let summary = match demotion.map(Demoted::how) {
        // `the kernel marked the TSC unstable 7823 s after boot on CPU 2, because it went back; the clock source is now hpet`
        Some(how) => format!("the kernel marked the TSC unstable{how}; the clock source is now {current}"),
        None => format!("the kernel does not trust the TSC; the clock source is {current}"),
    };
    // The hypervisor's clock corrects the counter. The kernel prefers it, and it costs nothing.
    let on_counter = report.clocksource.names().is_some_and(|kernel| kernel.uses_counter());
    let cheap = match report.system().and_then(ClockReport::cost_ns) {
        Some(ns) => ns <= GOOD_READ_NS,
        None => traits_of(current).is_none_or(|traits| !traits.is_slow()),
    };
    let severity = if on_counter && cheap { Severity::Ok } else { Severity::Warning };
    let reason = Fix::new("look for the reason in the kernel log").command("dmesg | pg_timing check --kernel-log -");
    Ok(with_severity(severity, summary)
        .evidence_lines(evidence(report, demotion))
        .why("a kernel that does not trust the TSC uses another clock source; most of them are slower hardware")
        .fixes(demotion.is_none().then_some(reason))
        .fix(restore(report, demotion)))
}

fn evidence(report: &Report, demotion: Option<&Demoted>) -> Vec<String> {
    // What only this finding says comes first: the screen shows the rest elsewhere.
    let without_effect = demotion.and_then(|demotion| without_effect(report, demotion));
    let doubt = demotion.and_then(|d| Some(format!("the kernel may be wrong: {}", d.doubt.as_ref()?)));
    let available = report.clocksource.available.known();
    let available = available.map(|names| format!("available clock sources, without tsc: {}", names.join(" ")));
    let reason = demotion.and_then(|d| Some(format!("kernel log: Marking TSC unstable due to {}", d.reason.as_ref()?)));
    [without_effect, doubt, available, reason].into_iter().flatten().collect()
}

const TRUSTED: &[&str] = &["clocksource=tsc", "clock=tsc"];

/// Returns whether the kernel demoted the TSC before `tsc=reliable` counted: `tsc-early` is the clock source of the first
/// seconds, and before Linux 5.5 the watchdog checks it all the same.
fn is_checked_early(report: &Report, demotion: &Demoted) -> bool {
    let is_old = report.host.kernel.known().is_none_or(|kernel| is_before(kernel, (5, 5)));
    let is_unwatched = report.host.parameters().iter().any(|word| UNWATCHED.contains(&word.as_str()));
    is_old && is_unwatched && demotion.clocksource == "tsc-early"
}

/// Returns whether a kernel, such as `Linux 4.19.0-27-amd64`, is older than a version.
fn is_before(kernel: &str, version: (u32, u32)) -> bool {
    let mut numbers = kernel.trim_start_matches("Linux ").split(|c: char| !c.is_ascii_digit()).map(str::parse);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < version)
}

/// Returns the boot parameters that should keep the TSC, and did not.
fn without_effect(report: &Report, demotion: &Demoted) -> Option<String> {
    let words = report.host.parameters().iter().map(String::as_str);
    let set: Vec<&str> = words.filter(|word| TRUSTED.contains(word) || UNWATCHED.contains(word)).collect();
    let why = if is_checked_early(report, demotion) { ": before Linux 5.5, tsc-early is always checked" } else { "" };
    (!set.is_empty()).then(|| format!("boot parameters without effect: {}{why}", set.join(" ")))
}

/// Returns how to get the TSC back. A restart helps only if the kernel demoted the TSC after boot.
fn restore(report: &Report, demotion: Option<&Demoted>) -> Fix {
    if report.host.parameters().iter().any(|word| word == "tsc=unstable") {
        return remove_parameter("tsc=unstable", "").risk("someone may have had a reason for it");
    }
    let reason = demotion.and_then(|demotion| demotion.reason.as_deref()).unwrap_or("");
    let at_boot = demotion.is_some_and(|demotion| demotion.at_boot);
    Fix::new(if reason.contains("halts in idle") {
        "no fix: this CPU's TSC stops when the CPU is idle"
    } else if reason.contains("running on Hyper-V") {
        // No fault of the TSC, and clouds have no setting for it. Only the lack of Hyper-V's page makes this host slow.
        "use a newer kernel or a newer host, which offers Hyper-V's page (hyperv_clocksource_tsc_page): it is cheap to read"
    } else if demotion.is_some_and(|demotion| is_checked_early(report, demotion)) {
        "install Linux 5.5 or later, in which tsc=reliable covers tsc-early; or let the hypervisor offer an invariant TSC"
    } else if at_boot && report.host.is_guest() {
        "enable the invariant TSC in the virtual machine's CPU settings, or use another host; a restart does not help"
    } else if at_boot {
        "restart once; if the kernel marks the TSC unstable again, update the firmware (BIOS)"
    } else {
        let restart = restart(report);
        let what = format!("{restart}: a running kernel does not use an unstable TSC again, a restarted one does");
        return Fix::new(what).risk(
            "stops everything that runs there; if the cause remains (pauses, suspends), the kernel marks the TSC unstable again",
        );
    })
}

/// The values of `tsc=` that switch the watchdog off.
const UNWATCHED: &[&str] = &["tsc=reliable", "tsc=nowatchdog"];

/// `tsc-unchecked`: does a boot parameter stop the kernel from checking the TSC?
pub fn tsc_unchecked(report: &Report) -> Judged {
    let parameters = report.host.boot_parameters.known().ok_or("the kernel's boot parameters are unknown")?;
    let Some(parameter) = parameters.iter().find(|word| UNWATCHED.contains(&word.as_str())) else {
        return ok("no boot parameter stops the kernel from checking the TSC");
    };
    if report.demotion().is_some() {
        return ok(format!("{parameter} is set, and the kernel checked and rejected the TSC all the same"));
    }
    let Some(skew) = alarm(report, finding_id::CPU_SKEW) else {
        return ok(format!("{parameter} stops the kernel from checking the TSC; pg_timing found no fault of the TSC"));
    };
    Ok(critical(format!("the CPUs' counters differ, and the kernel does not notice because of {parameter}"))
        .evidence(format!("boot parameter: {parameter}"))
        .evidence(skew.summary.clone())
        .why("without this parameter the kernel would find the skew, demote the TSC, and select a correct clock source")
        .fix(remove_parameter(parameter, "").risk("the kernel will then select a slower clock source")))
}

/// `tsc-auto-demoted`: would PostgreSQL 19 use a TSC that the kernel does not trust?
pub fn tsc_auto_demoted(report: &Report) -> Judged {
    if report.tsc.used_by_default == Some(false) || report.tsc.accepted_by_kernel == Some(true) {
        return ok("PostgreSQL 19's timing_clock_source = auto does not use a TSC that the kernel distrusts");
    }
    let both = report.tsc.used_by_default.and(report.tsc.accepted_by_kernel);
    both.ok_or("not determined whether PostgreSQL 19 and the kernel use the TSC")?;
    let doubt = report.demotion().and_then(|demotion| demotion.doubt.as_ref());
    let clean = |id: &str| report.findings.iter().any(|f| f.id == id && f.severity == Severity::Ok);
    if let Some(doubt) = doubt.filter(|_| clean(finding_id::CPU_SKEW) && clean(finding_id::TSC_RATE_MISMATCH)) {
        let summary = "PostgreSQL 19 would use the TSC that the kernel demoted; pg_timing found no fault of the TSC";
        let evidence = format!("the kernel may have demoted it by mistake: {doubt}");
        return Ok(with_severity(Severity::Ok, summary).evidence(evidence));
    }
    Ok(warning("PostgreSQL 19's timing_clock_source = auto would use the TSC, which the kernel does not trust")
        .evidence("the CPU has the register TSC_ADJUST: PostgreSQL 19 then uses the TSC, whatever the kernel decided")
        .why("PostgreSQL 19 does not compare the CPUs' counters: its times can jump or have a wrong rate, without a warning")
        .fix(system_clock_on_19().risk("a read of the clock then costs as much as the system clock")))
}

/// `tsc-firmware`: did the firmware change a CPU's counter?
pub fn tsc_firmware(report: &Report) -> Judged {
    let kernel = report.kernel_log()?;
    if !kernel.firmware_bug {
        return ok("the kernel log shows no change of a counter by the firmware");
    }
    Ok(warning("the firmware changed a CPU's counter, and the kernel corrected it")
        .why("the firmware may do that again later, for example in a management interrupt or a suspend; then time jumps on that CPU")
        .fix(Fix::new("update the firmware (BIOS)").risk("needs a restart")))
}

/// `tsc-denied`: may this process read the counter?
pub fn tsc_denied(report: &Report) -> Judged {
    match report.tsc.permitted.ok_or("not determined whether this process may read the counter")? {
        true => ok("this process may read the CPU's counter"),
        false => Ok(warning("this process may not read the CPU's counter (PR_SET_TSC)")
            .evidence("also denied: every clock that the vDSO reads; only system calls and COARSE clocks work")
            .why("in this sandbox, PostgreSQL is killed when it first reads the clock; for a server outside, these figures are wrong")
            .fix(Fix::new("run pg_timing outside of the sandbox that set this rule (a seccomp profile or a replay debugger)"))),
    }
}

/// `tsc-absent`: does the CPU have a counter with a constant rate? Never an alarm: if the system clock is slow without it,
/// `clock-slow` is the alarm.
pub fn tsc_absent(report: &Report) -> Judged {
    ok(match report.tsc.invariant.ok_or("the CPU's description of its counter is unknown")? {
        true => "the CPU has a counter with a constant rate",
        false => "the CPU or the hypervisor offers no TSC with a constant rate, so PostgreSQL 19 uses the system clock",
    })
}

/// Linux's CPU flags for a constant rate, and for a counter that runs in every power state; what may happen without them.
const CONSTANT: (&str, &str) = ("constant_tsc", "its rate may change with the CPU's frequency");
const NONSTOP: (&str, &str) = ("nonstop_tsc", "it may stop while the CPU is idle");
/// Linux sets this flag if the hypervisor guarantees a reliable TSC (VMware, Hyper-V).
const GUARANTEED: &str = "tsc_reliable";

/// `tsc-not-invariant`: does the kernel's clock run on a TSC whose rate may change, or that may stop?
pub fn tsc_not_invariant(report: &Report) -> Judged {
    let current = report.clocksource.current.known().ok_or("the clock source is unknown")?;
    if !is_tsc(current) {
        return ok(format!("the kernel's clock does not run on the bare TSC (clock source {current})"));
    }
    let flags = report.host.cpu_flags.known().ok_or("the CPU's description of its TSC is unknown")?;
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    let missing = [CONSTANT, NONSTOP].into_iter().filter(|(flag, _)| !has(GUARANTEED) && !has(flag));
    let missing = missing.map(|(flag, what)| (format!("/proc/cpuinfo has no flag {flag}"), what));
    let (evidence, what): (Vec<String>, Vec<&str>) = missing.unzip();
    if what.is_empty() {
        return ok("the CPU or its hypervisor guarantees that the TSC has a constant rate and never stops");
    }
    let what = what.join(", and ");
    Ok(warning(format!("the clock source is {current}, but the CPU does not guarantee an invariant TSC: {what}"))
        .evidence_lines(evidence)
        .why("if the TSC's rate changes or the TSC stops, all times on the host are wrong, until the kernel notices it")
        .fixes(other_than_tsc(report)))
}

/// 0.1%. No reader of a plan sees a smaller difference. The errors of quartz crystals (100 ppm), of a quick calibration
/// at boot (500 ppm) and of PostgreSQL 19's calibration (up to 920 ppm, measured) are smaller. For a calibration
/// printed by pg_test_timing the limit is ten times as large.
const VISIBLE_PPM: f64 = 1_000.0;
/// Above this difference, PostgreSQL 19's pg_test_timing warns.
const WRONG_PPM: f64 = 100_000.0;

/// A claimed rate, compared with the measured one.
struct Claimed {
    source: String,
    khz: f64,
    /// difference from the measured rate
    error_ppm: f64,
    /// smaller differences are not an alarm
    noise_ppm: f64,
    /// PostgreSQL 19 uses this rate
    in_use: bool,
}

/// `tsc-rate-mismatch`: would a server or the kernel use a wrong rate for the counter?
pub fn tsc_rate_mismatch(report: &Report) -> Judged {
    let &measured = report.tsc.frequency_khz.known().ok_or("the counter's rate was not measured")?;
    let claims = claims(&report.tsc, measured);
    let measured = report.tsc.calibrated_khz.unwrap_or(measured);
    let by_error = |a: &&Claimed, b: &&Claimed| {
        severity(a).cmp(&severity(b)).then(a.error_ppm.abs().total_cmp(&b.error_ppm.abs()))
    };
    let Some(worst) = claims.iter().rev().max_by(by_error) else {
        return ok("no other source states the counter's rate");
    };
    let severity = severity(worst);
    let evidence = claims.iter().map(|claim| {
        let error = match claim.in_use && claim.error_ppm.abs() > 10.0 * VISIBLE_PPM {
            true => format!("times {}", wrong_times(measured / claim.khz)),
            false => format!("{:+.1} ppm", claim.error_ppm),
        };
        format!("{}: {:.0} kHz, {error}", claim.source, claim.khz)
    });
    if severity == Severity::Ok {
        let summary = format!("the sources of the counter's rate agree within {:.0} ppm", worst.error_ppm.abs().ceil());
        return Ok(with_severity(severity, summary).evidence_lines(evidence));
    }
    let (summary, why, fix) = mismatch(worst, measured);
    Ok(with_severity(severity, summary).evidence_lines(evidence).why(why).fixes(fix))
}

/// Returns the rates that other sources claim.
fn claims(tsc: &TscReport, measured: f64) -> Vec<Claimed> {
    let claimed = |source: &str, khz: f64, error_khz: f64, noise_ppm: f64, in_use: bool| Claimed {
        source: source.into(),
        khz,
        error_ppm: error_khz / measured * 1e6,
        noise_ppm,
        in_use,
    };
    // In the output of pg_test_timing the rate in use is the claim, and the calibration is the measured rate. The sign of the
    // error is PostgreSQL's own, which is also that of the error of the times.
    let name = "PostgreSQL 19's frequency in use";
    let in_use = tsc.calibrated_khz.map(|khz| claimed(name, measured, khz - measured, 10.0 * VISIBLE_PPM, true));
    let others = tsc.claims.iter().map(|claim| {
        let (khz, noise_ppm) = (claim.frequency_khz, VISIBLE_PPM.max(claim.rounding_ppm));
        claimed(&claim.source, khz, khz - measured, noise_ppm, tsc.postgres19_frequency_khz == Some(khz))
    });
    in_use.into_iter().chain(others).collect()
}

/// Returns the summary, the reason and the fix for a claim that differs from the measured rate.
fn mismatch(claim: &Claimed, measured: f64) -> (String, &'static str, Option<Fix>) {
    let Claimed { source, khz, .. } = claim;
    if !claim.in_use && *source == ClaimSource::KernelRecalibrated.to_string() {
        let percent = claim.error_ppm.abs() / 1e4;
        let fix = Fix::new(format!(
            "set the boot parameter tsc_early_khz={khz:.0} (Linux 5.8 and newer) and restart, or update the firmware"
        ))
        .undo("remove the boot parameter and restart")
        .risk("the restart stops everything on this machine; if the other timer is wrong, the clock becomes wrong");
        let summary = format!(
            "the kernel's clock uses a TSC rate of {measured:.0} kHz, but the kernel measured {khz:.0} kHz with another timer: a difference of {percent:.2}%"
        );
        let why =
            "if the other timer is right, all times of this host are wrong by that much; NTP corrects at most 0.05%";
        return (summary, why, Some(fix));
    }
    let wrong = wrong_times(measured / khz);
    let summary = format!(
        "the TSC's rate is {khz:.0} kHz according to {source}, but the measured rate is {measured:.0} kHz: times by it are {wrong}"
    );
    if claim.in_use {
        let why = "all times that PostgreSQL 19 measures with the TSC are wrong by that much";
        (summary, why, Some(system_clock_on_19()))
    } else {
        (summary, "programs that use this rate (a kernel without a reference, a profiler) report wrong times", None)
    }
}

/// Returns how wrong times are: a time is ticks divided by the rate, so `factor` is the true rate divided by the used one.
fn wrong_times(factor: f64) -> String {
    let percent = (factor - 1.0).abs() * 100.0;
    let decimals = if percent < 1.0 { 2 } else { 1 };
    match factor {
        2.0.. => format!("{factor:.0} times too long"),
        1.0.. => format!("{percent:.decimals$}% too long"),
        _ => format!("{percent:.decimals$}% too short"),
    }
}

fn severity(claim: &Claimed) -> Severity {
    // By design, a base frequency or a delay loop often differs from the counter's rate.
    let approximate = !claim.in_use && !claim.source.starts_with("kernel log");
    match claim.error_ppm.abs() {
        _ if approximate => Severity::Ok,
        off if off >= WRONG_PPM && claim.in_use => Severity::Critical,
        off if off > claim.noise_ppm => Severity::Warning,
        _ => Severity::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::*;

    mod tsc_demoted {
        use super::*;

        /// Azure does not let a user change the CPU's settings, and the TSC has no fault there.
        #[test]
        fn hyper_v_needs_its_page_and_no_cpu_setting() {
            let mut report = Report::empty(Origin::Captured, "");
            report.host.virtualization = Fact::Known("Azure, Hyper-V".into());
            for (reason, words) in
                [("running on Hyper-V", "Hyper-V's page"), ("check_tsc_sync_source failed", "CPU settings")]
            {
                let demotion = Demoted { at_boot: true, reason: Some(reason.into()), ..Demoted::default() };
                report.kernel = Fact::Known(KernelReport { demotion: Some(demotion), ..KernelReport::default() });
                let fix = crate::host::check::finding("", tsc_demoted(&report)).fix;
                assert!(fix[0].what.contains(words), "{reason}: {fix:?}");
            }
        }
    }

    mod tsc_not_invariant {
        use super::*;

        fn report(current: &str, flags: Option<&str>) -> Report {
            let mut report = Report::empty(Origin::Captured, "");
            report.clocksource.current = Fact::Known(current.into());
            report.clocksource.available = Fact::Known(vec![current.into(), "hpet".into()]);
            if let Some(flags) = flags {
                report.host.cpu_flags = Fact::Known(flags.split(' ').map(Into::into).collect());
            }
            report
        }

        #[test]
        fn a_missing_guarantee_is_a_warning() {
            for (flags, severity, words) in [
                ("tsc constant_tsc nonstop_tsc", Severity::Ok, ""),
                ("tsc tsc_reliable", Severity::Ok, ""),
                ("tsc constant_tsc", Severity::Warning, "TSC: it may stop"),
                ("tsc nonstop_tsc", Severity::Warning, "TSC: its rate may change"),
                ("tsc", Severity::Warning, "frequency, and it may stop"),
            ] {
                let finding = crate::host::check::finding("", tsc_not_invariant(&report("tsc", Some(flags))));
                assert_eq!(finding.severity, severity, "{flags}");
                assert!(finding.summary.contains(words), "{flags}: {}", finding.summary);
            }
        }

        #[test]
        fn another_clock_source_needs_no_guarantee() {
            for current in ["hpet", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"] {
                assert_eq!(
                    crate::host::check::finding("", tsc_not_invariant(&report(current, Some("tsc")))).severity,
                    Severity::Ok,
                    "{current}"
                );
            }
        }

        #[test]
        fn without_flags_or_clock_source_it_is_unknown() {
            let mut report = report("tsc", None);
            report.tsc.invariant = Some(true);
            assert_eq!(crate::host::check::finding("", tsc_not_invariant(&report)).severity, Severity::Unknown);
            report.clocksource.current = Fact::unavailable("x");
            assert_eq!(crate::host::check::finding("", tsc_not_invariant(&report)).severity, Severity::Unknown);
        }

        #[test]
        fn the_fix_is_another_clock_source_of_this_host() {
            let mut guest = report("tsc", Some("tsc constant_tsc"));
            assert!(
                crate::host::check::finding("", tsc_not_invariant(&guest)).fix[0].what.contains("watch"),
                "{:?}",
                crate::host::check::finding("", tsc_not_invariant(&guest)).fix
            );
            guest.clocksource.available = Fact::Known(vec!["tsc".into(), "kvm-clock".into(), "hpet".into()]);
            assert!(
                crate::host::check::finding("", tsc_not_invariant(&guest)).fix[0].what.contains("kvm-clock"),
                "{:?}",
                crate::host::check::finding("", tsc_not_invariant(&guest)).fix
            );
        }
    }

    mod tsc_rate_mismatch {
        use super::*;

        /// A counter whose measured rate, against the kernel's clock, is 2500 MHz.
        fn judged(claims: &[(ClaimSource, f64)]) -> Finding {
            let claim = |&(source, khz): &(ClaimSource, f64)| ClaimReport {
                source: source.to_string(),
                frequency_khz: khz,
                rounding_ppm: 0.2,
                disagreement_ppm: None,
            };
            let tsc = TscReport {
                frequency_khz: Fact::Known(2_500_000.0),
                postgres19_frequency_khz: Some(2_500_000.0),
                claims: claims.iter().map(claim).collect(),
                ..TscReport::unavailable("")
            };
            crate::host::check::finding("", tsc_rate_mismatch(&Report { tsc, ..Report::empty(Origin::Measured, "") }))
        }

        #[test]
        fn a_rate_that_the_kernel_measured_and_does_not_use_is_a_warning() {
            let agreeing = (ClaimSource::Cpuid15, 2_500_000.0);
            let finding = judged(&[agreeing, (ClaimSource::KernelRecalibrated, 2_400_000.0)]);
            assert_eq!(finding.severity, Severity::Warning);
            assert!(finding.summary.contains("the kernel measured 2400000 kHz"), "{finding:?}");
            assert!(finding.fix[0].what.contains("tsc_early_khz=2400000"), "{finding:?}");
            // The kernel's own limit for its warning is 500 ppm, and a timer's crystal can be wrong by 100 ppm.
            let finding = judged(&[agreeing, (ClaimSource::KernelRecalibrated, 2_500_900.0)]);
            assert_eq!(finding.severity, Severity::Ok, "{finding:?}");
        }

        #[test]
        fn sources_that_often_differ_are_no_alarm() {
            let finding = judged(&[(ClaimSource::KernelRefined, 2_400_000.0), (ClaimSource::Bogomips, 2_400_000.0)]);
            assert_eq!(finding.severity, Severity::Warning);
            assert!(finding.summary.contains("according to kernel log (refined)"), "{finding:?}");
            assert_eq!(
                judged(&[(ClaimSource::Bogomips, 2_400_000.0)]).severity,
                Severity::Ok,
                "it is often another rate"
            );
        }
    }
}
