//! Times, durations and reasons as text.

use crate::host::kernel_log::Entry;

/// Returns the time as the start of a sentence: `7823 s after boot `. It is empty if the time is unknown.
pub(super) fn when(entry: &Entry) -> String {
    match (entry.seconds, &entry.stamp) {
        (Some(seconds), _) if seconds < 0.05 => "at boot ".into(),
        // Tenths of a second matter only during boot.
        (Some(seconds), _) if seconds < 60.0 => format!("{seconds:.1} s after boot "),
        (Some(seconds), _) => format!("{seconds:.0} s after boot "),
        (None, Some(stamp)) => format!("at {stamp} "),
        (None, None) => String::new(),
    }
}

/// Returns a duration with about four digits, without its sign.
pub(super) fn span(ns: i64) -> String {
    let ns = ns.unsigned_abs();
    match ns {
        0..1000 => format!("{ns} ns"),
        1000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

/// Like [`span`], for an unsigned number.
pub(super) fn long_span(ns: u64) -> String {
    span(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// The kernel's reasons not to use the TSC, and their meanings.
const REASONS: &[(&str, &str)] = &[
    ("clocksource watchdog", "because another clock disagreed with it"),
    ("check_tsc_sync_source failed", "because it differs between CPUs"),
    ("TSCs unsynchronized", "because the CPUs may have different values"),
    ("running on Hyper-V", "because Hyper-V does not guarantee a constant rate"),
    ("KVM discovered backwards TSC", "because KVM saw it go back"),
    ("TSC halts in idle", "because it stops while a CPU is idle"),
    ("cpufreq changes", "because its rate changes with the CPU's frequency"),
    ("could not calculate TSC khz", "because the kernel could not determine its rate"),
    ("boot parameter", "because of the boot parameter tsc=unstable"),
];

/// Returns the meaning of the reason, with the kernel's words in parentheses.
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
    fn times_start_a_sentence() {
        let at = |seconds, stamp: Option<&str>| {
            when(&Entry { seconds, stamp: stamp.map(String::from), event: Event::KvmClock })
        };
        assert_eq!(at(Some(0.0), None), "at boot ");
        assert_eq!(at(Some(0.30142), None), "0.3 s after boot ");
        assert_eq!(at(Some(7823.10), Some("Nov 20 10:29:43")), "7823 s after boot ");
        assert_eq!(at(None, Some("Nov 20 10:29:43")), "at Nov 20 10:29:43 ");
        assert_eq!(at(None, None), "");
    }

    #[test]
    fn durations_have_four_digits() {
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
    fn reasons_have_meanings() {
        assert_eq!(because("TSC halts in idle"), "because it stops while a CPU is idle (\"TSC halts in idle\")");
        assert_eq!(because("magic"), "due to \"magic\"");
    }
}
