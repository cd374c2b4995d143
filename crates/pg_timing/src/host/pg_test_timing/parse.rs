//! Parses the output of every version of pg_test_timing, also within other text.
//!
//! | version | output |
//! |---|---|
//! | 9.2 to 18 | one clock; a table in microseconds with exclusive bounds (`< us`, older `< usec`) |
//! | 19 in development | one clock; a table in nanoseconds with inclusive bounds (`<= ns`), later also exact durations |
//! | 19 | up to three such clocks, and lines about the TSC |
//!
//! The text can come from mails, tickets and terminals, with quoting, prompts and cuts, and without its line breaks. So
//! sentences and rows are recognized wherever they stand in a line. What is missing or damaged sets `cut_off`: each share
//! of a table must be that of its count.

use super::table::{ClockTable, Kind, Output, Row, Scale, Table, TscLines, decimal};
use crate::host::kernel_log;
use crate::host::pattern::{Fields, at_start};
use crate::report::SYSTEM;

#[cfg(test)]
mod tests;

const NOT_TEXT: &str = "the input is not text: it has NUL bytes";
pub const KERNEL_LOG: &str = "this is a kernel log, and not the output of pg_test_timing";
const NOTHING_FOUND: &str =
    "found no output of pg_test_timing: neither a loop time nor a table (run pg_test_timing with LC_ALL=C)";

/// Returns all outputs in a text, in their order. Each has a loop time, a table with rows, or a clock that went back. Without
/// any, returns why.
pub fn parse(text: &str) -> Result<Vec<Output>, &'static str> {
    if text.contains('\0') {
        return Err(NOT_TEXT);
    }
    let mut reader = Reader::default();
    for line in text.split_inclusive(['\n', '\r']) {
        let position = line.as_ptr().addr() - text.as_ptr().addr();
        reader.line(line, position);
    }
    match reader.finish() {
        outputs if !outputs.is_empty() => Ok(outputs),
        _ if kernel_log::is_kernel_log(text) => Err(KERNEL_LOG),
        _ => Err(NOTHING_FOUND),
    }
}

/// What a sentence of pg_test_timing is.
#[derive(Clone, Copy, PartialEq)]
enum Sentence {
    Testing,
    LoopTime,
    Heading(Kind),
    Titles(Kind, Scale),
    SystemClock,
    Clock,
    WentBack,
    Warp,
    TscSource,
    TscInUse,
    TscCalibrated,
    TscNotUsable,
    TscByDefault(bool),
    /// the calibrated rate is too far from the one in use, which ends the output
    TscWarning,
}

/// Every sentence, in the wording of every version.
const SENTENCES: &[(&str, Sentence)] = {
    use Kind::*;
    use Sentence::*;
    const US: Scale = Scale::MICROSECONDS;
    const NS: Scale = Scale::NANOSECONDS;
    &[
        ("Testing timing overhead for {#seconds} second", Testing),
        ("Per loop time including overhead: {loop} ns", LoopTime),
        ("Average loop time including overhead: {loop} ns", LoopTime),
        ("Per timing duration including loop overhead: {loop} ns", LoopTime),
        ("Histogram of timing durations", Heading(Histogram)),
        ("Observed timing durations up to", Heading(Observed)),
        ("< usec: count percent", Titles(Histogram, US)),
        ("< usec % of total count", Titles(Histogram, US)),
        ("< us % of total count", Titles(Histogram, US)),
        ("<= ns % of total running % count", Titles(Histogram, NS)),
        ("<= ns % of total count", Titles(Histogram, NS)),
        ("ns % of total running % count", Titles(Observed, NS)),
        ("System clock source: {name}", SystemClock),
        ("Fast clock source: {name}", Clock),
        ("Clock source: {name}", Clock),
        ("Detected clock going backwards in time", WentBack),
        ("Time warp: {#amount} {unit}", Warp),
        ("TSC frequency source: {*source}", TscSource),
        ("TSC frequency in use: {#khz} kHz", TscInUse),
        ("TSC frequency from calibration: {#khz} kHz", TscCalibrated),
        ("TSC clock source is not usable", TscNotUsable),
        ("TSC clock source will be used by default", TscByDefault(true)),
        ("TSC clock source will not be used by default", TscByDefault(false)),
        ("Calibrated TSC frequency differs by {percent}%", TscWarning),
    ]
};

/// Returns the line without indentation, and without the marks of mails, tickets, psql and docker.
pub fn unquote(line: &str) -> &str {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    // psql marks line breaks in a value by `+` or `↵` at the right.
    let mut line = line.trim_start_matches(blank).trim_end_matches(|c| blank(c) || "+|│↵`*\"',".contains(c));
    let is_name = |word: &str| {
        word.contains(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    loop {
        line = line.trim_start_matches(|c| blank(c) || ">|│#*`\"'".contains(c));
        match line.split_once('|') {
            // `db-1  | text` comes from docker compose.
            Some((name, rest)) if is_name(name.trim_end()) => line = rest,
            _ => return line,
        }
    }
}

/// Returns whether the word is only `...` or a similar mark.
fn is_elision(word: &str) -> bool {
    let inner = word.trim_matches(['[', ']', '(', ')', '<', '>']);
    inner == "…" || (inner.len() >= 3 && inner.chars().all(|c| c == '.'))
}

/// Receives a text line by line.
#[derive(Default)]
struct Reader {
    done: Vec<Output>,
    open: Open,
    /// where the current line begins
    position: usize,
}

/// The output being read.
#[derive(Default)]
struct Open {
    output: Output,
    /// the table for the next rows
    table: Option<Table>,
    /// whether there was a table in microseconds; then there is no second clock
    classic: bool,
    /// whether a heading named a clock, as in PostgreSQL 19
    headed: bool,
    /// whether PostgreSQL ended the output with its warning
    warned: bool,
}

impl Reader {
    /// Adds a line that begins at this position of the text.
    fn line(&mut self, line: &str, position: usize) {
        self.position = position;
        let line = unquote(line).replace(['|', '│'], " ").replace("&lt;", "<");
        let mut rest = line.trim();
        while !rest.is_empty() {
            rest = self.next(rest).trim_start();
        }
    }

    /// Reads the sentence, row or word at the start of a line. Returns the text after it.
    fn next<'a>(&mut self, text: &'a str) -> &'a str {
        for (pattern, sentence) in SENTENCES {
            if let Some((fields, rest)) = at_start(pattern, text) {
                self.sentence(*sentence, &fields);
                return if *sentence == Sentence::TscSource { after_source(text) } else { rest };
            }
        }
        let word = text.split_whitespace().next().unwrap_or("");
        let after = &text[word.len()..];
        let Some(table) = &mut self.open.table else { return after };
        let words: Vec<&str> = text.split_whitespace().take(5).collect();
        let first = words[0].trim_start_matches(':');
        if first.is_empty() {
            return after;
        }
        if is_elision(word) {
            table.elision();
        } else if let Some((row, length)) = Row::of(&words) {
            table.add(row);
            let last = words[length - 1];
            return &text[last.as_ptr().addr() - text.as_ptr().addr() + last.len()..];
        } else if first.starts_with(|c: char| c.is_ascii_digit()) {
            // Before the first row, a number can belong to a sentence.
            if !table.is_empty() {
                table.damage();
            }
        } else if !table.is_empty() && word.contains(char::is_alphabetic) {
            self.open.close_table();
        }
        after
    }

    /// Returns all outputs.
    fn finish(mut self) -> Vec<Output> {
        self.start();
        self.done
    }

    /// Ends the current output and starts a new one.
    fn start(&mut self) -> &mut Open {
        self.done.extend(std::mem::take(&mut self.open).finish());
        self.open.output.position = self.position;
        &mut self.open
    }

    /// Returns the current output if it `fits`, or else a new one.
    fn fitting(&mut self, fits: impl FnOnce(&Open) -> bool) -> &mut Open {
        self.open.close_table();
        let is_new = self.open.output == Output { position: self.open.output.position, ..Output::default() };
        match is_new || !fits(&self.open) {
            true => self.start(),
            false => &mut self.open,
        }
    }

    fn sentence(&mut self, sentence: Sentence, fields: &Fields) {
        match sentence {
            Sentence::Testing => self.testing(fields.number("seconds")),
            Sentence::LoopTime => self.loop_time(fields.text("loop").and_then(decimal)),
            Sentence::Heading(kind) => self.table(kind, None),
            Sentence::Titles(kind, scale) => self.table(kind, Some(scale)),
            Sentence::SystemClock => self.clock(SYSTEM),
            Sentence::Clock => match fields.text("name") {
                Some(name) if name.starts_with("clock_gettime") => self.clock(SYSTEM),
                // PostgreSQL's names are in capitals. `Clock source: tsc` is not from pg_test_timing.
                Some(name) if !name.contains(|c: char| c.is_lowercase()) => self.clock(&name.to_ascii_lowercase()),
                _ => {}
            },
            Sentence::WentBack => self.went_back(),
            Sentence::Warp => self.warp(fields.number("amount"), fields.text("unit").unwrap_or("")),
            line => self.tsc(line, fields),
        }
    }

    fn testing(&mut self, seconds: Option<u64>) {
        // This is the first line of an output, with two exceptions. If stderr goes to the same file, "going backwards"
        // comes before it. Builds before 19 printed the first clock's heading above it.
        let open = self.fitting(|open| {
            let clocks = &open.output.clocks;
            open.output.duration_s.is_none() && clocks.iter().all(|c| c.name == SYSTEM && is_bare(c))
        });
        open.output.duration_s = seconds;
    }

    fn clock(&mut self, name: &str) {
        let open = self.fitting(|open| match name {
            SYSTEM => open.output.clocks.is_empty() && !open.is_over(),
            _ => !open.classic && !open.is_over() && open.output.clocks.iter().all(|clock| clock.name != name),
        });
        open.headed = true;
        open.push(name);
    }

    fn loop_time(&mut self, ns: Option<f64>) {
        // With a single clock, a run whose clock went back has no loop time, so this is another run.
        if self.open.output.went_back && !self.open.headed {
            let duration = (!self.open.is_over()).then(|| self.open.output.duration_s.take()).flatten();
            self.start().output.duration_s = duration;
        }
        let open = self.fitting(|open| open.output.clocks.last().is_none_or(is_bare) && !open.is_over());
        open.clock().loop_ns = ns;
        open.table = Some(Table::new(Kind::Histogram, None));
    }

    /// Begins a table of the current clock, or of a new output if the clock already has one.
    fn table(&mut self, kind: Kind, scale: Option<Scale>) {
        let open = self.fitting(|open| match open.output.clocks.last() {
            None => true,
            Some(clock) if kind == Kind::Histogram => clock.bins.is_empty() && clock.observed.is_empty(),
            Some(clock) => clock.observed.is_empty() && !open.classic,
        });
        open.clock();
        open.table = Some(Table::new(kind, scale));
    }

    fn went_back(&mut self) {
        let open = self.fitting(|open| !open.output.went_back && open.output.clocks.last().is_none_or(is_bare));
        open.output.went_back = true;
    }

    fn warp(&mut self, amount: Option<i64>, unit: &str) {
        let factor = match unit.trim_end_matches(|c: char| !c.is_alphanumeric()) {
            "ns" | "nsec" => 1,
            // Builds between 18 and 19 printed `ms` for nanoseconds, and some versions up to 18 for microseconds.
            "ms" if self.open.headed => 1,
            "us" | "usec" | "microseconds" | "ms" => 1000,
            _ => return,
        };
        let open = self.fitting(|open| match open.output.went_back {
            true => open.output.warp_ns.is_none(),
            false => open.output.clocks.last().is_none_or(is_bare),
        });
        open.output.went_back = true;
        open.output.warp_ns = amount.and_then(|amount| amount.checked_mul(factor));
    }

    fn tsc(&mut self, line: Sentence, fields: &Fields) {
        self.open.close_table();
        // These lines alone are not an output. After a classic table they belong to another output.
        if self.open.output.clocks.is_empty() || self.open.classic || self.open.output.went_back {
            return;
        }
        let lines = self.open.output.tsc.get_or_insert_default();
        let khz = fields.number("khz");
        match line {
            Sentence::TscSource => {
                lines.source = lines.source.take().or_else(|| fields.text("source").and_then(source))
            }
            Sentence::TscInUse => lines.in_use_khz = lines.in_use_khz.or(khz),
            Sentence::TscCalibrated => lines.calibrated_khz = lines.calibrated_khz.or(khz),
            Sentence::TscNotUsable => lines.not_usable = true,
            Sentence::TscByDefault(by_default) => {
                lines.used_by_default = lines.used_by_default.or(Some(by_default));
            }
            _ => self.open.warned = true,
        }
    }
}

/// Returns the sources of the TSC's rate. Without line breaks, the next sentence follows them.
fn source(text: &str) -> Option<String> {
    let source = text.split(" TSC ").next()?.trim();
    (!source.is_empty() && !source.ends_with("...")).then(|| source.to_string())
}

/// Returns the text after the sources of the TSC's rate.
fn after_source(text: &str) -> &str {
    text[1..].find("TSC ").map_or("", |at| &text[1 + at..])
}

/// Returns whether the clock has no figures yet.
fn is_bare(clock: &ClockTable) -> bool {
    clock.loop_ns.is_none() && clock.bins.is_empty() && clock.observed.is_empty()
}

impl Open {
    fn push(&mut self, name: &str) {
        let (bins, observed) = (Vec::new(), Vec::new());
        let clock = ClockTable { name: name.into(), loop_ns: None, unit_ns: 1.0, whole: false, bins, observed };
        self.output.clocks.push(clock);
    }

    /// Returns the current clock. Without a heading it is the system clock, because every other clock has one.
    fn clock(&mut self) -> &mut ClockTable {
        if self.output.clocks.is_empty() {
            self.push(SYSTEM);
        }
        self.output.clocks.last_mut().expect("there is a clock")
    }

    /// Returns whether the clock went back, which ended the run.
    fn is_over(&self) -> bool {
        self.output.warp_ns.is_some() && (self.output.duration_s.is_some() || !self.output.clocks.is_empty())
    }

    /// Moves the rows of the open table to its clock.
    fn close_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        if table.is_empty() {
            return;
        }
        self.classic |= table.unit_ns() > 1.0;
        let clock = self.clock();
        if table.kind == Kind::Histogram {
            clock.unit_ns = table.unit_ns();
            clock.whole = table.is_whole();
            clock.bins = table.bins();
        } else {
            clock.observed = table.observed();
        }
        let total = clock.bins.iter().map(|bin| bin.count as f64).sum();
        self.output.cut_off |= !table.is_complete(total);
    }

    /// Returns the output, if it has a figure.
    fn finish(mut self) -> Option<Output> {
        self.close_table();
        let went_back = self.output.went_back;
        let last = self.output.clocks.len().saturating_sub(1);
        let mut nth = 0;
        // The clock that went back has no figures.
        self.output.clocks.retain(|clock| {
            nth += 1;
            !is_bare(clock) || went_back && self.headed && nth == last + 1
        });
        let output = &mut self.output;
        let complete = |clock: &ClockTable| clock.loop_ns.is_some() && !clock.bins.is_empty();
        let read = output.clocks.len() - usize::from(went_back && output.clocks.last().is_some_and(is_bare));
        output.cut_off |= !output.clocks[..read].iter().all(complete);
        // Releases of PostgreSQL 19 name their clocks and list durations; its development versions do neither.
        let lists = output.clocks[..read].iter().filter(|clock| !clock.observed.is_empty()).count();
        output.cut_off |= (lists > 0 || self.headed) && lists < read;
        // PostgreSQL 19 prints lines about the TSC after its clocks.
        let counter = |clock: &ClockTable| clock.name.starts_with("rdtsc");
        let ends = output.tsc.as_ref().map_or(!output.clocks.iter().any(counter), |tsc| self.warned || is_whole(tsc));
        output.cut_off |= !went_back && !ends;
        // A source alone may be cut off anywhere.
        output.tsc =
            output.tsc.take().filter(|tsc| *tsc != TscLines { source: tsc.source.clone(), ..TscLines::default() });
        (went_back || !output.clocks.is_empty()).then_some(self.output)
    }
}

/// Returns whether the last line of the output is there.
fn is_whole(lines: &TscLines) -> bool {
    // If the rates differ by more than 10%, the output ends with a warning on stderr, which is often missing.
    let warns = lines
        .in_use_khz
        .zip(lines.calibrated_khz)
        .is_some_and(|(in_use, calibrated)| (in_use as f64 - calibrated as f64).abs() > 0.1 * in_use as f64);
    lines.used_by_default.is_some() || lines.not_usable || warns
}
