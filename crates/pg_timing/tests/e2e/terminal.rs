//! Color, the progress bar and `±` appear on a terminal only. A terminal that takes no output does not block the program.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// Waits for a result, at most for 20 s: the machine may be busy.
fn until<T>(mut result: impl FnMut() -> Option<T>) -> Option<T> {
    (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        result()
    })
}

/// Writes to the terminal until a further write would block.
fn fill(mut terminal: &File) {
    let before = modes(terminal);
    let mut raw = before;
    let set = |modes: &libc::termios, flags: libc::c_int| {
        // SAFETY: the calls read the modes, and change only the flags of an open file.
        unsafe {
            assert_eq!(libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, modes), 0);
            assert_eq!(libc::fcntl(terminal.as_raw_fd(), libc::F_SETFL, flags), 0);
        }
    };
    // The screen uses these modes, too. In other modes, Linux refuses a write although the last buffer has room.
    // SAFETY: the call changes only the variable.
    unsafe { libc::cfmakeraw(&mut raw) };
    set(&raw, libc::O_RDWR | libc::O_NONBLOCK);
    // The kernel moves what was written to another buffer, later on a busy machine, so there may be room again.
    let mut times_full = 0;
    while times_full < 5 {
        times_full += 1;
        while terminal.write(b"x").is_ok() {
            times_full = 0;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    set(&before, libc::O_RDWR);
}

fn is_raw(terminal: &File) -> bool {
    modes(terminal).c_lflag & libc::ICANON == 0
}

fn modes(terminal: &File) -> libc::termios {
    // SAFETY: zero is a valid value of each field, and the call overwrites them.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid during the call.
    assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut modes) }, 0);
    modes
}

#[test]
fn a_terminal_that_nobody_reads_does_not_keep_the_monitor_alive() {
    let (_reader, terminal) = terminal();
    fill(&terminal);
    let copy = || terminal.try_clone().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["monitor", "--interval", "1"]).env("TERM", "xterm").stdin(copy()).stdout(copy());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    until(|| is_raw(&terminal).then_some(())).expect("the monitor uses the terminal");
    // SAFETY: the process exists until it is waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    let status = until(|| child.try_wait().unwrap());
    _ = child.kill();
    _ = child.wait();
    assert_eq!(status.and_then(|status| status.code()), Some(3));
    assert!(!is_raw(&terminal));
}
