//! `tsc-unchecked`: does a boot parameter stop the kernel from checking the TSC?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

/// The values of `tsc=` that switch the watchdog off.
const UNWATCHED: &[&str] = &["tsc=reliable", "tsc=nowatchdog"];

const ID: &str = finding_id::TSC_UNCHECKED;

pub fn check(report: &Report) -> Finding {
    let Some(parameters) = report.host.boot_parameters.known() else {
        return Finding::unknown(ID, "the kernel's boot parameters are unknown");
    };
    let Some(parameter) = parameters.iter().find(|word| UNWATCHED.contains(&word.as_str())) else {
        return Finding::ok(ID, "no boot parameter stops the kernel from checking the TSC");
    };
    if report.kernel.known().is_some_and(|kernel| kernel.demotion.is_some()) {
        return Finding::ok(
            ID,
            format!("{parameter} is set, and the kernel checked and rejected the TSC all the same"),
        );
    }
    let skew = report.findings.iter().find(|f| f.id == finding_id::CPU_SKEW && f.severity >= Severity::Warning);
    let Some(skew) = skew else {
        return Finding::ok(
            ID,
            format!("{parameter} stops the kernel from checking the TSC; pg_timing found no fault of the TSC"),
        );
    };
    Finding::new(
        ID,
        Severity::Critical,
        format!("the CPUs' counters differ, and the kernel does not notice because of {parameter}"),
    )
    .evidence(format!("boot parameter: {parameter}"))
    .evidence(skew.summary.clone())
    .why("without this parameter the kernel would find the skew, demote the TSC, and select a correct clock source")
    .fix(
        Fix::new(format!("remove the boot parameter {parameter} and restart"))
            .undo(format!("add {parameter} again"))
            .risk("the kernel will then select a slower clock source"),
    )
}
