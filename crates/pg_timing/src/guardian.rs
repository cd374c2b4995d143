//! A guardian: a process that undoes what this program did if this program ends too early. A socket connects both: each
//! side notices the end of the other one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Time limit for the start. It takes milliseconds.
const START_LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// This program's handle of the process.
#[derive(Debug)]
pub struct GuardianProcess {
    process: libc::pid_t,
    pub socket: UnixStream,
}

impl GuardianProcess {
    /// Starts a process that calls `work` and ends. The process has its own session: when this call returns, signals to
    /// this program's process group and from its terminal no longer reach it. /dev/null replaces its standard streams,
    /// because a reader of this program's output must not wait for it.
    ///
    /// All signals are blocked in the process. This program must have no other thread.
    pub fn start(work: impl FnOnce(UnixStream)) -> io::Result<GuardianProcess> {
        let (socket, guardian_socket) = UnixStream::pair()?;
        let (process, error, socket) = without_signals(move || {
            // SAFETY: there are no other threads, so the child process has no restrictions.
            let process = unsafe { libc::fork() };
            if process == 0 {
                drop(socket);
                // The forked process must never return into the program's code. A panic ends a release build.
                detach();
                if (&guardian_socket).write_all(&[0]).is_ok() {
                    work(guardian_socket);
                }
                // SAFETY: ends this process without the program's exit handlers.
                unsafe { libc::_exit(0) }
            }
            (process, io::Error::last_os_error(), socket)
        });
        if process == -1 {
            return Err(error);
        }
        let mut guardian = GuardianProcess { process, socket };
        guardian.wait_for_start().inspect_err(|_| guardian.finish(Duration::ZERO))?;
        Ok(guardian)
    }

    /// Waits for the byte that the process sends when it is detached.
    fn wait_for_start(&mut self) -> io::Result<()> {
        self.socket.set_read_timeout(Some(START_LIMIT))?;
        self.socket.read_exact(&mut [0]).map_err(|_| io::Error::other("it did not start"))
    }

    /// Waits for the end of the process, and kills it after the limit.
    pub fn finish(&self, limit: Duration) {
        let start = Instant::now();
        // SAFETY: a child of this process. Its status is not needed.
        while unsafe { libc::waitpid(self.process, std::ptr::null_mut(), libc::WNOHANG) } == 0 {
            if start.elapsed() > limit {
                // SAFETY: as above.
                unsafe { libc::kill(self.process, libc::SIGKILL) };
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn detach() {
    // SAFETY: the call changes only this process.
    unsafe { libc::setsid() };
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        for stream in 0..=2 {
            // SAFETY: both file descriptors are open.
            unsafe { libc::dup2(nothing.as_raw_fd(), stream) };
        }
    }
}

/// Calls `work` while all signals of this thread are blocked. Threads and processes that it starts keep them blocked, so that
/// signals reach the threads that handle them.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: empty sets are valid, and the calls overwrite them. The second mask is that of this thread before.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a process that waits for the end of the input, and then sends a byte. It allocates no memory, because the
    /// test program has other threads.
    fn start() -> GuardianProcess {
        GuardianProcess::start(|mut socket| {
            _ = socket.read(&mut [0]);
            _ = socket.write(&[1]);
        })
        .unwrap()
    }

    #[test]
    fn it_has_its_own_session_from_the_start() {
        for _ in 0..20 {
            let guardian = start();
            // SAFETY: the call only returns a number.
            assert_eq!(unsafe { libc::getsid(guardian.process) }, guardian.process);
            guardian.socket.shutdown(std::net::Shutdown::Write).unwrap();
            guardian.finish(START_LIMIT);
        }
    }

    #[test]
    fn signals_do_not_end_it() {
        let mut guardian = start();
        // The C library keeps 32 and 33 for itself.
        for signal in (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP, 32, 33].contains(signal)) {
            // SAFETY: sends a signal to a child that was not waited for.
            unsafe { libc::kill(guardian.process, signal) };
        }
        guardian.socket.shutdown(std::net::Shutdown::Write).unwrap();
        guardian.socket.read_exact(&mut [0]).unwrap();
        guardian.finish(START_LIMIT);
    }

    #[test]
    fn a_stopped_process_is_killed() {
        let guardian = start();
        // SAFETY: as above.
        unsafe { libc::kill(guardian.process, libc::SIGSTOP) };
        guardian.finish(Duration::ZERO);
    }
}
