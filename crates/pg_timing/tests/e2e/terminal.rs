//! Colour and the progress bar: on a terminal, and only there.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::process::Command;

/// The two ends of a pseudo terminal.
fn terminal() -> (File, File) {
    let (mut ours, mut theirs) = (0, 0);
    let null: *mut u8 = std::ptr::null_mut();
    // SAFETY: openpty writes the two descriptors; each File then owns one.
    unsafe {
        assert_eq!(libc::openpty(&mut ours, &mut theirs, null.cast(), null.cast(), null.cast()), 0);
        (File::from_raw_fd(ours), File::from_raw_fd(theirs))
    }
}

/// What arrives on the terminal until the other end is closed.
fn shown(mut ours: File) -> String {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    // Linux ends a terminal without a writer with EIO.
    while let Ok(n @ 1..) = ours.read(&mut part) {
        text.extend_from_slice(&part[..n]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn colour_on_a_terminal() {
    let (ours, theirs) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    let mut child =
        command.args(["-d", "0.3"]).env("TERM", "xterm").env_remove("NO_COLOR").stdout(theirs).spawn().unwrap();
    drop(command);
    let text = shown(ours);
    assert!(text.contains("\x1b[1m") && text.contains("per row and plan"), "{text}");
    child.wait().unwrap();
}

#[test]
fn the_progress_bar_on_a_terminal() {
    let (ours, theirs) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    let child = command.args(["-d", "1"]).env("TERM", "xterm").stderr(theirs).stdout(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    drop(command);
    let text = shown(ours);
    assert!(text.contains("measuring"), "{text}");
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(!stdout.contains('\x1b') && !stdout.contains("measuring"), "{stdout}");
}
