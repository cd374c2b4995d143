//! The signals that suspend and continue the program, and those that end it: the terminal must be restored before.

use crate::command::interrupt::is_ignored;
use signal_hook::consts::{SIGALRM, SIGCONT, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2, SIGXCPU};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Signals that end a program, and that `kill`, a timer or a limit sends. SIGINT and SIGTERM end the monitor in an orderly way,
/// and SIGHUP has no effect.
const DEADLY: [libc::c_int; 5] = [SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU];

pub struct Signals {
    /// the last deadly signal, or 0
    deadly: Arc<AtomicUsize>,
    suspended: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
}

impl Signals {
    /// Registers handlers that set a flag. A deadly signal also sets `stop`.
    pub fn register(stop: &Arc<AtomicBool>) -> std::io::Result<Signals> {
        let signals = Signals { deadly: Arc::default(), suspended: Arc::default(), continued: Arc::default() };
        for signal in DEADLY.into_iter().filter(|&signal| !is_ignored(signal)) {
            signal_hook::flag::register_usize(signal, Arc::clone(&signals.deadly), signal as usize)?;
            signal_hook::flag::register(signal, Arc::clone(stop))?;
        }
        signal_hook::flag::register(SIGTSTP, Arc::clone(&signals.suspended))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&signals.continued))?;
        Ok(signals)
    }

    /// Returns the deadly signal that came, if one did.
    pub fn deadly(&self) -> Option<libc::c_int> {
        libc::c_int::try_from(self.deadly.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }

    /// Returns whether SIGTSTP came since the last call.
    pub fn suspended(&self) -> bool {
        self.suspended.swap(false, Ordering::Relaxed)
    }

    /// Returns whether SIGCONT came since the last call.
    pub fn continued(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }

    /// Stops all processes of this job, as Ctrl-Z does. Returns when the shell continues them, or at once if no shell could
    /// continue them.
    pub fn stop_job(&self) {
        /// The kernel stops a process within microseconds. If it did not, it never does.
        const UNTIL_STOPPED: Duration = Duration::from_millis(100);
        self.continued();
        // SAFETY: zero is a valid value of each field: no flags, no blocked signals, and SIG_DFL.
        let default: libc::sigaction = unsafe { std::mem::zeroed() };
        let mut own = default;
        // SAFETY: the pointers are valid during the calls. The second sigaction restores the handler of the first one.
        unsafe {
            libc::sigaction(SIGTSTP, &default, &mut own);
            libc::kill(0, SIGTSTP);
            std::thread::sleep(UNTIL_STOPPED);
            libc::sigaction(SIGTSTP, &own, std::ptr::null_mut());
        }
        self.suspended();
        self.continued();
    }
}
