//! Parses the messages about clocks in a kernel log.
//!
//! | file | what it does |
//! |---|---|
//! | `line` | removes the time and every kind of prefix from a line |
//! | `message` | parses a single message, in the wording of every kernel version |
//! | `join` | joins the lines of one event |
//! | `skew` | computes the error of a clock from the watchdog's counters |
//! | `demotion`, `query` | find the facts that checks need |
//! | `story` | describes the events in sentences |
//!
//! Logs come from `dmesg`, journals, mails and containers. They can be cut or damaged anywhere. So a number counts only
//! if it is complete, and missing values stay missing.

mod demotion;
mod event;
mod join;
mod line;
mod message;
mod query;
mod scan;
mod skew;
mod stamp;
mod story;

#[cfg(test)]
mod tests;

pub use demotion::{Demotion, DemotionKind};
pub use event::{
    CheckSkipped, CpuSkew, Cpus, Event, FirmwareBug, OverrideRefused, Rate, RateSource, ReadBack, Reading, Skew,
    SyncCheck, Timecounter, Warp,
};
pub use story::story;

/// One event about clocks, with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// seconds since boot, by the kernel's clock
    pub seconds: Option<f64>,
    /// wall-clock time, as printed before the message
    pub stamp: Option<String>,
    pub event: Event,
}

/// The events about clocks in a log, in the order of the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KernelClockLog {
    pub entries: Vec<Entry>,
    /// the lines about clocks, without prefixes
    pub about_clocks: Vec<String>,
    /// number of all lines
    pub lines: usize,
    /// The log may lack the beginning of this boot: the kernel overwrote it, or someone cleared or filtered the log.
    /// Then a missing message proves nothing.
    pub truncated: bool,
}

/// The kernel's time starts near zero. A log that starts later than this lacks its beginning.
const BOOT_S: f64 = 1.0;

/// Parses a log of any kind.
pub fn parse(text: &str) -> KernelClockLog {
    let mut joiner = join::Joiner::default();
    let (mut lines, mut first, mut boot, mut about_clocks) = (0, None, false, Vec::new());
    for text in text.lines() {
        lines += 1;
        let plain = line::plain(text);
        let line = line::split(&plain);
        first = first.or(line.seconds);
        if let Some(parsed) = message::parse(line.message) {
            boot |= matches!(parsed.event, Event::Boot { .. });
            about_clocks.push(without_prefix(&line, &parsed.event));
            joiner.push(&line, parsed);
        }
    }
    let truncated = !boot && first.is_none_or(|first| first > BOOT_S);
    KernelClockLog { entries: joiner.finish(), about_clocks, lines, truncated }
}

/// Returns the line as `[seconds] message`. A syslog prefix would identify the host, and the kernel's first line
/// identifies the person who built the kernel.
fn without_prefix(line: &line::Line, event: &Event) -> String {
    let boot = matches!(event, Event::Boot { .. });
    let message = if boot { line.message.split(" (").next().unwrap_or_default() } else { line.message };
    match line.seconds {
        Some(seconds) => format!("[{seconds:12.6}] {message}"),
        None => message.to_string(),
    }
}
