//! Ctrl-C, and the end of the terminal, as a flag.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first Ctrl-C (or SIGTERM, or the end of the terminal) sets, so that what has been
/// measured is printed, and what runs on a server is cancelled. The second ends the program at once.
pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in heeded([SIGINT, SIGTERM, SIGHUP]) {
        // The order matters: the first handler looks at the flag before the second sets it.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// A flag for a command that has something to put back: whatever a terminal or `kill` sends sets it,
/// and none of it ends the program, the second time neither. Ctrl-Z is among them, for a program
/// that is held puts nothing back.
pub fn until_put_back() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in heeded([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]) {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// nohup means that the end of the terminal is none of our business.
fn heeded<const N: usize>(signals: [libc::c_int; N]) -> impl Iterator<Item = libc::c_int> {
    signals.into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal))
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all-zero is a valid action to be overwritten.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the present one to `now`.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}
