//! Facts in whole logs.

mod damaged;

use super::*;

/// Published in a ticket about slow EXPLAIN ANALYZE in Docker Desktop.
pub(super) const DOCKER: &str = "\
[    0.000000] tsc: Detected 2900.000 MHz processor
[    0.301420] clocksource: Switched to clocksource tsc
[ 7823.104882] clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is too large:
[ 7823.104893] clocksource:                       'hpet' wd_now: eb454b8a wd_last: ea528dea mask: ffffffff
[ 7823.104896] clocksource:                       'tsc' cs_now: 2c195dabad88 cs_last: 2c0e63f53a4a mask: ffffffffffffffff
[ 7823.105771] clocksource: Switched to clocksource hpet
";

/// Every message with several lines, and some with one line.
const ALL_KINDS: &str = "\
Nov 20 10:00:00 db kernel: [    0.000000] Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)
Nov 20 10:00:00 db kernel: [    0.000000] tsc: Detected 1900.000 MHz processor
Nov 20 10:00:00 db kernel: [    0.000000] tsc: Detected 1896.000 MHz TSC
Nov 20 10:00:00 db kernel: [    0.100000] [Firmware Bug]: TSC ADJUST differs: CPU3 0 --> 12345. Restoring
Nov 20 10:00:00 db kernel: [    0.110000] TSC synchronization [CPU#0 -> CPU#1]:
Nov 20 10:00:00 db kernel: [    0.110001] Measured 4294 cycles TSC warp between CPUs, turning off TSC clock.
Nov 20 10:00:00 db kernel: [    0.110002] tsc: Marking TSC unstable due to check_tsc_sync_source failed
Nov 20 10:00:00 db kernel: [    0.200000] hpet0: 3 comparators, 64-bit 25.000000 MHz counter
Nov 20 10:00:00 db kernel: [    0.300000] clocksource: Switched to clocksource tsc
Nov 20 10:00:10 db kernel: [   10.000000] PM: suspend entry (deep)
Nov 20 10:00:11 db kernel: [   11.000000] PM: suspend exit
Nov 20 10:01:00 db kernel: [   60.000000] clocksource: timekeeping watchdog on CPU4: hpet wd-wd read-back delay of 1203520ns
Nov 20 10:01:00 db kernel: [   60.000001] clocksource: wd-tsc-wd read-back delay of 181880ns, clock-skew test skipped!
Nov 20 10:01:01 db kernel: [   61.000000] clocksource: timekeeping watchdog on CPU4: hpet retried 3 times before success
Nov 20 10:01:02 db kernel: [   62.000000] clocksource: timekeeping watchdog on CPU4: Marking clocksource 'tsc' as unstable because the skew is too large:
Nov 20 10:01:02 db kernel: [   62.000001] clocksource:                       'hpet' wd_nsec: 495412266 wd_now: 74b2d4c wd_last: 6def0b2 mask: ffffffff
Nov 20 10:01:02 db kernel: [   62.000002] clocksource:                       'tsc' cs_nsec: 496288695 cs_now: 1a21e4cda2 cs_last: 19b1b24352 mask: ffffffffffffffff
Nov 20 10:01:02 db kernel: [   62.000003] clocksource:                       Clocksource 'tsc' skewed 876429 ns (0 ms) over watchdog 'hpet' interval of 495412266 ns (495 ms)
Nov 20 10:01:02 db kernel: [   62.000004] clocksource:                       'tsc' is current clocksource.
Nov 20 10:01:02 db kernel: [   62.000005] tsc: Marking TSC unstable due to clocksource watchdog
Nov 20 10:01:02 db kernel: [   62.000100] clocksource: Checking clocksource tsc synchronization from CPU 4 to CPUs 0,5.
Nov 20 10:01:02 db kernel: [   62.000101] clocksource:         CPUs 0-2 ahead of CPU 4 for clocksource tsc.
Nov 20 10:01:02 db kernel: [   62.000102] clocksource:         CPU 4 check durations 1446ns - 32908ns for clocksource tsc.
Nov 20 10:01:02 db kernel: [   62.000103] clocksource: Override clocksource tsc is unstable and not HRT compatible - cannot switch while in HRT/NOHZ mode
Nov 20 10:01:02 db kernel: [   62.000104] clocksource: Switched to clocksource hpet
";

#[test]
fn facts_in_the_log_of_docker_desktop() {
    let log = parse(DOCKER);
    assert_eq!((log.lines, log.entries.len(), log.truncated), (6, 4, false));
    let demotion = Demotion {
        clocksource: "tsc".into(),
        seconds: Some(7823.104882),
        stamp: None,
        cpu: Some(2),
        watchdog: Some("hpet".into()),
        // 47 139 156 798 ticks at 2900 MHz less 15 908 256 at 14.318180 MHz
        skew_ns: Some(15_143_828_713),
        interval_ns: Some(1_111_052_941),
        assumed_mhz: Some(14.318180),
        rounds: None,
        reason: None,
        kind: DemotionKind::Watchdog,
        after_suspend: false,
    };
    assert_eq!(log.demotion(), Some(demotion));
    assert_eq!(log.switches().collect::<Vec<_>>(), [(Some(0.30142), "tsc"), (Some(7823.105771), "hpet")]);
    assert_eq!(log.rates().collect::<Vec<_>>(), [&Rate { source: RateSource::Processor, mhz: 2900.0 }]);
    assert_eq!((log.firmware_bug(), log.override_refused(), log.rate_warning()), (None, None, false));
}

#[test]
fn facts_in_a_log_with_all_messages() {
    let log = parse(ALL_KINDS);
    let demotion = log.demotion().unwrap();
    assert_eq!((demotion.skew_ns, demotion.interval_ns, demotion.cpu), (Some(876_429), Some(495_412_266), Some(4)));
    assert_eq!((demotion.kind, demotion.after_suspend, demotion.assumed_mhz), (DemotionKind::Watchdog, true, None));
    assert_eq!(demotion.reason.as_deref(), Some("clocksource watchdog"));
    assert_eq!(demotion.stamp.as_deref(), Some("Nov 20 10:01:02"));
    assert_eq!(log.firmware_bug(), Some(&FirmwareBug { cpu: Some(3), expected: Some(0), found: Some(12345) }));
    assert!(log.override_refused().is_some_and(|refused| refused.unstable && refused.clocksource == "tsc"));
    assert_eq!(log.rates().count(), 3);
}

#[test]
fn every_kind_of_demotion_is_found() {
    let kind = |text: &str| parse(text).demotion().map(|demotion| (demotion.kind, demotion.reason));
    let warp = DemotionKind::Warp { cycles: Some(7), cpus: None };
    let watchdog = Some("clocksource watchdog".to_string());
    for (text, expected) in [
        ("Clocksource tsc unstable (delta = -62503714 ns)", Some((DemotionKind::Watchdog, None))),
        (
            "hpet wd_now\n'hpet' wd_now: 1 wd_last: 0 mask: f\ntsc: Marking TSC unstable due to clocksource watchdog",
            Some((DemotionKind::Watchdog, watchdog.clone())),
        ),
        ("Marking clocksource tsc unstable due to frequency skew", Some((DemotionKind::FrequencySkew, None))),
        ("Marking clocksource tsc-early unstable due to inter CPU skew", Some((DemotionKind::InterCpuSkew, None))),
        (
            "timekeeping watchdog on CPU1: hpet read-back delay of 150280ns, attempt 3, marking unstable\n\
             tsc: Marking TSC unstable due to clocksource watchdog\nTSC found unstable after boot",
            Some((DemotionKind::ReadBackDelay { delay_ns: Some(150_280) }, watchdog.clone())),
        ),
        ("Measured 7 cycles TSC warp between CPUs, turning off TSC clock.", Some((warp.clone(), None))),
        (
            "Measured 7 cycles TSC warp between CPUs\nMarking TSC unstable due to check_tsc_sync_source failed",
            Some((warp, Some("check_tsc_sync_source failed".into()))),
        ),
        ("TSC found unstable after boot, most likely due to broken BIOS.", Some((DemotionKind::Firmware, None))),
        ("Marking TSC unstable due to clocksource watchdog", Some((DemotionKind::Reason, watchdog))),
        ("Marking TSC unstable due to cpufreq changes", Some((DemotionKind::Reason, Some("cpufreq changes".into())))),
        // Another reason is another demotion.
        (
            "Clocksource tsc unstable (delta = 5 ns)\nMarking TSC unstable due to boot parameter",
            Some((DemotionKind::Reason, Some("boot parameter".into()))),
        ),
        ("Clocksource acpi_pm unstable (delta = 5 ns)", None),
        ("Marking clocksource kvm-clock unstable due to frequency skew", None),
        ("Switched to clocksource hpet", None),
        // The demotion belongs to an earlier boot.
        ("Clocksource tsc unstable (delta = 5 ns)\nLinux version 6.1 (gcc)\nSwitched to clocksource tsc", None),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
}

#[test]
fn a_missing_beginning_is_noticed() {
    for (text, truncated) in [
        ("", true),
        ("Switched to clocksource tsc", true),
        ("[    0.000000] x", false),
        ("[ 7823.104882] x\n[    0.000000] x", true),
        ("[ 7823.104882] x\n[    0.000000] Linux version 6.1 (gcc)", false),
        ("[Fri Nov 20 10:29:43 2026] Linux version 6.1 (gcc)", false),
        ("[Fri Nov 20 10:29:43 2026] x", true),
        ("6,342,10301420,-;x", true),
    ] {
        assert_eq!(parse(text).truncated, truncated, "{text}");
    }
}

/// Returns the only event in the text.
fn skew(text: &str) -> Skew {
    match parse(text).entries.as_slice() {
        [Entry { event: Event::Skew(skew), .. }] => (**skew).clone(),
        other => panic!("{other:#?}"),
    }
}

#[test]
fn lines_of_an_event_are_joined() {
    let lines: Vec<&str> = DOCKER.lines().skip(2).take(3).collect();
    let whole = skew(&lines.join("\n"));
    assert_eq!((whole.cpu, whole.wd.elapsed(), whole.cs.elapsed()), (Some(2), Some(15_908_256), Some(47_139_156_798)));
    let others = "\n[ 7823.2] usb 1-1: new device\nNov 20 10:29:43 db app[7]: clocksource\n\n";
    assert_eq!(skew(&lines.join(others)), whole, "other lines between");
    assert_eq!(skew(&lines.join("\r\n")), whole);
    assert_eq!(skew(&[lines[0], lines[0], lines[1], lines[1], lines[2]][1..].join("\n")), whole, "a line twice");
    assert_eq!(skew(&lines[1..].join("\n")), Skew { cpu: None, ..whole.clone() }, "no first line");
    assert_eq!(skew(&lines[..2].join("\n")), Skew { cs: Reading::default(), ..whole.clone() });
    let no_watchdog = Skew { watchdog: None, wd: Reading::default(), ..whole };
    assert_eq!(skew(&[lines[0], lines[2]].join("\n")), no_watchdog);
}

#[test]
fn lines_of_different_events_are_not_joined() {
    let count = |text: &str| parse(text).entries.len();
    let lines: Vec<&str> = DOCKER.lines().skip(2).collect();
    let later = lines[1].replace("7823", "7923");
    assert_eq!(count(&[lines[0], &later].join("\n")), 2, "100 s later");
    let other = lines[1].replace("eb454b8a", "eb454b8b");
    assert_eq!(count(&[lines[0], lines[1], &other].join("\n")), 2, "another count");
    let other = lines[2].replace("'tsc'", "'xen'");
    assert_eq!(count(&[lines[0], &other].join("\n")), 2, "another clock source");
    assert_eq!(count(&[lines[0], lines[3], lines[1]].join("\n")), 3, "after its consequence");
    assert_eq!(count(&[lines[0], lines[1], lines[0], lines[1]].join("\n")), 2, "twice");
}

#[test]
fn prefixes_do_not_change_the_facts() {
    let entries = parse(DOCKER).entries;
    let each = |change: fn(&str) -> String| DOCKER.lines().map(|line| change(line) + "\n").collect::<String>();
    for text in [
        each(|line| format!("kern  :warn  : {line}")),
        each(|line| format!("<4>{line}")),
        each(|line| format!("> {line}\r")),
        each(|line| line.replacen("] ", "][    T1] ", 1)),
        each(|line| format!("\u{1b}[32m{}\u{1b}[0m", line.replacen("] ", "]\u{1b}[0m ", 1))),
        each(|line| format!("db-1  | {line}")),
        each(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").replacen("[ ", "[", 1)),
    ] {
        assert_eq!(parse(&text).entries, entries, "{text}");
    }
}
