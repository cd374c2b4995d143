//! Ends the processes of a killed server.

use super::PAUSE;
use std::time::Instant;

/// Ends the child processes of a killed server or initdb.
///
/// The server that initdb starts notices the end of its input and shuts down. A backend would run until the end of its
/// statement. So a signal follows after one second.
pub fn end_orphans() {
    let start = Instant::now();
    loop {
        // SAFETY: no status is requested.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            -1 => return,
            0 => {}
            _ => continue,
        }
        let signal = match start.elapsed().as_secs() {
            0 => 0,
            1..=3 => libc::SIGTERM,
            4..=9 => libc::SIGKILL,
            _ => return,
        };
        for child in children() {
            // SAFETY: children of this process, which have not been waited for.
            unsafe { libc::kill(child, signal) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns the child processes of this process. The list is empty on systems without /proc.
fn children() -> Vec<libc::pid_t> {
    let parent = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| {
            // After the name in parentheses come the state and the parent.
            std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
                stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(parent.as_str())
            })
        })
        .collect()
}
