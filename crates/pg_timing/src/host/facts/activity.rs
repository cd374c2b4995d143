//! Activity of the machine during the measurement (waits for a CPU, context switches, steal, suspends), and what this process uses.

use super::Host;
use crate::report::{Activity, OwnUse};
use timing_clock::{Clock, SystemSyscall, ticks_between};

/// Counters at one instant.
pub struct ActivityBefore {
    /// by a system call, because the vDSO's clock may be wrong
    time_ns: u64,
    involuntary: u64,
    steal_ticks: Option<u64>,
    suspends: Option<u64>,
    scheduled: Option<Scheduled>,
    throttled_ms: Option<f64>,
}

impl ActivityBefore {
    /// Reads the counters.
    pub fn now(host: &Host) -> ActivityBefore {
        ActivityBefore {
            time_ns: SystemSyscall::default().read(),
            involuntary: u64::try_from(usage().ru_nivcsw).unwrap_or(0),
            steal_ticks: steal(host),
            suspends: host.suspends().known().copied(),
            scheduled: host.read("/proc/thread-self/schedstat").known().and_then(|text| Scheduled::parse(text)),
            throttled_ms: throttled_ms(host),
        }
    }
}

/// Returns the activity since the start of the measurement.
pub fn activity_since(host: &Host, before: &ActivityBefore) -> Activity {
    difference(before, &ActivityBefore::now(host))
}

/// Returns the growth of each counter.
fn difference(before: &ActivityBefore, now: &ActivityBefore) -> Activity {
    let growth = |now: Option<u64>, then: Option<u64>| now.zip(then).map(|(now, then)| now.saturating_sub(then));
    let scheduled =
        |of: fn(&Scheduled) -> u64| growth(now.scheduled.as_ref().map(of), before.scheduled.as_ref().map(of));
    Activity {
        involuntary_context_switches: now.involuntary.saturating_sub(before.involuntary),
        // A steal count that is 0 since boot may not be maintained, so it is unknown.
        // /proc counts in 1/100 s (USER_HZ), independent of the kernel's tick.
        steal_ms: growth(now.steal_ticks.filter(|ticks| *ticks > 0), before.steal_ticks)
            .map(|ticks| ticks as f64 * 10.0),
        suspends: growth(now.suspends, before.suspends),
        period_ms: Some(ms(u64::try_from(ticks_between(before.time_ns, now.time_ns)).unwrap_or(0))),
        run_delay_ms: scheduled(|scheduled| scheduled.run_delay_ns).map(ms),
        timeslices: scheduled(|scheduled| scheduled.timeslices),
        throttled_ms: now.throttled_ms.zip(before.throttled_ms).map(|(now, then)| (now - then).max(0.0)),
    }
}

/// Returns ns as ms, rounded to us.
fn ms(ns: u64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

/// The scheduler's counters of this thread.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scheduled {
    /// time in which the thread could run but had to wait: for other threads, or because of a CPU quota
    run_delay_ns: u64,
    timeslices: u64,
}

impl Scheduled {
    /// Parses `/proc/thread-self/schedstat`: run time and run delay in ns, and the number of time slices. A kernel that
    /// does not count them shows zeros, although this thread has run.
    fn parse(text: &str) -> Option<Scheduled> {
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
        let (run_ns, run_delay_ns, timeslices) = (numbers.next()??, numbers.next()??, numbers.next()??);
        (run_ns > 0 && timeslices > 0).then_some(Scheduled { run_delay_ns, timeslices })
    }
}

/// Returns the kernel's counters of this process.
fn usage() -> libc::rusage {
    // SAFETY: an all-zero rusage is valid. getrusage fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable. On failure it stays 0.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    usage
}

/// Returns the steal ticks of all CPUs: the eighth number in the first line of /proc/stat.
fn steal(host: &Host) -> Option<u64> {
    let stat = host.read("/proc/stat");
    stat.known()?.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()
}

/// Returns the time for which CPU quotas stopped this process's cgroup and its parents. `None` if no file shows it.
fn throttled_ms(host: &Host) -> Option<f64> {
    let groups = host.read("/proc/self/cgroup");
    let files = groups.known()?.lines().flat_map(cgroup_files);
    files.filter_map(|file| host.read(&file).known().and_then(|text| throttled(text))).reduce(|a, b| a + b)
}

/// Returns the files that can have the throttled time, for a line `ID:CONTROLLERS:PATH` of /proc/self/cgroup.
fn cgroup_files(line: &str) -> Vec<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let root = match controllers {
        // version 2
        "" => "/sys/fs/cgroup".to_string(),
        // version 1
        names if names.split(',').any(|name| name == "cpu") => format!("/sys/fs/cgroup/{names}"),
        _ => return Vec::new(),
    };
    // A quota of a parent stops the process, too.
    let path = path.trim_matches('/');
    let ends = path.match_indices('/').map(|(at, _)| at).chain((!path.is_empty()).then_some(path.len()));
    let parents = ends.map(|end| format!("{root}/{}/cpu.stat", &path[..end]));
    std::iter::once(format!("{root}/cpu.stat")).chain(parents).collect()
}

/// Returns the throttled time in a `cpu.stat`: `throttled_usec` in version 2, `throttled_time` in ns in version 1.
fn throttled(text: &str) -> Option<f64> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", us) => Some(us.trim().parse::<f64>().ok()? / 1e3),
        ("throttled_time", ns) => Some(ns.trim().parse::<f64>().ok()? / 1e6),
        _ => None,
    })
}

/// Returns the CPU time and the memory of this process. `running_s` is the time since its start.
pub fn own_use(host: &Host, running_s: f64) -> OwnUse {
    let usage = usage();
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    OwnUse { cpu_s, cpu_share: if running_s > 0.0 { cpu_s / running_s } else { 0.0 }, memory_bytes: memory(host) }
}

/// Returns the resident memory in bytes: the second number of statm, in pages.
fn memory(host: &Host) -> Option<u64> {
    let statm = host.read("/proc/self/statm");
    let pages: u64 = statm.known()?.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64, scheduled: &str) -> ActivityBefore {
        ActivityBefore {
            time_ns,
            involuntary: time_ns / 1_000_000,
            steal_ticks: Some(time_ns / 100_000_000),
            suspends: None,
            scheduled: Scheduled::parse(scheduled),
            throttled_ms: Some(time_ns as f64 / 2e6),
        }
    }

    #[test]
    fn counters_are_subtracted() {
        let activity = difference(&at(1_000_000_000, "100 2000000 3"), &at(3_000_000_000, "500 1502000000 13"));
        assert_eq!(
            activity,
            Activity {
                involuntary_context_switches: 2000,
                steal_ms: Some(200.0),
                suspends: None,
                period_ms: Some(2000.0),
                run_delay_ms: Some(1500.0),
                timeslices: Some(10),
                throttled_ms: Some(1000.0),
            }
        );
        assert_eq!(activity.waiting_share(), Some(0.75));
    }

    #[test]
    fn counters_that_are_not_maintained_are_unknown() {
        for text in ["", "0 0 0", "1 2", "x 2 3", "-1 2 3"] {
            assert_eq!(Scheduled::parse(text), None, "{text}");
        }
        let activity = difference(&at(0, "1 2 3"), &at(9, "0 0 0"));
        assert_eq!((activity.run_delay_ms, activity.timeslices, activity.waiting_share()), (None, None, None));
    }

    #[test]
    fn the_throttled_time_is_read_from_the_cgroup_and_its_parents() {
        assert_eq!(cgroup_files("0::/"), ["/sys/fs/cgroup/cpu.stat"]);
        assert_eq!(
            cgroup_files("0::/a.slice/b.scope"),
            ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/a.slice/cpu.stat", "/sys/fs/cgroup/a.slice/b.scope/cpu.stat"]
        );
        assert_eq!(
            cgroup_files("4:cpu,cpuacct:/x"),
            ["/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/x/cpu.stat"]
        );
        for other in ["4:memory:/x", "", "x", "2:cpuacct:/"] {
            assert!(cgroup_files(other).is_empty(), "{other}");
        }
        assert_eq!(throttled("usage_usec 5\nnr_throttled 3\nthrottled_usec 2500\n"), Some(2.5));
        assert_eq!(throttled("nr_periods 34\nnr_throttled 34\nthrottled_time 3262898342\n"), Some(3262.898342));
        assert_eq!(throttled("usage_usec 5\n"), None);
    }
}
