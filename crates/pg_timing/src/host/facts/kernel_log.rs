//! Reads the kernel's log once, or follows it: then each new message about clocks is returned once.

use super::Host;
use crate::host::kernel_log::{KernelClockLog, parse};
use crate::human::reason;
use crate::report::Fact;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

/// The entries about clocks in a log.
#[derive(Clone, Debug)]
pub struct KernelLog {
    pub entries: Fact<KernelClockLog>,
    /// whether the user named the log; then it may be from another machine
    pub named: bool,
}

impl KernelLog {
    /// Reads the machine's own log. If this user may not read it, the entries are unavailable, with the reason.
    pub fn own(host: &Host) -> KernelLog {
        let text = match host.is_live() {
            true => open_kmsg().and_then(|mut kmsg| read_new(&mut kmsg)).into(),
            false => host.read("/var/log/dmesg"),
        };
        KernelLog { entries: text.map(|text| parse(&text)), named: false }
    }

    /// Parses a log that the user named. Returns an error if it cannot be a log.
    pub fn named(bytes: &[u8]) -> Result<KernelLog, &'static str> {
        if bytes.contains(&0) {
            return Err("is not text (it has NUL bytes)");
        }
        // If a user may not read the log, dmesg prints only an error, to stderr.
        if bytes.trim_ascii().is_empty() {
            return Err("is empty");
        }
        Ok(KernelLog { entries: Fact::Known(parse(&String::from_utf8_lossy(bytes))), named: true })
    }
}

/// Opens the log at its oldest message.
fn open_kmsg() -> Result<File, String> {
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
    file.map_err(|e| format!("/dev/kmsg: {}", reason(&e)))
}

/// Returns the messages that were not read yet, without waiting for further ones.
fn read_new(kmsg: &mut File) -> Result<String, String> {
    let mut text = String::new();
    // Longer than any record, because the kernel refuses a read into a shorter buffer.
    let mut record = [0u8; 8192];
    loop {
        match kmsg.read(&mut record) {
            Ok(0) => return Ok(text),
            Ok(n) => push_record(&mut text, &String::from_utf8_lossy(&record[..n])),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(text),
            // EPIPE: the kernel overwrote the next message. The next read continues with the oldest one.
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(e) if text.is_empty() => return Err(format!("/dev/kmsg: {}", reason(&e))),
            Err(_) => return Ok(text),
        }
    }
}

/// Adds a record `6,342,10301420,-;message` with lines of ` KEY=value` in the format of dmesg:
/// `[   10.301420] message`.
fn push_record(text: &mut String, record: &str) {
    let Some((prefix, rest)) = record.split_once(';') else { return };
    let micros: u64 = prefix.split(',').nth(2).and_then(|s| s.parse().ok()).unwrap_or(0);
    let message = rest.lines().next().unwrap_or_default();
    text.push_str(&format!("[{:5}.{:06}] {message}\n", micros / 1_000_000, micros % 1_000_000));
}

/// The number of kept lines from the beginning of the log, which contains the boot, and from its end. A faulty clock can
/// produce messages for ever.
const FIRST: usize = 200;
const LAST: usize = 300;

/// The machine's log since its beginning, which grows.
pub struct FollowedLog {
    /// the open log, or why it is not readable
    source: Result<File, String>,
    /// the lines about clocks
    lines: Vec<String>,
    /// whether the log lacks the beginning of this boot
    truncated: bool,
}

impl FollowedLog {
    /// Reads the log up to now.
    pub fn start() -> FollowedLog {
        match open_kmsg().and_then(|mut kmsg| Ok((read_new(&mut kmsg)?, kmsg))) {
            Ok((text, kmsg)) => FollowedLog::new(Ok(kmsg), &text),
            Err(why) => FollowedLog::new(Err(why), ""),
        }
    }

    fn new(source: Result<File, String>, text: &str) -> FollowedLog {
        let mut log = FollowedLog { source, lines: Vec::new(), truncated: false };
        log.truncated = log.add(text).truncated;
        log
    }

    /// Returns the messages about clocks since the last call, or why the log is not readable. If the log was not readable
    /// before, the messages until now are old.
    pub fn new_messages(&mut self) -> Result<Vec<String>, String> {
        match &mut self.source {
            Ok(kmsg) => {
                let text = read_new(kmsg)?;
                Ok(if text.is_empty() { Vec::new() } else { self.add(&text).lines_about_clocks() })
            }
            Err(_) => {
                *self = FollowedLog::start();
                self.source.as_ref().map(|_| Vec::new()).map_err(String::clone)
            }
        }
    }

    /// Returns the log's entries about clocks.
    pub fn log(&self) -> KernelLog {
        let entries = match &self.source {
            Ok(_) => Fact::Known(KernelClockLog { truncated: self.truncated, ..parse(&self.lines.join("\n")) }),
            Err(why) => Fact::unavailable(why),
        };
        KernelLog { entries, named: false }
    }

    /// Adds lines. Returns their entries.
    fn add(&mut self, text: &str) -> KernelClockLog {
        let log = parse(text);
        self.lines.extend(log.lines_about_clocks());
        let excess = self.lines.len().saturating_sub(FIRST + LAST);
        if excess > 0 {
            self.lines.drain(FIRST..FIRST + excess);
        }
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_converted_to_the_format_of_dmesg() {
        let mut text = String::new();
        push_record(&mut text, "6,342,10301420,-;tsc: Detected 2299.998 MHz processor\n SUBSYSTEM=x\n");
        push_record(&mut text, "junk");
        assert_eq!(text, "[   10.301420] tsc: Detected 2299.998 MHz processor\n");
    }

    fn line(seconds: usize) -> String {
        format!("[{seconds:5}.000000] clocksource: Switched to clocksource tsc\n")
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_log_are_kept() {
        let mut log = FollowedLog::new(Err("not readable".into()), "[    0.000000] Linux version 6.1 (x)\n");
        for seconds in 1..10_000 {
            assert_eq!(log.add(&line(seconds)).messages.len(), 1);
        }
        assert_eq!(log.lines.len(), FIRST + LAST);
        assert!(log.lines[0].contains("Linux version") && log.lines.last().unwrap().contains("9999"));
        assert!(!log.truncated);
        assert_eq!(log.log().entries, Fact::unavailable("not readable"));
    }

    #[test]
    fn other_messages_are_left_out() {
        let mut log = FollowedLog::new(Err(String::new()), &line(5));
        assert!(log.truncated, "the log does not begin with a boot");
        assert!(log.add("[    6.000000] usb 1-1: new device\n").messages.is_empty());
        assert_eq!(log.lines.len(), 1);
    }
}
