//! Reads what pg_test_timing printed, whichever version it was, out of the text it was pasted into.
//!
//! | version | what it prints |
//! |---|---|
//! | 9.2 to 18 | one clock, a table in microseconds (`< us`, older `< usec`: without the bound) |
//! | 19 in development | one clock, a table in nanoseconds (`<= ns`: with the bound), then also exact durations |
//! | 19 | up to three clocks like that, and what it thinks of the TSC |
//!
//! Reports come out of mails, tickets and terminals, so quoting, indentation, prompts and cuts are
//! expected. The rule for all of them: a number is taken only if all of it is there. What is
//! missing is missing, and `cut_off` says so where it can be known.

mod collect;
mod line;
mod row;
mod table;
mod tsc;

#[cfg(test)]
mod tests;

/// One run of pg_test_timing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// `Testing timing overhead for N seconds`: for how long each clock was read
    pub duration_s: Option<u64>,
    /// the clocks in the order printed, each with a loop time or a table at least
    pub clocks: Vec<ClockTable>,
    /// What 19 says of the TSC
    pub tsc: Option<TscLines>,
    /// The clock went back. Beside `warp_ns`, since a cut text can say so without the amount
    pub went_back: bool,
    /// By how much, in ns, below zero as it is printed. A printed `ms` is taken for microseconds, in
    /// an output that counts in nanoseconds for those: no version has ever measured milliseconds
    pub warp_ns: Option<i64>,
    /// Something that was printed is not here: there is a `...` in its place, rows are missing or
    /// damaged, or the text ends too early
    ///
    /// The `...` that 19 itself prints before the longest duration does not count. Rows lost from
    /// the end of a classic table are noticed once they hold more than 0.0002% of the readings.
    pub cut_off: bool,
}

/// Which clock was read.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockKind {
    /// the one that every version reads: `clock_gettime`
    System,
    /// 19's `Clock source: RDTSCP`
    Rdtscp,
    /// 19's `Fast clock source: RDTSC`
    Rdtsc,
    /// one not known when this was written, by the name printed
    Other(String),
}

/// What was printed of one clock.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockTable {
    /// which clock
    pub kind: ClockKind,
    /// elapsed time over readings, the loop's own work included
    pub loop_ns: Option<f64>,
    /// the histogram, shortest first
    pub bins: Vec<Bin>,
    /// 19's exact durations, shortest first
    pub observed: Vec<Observed>,
}

/// One row of the histogram: `count` durations d with `from_ns <= d < below_ns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// the shortest duration that is counted here
    pub from_ns: f64,
    /// the shortest that no longer is
    pub below_ns: f64,
    /// how many there were, from the column `count`: the percentages are rounded
    pub count: u64,
}

/// One row of 19's exact durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// the duration
    pub ns: u64,
    /// how many there were
    pub count: u64,
}

/// What 19 prints about the TSC, as far as it is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TscLines {
    /// `TSC frequency source: ...`, such as `x86, hypervisor, calibration`
    pub source: Option<String>,
    /// `TSC frequency in use: N kHz`
    pub in_use_khz: Option<u64>,
    /// `TSC frequency from calibration: N kHz`
    pub calibrated_khz: Option<u64>,
    /// `TSC calibration did not converge`
    pub not_converged: bool,
    /// `TSC clock source is not usable`
    pub not_usable: bool,
    /// `TSC clock source will (not) be used by default`
    pub used_by_default: Option<bool>,
}

/// Why there is nothing to interpret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// no text, or blanks only
    Empty,
    /// NULs, or so many control characters that it was never meant to be read
    NotText,
    /// lines of a kernel's log about its clocks
    KernelLog,
    /// some other text
    NothingFound,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ParseError::Empty => "the text is empty",
            ParseError::NotText => "this is not text: it has NULs or is full of control characters",
            ParseError::KernelLog => "this is a kernel log, not an output of pg_test_timing",
            ParseError::NothingFound => {
                "no output of pg_test_timing found, neither a loop time nor a table (other languages: use LC_ALL=C)"
            }
        })
    }
}

impl std::error::Error for ParseError {}

/// All the runs in a text, in its order. Each has a loop time, a table with rows, or a clock that went back.
pub fn parse(text: &str) -> Result<Vec<Output>, ParseError> {
    if text.contains('\0') {
        return Err(ParseError::NotText);
    }
    let mut found = collect::Collector::default();
    for line in text.split_inclusive(['\n', '\r']) {
        let whole = line.ends_with(['\n', '\r']);
        found.line(line, whole);
    }
    let outputs = found.finish();
    if !outputs.is_empty() {
        return Ok(outputs);
    }
    Err(match () {
        () if line::unquote(text).is_empty() => ParseError::Empty,
        () if mostly_junk(text) => ParseError::NotText,
        () if text.lines().any(line::is_kernel_log) => ParseError::KernelLog,
        () => ParseError::NothingFound,
    })
}

/// A third of it is control characters, or the mark left where bytes were not UTF-8.
///
/// Text has next to none, even a terminal's with its escapes; random bytes have more than half.
fn mostly_junk(text: &str) -> bool {
    let junk = |c: &char| (c.is_control() && !c.is_whitespace()) || *c == char::REPLACEMENT_CHARACTER;
    text.chars().filter(junk).count() * 3 > text.chars().count()
}
