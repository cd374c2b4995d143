//! Findings about the kernel's trust in the TSC.

use super::*;
use timing_clock::clocksource::is_tsc;

/// `tsc-demoted`: did the kernel demote a TSC that the CPU describes as invariant?
pub fn tsc_demoted(report: &Report) -> Judged {
    let demotion = report.demotion();
    match (report.tsc.invariant, report.tsc.accepted_by_kernel) {
        (_, Some(true)) => return ok("the kernel accepts the counter"),
        _ if demotion.is_some() => {}
        (Some(false), _) => return ok("there is no TSC with a constant rate"),
        (None, _) => return unknown("the CPU's description of its TSC is unknown"),
        (_, None) => return unknown("the available clock sources are unknown"),
        _ => {}
    }
    let logged = || Some(&report.kernel.known()?.switches.last()?.to).filter(|name| !is_tsc(name));
    let current = report.clocksource.current.known().or_else(logged).map_or("another one", String::as_str);
    let summary = match demotion {
        // `the kernel marked the TSC unstable 7823 s after boot on CPU 2, because it went back; the clock source is now hpet`
        Some(demotion) => {
            format!("the kernel marked the TSC unstable{}; the clock source is now {current}", demotion.how())
        }
        None => format!("the kernel does not trust the TSC; the clock source is {current}"),
    };
    // The hypervisor's clock corrects the counter. The kernel prefers it, and it costs nothing.
    let on_counter = report.clocksource.names().is_some_and(|kernel| kernel.uses_counter());
    let cheap = match report.system().and_then(ClockReport::cost_ns) {
        Some(ns) => ns <= GOOD_READ_NS,
        None => traits_of(current).is_none_or(|traits| !traits.is_slow()),
    };
    let severity = if on_counter && cheap { Severity::Ok } else { Severity::Warning };
    Ok(with_severity(severity, summary)
        .evidence_lines(evidence(report, demotion))
        .why("a kernel that does not trust the TSC uses another clock source; most of them are slower hardware")
        .fixes(fixes(report, demotion)))
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

/// The clock source of the first seconds. Before Linux 5.5 the watchdog checks it, also with `tsc=reliable`.
const EARLY: &str = "tsc-early";
const TRUSTED: &[&str] = &["clocksource=tsc", "clock=tsc"];

/// Returns whether the kernel demoted the TSC before `tsc=reliable` counted.
fn is_checked_early(report: &Report, demotion: &Demoted) -> bool {
    let is_old = report.host.kernel.known().is_none_or(|kernel| is_before(kernel, (5, 5)));
    is_old
        && demotion.clocksource == EARLY
        && report.host.parameters().iter().any(|word| UNWATCHED.contains(&word.as_str()))
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
    let why = match is_checked_early(report, demotion) {
        true => ": before Linux 5.5 the kernel checks tsc-early before tsc=reliable counts",
        false => "",
    };
    (!set.is_empty()).then(|| format!("boot parameters without effect: {}{why}", set.join(" ")))
}

fn fixes(report: &Report, demotion: Option<&Demoted>) -> Vec<Fix> {
    if System::of_facts(&report.host) == System::FreeBsd {
        let what = "check the quality that FreeBSD gives each clock at boot; it is negative for this TSC";
        return vec![Fix::new(what).command("sysctl kern.timecounter machdep.tsc_freq")];
    }
    let reason = Fix::new("look for the reason in the kernel log").command("dmesg | pg_timing check --kernel-log -");
    demotion.is_none().then_some(reason).into_iter().chain([restore(report, demotion)]).collect()
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
}
