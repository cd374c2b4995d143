//! Follows the kernel's log: returns each new message about clocks once.

use super::KernelLog;
use super::kernel_log::Kmsg;
use crate::host::kernel_log::{KernelClockLog, parse};
use crate::report::Fact;

/// The number of kept lines from the beginning of the log, which contains the boot, and from its end. A faulty clock can
/// produce messages for ever.
const FIRST: usize = 200;
const LAST: usize = 300;

/// The machine's log since its beginning, which grows.
pub struct FollowedLog {
    /// the open log, or why it is not readable
    source: Result<Kmsg, String>,
    /// the lines about clocks
    lines: Vec<String>,
    /// whether the log lacks the beginning of this boot
    truncated: bool,
}

impl FollowedLog {
    /// Reads the log up to now.
    pub fn start() -> FollowedLog {
        let mut text = String::new();
        let source = Kmsg::open().and_then(|mut kmsg| kmsg.read_new(&mut text).map(|()| kmsg));
        FollowedLog::new(source, &text)
    }

    fn new(source: Result<Kmsg, String>, text: &str) -> FollowedLog {
        let mut log = FollowedLog { source, lines: Vec::new(), truncated: false };
        log.truncated = log.add(text).truncated;
        log
    }

    /// Returns the messages about clocks since the last call, or why the log is not readable. If the log was not readable
    /// before, the messages until now are old.
    pub fn new_messages(&mut self) -> Result<Vec<String>, String> {
        if self.source.is_err() {
            *self = FollowedLog::start();
            return self.source.as_ref().map(|_| Vec::new()).map_err(|why| why.clone());
        }
        let mut text = String::new();
        self.source.as_mut().map_err(|why| why.clone())?.read_new(&mut text)?;
        Ok(if text.is_empty() { Vec::new() } else { self.add(&text).lines_about_clocks() })
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
