//! What the kernel's log says about clocks.
//!
//! | file | what it does |
//! |---|---|
//! | `line` | takes the time and every kind of prefix off a line |
//! | `message` | understands a single message, in every version's wording |
//! | `join` | puts the lines of one event together |
//! | `skew` | computes from the watchdog's counters by how much a clock was off |
//! | `demotion`, `query` | answer what checks ask |
//! | `story` | tells it all in plain words |
//!
//! Logs come out of `dmesg`, journals, mails and containers, and they can be cut and damaged anywhere. The rule for
//! all of them: a number is taken only if all of it is there, and what is missing is missing.

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
    SyncCheck, Warp,
};
pub use story::story;

/// One thing that the kernel said about clocks, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// seconds since boot, by the kernel
    pub seconds: Option<f64>,
    /// the time by the wall clock, as it stood before the message
    pub stamp: Option<String>,
    /// what it said
    pub event: Event,
}

/// What a log says about clocks, in its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KernelClockLog {
    /// what it says
    pub entries: Vec<Entry>,
    /// the lines that say so, without prefixes
    pub about_clocks: Vec<String>,
    /// how many lines it has, whatever they are about
    pub lines: usize,
    /// Nothing shows that the beginning of this boot is in it: the ring may have overwritten that, or the log was
    /// cleared or filtered. Then no mention of a clock does not mean that there was none.
    pub truncated: bool,
}

/// printk's time starts with the log's first line; no first line comes later than this.
const BOOT_S: f64 = 1.0;

/// Reads a log of any kind.
pub fn parse(text: &str) -> KernelClockLog {
    let mut joiner = join::Joiner::default();
    let (mut lines, mut first, mut boot, mut about_clocks) = (0, None, false, Vec::new());
    for text in text.lines() {
        lines += 1;
        let plain = line::plain(text);
        let line = line::split(&plain);
        first = first.or(line.seconds);
        if let Some(said) = message::understand(line.message) {
            boot |= matches!(said.event, Event::Boot { .. });
            about_clocks.push(bare(&line, &said.event));
            joiner.push(&line, said);
        }
    }
    let truncated = !boot && first.is_none_or(|first| first > BOOT_S);
    KernelClockLog { entries: joiner.finish(), about_clocks, lines, truncated }
}

/// The line as `[seconds] message` and nothing else: a syslog prefix names the host, and the kernel's first line names
/// who built it.
fn bare(line: &line::Line, event: &Event) -> String {
    let boot = matches!(event, Event::Boot { .. });
    let message = if boot { line.message.split(" (").next().unwrap_or_default() } else { line.message };
    match line.seconds {
        Some(seconds) => format!("[{seconds:12.6}] {message}"),
        None => message.to_string(),
    }
}
