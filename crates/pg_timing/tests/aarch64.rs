//! The host check on AArch64, in-process: under qemu-user there is no other program to run it.

#![cfg(target_arch = "aarch64")]

use pg_timing::host::facts::{Host, LogSource};
use pg_timing::host::measure::Budget;
use pg_timing::host::survey;
use pg_timing::render;
use std::sync::atomic::AtomicBool;
use timing_clock::{Counter, Hertz, Nanos, Ppm, Reference, firmware_claim, measure_rate};

#[test]
fn the_counter_is_read_and_its_rate_measured() {
    let (host, stop) = (Host::live(), AtomicBool::new(false));
    let log = LogSource::Own.read(&host).unwrap();
    let limit = Nanos::from_secs(2.0);
    let report = survey::live(&host, &log, limit, &Budget::new(limit, &stop), &mut |_| {});
    println!("{}", render::text::text(&report));
    for name in ["system", "cntvct", "isb_cntvct"] {
        assert!(report.clock(name).and_then(|clock| clock.read_ns).is_some_and(|ns| ns > 0.0), "{name}: {report:?}");
    }
    assert_eq!(report.tsc.counter, "cntvct");
    assert!(report.tsc.frequency_khz.known().is_some());
}

/// Under qemu CNTFRQ is the truth: the counter is made from the host's clock at that very rate. Its
/// steps are of a microsecond, so a bracket can be 0 wide; the stated error must cover that.
#[test]
fn the_stated_error_is_true() {
    let truth = firmware_claim().unwrap().rate;
    let counter = Counter::new().unwrap();
    let covered = (0..100)
        .filter(|_| {
            let got = measure_rate(counter, Reference::default(), Ppm(0.0), Nanos::from_millis(10.0)).unwrap();
            let off = got.rate.ppm_from(Hertz(truth.0));
            off.0.abs() <= got.uncertainty.0
        })
        .count();
    assert!(covered >= 95, "covered {covered} of 100");
}
