//! `tsc-not-invariant`: does the kernel's clock run on a TSC whose rate may change, or that may stop?

use super::advice::other_than_tsc;
use crate::report::{Finding, Report, Severity, finding_id};

/// Linux's CPU flags for a constant rate, and for a counter that runs in every power state.
const CONSTANT: (&str, &str) = ("constant_tsc", "its rate may change with the CPU's frequency");
const NONSTOP: (&str, &str) = ("nonstop_tsc", "it may stop while the CPU is idle");
/// Linux sets this flag if the hypervisor guarantees a reliable TSC (VMware, Hyper-V).
const GUARANTEED: &str = "tsc_reliable";

const ID: &str = finding_id::TSC_NOT_INVARIANT;

pub fn check(report: &Report) -> Finding {
    let Some(current) = report.clocksource.current.known() else {
        return Finding::unknown(ID, "the clock source is unknown");
    };
    if !timing_clock::clocksource::is_tsc(current) {
        return Finding::ok(ID, format!("the kernel's clock does not run on the bare TSC (clock source {current})"));
    }
    let Some(missing) = missing(report) else {
        return Finding::unknown(ID, "the CPU's description of its TSC is unknown");
    };
    if missing.is_empty() {
        return Finding::ok(
            ID,
            "the CPU or its hypervisor guarantees that the TSC has a constant rate and never stops",
        );
    }
    let what: Vec<&str> = missing.iter().map(|(_, what)| *what).collect();
    let summary = format!(
        "the clock source is {current}, but the CPU does not guarantee an invariant TSC: {}",
        what.join(", and ")
    );
    let finding = Finding::new(ID, Severity::Warning, summary);
    let finding = missing.iter().fold(finding, |finding, (evidence, _)| finding.evidence(evidence));
    finding
        .why(
            "the kernel measured the rate at boot. If the rate changes or the TSC stops, all times on the host are wrong, \
             until the kernel notices it and selects another clock source",
        )
        .fixes(other_than_tsc(report))
}

/// Returns what the CPU does not guarantee, as evidence and consequence. `None` if its description is unknown.
fn missing(report: &Report) -> Option<Vec<(String, &'static str)>> {
    // FreeBSD has no flags, but a single value.
    let Some(flags) = report.host.cpu_flags.known() else {
        let not_invariant =
            ("the TSC is not invariant".to_string(), "its rate may change, or it may stop while the CPU is idle");
        return report.tsc.invariant.map(|invariant| if invariant { vec![] } else { vec![not_invariant] });
    };
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    if has(GUARANTEED) {
        return Some(Vec::new());
    }
    let evidence = |(flag, what)| (format!("/proc/cpuinfo has no flag {flag}"), what);
    Some([CONSTANT, NONSTOP].into_iter().filter(|(flag, _)| !has(flag)).map(evidence).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fact, Origin};

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
            let finding = check(&report("tsc", Some(flags)));
            assert_eq!(finding.severity, severity, "{flags}");
            assert!(finding.summary.contains(words), "{flags}: {}", finding.summary);
        }
    }

    #[test]
    fn another_clock_source_needs_no_guarantee() {
        for current in ["hpet", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"] {
            assert_eq!(check(&report(current, Some("tsc"))).severity, Severity::Ok, "{current}");
        }
    }

    #[test]
    fn without_flags_the_counters_description_decides() {
        let mut freebsd = report("TSC-low", None);
        assert_eq!(check(&freebsd).severity, Severity::Unknown);
        for (invariant, severity) in [(true, Severity::Ok), (false, Severity::Warning)] {
            freebsd.tsc.invariant = Some(invariant);
            assert_eq!(check(&freebsd).severity, severity);
        }
        freebsd.clocksource.current = Fact::unavailable("x");
        assert_eq!(check(&freebsd).severity, Severity::Unknown);
    }

    #[test]
    fn the_fix_is_another_clock_source_of_this_host() {
        let mut guest = report("tsc", Some("tsc constant_tsc"));
        assert!(check(&guest).fix[0].what.contains("watch"), "{:?}", check(&guest).fix);
        guest.clocksource.available = Fact::Known(vec!["tsc".into(), "kvm-clock".into(), "hpet".into()]);
        assert!(check(&guest).fix[0].what.contains("kvm-clock"), "{:?}", check(&guest).fix);
    }
}
