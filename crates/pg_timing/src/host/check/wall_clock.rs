//! Finding `wall-clock`: is the time of day right? EXPLAIN ANALYZE does not read it, but logs and `now()` do.

use super::*;

/// chrony and ntpd need some minutes after the start until they call the clock synchronized.
const START_S: f64 = 1800.0;

/// `wall-clock`: does the kernel call the time of day synchronized?
pub fn wall_clock(report: &Report) -> Result<Finding, String> {
    if report.host.ntp.known().ok_or("the kernel's NTP state is unknown")?.synchronized {
        return ok("the kernel's wall clock is synchronized");
    }
    let up = report.host.uptime_seconds.known();
    if let Some(up) = up.filter(|up| **up < START_S) {
        return unknown(format!("the kernel's wall clock is not synchronized yet; the boot was {} ago", uptime(*up)));
    }
    let what = "the kernel's wall clock is not synchronized: times in logs and now() can be wrong; EXPLAIN ANALYZE is not affected";
    let why = "without a time service, a clock drifts by seconds per day, and a restored virtual machine keeps its old time; tools \
               of some hypervisors (VMware, Hyper-V, VirtualBox) set the clock without telling the kernel";
    let fix = Fix::new("start the time service; install one first if there is none")
        .command("sudo timedatectl set-ntp true")
        .undo("sudo timedatectl set-ntp false")
        .risk("the service can move the time of day once by a large step");
    Ok(warning(what).why(why).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fact, Ntp, Origin, Severity};

    #[test]
    fn a_clock_without_a_time_service_is_a_warning_after_the_start() {
        let severity = |synchronized, uptime_s: f64| {
            let mut report = Report::empty(Origin::Measured, "");
            report.host.ntp = Fact::Known(Ntp { synchronized, frequency_ppm: 0.0 });
            report.host.uptime_seconds = Fact::Known(uptime_s);
            wall_clock(&report).map(|finding| finding.severity).unwrap_or(Severity::Unknown)
        };
        assert_eq!([10.0, 1e6].map(|up| severity(true, up)), [Severity::Ok; 2]);
        assert_eq!([10.0, 1e6].map(|up| severity(false, up)), [Severity::Unknown, Severity::Warning]);
        assert!(wall_clock(&Report::empty(Origin::Measured, "why")).is_err());
    }
}
