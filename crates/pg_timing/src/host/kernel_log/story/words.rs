//! Times, durations and reasons in words.

use crate::host::kernel_log::Entry;

/// When, as a sentence begins: `at 7823 s `; empty if that is not known.
pub(super) fn when(entry: &Entry) -> String {
    match (entry.seconds, &entry.stamp) {
        (Some(seconds), _) if seconds < 0.05 => "at boot ".into(),
        // tenths matter only while the machine boots
        (Some(seconds), _) if seconds < 60.0 => format!("{seconds:.1} s after boot "),
        (Some(seconds), _) => format!("at {seconds:.0} s "),
        (None, Some(stamp)) => format!("at {stamp} "),
        (None, None) => String::new(),
    }
}

/// A duration with about four digits; its sign is not shown.
pub(super) fn span(ns: i64) -> String {
    let ns = ns.unsigned_abs();
    match ns {
        0..1000 => format!("{ns} ns"),
        1000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

/// As [`span`], of an unsigned number.
pub(super) fn long_span(ns: u64) -> String {
    span(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// The kernel's reasons for not using the TSC, and what they mean.
const REASONS: &[(&str, &str)] = &[
    ("clocksource watchdog", "because another clock disagreed with it"),
    ("check_tsc_sync_source failed", "because it differs between CPUs"),
    ("TSCs unsynchronized", "because nothing promises that it is the same on every CPU"),
    ("running on Hyper-V", "because Hyper-V does not promise that its rate stays the same"),
    ("KVM discovered backwards TSC", "because KVM saw it go back"),
    ("TSC halts in idle", "because it stops while a CPU is idle"),
    ("cpufreq changes", "because its rate changes with the CPU's"),
    ("could not calculate TSC khz", "because its rate could not be found out"),
    ("boot parameter", "because the boot parameter tsc=unstable says so"),
];

/// The reason in words and, in brackets, as the kernel gave it.
pub(super) fn because(reason: &str) -> String {
    match REASONS.iter().find(|(known, _)| reason.starts_with(known)) {
        Some((_, meaning)) => format!("{meaning} (\"{reason}\")"),
        None => format!("due to \"{reason}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::kernel_log::Event;

    #[test]
    fn times() {
        let at = |seconds, stamp: Option<&str>| {
            when(&Entry { seconds, stamp: stamp.map(String::from), event: Event::KvmClock })
        };
        assert_eq!(at(Some(0.0), None), "at boot ");
        assert_eq!(at(Some(0.30142), None), "0.3 s after boot ");
        assert_eq!(at(Some(7823.10), Some("Nov 20 10:29:43")), "at 7823 s ");
        assert_eq!(at(None, Some("Nov 20 10:29:43")), "at Nov 20 10:29:43 ");
        assert_eq!(at(None, None), "");
    }

    #[test]
    fn durations() {
        for (ns, words) in [
            (0, "0 ns"),
            (-999, "999 ns"),
            (876_429, "876.4 us"),
            (62_503_714, "62.5 ms"),
            (-15_143_828_713, "15.144 s"),
            (i64::MIN, "9223372036.855 s"),
        ] {
            assert_eq!(span(ns), words);
        }
        assert_eq!(long_span(u64::MAX), "9223372036.855 s");
    }

    #[test]
    fn reasons() {
        assert_eq!(because("TSC halts in idle"), "because it stops while a CPU is idle (\"TSC halts in idle\")");
        assert_eq!(because("magic"), "due to \"magic\"");
    }
}
