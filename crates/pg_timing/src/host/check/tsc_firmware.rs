//! `tsc-firmware`: did firmware change the counters?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::TSC_FIRMWARE;

pub fn check(report: &Report) -> Finding {
    let Some(kernel) = report.kernel.known() else {
        return Finding::unknown(ID, "the kernel log is not to be had");
    };
    if !kernel.firmware_bug {
        return Finding::ok(ID, "the kernel log names no firmware that changed a counter");
    }
    Finding::new(ID, Severity::Warning, "firmware has changed a CPU's counter, and the kernel had to set it right")
        .evidence("kernel log: [Firmware Bug]: TSC ADJUST differs")
        .why("it may do so again while the machine runs, for instance at a management interrupt or a suspend: time would jump on that CPU")
        .fix(Fix::new("update the firmware (BIOS)").risk("needs a restart"))
}
