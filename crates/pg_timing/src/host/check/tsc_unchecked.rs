//! `tsc-unchecked`: has somebody told the kernel not to watch the TSC?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

/// The values of `tsc=` that switch the watchdog off.
const UNWATCHED: &[&str] = &["tsc=reliable", "tsc=nowatchdog"];

const ID: &str = finding_id::TSC_UNCHECKED;

pub fn check(report: &Report) -> Finding {
    let Some(parameters) = report.host.boot_parameters.known() else {
        return Finding::unknown(ID, "the kernel's boot parameters are unknown");
    };
    let Some(parameter) = parameters.iter().find(|word| UNWATCHED.contains(&word.as_str())) else {
        return Finding::ok(ID, "no boot parameter keeps the kernel from watching the TSC");
    };
    let skew = report.findings.iter().find(|f| f.id == finding_id::CPU_SKEW && f.severity >= Severity::Warning);
    let Some(skew) = skew else {
        return Finding::ok(
            ID,
            format!("the kernel was told to trust the TSC ({parameter}); nothing was found against it"),
        );
    };
    Finding::new(
        ID,
        Severity::Critical,
        format!("{parameter} hides that the CPUs' counters differ: the kernel was told not to look"),
    )
    .evidence(format!("boot parameter: {parameter}"))
    .evidence(skew.summary.clone())
    .why("without that parameter the kernel would find the skew, drop the TSC, and take a clock that is right")
    .fix(
        Fix::new(format!("take {parameter} out of the boot parameters and restart"))
            .undo(format!("put {parameter} back"))
            .risk("the kernel will then take a slower clock source"),
    )
}
