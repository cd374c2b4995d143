//! The host check on AArch64. These are unit tests, because qemu-user cannot start pg_timing as a second program.

use crate::host::facts::{Host, LogSource};
use crate::host::measure::Budget;
use crate::host::survey;
use std::sync::atomic::AtomicBool;
use timing_clock::{Counter, Hertz, Nanos, Ppm, Reference, firmware_claim, measure_rate};

#[test]
fn counter_is_read_and_its_rate_is_measured() {
    let (host, stop) = (Host::live(), AtomicBool::new(false));
    let log = LogSource::Own.read(&host).unwrap();
    let limit = Nanos::from_secs(2.0);
    let report = survey::live(&host, &log, limit, &Budget::new(limit, &stop), &mut |_| {});
    for name in ["system", "cntvct", "isb_cntvct"] {
        assert!(report.clock(name).and_then(|clock| clock.read_ns).is_some_and(|ns| ns > 0.0), "{name}: {report:?}");
    }
    assert_eq!(report.tsc.counter, "cntvct");
    assert!(report.tsc.frequency_khz.known().is_some());
}

/// qemu derives the counter from the host's clock, at exactly the rate that CNTFRQ states. A step of the counter is 1
/// us, so a bracket can be 0 wide. The stated uncertainty must cover this.
#[test]
fn stated_uncertainty_covers_the_error() {
    let true_rate = firmware_claim().unwrap().rate;
    let counter = Counter::new().unwrap();
    let covered = (0..100)
        .filter(|_| {
            let measured = measure_rate(counter, Reference::default(), Ppm(0.0), Nanos::from_millis(10.0)).unwrap();
            measured.rate.ppm_from(Hertz(true_rate.0)).0.abs() <= measured.uncertainty.0
        })
        .count();
    assert!(covered >= 95, "covered {covered} of 100");
}
