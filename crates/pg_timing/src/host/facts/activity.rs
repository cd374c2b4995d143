//! Activity of the machine during the measurement: context switches, steal and suspends.

use super::Host;
use crate::report::{Activity, Fact};

/// Counters at the start of a measurement.
pub struct ActivityBefore {
    involuntary: u64,
    steal_ticks: Option<u64>,
    suspends: Option<u64>,
}

impl ActivityBefore {
    /// Reads the counters.
    pub fn now(host: &Host) -> ActivityBefore {
        ActivityBefore {
            involuntary: involuntary_context_switches(),
            steal_ticks: steal(host),
            suspends: host.suspends().known().copied(),
        }
    }
}

/// Returns the activity since the start of the measurement.
pub fn activity_since(host: &Host, before: &ActivityBefore) -> Fact<Activity> {
    // A steal count that is 0 since boot may not be maintained, so it is unknown.
    let steal_ms = steal(host).filter(|now| *now > 0).zip(before.steal_ticks).map(|(now, then)| {
        // /proc counts in 1/100 s (USER_HZ), independent of the kernel's tick.
        now.saturating_sub(then) as f64 * 10.0
    });
    Fact::Known(Activity {
        involuntary_context_switches: involuntary_context_switches().saturating_sub(before.involuntary),
        steal_ms,
        suspends: host.suspends().known().zip(before.suspends).map(|(now, then)| now.saturating_sub(then)),
    })
}

fn involuntary_context_switches() -> u64 {
    // SAFETY: an all-zero rusage is valid. getrusage fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable. On failure it stays 0.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

/// Returns the steal ticks of all CPUs: the eighth number in the first line of /proc/stat.
fn steal(host: &Host) -> Option<u64> {
    let stat = host.read("/proc/stat");
    stat.known()?.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()
}
