//! The kernel's log.

use super::Host;
use crate::host::kernel_log::{KernelClockLog, parse};
use crate::human::reason;
use crate::report::Fact;
use std::io::Read;
use std::path::PathBuf;

/// Where to take the log from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// the machine's own: /dev/kmsg, or in a captured tree var/log/dmesg
    Own,
    File(PathBuf),
    Stdin,
}

/// What the log says.
#[derive(Clone, Debug)]
pub struct KernelLog {
    pub said: Fact<KernelClockLog>,
    /// the user named it: it may be another machine's
    pub named: bool,
}

impl KernelLog {
    /// The machine's own, as it is now. An ordinary user may be refused it, which is a fact like any
    /// other.
    pub fn own(host: &Host) -> KernelLog {
        let text = if host.is_live() { kmsg() } else { host.read("/var/log/dmesg") };
        KernelLog { said: text.map(|text| parse(&text)), named: false }
    }
}

/// A log is never larger: the kernel's ring holds 16 MB at most in practice.
const MOST: u64 = 64 << 20;

impl LogSource {
    /// Reads the log. A file or stdin that the user named and that cannot be read is an error.
    pub fn read(&self, host: &Host) -> anyhow::Result<KernelLog> {
        let mut bytes = Vec::new();
        match self {
            LogSource::Own => return Ok(KernelLog::own(host)),
            LogSource::File(path) => std::fs::File::open(path)
                .and_then(|file| file.take(MOST).read_to_end(&mut bytes))
                .map_err(|e| anyhow::anyhow!("could not read kernel log \"{}\": {}", path.display(), reason(&e)))?,
            LogSource::Stdin => std::io::stdin()
                .take(MOST)
                .read_to_end(&mut bytes)
                .map_err(|e| anyhow::anyhow!("could not read the kernel log from stdin: {}", reason(&e)))?,
        };
        if bytes.contains(&0) {
            anyhow::bail!("the kernel log is not text (it has NUL bytes)");
        }
        // An ordinary user's dmesg prints nothing here but an error of its own, to stderr.
        if bytes.trim_ascii().is_empty() {
            anyhow::bail!("the kernel log is empty");
        }
        let log = parse(&String::from_utf8_lossy(&bytes));
        let said = match log.entries.is_empty() {
            true => Fact::unavailable("nothing in what was given as the kernel log speaks of clocks"),
            false => Fact::Known(log),
        };
        Ok(KernelLog { said, named: true })
    }
}

/// Reads /dev/kmsg, one message a read, without waiting for more.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn kmsg() -> Fact<String> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
    let mut file = match file {
        Ok(file) => file,
        Err(e) => return Fact::unavailable(format!("/dev/kmsg: {}", reason(&e))),
    };
    let mut text = String::new();
    // Longer than any record: a shorter buffer makes the kernel refuse the read.
    let mut record = [0u8; 8192];
    loop {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(n) => push_record(&mut text, &String::from_utf8_lossy(&record[..n])),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
            // EPIPE: the ring has overtaken us; the next read goes on with what is left.
            Err(e) if matches!(e.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::Interrupted) => {}
            Err(e) if text.is_empty() => return Fact::unavailable(format!("/dev/kmsg: {}", reason(&e))),
            Err(_) => break,
        }
    }
    Fact::Known(text)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn kmsg() -> Fact<String> {
    Fact::unavailable("the kernel log is read on Linux only")
}

#[cfg(any(target_os = "linux", target_os = "android", test))]
/// `6,342,10301420,-;message` followed by lines of ` KEY=value`: as `dmesg` prints it, `[   10.301420] message`.
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
    fn records_read_like_dmesg() {
        let mut text = String::new();
        push_record(&mut text, "6,342,10301420,-;tsc: Detected 2299.998 MHz processor\n SUBSYSTEM=x\n");
        push_record(&mut text, "junk");
        assert_eq!(text, "[   10.301420] tsc: Detected 2299.998 MHz processor\n");
    }
}
