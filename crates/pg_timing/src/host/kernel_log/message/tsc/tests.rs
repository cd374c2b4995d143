//! Each message in the wording of the versions that have it.

use super::super::parse;
use super::*;

fn event(message: &str) -> Event {
    parse(message).unwrap_or_else(|| panic!("{message}")).event
}

#[test]
fn rates() {
    for (message, source, mhz) in [
        ("tsc: Detected 2900.000 MHz processor", RateSource::Processor, 2900.0),
        ("Detected 2926.000 MHz processor.", RateSource::Processor, 2926.0),
        ("time.c: Detected 2400.123 MHz processor.", RateSource::Processor, 2400.123),
        ("tsc: Detected 1896.000 MHz TSC", RateSource::Tsc, 1896.0),
        ("tsc: Refined TSC clocksource calibration: 3693.062 MHz", RateSource::Refined, 3693.062),
        ("Refined TSC clocksource calibration: 3693.062 MHz.", RateSource::Refined, 3693.062),
        ("tsc: TSC freq recalibrated by [HPET]:\t 1975.000 MHz", RateSource::Recalibrated("HPET".into()), 1975.0),
        ("tsc: TSC freq recalibrated by [PM_TIMER]: 1975.000 MHz", RateSource::Recalibrated("PM_TIMER".into()), 1975.0),
        ("tsc: Previous calibrated TSC freq:\t 1896.000 MHz", RateSource::Previous, 1896.0),
        ("vmware: TSC freq read from hypervisor : 2195.872 MHz", RateSource::Hypervisor, 2195.872),
        ("TSC freq read from hypervisor : 2926.000 MHz", RateSource::Hypervisor, 2926.0),
        ("arch_timer: cp15 timer(s) running at 24.00MHz (virt).", RateSource::ArchTimer, 24.0),
        ("arch_timer: cp15 and mmio timer(s) running at 19.20MHz (phys/virt).", RateSource::ArchTimer, 19.2),
        ("Architected cp15 timer(s) running at 62.50MHz (virt).", RateSource::ArchTimer, 62.5),
        ("hpet0: 3 comparators, 32-bit 100.000000 MHz counter", RateSource::Hpet, 100.0),
    ] {
        assert_eq!(event(message), Event::Rate(Rate { source, mhz }), "{message}");
    }
    for cut in [
        "tsc: Detected 2900.000",
        "tsc: Detected 2900.000 MHz",
        "tsc: Detected 2900.000 MHz proc",
        "tsc: Detected x MHz TSC",
    ] {
        assert_eq!(parse(cut), None, "{cut}");
    }
    let warning = "tsc: Warning: TSC freq calibrated by CPUID/MSR differs from what is calibrated by HW timer, \
                   please check with vendor!!";
    assert_eq!(event(warning), Event::RateWarning);
}

#[test]
fn unstable() {
    let unstable =
        |reason: Option<&str>| Event::Unstable { clocksource: "tsc".into(), reason: reason.map(String::from) };
    for reason in [
        "clocksource watchdog",
        "check_tsc_sync_source failed",
        "TSCs unsynchronized",
        "running on Hyper-V",
        "KVM discovered backwards TSC",
        "TSC halts in idle",
        "TSC halts in idle states deeper than C2",
        "cpufreq changes",
        "could not calculate TSC khz",
        "boot parameter",
        "something new",
    ] {
        for prefix in ["tsc: ", ""] {
            assert_eq!(event(&format!("{prefix}Marking TSC unstable due to {reason}")), unstable(Some(reason)));
        }
    }
    assert_eq!(event("tsc: Marking TSC unstable due to"), unstable(None));
    assert_eq!(event("Marking TSC unstable due to a\u{7}\u{1b}\u{202e}b"), unstable(Some("ab")));
    assert_eq!(
        event("TSC found unstable after boot, most likely due to broken BIOS. Use 'tsc=unstable'."),
        Event::UnstableAfterBoot
    );
    for message in [
        "sched_clock: Marking unstable (8511381561, -8990127)<-(8520197471, -17805900)",
        "sched_clock: Marking unstable (818769414384, 1195404998)",
    ] {
        assert_eq!(event(message), Event::SchedClockUnstable);
    }
}

#[test]
fn warps() {
    let warp = |cpus, cycles, random| Event::Warp(Warp { cpus, cycles, random });
    for message in ["TSC synchronization [CPU#0 -> CPU#1]:", "checking TSC synchronization [CPU#0 -> CPU#1]:"] {
        assert_eq!(parse(message), Some(Parsed { event: warp(Some((0, 1)), None, false), begins: true }));
        assert_eq!(parse(&format!("{message} passed.")), None);
    }
    for (message, cycles) in [
        ("Measured 4294 cycles TSC warp between CPUs, turning off TSC clock.", Some(4294)),
        ("tsc: Measured 4294 cycles TSC warp between CPUs, turning off TSC clock.", Some(4294)),
        ("Measured -1 cycles TSC warp between CPUs", None),
        ("Measured 99999999999999999999 cycles TSC warp between CPUs", None),
    ] {
        assert_eq!(parse(message), Some(Parsed { event: warp(None, cycles, false), begins: false }));
    }
    assert_eq!(event("TSC warped randomly between CPUs"), warp(None, None, true));
}

#[test]
fn firmware() {
    for (message, cpu, expected, found) in [
        ("[Firmware Bug]: TSC ADJUST differs: CPU3 0 --> 12345. Restoring", Some(3), Some(0), Some(12345)),
        ("[Firmware Bug]: TSC ADJUST differs: CPU3 -7 --> 123", Some(3), Some(-7), None),
        ("[Firmware Bug]: TSC ADJUST: CPU0: -23 force to 0", Some(0), Some(0), Some(-23)),
        ("[Firmware Bug]: TSC ADJUST differs: Reference CPU0: 0 CPU1: -1234 ", Some(1), Some(0), Some(-1234)),
        ("TSC ADJUST differs: Reference CPU0: 0, CPU1: -1234", Some(1), Some(0), None),
        ("[Firmware Bug]: TSC ADJUST differs within socket(s), fixing all errors", None, None, None),
    ] {
        assert_eq!(event(message), Event::FirmwareBug(FirmwareBug { cpu, expected, found }), "{message}");
    }
    let mended = Event::WarpCorrected { cpu: Some(1), cycles: Some(340) };
    assert_eq!(event("TSC ADJUST compensate: CPU1 observed 340 warp. Adjust: 340"), mended);
}

#[test]
fn others() {
    let version = |version: &str| Event::Boot { version: Some(version.into()) };
    assert_eq!(event("Linux version 6.18.5 (gcc (Debian 12.2.0) 12.2.0) #1 SMP"), version("6.18.5"));
    assert_eq!(event("Linux version 6.1"), Event::Boot { version: None }, "may be 6.18");
    assert_eq!(event("Skipped synchronization checks as TSC is reliable."), Event::SyncSkipped);
    assert_eq!(event("kvm-clock: Using msrs 4b564d01 and 4b564d00"), Event::KvmClock);
    let timer = |wall: Option<&str>| Event::OldTimer {
        mhz: Some(3.579545),
        wall: wall.map(String::from),
        timer: Some("PIT/TSC".into()),
    };
    assert_eq!(event("time.c: Using 3.579545 MHz WALL PM GTOD PIT/TSC timer."), timer(Some("PM")));
    assert_eq!(event("time.c: Using 3.579545 MHz PIT/TSC timer."), timer(None));
}
