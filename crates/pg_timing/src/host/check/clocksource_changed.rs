//! `clocksource-changed`: did the kernel's clock source change after boot?

use crate::report::{Demoted, Finding, LateSwitch, Report, Severity, finding_id};

/// The kernel switches within a second after it demoted a clock source. This limit is ten times as long.
const FOLLOWS_S: f64 = 10.0;

const ID: &str = finding_id::CLOCKSOURCE_CHANGED;

pub fn check(report: &Report) -> Finding {
    if let (Some(before), Some(now)) = (&report.clocksource.before, report.clocksource.current.known()) {
        return Finding::new(
            ID,
            Severity::Warning,
            format!("the clock source changed from {before} to {now} while the clocks were measured"),
        )
        .evidence(format!("current_clocksource: {before} at the start, {now} at the end"))
        .why("figures from before the change and after it belong to different clocks; measure again");
    }
    let kernel = match report.kernel_log() {
        Ok(kernel) => kernel,
        Err(why) => return Finding::unknown(ID, why),
    };
    let now = report.clocksource.current.known();
    if let Some((now, last)) = now.and_then(|now| Some((now, kernel.other_last_clocksource(now)?))) {
        let summary = format!(
            "the last clock source in the kernel log is {last}, but the current one is {now}: the log is old or from another host"
        );
        return Finding::unknown(ID, summary);
    }
    if kernel.switches.iter().any(|switch| switch.seconds.is_none()) {
        return Finding::unknown(ID, "the kernel log has no times since boot");
    }
    let Some(LateSwitch { from, to, seconds }) = kernel.late_switch() else {
        return Finding::ok(
            ID,
            if kernel.since_boot {
                "the clock source is the one that the kernel selected at boot"
            } else {
                "the kernel log shows no change of the clock source; its beginning is missing"
            },
        );
    };
    let from = from.map(|from| format!(" from {from}")).unwrap_or_default();
    let summary = format!("the clock source changed{from} to {to} at {seconds:.0} s after boot");
    // A switch by the kernel is an alarm. A manual switch is intended.
    let demotion = kernel.demotion.as_ref().filter(|d| d.seconds.is_some_and(|at| (at - seconds).abs() < FOLLOWS_S));
    let found = match (demotion, kernel.unstable) {
        (Some(Demoted { when: Some(when), .. }), _) => format!("TSC marked unstable {when}"),
        (Some(_), _) => "TSC marked unstable".into(),
        (None, true) => "the kernel marked a clock source unstable".into(),
        (None, false) => {
            return Finding::ok(ID, summary + ", manually").evidence("kernel log: no clock source was marked unstable");
        }
    };
    Finding::new(ID, Severity::Warning, summary)
        .evidence(format!("kernel log: {found}"))
        .why("plans and logs from before that time used another clock, so their times are not comparable")
}
