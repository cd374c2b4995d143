//! `tsc-demoted`: did the kernel demote a TSC that the CPU describes as invariant?

use super::advice::restart;
use crate::human::duration;
use crate::report::{ClockReport, Demoted, Fact, Finding, Fix, Report, Severity, System, finding_id, traits_of};
use timing_clock::clocksource::is_tsc;

const ID: &str = finding_id::TSC_DEMOTED;

pub fn check(report: &Report) -> Finding {
    let demotion = report.kernel.known().and_then(|kernel| kernel.demotion.as_ref());
    match (report.tsc.invariant, report.tsc.accepted_by_kernel) {
        (_, Some(true)) => return Finding::ok(ID, "the kernel accepts the counter"),
        (Some(false), _) if demotion.is_none() => {
            return Finding::ok(ID, "there is no TSC with a constant rate");
        }
        (None, _) if demotion.is_none() => return Finding::unknown(ID, "the CPU's description of its TSC is unknown"),
        (_, None) if demotion.is_none() => {
            return Finding::unknown(ID, "the available clock sources are unknown");
        }
        _ => {}
    }
    let logged = || {
        report
            .kernel
            .known()
            .and_then(|kernel| kernel.switches.last())
            .map(|last| &last.to)
            .filter(|name| !is_tsc(name))
    };
    let current = report.clocksource.current.known().or_else(logged).map_or("another one", String::as_str);
    let summary = match demotion {
        Some(demotion) => story(demotion, current),
        None => format!("the kernel does not trust the TSC; the clock source is {current}"),
    };
    // The hypervisor's clock corrects the counter. The kernel prefers it, and it costs nothing.
    let on_counter = report.clocksource.names().is_some_and(|kernel| kernel.uses_counter());
    let cheap = match report.system().and_then(ClockReport::cost_ns) {
        Some(ns) => ns <= super::clock_slow::LIMITS_NS.0,
        None => traits_of(current).is_none_or(|traits| !traits.is_slow()),
    };
    let finding = match on_counter && cheap {
        true => return evidence(report, demotion).into_iter().fold(Finding::ok(ID, summary), Finding::evidence),
        false => Finding::new(ID, Severity::Warning, summary),
    };
    evidence(report, demotion)
        .into_iter()
        .fold(finding, Finding::evidence)
        .why("a kernel that does not trust the TSC uses another clock source; most of them are slower hardware")
        .fixes(fixes(report, demotion))
}

/// Returns `the kernel marked the TSC unstable 7823 s after boot on CPU 2, because it drifted from hpet; the clock source is now hpet`.
fn story(demotion: &Demoted, current: &str) -> String {
    let when = demotion.when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
    let cpu = demotion.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    format!(
        "the kernel marked the TSC unstable{when}{cpu}, because {}; the clock source is now {current}",
        demotion.because
    )
}

fn evidence(report: &Report, demotion: Option<&Demoted>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Fact::Known(available) = &report.clocksource.available {
        lines.push(format!("available clock sources, without tsc: {}", available.join(" ")));
    }
    if report.tsc.invariant == Some(true) {
        lines.push("CPUID describes the TSC as invariant".into());
    }
    if let Some((skew, interval)) =
        demotion.and_then(|d| d.skew_ns.zip(d.interval_ns)).filter(|(_, interval)| *interval > 0)
    {
        let ppm = skew as f64 / interval as f64 * 1e6;
        lines.push(format!("kernel log: {} in {} is {ppm:+.0} ppm", duration(skew as f64), duration(interval as f64)));
    }
    let reason = demotion.and_then(|d| d.reason.as_ref());
    lines.extend(reason.map(|reason| format!("kernel log: Marking TSC unstable due to {reason}")));
    lines.extend(demotion.and_then(|d| d.cause.clone()));
    lines.extend(demotion.and_then(|demotion| without_effect(report, demotion)));
    lines.extend(demotion.and_then(|d| d.doubt.clone()).map(|doubt| format!("the kernel may be wrong: {doubt}")));
    if let (None, Fact::Unavailable { unavailable }, System::Linux) =
        (demotion, &report.kernel, System::of_facts(&report.host))
    {
        lines.push(format!("the reason would be in the kernel log, which is not readable: {unavailable}"));
    }
    lines
}

/// The clock source of the first seconds. Before Linux 5.5 the watchdog checks it, also with `tsc=reliable`.
const EARLY: &str = "tsc-early";
const TRUSTED: &[&str] = &["clocksource=tsc", "clock=tsc", "tsc=reliable", "tsc=nowatchdog"];

/// Returns whether the kernel demoted the TSC before `tsc=reliable` counted.
fn is_checked_early(report: &Report, demotion: &Demoted) -> bool {
    let reliable = |words: &Vec<String>| words.iter().any(|word| word == "tsc=reliable" || word == "tsc=nowatchdog");
    demotion.clocksource == EARLY && report.host.boot_parameters.known().is_some_and(reliable)
}

/// Returns the boot parameters that should keep the TSC, and did not.
fn without_effect(report: &Report, demotion: &Demoted) -> Option<String> {
    let words: Vec<&str> = report.host.boot_parameters.known()?.iter().map(String::as_str).collect();
    let set: Vec<&str> = words.into_iter().filter(|word| TRUSTED.contains(word)).collect();
    let why = match is_checked_early(report, demotion) {
        true => ": before Linux 5.5 the kernel checks tsc-early before tsc=reliable counts",
        false => "",
    };
    (!set.is_empty()).then(|| format!("boot parameters without effect: {}{why}", set.join(" ")))
}

fn fixes(report: &Report, demotion: Option<&Demoted>) -> Vec<Fix> {
    if System::of_facts(&report.host) == System::FreeBsd {
        return vec![
            Fix::new("check the quality that FreeBSD gives each clock at boot; it is negative for this TSC")
                .command("sysctl kern.timecounter machdep.tsc_freq"),
        ];
    }
    let mut fixes = Vec::new();
    if demotion.is_none() {
        let read = "dmesg | pg_timing check --kernel-log -";
        fixes.push(Fix::new("look for the reason in the kernel log").command(read));
    }
    fixes.push(restore(report, demotion));
    fixes
}

/// Returns how to get the TSC back. A restart helps only if the kernel demoted the TSC after boot.
fn restore(report: &Report, demotion: Option<&Demoted>) -> Fix {
    let has = |word: &str| report.host.boot_parameters.known().is_some_and(|words| words.iter().any(|w| w == word));
    if has("tsc=unstable") {
        return Fix::new("remove the boot parameter tsc=unstable and restart")
            .undo("add tsc=unstable again")
            .risk("someone may have had a reason for it");
    }
    let because_of =
        |words: &str| demotion.and_then(|d| d.reason.as_deref()).is_some_and(|reason| reason.contains(words));
    if because_of("halts in idle") {
        return Fix::new("no fix: this CPU's TSC stops when the CPU is idle");
    }
    // No fault of the TSC, and clouds have no setting for it. Only the lack of Hyper-V's page makes this host slow.
    if because_of("running on Hyper-V") {
        return Fix::new(
            "install a newer kernel, or move the virtual machine to a newer host; then the kernel can use Hyper-V's page \
             (hyperv_clocksource_tsc_page), which is cheap to read",
        );
    }
    if demotion.is_some_and(|demotion| is_checked_early(report, demotion)) {
        return Fix::new(
            "install Linux 5.5 or later, in which tsc=reliable covers tsc-early, too; in a virtual machine, let the hypervisor \
             offer an invariant TSC",
        );
    }
    let guest = report.host.virtualization.known().is_some_and(|guest| guest != "none");
    match demotion {
        Some(Demoted { at_boot: true, .. }) if guest => Fix::new(
            "enable the invariant TSC in the virtual machine's CPU settings, or use another host; otherwise the kernel \
             marks the TSC unstable at each boot",
        ),
        Some(Demoted { at_boot: true, .. }) => Fix::new(
            "restart once; if the kernel marks the TSC unstable again, update the firmware (BIOS)",
        ),
        _ => Fix::new(format!(
            "{}: a running kernel does not use an unstable TSC again, a restarted one does",
            restart(report)
        ))
            .risk("stops everything that runs there; if the cause remains (for example frequent pauses or suspends), the kernel marks the TSC unstable again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{KernelReport, Origin};

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
            let fix = check(&report).fix;
            assert!(fix[0].what.contains(words), "{reason}: {fix:?}");
        }
    }
}
