//! Threads that get no signals.

/// Calls `work` while all signals of this thread are blocked. Threads that it starts keep them blocked, so that signals
/// reach the threads that handle them.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: an empty set is valid, and the calls overwrite both.
    let before = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let result = work();
    // SAFETY: the mask is that of this thread before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked(signal: libc::c_int) -> bool {
        // SAFETY: the first call only reads the mask, and the second one only reads the set.
        unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
            libc::sigismember(&mask, signal) == 1
        }
    }

    #[test]
    fn only_the_new_thread_blocks_signals() {
        let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGWINCH];
        let thread = without_signals(|| std::thread::spawn(move || signals.map(is_blocked)));
        assert_eq!(thread.join().unwrap(), [true; 4]);
        assert_eq!(signals.map(is_blocked), [false; 4]);
    }
}
