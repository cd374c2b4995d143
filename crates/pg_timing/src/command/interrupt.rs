//! Signal handlers that set a flag.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns a flag that the first SIGINT, SIGTERM or SIGHUP sets. The command then cancels its statement on the server
/// and prints what it has measured. A second signal ends the program at once.
pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM, SIGHUP];
    for signal in not_ignored(&signals) {
        // This handler comes first: it ends the program if an earlier signal has set the flag.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
    }
    set_by(&signals, stop)
}

/// Returns a flag for a command that must restore a setting before it ends. All signals that a terminal or `kill` sends
/// set the flag, and repeated signals do not end the program. SIGTSTP (Ctrl-Z) is included, because a stopped program
/// restores nothing.
pub fn flag_until_restored() -> anyhow::Result<Arc<AtomicBool>> {
    set_by(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP], Arc::default())
}

/// Returns a flag for a command that runs as a service. SIGINT and SIGTERM set it, and repeated signals do not end the program.
/// SIGHUP has no effect: services get it to read their configuration again, and there is none.
pub fn flag_of_service() -> anyhow::Result<Arc<AtomicBool>> {
    set_by(&[SIGHUP], Arc::default())?;
    set_by(&[SIGINT, SIGTERM], Arc::default())
}

fn set_by(signals: &[libc::c_int], flag: Arc<AtomicBool>) -> anyhow::Result<Arc<AtomicBool>> {
    for signal in not_ignored(signals) {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Ignores the signal of a too large file, so that the write fails instead and the program can remove its files.
pub fn ignore_file_size_signal() {
    // SAFETY: no handler runs.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Returns the signals without SIGHUP if it is ignored. nohup ignores SIGHUP so that a program outlives its terminal.
fn not_ignored(signals: &[libc::c_int]) -> impl Iterator<Item = libc::c_int> {
    signals.iter().copied().filter(|&signal| signal != SIGHUP || !is_ignored(signal))
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an action of zero bytes is valid, and the next call overwrites it.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action, the call only writes the current one to `action`.
    let status = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}
