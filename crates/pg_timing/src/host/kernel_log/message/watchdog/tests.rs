//! Each message in the wording of the versions that have it.

use super::super::parse;
use super::*;

fn said(message: &str) -> Parsed {
    parse(message).unwrap_or_else(|| panic!("{message}"))
}

fn begins(message: &str) -> Event {
    let said = said(message);
    assert!(said.begins, "{message}");
    said.event
}

fn part(message: &str) -> Event {
    let said = said(message);
    assert!(!said.begins, "{message}");
    said.event
}

fn tsc() -> Option<String> {
    Some("tsc".into())
}

fn hpet() -> Option<String> {
    Some("hpet".into())
}

#[test]
fn the_skew_is_too_large() {
    for (message, cpu) in [
        ("timekeeping watchdog: Marking clocksource 'tsc' as unstable, because the skew is too large:", None),
        (
            "clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable because the skew is too large:",
            None,
        ),
        (
            "clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is \
             too large:",
            Some(2),
        ),
        ("timekeeping watchdog on CPU99999999999: Marking clocksource 'tsc' as unstable because", None),
    ] {
        assert_eq!(begins(message), skew(Skew { clocksource: tsc(), cpu, ..Skew::default() }), "{message}");
    }
    let old = Skew { clocksource: tsc(), skew_ns: Some(-62_503_714), ..Skew::default() };
    assert_eq!(begins("Clocksource tsc unstable (delta = -62503714 ns)"), skew(old.clone()));
    assert_eq!(begins("Clocksource tsc unstable (delta = -625"), skew(Skew { skew_ns: None, ..old }));
}

#[test]
fn counters() {
    let wd = Reading { nsec: None, now: Some(0xeb45_4b8a), last: Some(0xea52_8dea), mask: Some(0xffff_ffff) };
    let event = skew(Skew { watchdog: hpet(), wd, ..Skew::default() });
    let line = "'hpet' wd_now: eb454b8a wd_last: ea528dea mask: ffffffff";
    for message in [line, &format!("clocksource:                       {line}"), &line.replace(' ', "\t")] {
        assert_eq!(part(message), event);
    }
    // 6.1
    let cs = Reading {
        nsec: Some(496_288_695),
        now: Some(0x1a_21e4_cda2),
        last: Some(0x19_b1b2_4352),
        mask: Some(u64::MAX),
    };
    let message = "clocksource: 'tsc' cs_nsec: 496288695 cs_now: 1a21e4cda2 cs_last: 19b1b24352 mask: ffffffffffffffff";
    assert_eq!(part(message), skew(Skew { clocksource: tsc(), cs, ..Skew::default() }));
    assert_eq!(cs.elapsed(), Some(0x7032_8a50));
    // what is cut or broken is missing
    let cut = Reading { now: Some(0xeb45_4b8a), ..Reading::default() };
    for message in ["'hpet' wd_now: eb454b8a wd_last: ea52", "'hpet' wd_now: eb454b8a wd_last: xyz mask:"] {
        assert_eq!(part(message), skew(Skew { watchdog: hpet(), wd: cut, ..Skew::default() }));
    }
}

#[test]
fn skewed_over_an_interval() {
    let event = Skew {
        clocksource: tsc(),
        skew_ns: Some(-878_159),
        watchdog: hpet(),
        interval_ns: Some(495_412_266),
        ..Skew::default()
    };
    for ms in ["0 ms", "18446744073708 ms"] {
        let message = format!(
            "clocksource:                       Clocksource 'tsc' skewed -878159 ns ({ms}) over watchdog 'hpet' \
             interval of 495412266 ns (495 ms)"
        );
        assert_eq!(part(&message), skew(event.clone()));
    }
    let cut = Skew { interval_ns: None, ..event };
    assert_eq!(part("Clocksource 'tsc' skewed -878159 ns (0 ms) over watchdog 'hpet' interval of 4954"), skew(cut));
    let current = |current: &str| skew(Skew { current: Some(current.into()), ..Skew::default() });
    assert_eq!(part("clocksource:     'tsc' is current clocksource."), current("tsc"));
    assert_eq!(part("clocksource:     'hpet' (not 'tsc') is current clocksource."), current("hpet"));
}

#[test]
fn since_7_1() {
    let frequency = Skew { frequency: true, ..Skew::default() };
    assert_eq!(
        begins("clocksource: Marking clocksource tsc unstable due to frequency skew"),
        skew(Skew { clocksource: tsc(), ..frequency.clone() })
    );
    let nsec = |nsec| Reading { nsec: Some(nsec), ..Reading::default() };
    assert_eq!(
        part("clocksource: Watchdog                    hpet interval:        500000000ns"),
        skew(Skew { watchdog: hpet(), wd: nsec(500_000_000), ..frequency.clone() })
    );
    assert_eq!(
        part("clocksource: Clocksource                  tsc interval:        500900000ns"),
        skew(Skew { clocksource: tsc(), cs: nsec(500_900_000), ..frequency })
    );
    let cpu_skew = CpuSkew { clocksource: tsc(), ..CpuSkew::default() };
    assert_eq!(begins("clocksource: Marking clocksource tsc unstable due to inter CPU skew"), Event::CpuSkew(cpu_skew));
    let cpu_skew = CpuSkew { clocksource: None, low: Some((0, 123)), high: Some((7, 456)) };
    assert_eq!(part("clocksource: CPU0              123 < CPU7              456 (cycles)"), Event::CpuSkew(cpu_skew));
    assert_eq!(
        begins("Marking clocksource tsc unstable due to something else"),
        Event::Unstable { clocksource: "tsc".into(), reason: Some("something else".into()) }
    );
    assert_eq!(
        begins("clocksource: Watchdog hpet read timed out. Readout sequence took: 123456ns"),
        Event::CheckSkipped(CheckSkipped { watchdog: hpet(), delay_ns: Some(123_456), ..CheckSkipped::default() })
    );
    assert_eq!(
        begins("clocksource: Watchdog remote CPU 3 read timed out"),
        Event::CheckSkipped(CheckSkipped { cpu: Some(3), ..CheckSkipped::default() })
    );
}

#[test]
fn reading_took_too_long() {
    let by_watchdog =
        ReadBack { cpu: Some(339), watchdog: hpet(), delay_ns: Some(150_280), attempt: Some(3), ..ReadBack::default() };
    let message =
        "clocksource: timekeeping watchdog on CPU339: hpet read-back delay of 150280ns, attempt 3, marking unstable";
    assert_eq!(begins(message), Event::ReadBack(by_watchdog));
    let by_name = ReadBack {
        clocksource: tsc(),
        cpu: Some(13),
        delay_ns: Some(1_000_614),
        attempt: Some(3),
        ..ReadBack::default()
    };
    let message = "timekeeping watchdog on CPU13: wd-tsc-wd read-back delay of 1000614ns, attempt 3, marking unstable";
    assert_eq!(begins(message), Event::ReadBack(by_name.clone()));
    let excessive = ReadBack { limit_ns: Some(125_000), watchdog_delay_ns: Some(27), ..by_name };
    let message = "clocksource: timekeeping watchdog on CPU13: wd-tsc-wd excessive read-back delay of 1000614ns vs. \
                   limit of 125000ns, wd-wd read-back delay only 27ns, attempt 3, marking tsc unstable";
    assert_eq!(begins(message), Event::ReadBack(excessive));
}

#[test]
fn no_conclusion() {
    let skipped = CheckSkipped {
        cpu: Some(336),
        watchdog: hpet(),
        watchdog_delay_ns: Some(1_203_520),
        ..CheckSkipped::default()
    };
    let message = "clocksource: timekeeping watchdog on CPU336: hpet wd-wd read-back delay of 1203520ns";
    assert_eq!(begins(message), Event::CheckSkipped(skipped));
    let skipped = CheckSkipped { clocksource: tsc(), delay_ns: Some(181_880), ..CheckSkipped::default() };
    let message = "clocksource: wd-tsc-wd read-back delay of 181880ns, clock-skew test skipped!";
    assert_eq!(part(message), Event::CheckSkipped(skipped));
    let skipped = CheckSkipped { interval_ns: Some(14_523_447_520), ..CheckSkipped::default() };
    let message =
        "clocksource: Long readout interval, skipping watchdog check: cs_nsec: 14524115132 wd_nsec: 14523447520";
    assert_eq!(begins(message), Event::CheckSkipped(skipped));
    let retried = |times| Event::Retried { cpu: Some(3), watchdog: hpet(), times };
    assert_eq!(begins("timekeeping watchdog on CPU3: hpet retried 2 times before success"), retried(Some(2)));
    assert_eq!(begins("timekeeping watchdog on CPU3: hpet retried 2"), retried(None));
}

#[test]
fn cpus_compared() {
    let check = SyncCheck { clocksource: tsc(), cpu: Some(4), ..SyncCheck::default() };
    for message in [
        "Checking clocksource tsc synchronization from CPU 4.",
        "clocksource: Checking clocksource tsc synchronization from CPU 4 to",
    ] {
        assert_eq!(begins(message), Event::SyncCheck(check.clone()));
    }
    let compared = SyncCheck { compared: Some(Cpus(vec![(0, 0), (5, 7)])), ..check.clone() };
    assert_eq!(
        begins("clocksource: Checking clocksource tsc synchronization from CPU 4 to CPUs 0,5-7."),
        Event::SyncCheck(compared)
    );
    let ahead = SyncCheck { ahead: Some(Cpus(vec![(0, 3), (5, 5)])), ..check.clone() };
    assert_eq!(part("clocksource:         CPUs 0-3,5 ahead of CPU 4 for clocksource tsc."), Event::SyncCheck(ahead));
    let behind = SyncCheck { behind: Some(Cpus(vec![(6, 6)])), ..check.clone() };
    assert_eq!(part("clocksource:         CPUs 6 behind CPU 4 for clocksource tsc."), Event::SyncCheck(behind));
    let odd = SyncCheck { behind: None, ..check.clone() };
    assert_eq!(part("CPUs 6,99999999999 behind CPU 4 for clocksource tsc."), Event::SyncCheck(odd));
    let took = SyncCheck { took_ns: Some((1446, 32908)), ..check };
    assert_eq!(
        part("clocksource:         CPU 4 check durations 1446ns - 32908ns for clocksource tsc."),
        Event::SyncCheck(took)
    );
    assert_eq!(Cpus(vec![(0, 3), (5, 5)]).to_string(), "0-3,5");
}
