//! Limits the memory that a server can take. libpq stores what the server sends: messages of up to 2 GB, and any number
//! of parameters, notifications and errors. It has no limit for that, and no function that returns how much it stores.
//!
//! So this module watches the memory of the process while libpq works. This covers all kinds of messages, also of later
//! versions of libpq. The number of received bytes is not suitable: notices and rows that are not kept take no memory.

use std::fs::File;

/// What libpq may store for one statement or one connection attempt: a result of 64 MB in one row (`MAX_BYTES`), and
/// smaller buffers.
pub const LIMIT: u64 = 80 << 20;
/// What libpq may reserve. Its buffer has a power of two as its size, so a row of 64 MB needs 128 MB. libpq reserves
/// the memory for a whole message as soon as it knows the length. Later it may read until that memory is full.
const RESERVED_LIMIT: u64 = 144 << 20;
/// What libpq may keep for a session. Its buffers never shrink, but they are used again.
const SESSION_LIMIT: u64 = 256 << 20;
/// Rows take up to this many times their size, because they are copied, and because the allocator adds to it.
const COPIES: u64 = 3;

/// Watches the memory during a session.
pub struct MemoryWatch {
    source: Source,
    /// what libpq may still keep
    session_left: u64,
    /// memory at the beginning of the statement
    start: Memory,
}

impl MemoryWatch {
    /// Starts now.
    pub fn new() -> MemoryWatch {
        let source = Source::new();
        MemoryWatch { start: source.memory(), source, session_left: SESSION_LIMIT }
    }

    /// Starts to watch a statement.
    pub fn begin(&mut self) {
        self.start = self.source.memory();
    }

    /// Ends the watch of a statement whose rows take `rows` bytes.
    pub fn end(&mut self, rows: usize) {
        self.session_left = self.session_left.saturating_sub(self.growth(rows).used);
    }

    /// Returns whether libpq stores too much, besides the rows that we keep.
    pub fn is_exceeded(&self, rows: usize) -> bool {
        let growth = self.growth(rows);
        growth.used > LIMIT.min(self.session_left) || growth.reserved > RESERVED_LIMIT
    }

    fn growth(&self, rows: usize) -> Memory {
        self.source.memory().growth_since(&self.start, COPIES * rows as u64)
    }
}

/// The memory of this process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    /// in RAM
    used: u64,
    /// allocated
    reserved: u64,
}

impl Memory {
    fn growth_since(&self, start: &Memory, rows: u64) -> Memory {
        let growth = |now: u64, start: u64| now.saturating_sub(start).saturating_sub(rows);
        Memory { used: growth(self.used, start.used), reserved: growth(self.reserved, start.reserved) }
    }
}

/// Reads the memory of this process from Linux's /proc/self/statm, or else from getrusage.
struct Source(Option<File>);

impl Source {
    fn new() -> Source {
        Source(if cfg!(target_os = "linux") { File::open("/proc/self/statm").ok() } else { None })
    }

    fn memory(&self) -> Memory {
        self.read_statm().unwrap_or_else(peak)
    }

    /// Takes about 1 us, because the file stays open.
    fn read_statm(&self) -> Option<Memory> {
        let mut text = [0; 128];
        let length = std::os::unix::fs::FileExt::read_at(self.0.as_ref()?, &mut text, 0).ok()?;
        // Pages: size, resident, shared, text, 0, data and stack, 0: proc_pid_statm(5).
        let mut pages = std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace();
        let bytes = |pages: &str| Some(pages.parse::<u64>().ok()? * rustix::param::page_size() as u64);
        Some(Memory { used: bytes(pages.nth(1)?)?, reserved: bytes(pages.nth(3)?)? })
    }
}

/// Returns the most memory that this process has used. Every Unix knows this figure, but it does not show when memory
/// that was freed before the watch began is used again. So the limit is less strict on these systems.
fn peak() -> Memory {
    // SAFETY: the structure is plain numbers, which the call overwrites.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    // macOS counts bytes, and the others count kB.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    let used = u64::try_from(usage.ru_maxrss).unwrap_or(0) * unit;
    Memory { used, reserved: used }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_known() {
        for memory in [MemoryWatch::new().start, peak()] {
            assert!((1 << 20..1 << 40).contains(&memory.used), "{memory:?}");
            assert!((1 << 20..1 << 40).contains(&memory.reserved), "{memory:?}");
        }
        assert_eq!(MemoryWatch::new().source.read_statm().is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn rows_do_not_count_but_what_libpq_keeps_does() {
        let memory = |used, reserved| Memory { used, reserved };
        assert_eq!(memory(50, 90).growth_since(&memory(10, 20), 15), memory(25, 55));
        assert_eq!(memory(50, 90).growth_since(&memory(60, 20), 100), memory(0, 0));
    }

    #[test]
    fn each_statement_uses_up_what_the_session_may_keep() {
        let mut watch = MemoryWatch { session_left: 1 << 20, ..MemoryWatch::new() };
        watch.start = Memory { used: 0, reserved: 0 };
        assert!(watch.is_exceeded(0), "the test itself uses more than 1 MB");
        watch.end(0);
        assert_eq!(watch.session_left, 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn reserved_memory_counts_before_it_is_used() {
        let watch = MemoryWatch::new();
        let buffer = std::hint::black_box(Vec::<u8>::with_capacity(1 << 30));
        assert!(watch.is_exceeded(0), "{}", buffer.capacity());
    }
}
