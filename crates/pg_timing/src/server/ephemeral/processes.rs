//! Stops the processes of a server.

#[cfg(target_os = "linux")]
use super::PAUSE;
use super::removal_limit::RemovalLimit;
#[cfg(target_os = "linux")]
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Stops the server's processes with SIGQUIT, and with SIGKILL after half of the time limit.
///
/// They are found by their owner and their working directory. The lock file is not used, because the server's user can
/// change it. Returns false if processes remain at the end of the time limit.
#[cfg(target_os = "linux")]
pub fn stop(folder: &Path, owner: libc::uid_t, limit: &RemovalLimit) -> bool {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let mut signal = Some(Signal::QUIT);
    loop {
        let processes = server_processes(folder, owner);
        if processes.is_empty() || !limit.is_left() {
            return processes.is_empty();
        }
        for process in signal.iter().flat_map(|_| &processes) {
            // The descriptor stays with the process. A process id could be reused between the check and the signal.
            let descriptor = Pid::from_raw(*process).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            let Some(descriptor) = descriptor.filter(|_| is_server(*process, folder, owner)) else { continue };
            _ = signal.map(|signal| pidfd_send_signal(&descriptor, signal));
        }
        std::thread::sleep(PAUSE);
        signal = limit.is_half_over().then_some(Signal::KILL);
    }
}

/// Returns true without stopping a process: without /proc, the owner of a process is not known. The postmaster notices
/// within a minute that its lock file is missing, and then ends.
#[cfg(not(target_os = "linux"))]
pub fn stop(_: &Path, _: libc::uid_t, _: &RemovalLimit) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn server_processes(folder: &Path, owner: libc::uid_t) -> Vec<libc::pid_t> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|process| is_server(*process, folder, owner)).collect()
}

/// Returns whether the process belongs to the user and runs in the server's data directory, as all of a server's
/// processes do.
#[cfg(target_os = "linux")]
fn is_server(process: libc::pid_t, folder: &Path, owner: libc::uid_t) -> bool {
    let process = Path::new("/proc").join(process.to_string());
    let is_owners = process.metadata().is_ok_and(|process| process.uid() == owner);
    is_owners && process.join("cwd").read_link().is_ok_and(|directory| directory == folder.join("data"))
}
