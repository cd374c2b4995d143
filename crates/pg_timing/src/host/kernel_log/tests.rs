//! Lines and whole logs.

use super::*;
use crate::report::Demoted;
use proptest::prelude::*;
use serde_json::json;

/// Published in a ticket about slow EXPLAIN ANALYZE in Docker Desktop.
const DOCKER: &str = "\
[    0.000000] tsc: Detected 2900.000 MHz processor
[    0.301420] clocksource: Switched to clocksource tsc
[ 7823.104882] clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is too large:
[ 7823.104893] clocksource:                       'hpet' wd_now: eb454b8a wd_last: ea528dea mask: ffffffff
[ 7823.104896] clocksource:                       'tsc' cs_now: 2c195dabad88 cs_last: 2c0e63f53a4a mask: ffffffffffffffff
[ 7823.105771] clocksource: Switched to clocksource hpet
";

/// Line, seconds, stamp
const FRAMES: &[(&str, Option<f64>, Option<&str>)] = &[
    ("[    0.000000] tsc: Detected", Some(0.0), None),
    ("[12345.678901] tsc: Detected", Some(12345.678901), None),
    ("tsc: Detected", None, None),
    ("12:[    1.5] tsc: Detected", Some(1.5), None),
    ("/var/log/kern.log:Nov 20 10:29:43 host kernel: tsc: Detected", None, Some("Nov 20 10:29:43")),
    ("kern.log:12:2026-11-20T10:29:43Z host kernel: tsc: Detected", None, Some("2026-11-20T10:29:43Z")),
    ("[Fri Nov 20 10:29:43 2026] tsc: Detected", None, Some("Fri Nov 20 10:29:43 2026")),
    ("2026-11-20T10:29:43,123456+00:00 tsc: Detected", None, Some("2026-11-20T10:29:43,123456+00:00")),
    ("[Nov20 10:29] tsc: Detected", None, Some("Nov20 10:29")),
    ("[  +0.000003] tsc: Detected", None, None),
    ("[    1.500000 <    0.000012>] tsc: Detected", Some(1.5), None),
    ("kern  :warn  : [    1.5] tsc: Detected", Some(1.5), None),
    ("<6>[69848.656985][T25549] tsc: Detected", Some(69848.656985), None),
    ("[    1.5] [   C11] tsc: Detected", Some(1.5), None),
    ("Nov 20 10:29:43 host kernel: [    1.500000] tsc: Detected", Some(1.5), Some("Nov 20 10:29:43")),
    ("Nov  2 10:29:43 db-1.example kernel: tsc: Detected", None, Some("Nov  2 10:29:43")),
    ("12月 24 19:00:00 db1 kernel: tsc: Detected", None, Some("12月 24 19:00:00")),
    ("déc. 24 19:00:00 db1 kernel: tsc: Detected", None, Some("déc. 24 19:00:00")),
    ("Fri 2026-11-20 10:29:43 UTC host kernel: tsc: Detected", None, Some("Fri 2026-11-20 10:29:43")),
    ("[ 7823.104882] host kernel: tsc: Detected", Some(7823.104882), None),
    ("1795170583.123456 host kernel: tsc: Detected", None, None),
    ("kernel: [    1.5] tsc: Detected", Some(1.5), None),
    ("6,342,10301420,-,caller=T1;tsc: Detected", Some(10.30142), None),
    ("\u{1b}[32m[    1.500000] \u{1b}[0m\u{1b}[33mtsc: \u{1b}[0mDetected", Some(1.5), None),
    ("\u{1b}[01;31m\u{1b}[K[    1.5]\u{1b}[m\u{1b}[K tsc:\u{1b}[36m\u{1b}[K Detected", Some(1.5), None),
    ("\u{feff}> > [    1.5] tsc: Detected", Some(1.5), None),
    ("vm-1  | [    1.5] tsc: Detected", Some(1.5), None),
    ("[pod/db-0/log] [    1.5] tsc: Detected", Some(1.5), None),
    ("(120) - 2018-08-14T10:11:10.123456789Z: tsc: Detected", None, Some("2018-08-14T10:11:10.123456789Z")),
    ("Nov 20 10:29:43 host kernel[12]: [    1.5] tsc: Detected", Some(1.5), Some("Nov 20 10:29:43")),
    ("<6>1 2026-11-20T10:29:43Z host kernel - - - [    1.5] tsc: Detected", Some(1.5), Some("2026-11-20T10:29:43Z")),
    ("1 2026-11-20T10:29:43Z host kernel - - - tsc: Detected", None, Some("2026-11-20T10:29:43Z")),
];

const REST: &str = " 2900.000 MHz processor";

#[test]
fn every_frame_is_removed() {
    for (line, seconds, stamp) in FRAMES {
        let log = parse(&format!("{line}{REST}\n"));
        let [message] = log.messages.as_slice() else { panic!("{line:?}: {log:?}") };
        let found = (message.shown.seconds, message.shown.stamp.as_deref(), message.shown.text.as_str());
        assert_eq!(found, (*seconds, *stamp, "tsc: Detected 2900.000 MHz processor"), "{line:?}");
    }
}

#[test]
fn lines_of_other_programs_are_not_the_kernels() {
    for line in [
        "Nov 20 10:29:43 host app[77]: tsc: Detected",
        "Nov 20 10:29:43 host systemd: tsc: Detected",
        "[    5.1] systemd[1]: tsc: Detected",
        "it was the kernel: tsc: Detected",
        "I think that it wrote tsc: Detected",
    ] {
        assert_eq!(parse(&format!("{line}{REST}\n")).messages, [], "{line:?}");
    }
}

#[test]
fn logs_in_json() {
    let expected = parse("[    1.500000] clocksource: Switched to clocksource hpet\n").messages;
    let journal = r#"{"SYSLOG_IDENTIFIER": "kernel", "_SOURCE_MONOTONIC_TIMESTAMP": "1500000", "MESSAGE": "clocksource: Switched to clocksource hpet"}"#;
    let other = journal.replace("\"kernel\"", "\"app\"");
    assert_eq!(parse(&format!("{other}\n{journal}\n")).messages, expected);
    assert_eq!(parse(&journal.replace(", ", ",\n   ")).messages, expected, "json-pretty");
    let dmesg = r#"{ "dmesg": [ { "pri": 6, "time": 0.1, "msg": "usb 1-1: x" },{
        "pri": 6, "time":    1.500000, "msg": "clocksource: Switched to clocksource hpet" } ] }"#;
    assert_eq!(parse(dmesg).messages, expected);
    assert!(!parse(&dmesg[..dmesg.len() - 4]).messages.is_empty(), "cut off");
}

/// As collectors, clouds and pages export logs.
#[test]
fn logs_in_texts_of_json_and_html() {
    let line = "[    1.500000] clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable because of x";
    let log = format!("{line}\n[    1.600000] clocksource: Switched to clocksource hpet\n");
    let expected = parse(&log).messages;
    assert_eq!(expected.len(), 2);
    let each = |of: fn(&str) -> serde_json::Value| log.lines().map(of).collect::<Vec<_>>();
    let list = serde_json::Value::from(each(|line| json!({"jsonPayload": {"message": line}})));
    let lines = each(|line| json!({"log": format!("{line}\n"), "stream": "stdout"}));
    let lines = lines.iter().map(|value| format!("{value}\n")).collect::<String>();
    for text in [
        list.to_string(),
        format!("{list:#}"),
        format!("data: {}", lines.replace('\n', "\n\ndata: ")),
        lines.lines().map(|line| format!("\u{1e}{line}\n")).collect(),
        lines,
        json!({"InstanceId": "i-1", "Output": log.replace('\n', "\r\n")}).to_string(),
        json!({"data": {"result": [{"values": each(|line| json!(["1", line]))}]}}).to_string(),
        json!(log).to_string(),
        format!("<pre>{}</pre>", html_escape::encode_safe(&log)),
    ] {
        assert_eq!(parse(&text).messages, expected, "{text}");
    }
}

/// In any form of journalctl's JSON.
#[test]
fn another_programs_record_is_not_the_kernels() {
    let message = "clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because of x";
    let record = json!({"MESSAGE": message, "SYSLOG_IDENTIFIER": "myapp", "_TRANSPORT": "syslog"});
    for text in [format!("{record}"), format!("data: {record}\n\n"), format!("\u{1e}{record}\n")] {
        assert_eq!(parse(&text).messages, [], "{text}");
    }
}

#[test]
fn records_of_json_without_the_usual_types() {
    let text = "clocksource: Switched to clocksource hpet";
    let found = |record: serde_json::Value| parse(&record.to_string()).messages;
    for time in [json!("7823.1"), json!(7823.1)] {
        let record = json!({"level": "info", "time": time, "msg": text});
        assert_eq!(found(record)[0].shown.seconds, Some(7823.1));
    }
    assert_eq!(found(json!({"time": "2026-11-27T00:01:02Z", "msg": text})).len(), 1);
    assert_eq!(found(json!({"MESSAGE": text, "_SOURCE_MONOTONIC_TIMESTAMP": 1_500_000}))[0].shown.seconds, Some(1.5));
    for other in [
        json!({"SYSLOG_IDENTIFIER": "app", "_TRANSPORT": "stdout", "message": text}),
        json!([{"statement": text, "query": text, "message": "x"}]),
    ] {
        assert_eq!(found(other), []);
    }
}

/// A record has all fields of journalctl. A program sends any bytes in its own fields: journalctl shows several values as a
/// list, and a long value as null.
#[test]
fn a_record_of_another_program_is_not_the_kernels() {
    let record = |program: &str, transport: &str| {
        format!(
            r#"{{"__CURSOR":"s=1f","__REALTIME_TIMESTAMP":"1703449648000000","__MONOTONIC_TIMESTAMP":"1612345","_BOOT_ID":"9c","_TRANSPORT":"{transport}","PRIORITY":"4","SYSLOG_FACILITY":"0","SYSLOG_IDENTIFIER":{program},"_SOURCE_MONOTONIC_TIMESTAMP":"1500000","_MACHINE_ID":"5d","_HOSTNAME":"db1","_PID":"77","MESSAGE":"clocksource: Switched to clocksource hpet"}}"#
        )
    };
    let kernel = record("\"kernel\"", "kernel");
    let expected = parse("[    1.500000] clocksource: Switched to clocksource hpet\n").messages;
    assert_eq!(parse(&kernel).messages, expected);
    let later = kernel.replace("\"_SOURCE_MONOTONIC_TIMESTAMP\":\"1500000\",", "");
    assert_eq!(parse(&later).messages[0].shown.seconds, Some(1.612345));
    for (program, transport) in [
        ("\"app\"", "syslog"),
        ("null", "journal"),
        ("[\"kernel\",\"app\"]", "journal"),
        ("[107,0]", "journal"),
        // logger -t kernel
        ("\"kernel\"", "syslog"),
        // a program that writes to /dev/kmsg
        ("\"systemd\"", "kernel"),
    ] {
        let other = record(program, transport);
        assert_eq!(parse(&format!("{other}\n{kernel}\n")).messages, expected, "{other}");
    }
}

#[test]
fn names_and_secrets_stay_out() {
    let log = parse(
        "[    0.000000] Linux version 6.1.0 (me@build.example) (gcc)\n\
         [    0.000001] Kernel command line: root=/dev/sda1 key=secret tsc=reliable quiet\n\
         [    0.000002] Kernel command line: root=/dev/sda1\n",
    );
    assert_eq!(
        log.lines_about_clocks(),
        ["[    0.000000] Linux version 6.1.0", "[    0.000001] Kernel command line: tsc=reliable"]
    );
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

#[test]
fn the_docker_desktop_log() {
    let log = parse(DOCKER);
    let demotion = log.demotion().unwrap();
    assert_eq!((demotion.when.as_deref(), demotion.cpu), (Some("7823 s after boot"), Some(2)));
    // 47 139 156 798 ticks at 2900 MHz less 15 908 256 of an HPET whose rate is not in the log
    let because = "it jumped ahead of hpet by at least 14.7 s in at most 1.6 s, as after a pause or a write to the TSC";
    assert_eq!((demotion.because.as_str(), demotion.doubt), (because, None));
    let sources: Vec<&str> = log.of(Kind::Switched).map(Message::source).collect();
    assert_eq!(sources, ["tsc", "hpet"]);
}

#[test]
fn every_kind_of_demotion_is_found() {
    for (text, expected) in [
        ("Clocksource tsc unstable (delta = -62503714 ns)", Some("it differed too much from its watchdog")),
        (
            "'hpet' wd_now: 1 wd_last: 0 mask: f\ntsc: Marking TSC unstable due to clocksource watchdog",
            Some("it differed too much from hpet"),
        ),
        ("Marking clocksource tsc unstable due to frequency skew", Some("it differed too much from its watchdog")),
        ("Marking clocksource tsc-early unstable due to inter CPU skew", Some("it differs between CPUs")),
        (
            "timekeeping watchdog on CPU1: hpet read-back delay of 150280ns, attempt 3, marking unstable\n\
             tsc: Marking TSC unstable due to clocksource watchdog\nTSC found unstable after boot",
            Some("the comparison with hpet took 150 us"),
        ),
        (
            "timekeeping watchdog on CPU1: wd-tsc-wd excessive read-back delay of 1000614ns vs. limit of 125000ns",
            Some("the comparison with its watchdog took 1 ms"),
        ),
        (
            "Measured 7 cycles TSC warp between CPUs\nMarking TSC unstable due to check_tsc_sync_source failed",
            Some("it went back by 7 cycles from one CPU to another"),
        ),
        ("TSC warped randomly between CPUs", Some("it went back from one CPU to another")),
        (
            "TSC found unstable after boot, most likely due to broken BIOS.",
            Some("of a reason that the log does not show"),
        ),
        ("Marking TSC unstable due to cpufreq changes", Some("of \"cpufreq changes\"")),
        ("Clocksource acpi_pm unstable (delta = 5 ns)", None),
        ("Marking clocksource kvm-clock unstable due to frequency skew", None),
        ("Switched to clocksource hpet", None),
        // The demotion belongs to an earlier boot.
        ("Clocksource tsc unstable (delta = 5 ns)\nLinux version 6.1 (gcc)\nSwitched to clocksource tsc", None),
    ] {
        assert_eq!(parse(text).demotion().map(|demotion| demotion.because).as_deref(), expected, "{text}");
    }
}

/// Returns what the counters of a TSC of 2000 MHz and the watchdog `acpi_pm` show.
fn compared(wd_ticks: u64, cs_last: u64, cs_now: u64, mask: u64, extra: &str) -> Demoted {
    let wd_now = (5 + wd_ticks) & 0xff_ffff;
    let [wd, cs] = match extra {
        "" => [""; 2],
        _ => ["wd_nsec: 500000000", "cs_nsec: 9223372036854775807"],
    };
    let log = parse(&format!(
        "tsc: Detected 2000.000 MHz TSC\nMarking clocksource tsc unstable due to frequency skew\n\
         'acpi_pm' {wd} wd_now: {wd_now:x} wd_last: 5 mask: ffffff\n\
         'tsc' {cs} cs_now: {cs_now:x} cs_last: {cs_last:x} mask: {mask:x}\n{extra}"
    ));
    log.demotion().unwrap()
}

const HALF_S: u64 = 3_579_545 / 2;

/// The mask gives the sign, whatever the kernel printed and however wide the counter is. The time between the two readings is
/// unknown, so the step back is at least the difference.
#[test]
fn a_counter_that_went_back_counted_nothing() {
    const BACK: &str = ", as after a suspend, a restore or a migration";
    for bits in [24, 32, 48, 56, 64] {
        let mask = u64::MAX >> (64 - bits);
        let last = mask / 2;
        for extra in [
            "",
            "Clocksource 'tsc' skewed 7703356249776000000 ns (7 ms) over watchdog 'acpi_pm' interval of 500000000 ns (500 ms)\n",
        ] {
            let back = compared(HALF_S, last, last - 2_000_000, mask, extra);
            assert_eq!(back.because, format!("it went back by at least 1 ms{BACK}"), "{bits} bits");
            assert_eq!(back.doubt, None);
        }
    }
    // Linux 7.1 prints no counters.
    let text = "Marking clocksource tsc unstable due to frequency skew\nWatchdog hpet interval: 500000000ns\n\
                Clocksource tsc interval: 7703356256689000000ns\n";
    let skewed = |ns: &str| {
        let skew =
            format!("Clocksource 'tsc' skewed {ns} ns (0 ms) over watchdog 'hpet' interval of 504000000 ns (504 ms)");
        format!("Marking clocksource tsc unstable due to frequency skew\n{skew}\n")
    };
    for text in [
        text.into(),
        text.replace("7703356256689000000ns", "-38471000000000ns"),
        // The difference alone shows it: the watchdog counted 504 ms.
        skewed("-38471504000000"),
        skewed("7686138365496033628"),
    ] {
        assert_eq!(parse(&text).demotion().unwrap().because, format!("it went back{BACK}"), "{text}");
    }
}

#[test]
fn differences_jumps_and_overflows_differ() {
    let ticks = |ns: u64| ns * 2;
    let of = |wd_ticks: u64, ns: u64| {
        let found = compared(wd_ticks, 0, ticks(ns), u64::MAX, "");
        (found.because, found.doubt.is_some())
    };
    let jump = |by: &str| {
        let cause = "as after a pause or a write to the TSC";
        (format!("it jumped ahead of acpi_pm by {by}, {cause}"), false)
    };
    assert_eq!(of(HALF_S, 500_500_000), ("it gained 500 us on acpi_pm in 500 ms".into(), false));
    assert_eq!(of(HALF_S, 0), ("it stood still while acpi_pm counted 500 ms".into(), false));
    assert_eq!(of(HALF_S, 480_000_000), ("it lost 20 ms on acpi_pm in 500 ms".into(), false));
    // The machine was paused for 10 s, in which the ACPI timer overflowed twice.
    let ten_s = 35_795_450 & 0xff_ffff;
    assert_eq!(of(ten_s, 10_000_000_000), ("it gained 9.4 s on acpi_pm in 626 ms".into(), true));
    assert_eq!(of(ten_s, 10_100_000_000), jump("9.5 s in 626 ms"));
    assert_eq!(of(HALF_S, 38_471_000_000_000), jump("38471 s in 500 ms"));
    assert_eq!(of(0, 500_000_000), jump("500 ms in 0 ns"));
    // Both counters of Linux 7.1 show the pause.
    let intervals = |watchdog_s: u64, tsc_s: u64| {
        let found = parse(&format!(
            "Marking clocksource tsc unstable due to frequency skew\nWatchdog hpet interval: {watchdog_s}000000000ns\n\
             Clocksource tsc interval: {tsc_s}000000000ns\n"
        ));
        found.demotion().unwrap().doubt.is_some()
    };
    assert!(intervals(60, 61) && intervals(61, 60));
    assert!(!intervals(1, 2) && !intervals(60, 1) && !intervals(60, 3600));
    let printed = "Clocksource 'tsc' skewed 876429 ns (0 ms) over watchdog 'hpet' interval of 495412266 ns (495 ms)";
    let text = format!("Marking clocksource tsc unstable due to frequency skew\n{printed}\n");
    assert_eq!(parse(&text).demotion().unwrap().because, "it gained 876 us on hpet in 495 ms");
}

#[test]
fn lines_of_another_event_are_not_joined() {
    let lines: Vec<&str> = DOCKER.lines().collect();
    let because = |text: &str| parse(text).demotion().unwrap().because;
    assert_eq!(because(&lines[2..4].join("\n")), "it differed too much from hpet");
    let noise = "\n[ 7823.2] usb 1-1: new device\nNov 20 10:29:43 db app[7]: clocksource\n\n";
    assert_eq!(parse(&lines.join(noise)).demotion(), parse(DOCKER).demotion());
    let later = parse(&[lines[2], &lines[3].replace("7823", "7923")].join("\n")).demotion().unwrap();
    assert_eq!((later.when.as_deref(), later.cpu), (Some("7923 s after boot"), None), "100 s later");
}

/// The kernel found a fault of the TSC, and used another clock source all the time.
#[test]
fn a_demotion_can_name_the_current_clock_source() {
    let log = "'tsc' cs_now: 2 cs_last: 1 mask: ff\nclocksource: 'kvm-clock' (not 'tsc') is current clocksource.\n";
    assert_eq!(parse(log).of(Kind::Current).map(Message::source).collect::<Vec<_>>(), ["kvm-clock"]);
    assert_eq!(parse("'tsc' is current clocksource.").messages, []);
    let freebsd = parse("kern.timecounter.hardware: TSC-low\n");
    assert_eq!(freebsd.of(Kind::Current).map(Message::source).collect::<Vec<_>>(), ["TSC-low"]);
}

#[test]
fn a_timecounter_name_can_contain_spaces() {
    let log = parse(
        "Timecounter \"ARM MPCore Timecounter\" frequency 62500000 Hz quality 1000\nTimecounters tick every 1 ms\n",
    );
    let [one] = log.messages.as_slice() else { panic!("{log:?}") };
    assert_eq!((one.fields.text("name"), one.fields.number("quality")), (Some("ARM MPCore Timecounter"), Some(1000)));
}

/// A cut line has no wrong figure: what it has is also in the whole log.
#[test]
fn a_cut_log_has_no_other_facts() {
    let whole = parse(DOCKER);
    for at in (0..DOCKER.len()).filter(|at| DOCKER.is_char_boundary(*at)) {
        let part = parse(&DOCKER[..at]);
        assert!(part.messages.len() <= whole.messages.len(), "cut at {at}");
        for (part, whole) in part.messages.iter().zip(&whole.messages) {
            assert_eq!(
                (part.kind, part.shown.seconds, part.source()),
                (whole.kind, whole.shown.seconds, whole.source()),
                "cut at {at}"
            );
        }
    }
}

#[test]
fn time_grows_linearly_with_the_size() {
    let took = |unit: &str, bytes: usize| {
        let text = DOCKER.to_string() + &unit.repeat(bytes / unit.len());
        let once = || {
            let start = std::time::Instant::now();
            assert!(parse(&text).demotion().is_some());
            start.elapsed()
        };
        (0..5).map(|_| once()).min().expect("five times")
    };
    // 32 times the size would take 1024 times as long if time grew with its square. A busy machine makes it up to 8 times slower.
    for unit in ["[", "> [T1]", "\u{1b}[1m", "'", "clocksource ", "{\"msg\":\"", "[[[[[[[[[\n", DOCKER] {
        let (short, long) = (took(unit, 8_000), took(unit, 256_000));
        assert!(long < short * 400, "{unit:?}: {short:?} and {long:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_log(words in prop::collection::vec(prop_oneof![
        Just("clocksource:".to_string()), Just("[    1.5]".into()), Just("'tsc'".into()), Just("cs_now:".into()),
        Just("Marking TSC unstable due to".into()), Just("Switched to clocksource".into()), Just("10:29:43".into()),
        Just("\n".into()), Just("12月".into()), Just("ffffffff".into()), Just("{\"msg\":".into()), "\\PC{0,12}",
    ], 0..40), glue in prop_oneof![Just(" "), Just("")]) {
        let log = parse(&words.join(glue));
        prop_assert!(log.messages.iter().all(|message| !message.shown.text.contains(char::is_control)));
        log.demotion();
    }
}
