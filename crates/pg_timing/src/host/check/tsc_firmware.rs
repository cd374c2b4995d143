//! `tsc-firmware`: did the firmware change a CPU's counter?

use crate::report::{Finding, Fix, Report, Severity, finding_id};

const ID: &str = finding_id::TSC_FIRMWARE;

pub fn check(report: &Report) -> Finding {
    let kernel = match report.kernel_log() {
        Ok(kernel) => kernel,
        Err(why) => return Finding::unknown(ID, why),
    };
    if !kernel.firmware_bug {
        return Finding::ok(ID, "the kernel log shows no change of a counter by the firmware");
    }
    Finding::new(ID, Severity::Warning, "the firmware changed a CPU's counter, and the kernel corrected it")
        .evidence("kernel log: [Firmware Bug]: TSC ADJUST differs")
        .why("the firmware may do that again later, for example in a management interrupt or a suspend; then time jumps on that CPU")
        .fix(Fix::new("update the firmware (BIOS)").risk("needs a restart"))
}
