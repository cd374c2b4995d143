//! Reads the kernel's log once, or follows it: then each new message about clocks is returned once.

use super::*;
use crate::host::kernel_log::{KernelClockLog, parse};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;

/// The entries about clocks in a log.
#[derive(Clone, Debug)]
pub struct KernelLog {
    pub entries: Fact<KernelClockLog>,
    /// whether the user named the log
    pub named: bool,
}

impl KernelLog {
    /// Reads the machine's own log. If this user may not read it, the entries are unavailable, with the reason.
    pub fn own(host: &Host) -> KernelLog {
        let captured = || host.read("/var/log/dmesg").map(|text| parse(&text));
        if host.is_live() { FollowedLog::start().log } else { KernelLog { entries: captured(), named: false } }
    }

    /// Returns the entries, unless the log may be from another machine: a log that the user named on a live machine.
    pub fn of(&self, host: &Host) -> Option<&KernelClockLog> {
        self.entries.known().filter(|_| !(self.named && host.is_live()))
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

/// Returns the messages that were not read yet, without waiting for further ones.
fn read_new(kmsg: &mut File) -> Result<String, String> {
    let mut text = String::new();
    // Longer than any record, because the kernel refuses a read into a shorter buffer.
    let mut record = [0u8; 8192];
    loop {
        match kmsg.read(&mut record) {
            Ok(0) => return Ok(text),
            Ok(n) => text.push_str(&String::from_utf8_lossy(&record[..n])),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(text),
            // EPIPE: the kernel overwrote the next message. The next read continues with the oldest one.
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(e) if text.is_empty() => return Err(format!("/dev/kmsg: {}", reason(&e))),
            Err(_) => return Ok(text),
        }
    }
}

/// The number of kept messages from the beginning of the log, which contains the boot, and from its end. A faulty clock can
/// produce messages for ever.
const FIRST: usize = 200;
const LAST: usize = 300;

/// The machine's log since its beginning, which grows.
pub struct FollowedLog {
    kmsg: Option<File>,
    /// the entries until now, or why the log is not readable
    pub log: KernelLog,
}

impl FollowedLog {
    /// Reads the log up to now.
    pub fn start() -> FollowedLog {
        // The log is opened at its oldest message.
        let kmsg = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let kmsg = kmsg.map_err(|e| format!("/dev/kmsg: {}", reason(&e)));
        let read = kmsg.and_then(|mut kmsg| Ok((read_new(&mut kmsg)?, kmsg)));
        let (text, kmsg) = read.map_or_else(|why| (Err(why), None), |(text, kmsg)| (Ok(text), Some(kmsg)));
        FollowedLog { kmsg, log: KernelLog { entries: text.map(|text| parse(&text)).into(), named: false } }
    }

    /// Returns the messages about clocks since the last call, or why the log is not readable. If the log was not readable
    /// before, the messages until now are old.
    pub fn new_messages(&mut self) -> Result<Vec<String>, String> {
        if let (Some(kmsg), Fact::Known(entries)) = (&mut self.kmsg, &mut self.log.entries) {
            return Ok(add(entries, &read_new(kmsg)?));
        }
        *self = FollowedLog::start();
        self.log.entries.get().map(|_| Vec::new()).map_err(String::from)
    }
}

/// Adds lines to a log. Returns those about clocks.
fn add(log: &mut KernelClockLog, text: &str) -> Vec<String> {
    let new = parse(text);
    let lines = new.lines_about_clocks();
    log.messages.extend(new.messages);
    let excess = log.messages.len().saturating_sub(FIRST + LAST);
    if excess > 0 {
        log.messages.drain(FIRST..FIRST + excess);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seconds: u64) -> String {
        format!("6,342,{},-;clocksource: Switched to clocksource tsc\n SUBSYSTEM=x\n", seconds * 1_000_000)
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_log_are_kept() {
        let mut log = parse("5,1,0,-;Linux version 6.1 (x)\n");
        for seconds in 1..10_000 {
            assert_eq!(
                add(&mut log, &line(seconds)),
                [format!("[{seconds:5}.000000] clocksource: Switched to clocksource tsc")]
            );
        }
        assert_eq!(log.messages.len(), FIRST + LAST);
        let lines = log.lines_about_clocks();
        assert!(lines[0].contains("Linux version") && lines.last().unwrap().contains("9999"));
        assert!(!log.truncated);
    }

    #[test]
    fn other_messages_are_left_out() {
        let mut log = parse(&line(5));
        assert!(log.truncated, "the log does not begin with a boot");
        assert!(add(&mut log, "6,343,6000000,-;usb 1-1: new device\n SUBSYSTEM=usb\n").is_empty());
        assert_eq!(log.messages.len(), 1);
    }
}
