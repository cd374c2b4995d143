//! The resources that this process uses.

use super::Host;
use crate::report::OwnUse;

/// Returns the CPU time and the memory of this process. `running_s` is the time since its start.
pub fn own_use(host: &Host, running_s: f64) -> OwnUse {
    // SAFETY: an all-zero rusage is valid. getrusage fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable. On failure it stays 0.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
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
