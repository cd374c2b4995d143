//! Damaged logs, and texts that are not logs.

use proptest::prelude::*;

use super::super::*;
use super::{ALL_KINDS, DOCKER};

/// Returns whether every field of `part` is also in `whole`.
fn is_part(part: &Event, whole: &Event) -> bool {
    fn contained<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
        part.is_none() || part == whole
    }
    fn counted(part: &Reading, whole: &Reading) -> bool {
        // A mask that lost digits can still be a mask, but it must not change the ticks.
        contained(&part.nsec, &whole.nsec)
            && contained(&part.now, &whole.now)
            && contained(&part.last, &whole.last)
            && contained(&part.elapsed(), &whole.elapsed())
    }
    match (part, whole) {
        (Event::Skew(part), Event::Skew(whole)) => {
            contained(&part.clocksource, &whole.clocksource)
                && contained(&part.cpu, &whole.cpu)
                && contained(&part.watchdog, &whole.watchdog)
                && contained(&part.skew_ns, &whole.skew_ns)
                && contained(&part.interval_ns, &whole.interval_ns)
                && counted(&part.wd, &whole.wd)
                && counted(&part.cs, &whole.cs)
                && contained(&part.current, &whole.current)
        }
        (Event::SyncCheck(part), Event::SyncCheck(whole)) => {
            contained(&part.clocksource, &whole.clocksource)
                && contained(&part.cpu, &whole.cpu)
                && contained(&part.compared, &whole.compared)
                && contained(&part.ahead, &whole.ahead)
                && contained(&part.took_ns, &whole.took_ns)
        }
        (Event::CheckSkipped(part), Event::CheckSkipped(whole)) => {
            contained(&part.clocksource, &whole.clocksource)
                && contained(&part.delay_ns, &whole.delay_ns)
                && contained(&part.watchdog_delay_ns, &whole.watchdog_delay_ns)
        }
        (Event::Warp(part), Event::Warp(whole)) => {
            contained(&part.cpus, &whole.cpus) && contained(&part.cycles, &whole.cycles)
        }
        (Event::FirmwareBug(part), Event::FirmwareBug(whole)) => {
            contained(&part.cpu, &whole.cpu)
                && contained(&part.expected, &whole.expected)
                && contained(&part.found, &whole.found)
        }
        (Event::Retried { times: part, .. }, Event::Retried { times: whole, .. }) => contained(part, whole),
        (Event::Boot { version: part }, Event::Boot { version: whole }) => contained(part, whole),
        (Event::Suspend { state: part }, Event::Suspend { state: whole }) => contained(part, whole),
        (Event::Unstable { reason: part, .. }, Event::Unstable { reason: whole, .. }) => {
            // words, cut as they are
            let whole = whole.as_deref().unwrap_or("");
            part.as_deref().is_none_or(|part| whole.starts_with(part))
        }
        _ => part == whole,
    }
}

#[test]
fn a_cut_log_has_no_other_facts() {
    for text in [DOCKER, ALL_KINDS] {
        let whole = parse(text).entries;
        for at in 0..text.len() {
            let part = parse(&text[..at]).entries;
            assert!(part.len() <= whole.len(), "cut at {at}");
            for (part, whole) in part.iter().zip(&whole) {
                assert!(is_part(&part.event, &whole.event), "cut at {at}: {part:?}");
                assert_eq!((part.seconds, &part.stamp), (whole.seconds, &whole.stamp), "cut at {at}");
            }
        }
    }
}

/// Returns a log of incomplete events, which would be slow with a quadratic search through open events.
fn half_events(lines: usize) -> String {
    const HALVES: [&str; 6] = [
        "clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew \
         is too large:\n",
        "clocksource:   'hpet' wd_now: 1 wd_last: 0 mask: ffffffff\n",
        "TSC synchronization [CPU#0 -> CPU#1]:\n",
        "clocksource: timekeeping watchdog on CPU336: hpet wd-wd read-back delay of 1203520ns\n",
        "clocksource: Checking clocksource tsc synchronization from CPU 4 to CPUs 0,5.\n",
        "clocksource: x: mask: 0xff max_cycles: 0xff, max_idle_ns: 255 ns\n",
    ];
    (0..lines).map(|line| HALVES[line % HALVES.len()]).collect()
}

#[test]
fn time_grows_linearly_with_the_size() {
    let took = |text: &str| {
        let once = || {
            let start = std::time::Instant::now();
            let log = parse(text);
            assert!(!story(&log.entries).is_empty() && log.demotion().is_some());
            start.elapsed()
        };
        (0..3).map(|_| once()).min().expect("three times")
    };
    // 32 times the size would take 1024 times as long if time grew with its square
    for (short, long) in [
        (half_events(500), half_events(16_000)),
        (DOCKER.to_string() + &"[".repeat(20_000), DOCKER.to_string() + &"[".repeat(640_000)),
        (DOCKER.to_string() + &"> [T1]".repeat(4000), DOCKER.to_string() + &"> [T1]".repeat(128_000)),
        (DOCKER.to_string() + &"\u{1b}[1m".repeat(4000), DOCKER.to_string() + &"\u{1b}[1m".repeat(128_000)),
        (format!("CPUs {}{DOCKER}", "1,".repeat(8000)), format!("CPUs {}{DOCKER}", "1,".repeat(256_000))),
    ] {
        let (short, long) = (took(&short), took(&long));
        assert!(long < short * 250, "{short:?} and {long:?}");
    }
}

/// Asserts the properties of every parsed log.
fn assert_valid(text: &str) {
    let log = parse(text);
    assert!(log.entries.len() <= log.lines);
    for sentence in story(&log.entries) {
        assert!(!sentence.is_empty() && sentence.len() < 1000 && !sentence.contains(char::is_control), "{sentence:?}");
    }
    if let Some(demotion) = log.demotion() {
        assert!(matches!(demotion.clocksource.as_str(), "tsc" | "tsc-early"));
        assert!(demotion.interval_ns.is_some() || demotion.assumed_mhz.is_none() && demotion.rounds.is_none());
    }
    assert!(log.rates().all(|rate| rate.mhz > 0.0 && rate.mhz.is_finite()));
    assert!(log.entries.iter().all(|entry| entry.seconds.is_none_or(|seconds| seconds.is_finite() && seconds >= 0.0)));
    let _ = (log.firmware_bug(), log.override_refused());
}

/// A change to a log.
#[derive(Debug, Clone)]
enum Change {
    Delete,
    Twice,
    Flip(u8),
    Insert(String),
}

fn change() -> impl Strategy<Value = (bool, prop::sample::Index, Change)> {
    let what = prop_oneof![
        Just(Change::Delete),
        Just(Change::Twice),
        (0..8u8).prop_map(Change::Flip),
        prop_oneof![
            any::<String>(),
            "[-+.,:0-9a-f '<>|\\[\\]]{1,6}",
            Just("18446744073709551616".into()),
            Just("-9223372036854775808".into()),
            Just("9223372036854775807".into()),
            any::<prop::sample::Index>().prop_map(|at| at.get(&ALL_KINDS.lines().collect::<Vec<_>>()).to_string()),
        ]
        .prop_map(Change::Insert),
    ];
    (any::<bool>(), any::<prop::sample::Index>(), what)
}

/// Changes one byte, or one line.
fn apply(text: &str, (lines, at, change): &(bool, prop::sample::Index, Change)) -> String {
    let mut parts: Vec<Vec<u8>> = match lines {
        true => text.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect(),
        false => text.bytes().map(|byte| vec![byte]).collect(),
    };
    if parts.is_empty() {
        return String::new();
    }
    let at = at.index(parts.len());
    match change {
        Change::Delete => drop(parts.remove(at)),
        Change::Twice => parts.insert(at, parts[at].clone()),
        Change::Flip(bit) => parts[at][0] ^= 1 << bit,
        Change::Insert(new) => parts.insert(at, new.as_bytes().to_vec()),
    }
    String::from_utf8_lossy(&parts.concat()).into_owned()
}

proptest! {
    #[test]
    fn any_text_causes_no_panic(text in any::<String>(), marks in prop::collection::vec(0usize..24, 0..12)) {
        const MARKS: [&str; 24] = [
            "\n", "[", "] ", "<6>", "[    1.5] ", "Nov 20 10:29:43 host kernel: ", "clocksource: ", "tsc: ",
            "timekeeping watchdog on CPU", ": Marking clocksource '", "' as unstable", "'hpet' wd_now: ", " wd_last: ",
            " mask: ", "Switched to clocksource ", "Detected ", " MHz processor", "CPUs ", " ahead of CPU ",
            "Clocksource ", " unstable (delta = ", "-9223372036854775808", "18446744073709551616", "\u{1b}[",
        ];
        assert_valid(&text);
        let text: String = marks.iter().flat_map(|mark| [MARKS[*mark], &text]).collect();
        assert_valid(&text);
        let text: String = marks.iter().map(|mark| MARKS[*mark]).collect();
        assert_valid(&text);
    }

    #[test]
    fn damaged_logs_cause_no_panic(docker in any::<bool>(), changes in prop::collection::vec(change(), 1..10)) {
        let text = if docker { DOCKER } else { ALL_KINDS };
        assert_valid(&changes.iter().fold(text.to_string(), |text, change| apply(&text, change)));
    }

    #[test]
    fn any_counters_cause_no_panic(
        wd in any::<[u64; 3]>(),
        cs in any::<[u64; 3]>(),
        mhz in any::<f64>(),
        nsec in any::<[i64; 3]>(),
    ) {
        let counts = |side: &str, [now, last, mask]: [u64; 3]| {
            format!("{side}_now: {now:x} {side}_last: {last:x} mask: {mask:x}")
        };
        let whole = |[now, last, _]: [u64; 3]| [now, last, u64::MAX];
        assert_valid(&format!(
            "tsc: Detected {mhz:.3} MHz processor\nhpet0: 3 comparators, 64-bit {:.6} MHz counter\n\
             Marking clocksource 'tsc' as unstable\n'hpet' {}\n'tsc' {}\n\
             Marking clocksource 'tsc' as unstable\n'acpi_pm' {}\n'tsc' {}\n\
             Marking clocksource 'tsc' as unstable\n\
             Clocksource 'tsc' skewed {} ns (0 ms) over watchdog 'x' interval of {} ns (\n\
             Marking clocksource 'tsc' as unstable\n'x' wd_nsec: {} wd_now: 0\n'tsc' cs_nsec: {} cs_now: 0",
            mhz.abs(),
            counts("wd", wd),
            counts("cs", cs),
            counts("wd", whole(wd)),
            counts("cs", whole(cs)),
            nsec[0],
            nsec[1],
            nsec[1],
            nsec[2],
        ));
    }
}
