//! Processes that a killed server has left.

use super::PAUSE;
use std::time::Instant;

/// What the server or initdb has left when it was killed. Left alone, initdb's server sees the end of
/// its input and ends in order; a backend would run to its statement's end.
pub fn end_orphans() {
    let start = Instant::now();
    loop {
        // SAFETY: no status is asked for.
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
            // SAFETY: our own children, that nobody else waits for.
            unsafe { libc::kill(child, signal) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// Of this process, as far as the system tells.
fn children() -> Vec<libc::pid_t> {
    let parent = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| {
            // Behind the name in brackets: the state, and the parent.
            std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
                stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(parent.as_str())
            })
        })
        .collect()
}
