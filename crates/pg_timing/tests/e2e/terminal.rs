//! Color, the progress bar and `±` appear on a terminal only.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};

/// Returns the two ends of a pseudo terminal: the one that the test reads, and the one for the program.
fn terminal() -> (File, File) {
    let (mut reader, mut terminal) = (0, 0);
    let null: *mut u8 = std::ptr::null_mut();
    // SAFETY: openpty writes two descriptors. Each of the two Files then owns one.
    unsafe {
        assert_eq!(libc::openpty(&mut reader, &mut terminal, null.cast(), null.cast(), null.cast()), 0);
        (File::from_raw_fd(reader), File::from_raw_fd(terminal))
    }
}

/// Returns the text with single spaces. Line breaks depend on the figures.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads everything that the program writes until it closes the terminal.
fn read_all(mut reader: File) -> String {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    // When no writer is left, Linux returns EIO.
    while let Ok(n @ 1..) = reader.read(&mut part) {
        text.extend_from_slice(&part[..n]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn stdout_is_colored_on_a_terminal() {
    let (reader, terminal) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["-d", "0.3"]).env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").stdout(terminal);
    let mut child = command.spawn().unwrap();
    // The command holds the test's copy of the terminal.
    drop(command);
    let text = read_all(reader);
    assert!(text.contains("\x1b[1m") && joined(&text).contains("per row and plan"), "{text}");
    assert!(text.contains(" ± ") && !text.contains("+-"), "{text}");
    assert!(child.wait().unwrap().code().is_some_and(|status| status <= 2));
}

#[test]
fn progress_bar_is_shown_on_a_terminal() {
    let (reader, terminal) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["-d", "0.3"]).env("TERM", "xterm").stderr(terminal).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let text = read_all(reader);
    assert!(text.contains("measuring") && text.contains(" %"), "{text}");
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(joined(&stdout).contains("per row and plan"), "{stdout}");
    assert!(!stdout.contains('\x1b') && !stdout.contains("measuring"), "{stdout}");
    assert!(stdout.contains(" +- ") && !stdout.contains('±'), "{stdout}");
}
