//! Reads the kernel's log.

use super::Host;
use crate::host::kernel_log::{KernelClockLog, parse};
use crate::human::reason;
use crate::report::Fact;
use std::io::Read;
use std::path::PathBuf;

/// The source of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// the machine's own log: /dev/kmsg, or var/log/dmesg in a captured tree
    Own,
    File(PathBuf),
    Stdin,
}

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
        let text = if host.is_live() { kmsg() } else { host.read("/var/log/dmesg") };
        KernelLog { entries: text.map(|text| parse(&text)), named: false }
    }
}

/// The rest of a longer log is ignored. In practice the kernel's ring buffer has at most 16 MB.
const MAX_BYTES: u64 = 64 << 20;

impl LogSource {
    /// Reads the log. It is an error if the user named a file, or stdin, and it is not readable.
    pub fn read(&self, host: &Host) -> anyhow::Result<KernelLog> {
        let mut bytes = Vec::new();
        match self {
            LogSource::Own => return Ok(KernelLog::own(host)),
            LogSource::File(path) => std::fs::File::open(path)
                .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
                .map_err(|e| anyhow::anyhow!("could not read kernel log \"{}\": {}", path.display(), reason(&e)))?,
            LogSource::Stdin => std::io::stdin()
                .take(MAX_BYTES)
                .read_to_end(&mut bytes)
                .map_err(|e| anyhow::anyhow!("could not read the kernel log from stdin: {}", reason(&e)))?,
        };
        if bytes.contains(&0) {
            anyhow::bail!("the kernel log is not text (it has NUL bytes)");
        }
        // If a user may not read the log, dmesg prints only an error, to stderr.
        if bytes.trim_ascii().is_empty() {
            anyhow::bail!("the kernel log is empty");
        }
        Ok(KernelLog { entries: Fact::Known(parse(&String::from_utf8_lossy(&bytes))), named: true })
    }
}

/// Reads /dev/kmsg.
fn kmsg() -> Fact<String> {
    let mut text = String::new();
    Kmsg::open().and_then(|mut kmsg| kmsg.read_new(&mut text)).map(|()| text).into()
}

/// The machine's log, opened for reading. It returns each message once.
#[derive(Debug)]
pub struct Kmsg {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    file: std::fs::File,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Kmsg {
    /// Opens the log at its oldest message.
    pub fn open() -> Result<Kmsg, String> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        file.map(|file| Kmsg { file }).map_err(|e| format!("/dev/kmsg: {}", reason(&e)))
    }

    /// Appends the messages that were not read yet, without waiting for further ones.
    pub fn read_new(&mut self, text: &mut String) -> Result<(), String> {
        // Longer than any record, because the kernel refuses a read into a shorter buffer.
        let mut record = [0u8; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => return Ok(()),
                Ok(n) => push_record(text, &String::from_utf8_lossy(&record[..n])),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                // EPIPE: the kernel overwrote the next message. The next read continues with the oldest one.
                Err(e) if matches!(e.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::Interrupted) => {}
                Err(e) if text.is_empty() => return Err(format!("/dev/kmsg: {}", reason(&e))),
                Err(_) => return Ok(()),
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Kmsg {
    pub fn open() -> Result<Kmsg, String> {
        Err("the kernel log is read on Linux only".into())
    }

    pub fn read_new(&mut self, _: &mut String) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(any(target_os = "linux", target_os = "android", test))]
/// Adds a record `6,342,10301420,-;message` with lines of ` KEY=value` in the format of dmesg:
/// `[   10.301420] message`.
fn push_record(text: &mut String, record: &str) {
    let Some((prefix, rest)) = record.split_once(';') else { return };
    let micros: u64 = prefix.split(',').nth(2).and_then(|s| s.parse().ok()).unwrap_or(0);
    let message = rest.lines().next().unwrap_or_default();
    text.push_str(&format!("[{:5}.{:06}] {message}\n", micros / 1_000_000, micros % 1_000_000));
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
}
