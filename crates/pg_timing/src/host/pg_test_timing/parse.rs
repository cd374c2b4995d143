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

use super::Unit;
use crate::host::kernel_log;
use crate::host::pattern::{Fields, at_start};
use crate::report::{Bin, Fact, ObservedDuration, SYSTEM, TscReport};

#[cfg(test)]
mod tests;

/// One run of pg_test_timing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// measuring time of each clock, from `Testing timing overhead for N seconds`
    pub duration_s: Option<u64>,
    /// the clocks in the printed order, each with a loop time or a table
    pub clocks: Vec<ClockTable>,
    /// the lines of PostgreSQL 19 about the TSC
    pub tsc: Option<TscReport>,
    /// whether the clock went back; a cut text can show that without the amount
    pub went_back: bool,
    /// The amount in ns, negative as printed. A printed `ms` means microseconds, or nanoseconds in an output that
    /// counts in nanoseconds, because no version ever measured milliseconds.
    pub warp_ns: Option<i64>,
    /// whether a part of the output is missing or damaged
    ///
    /// The `...` that PostgreSQL 19 prints before the longest duration does not count. Missing rows at the end of a
    /// classic table are noticed if their share is at least the rounding of the printed ones.
    pub cut_off: bool,
    /// where the output begins in its text, in bytes
    pub position: usize,
}

/// The printed results of one clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClockTable {
    /// the name in reports: `system`, `rdtscp`, `rdtsc`, or that of an unknown clock
    pub name: String,
    /// elapsed time divided by the number of readings; includes the loop's own work
    pub loop_ns: Option<f64>,
    /// The unit of the differences. Up to version 18, each reading was cut to whole microseconds before the subtraction.
    pub unit: Unit,
    /// the printed shares add up to 100%, so no row is missing
    pub whole: bool,
    /// the histogram, shortest durations first
    pub bins: Vec<Bin>,
    /// PostgreSQL 19's exact durations, shortest first
    pub observed: Vec<ObservedDuration>,
}

impl ClockTable {
    /// Returns the smallest and the largest difference that a row counts, in ns.
    pub fn differences_ns(&self, bin: &Bin) -> (f64, f64) {
        let (below, unit) = (bin.le_ns as f64 + 1.0, self.unit.ns() as f64);
        (if below > unit { below / 2.0 } else { 0.0 }, below - unit)
    }

    /// Returns the number of readings.
    pub fn reads(&self) -> u64 {
        self.bins.iter().map(|bin| bin.count).fold(0, u64::saturating_add)
    }

    fn is_bare(&self) -> bool {
        self.loop_ns.is_none() && self.bins.is_empty() && self.observed.is_empty()
    }
}

impl Output {
    /// Returns whether there is a table in microseconds. Then there is no second clock.
    fn is_classic(&self) -> bool {
        self.clocks.iter().any(|clock| clock.unit == Unit::Microseconds)
    }

    /// Returns whether the clock went back, which ended the run.
    fn is_over(&self) -> bool {
        self.warp_ns.is_some() && (self.duration_s.is_some() || !self.clocks.is_empty())
    }

    /// Returns whether the current clock has no figures yet.
    fn is_bare(&self) -> bool {
        self.clocks.last().is_none_or(ClockTable::is_bare)
    }

    /// Returns the current clock. Without a heading it is the system clock, because every other clock has one.
    fn clock(&mut self) -> &mut ClockTable {
        if self.clocks.is_empty() {
            self.clocks.push(ClockTable { name: SYSTEM.into(), ..ClockTable::default() });
        }
        self.clocks.last_mut().expect("there is a clock")
    }
}

const NOT_TEXT: &str = "the input is not text: it has NUL bytes";
const MISSING: &str = "not in the output of pg_test_timing";
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
        reader.position = line.as_ptr().addr() - text.as_ptr().addr();
        // Line breaks of a string, and of a page's source.
        let lines = line.split("\\n").flat_map(|line| line.split("<br"));
        lines.for_each(|line| reader.line(line.trim_start_matches(['/', '>'])));
    }
    reader.start();
    match reader.done {
        outputs if !outputs.is_empty() => Ok(outputs),
        _ if kernel_log::is_kernel_log(text) => Err(KERNEL_LOG),
        _ => Err(NOTHING_FOUND),
    }
}

const TSC_SOURCE: &str = "TSC frequency source: {*source}";
const US: Option<Unit> = Some(Unit::Microseconds);
const NS: Option<Unit> = Some(Unit::Nanoseconds);

/// A sentence, and what the reader does with it.
type Sentence = (&'static str, fn(&mut Reader, &Fields));

/// Every sentence, in the wording of every version. The titles of a table show its unit.
const SENTENCES: &[Sentence] = &[
    ("Testing timing overhead for {#seconds} second", Reader::testing),
    ("Per loop time including overhead: {loop} ns", Reader::loop_time),
    ("Average loop time including overhead: {loop} ns", Reader::loop_time),
    ("Per timing duration including loop overhead: {loop} ns", Reader::loop_time),
    ("Histogram of timing durations", |reader, _| reader.histogram(None)),
    ("Observed timing durations up to", |reader, _| reader.observed()),
    ("< usec: count percent", |reader, _| reader.histogram(US)),
    ("< usec % of total count", |reader, _| reader.histogram(US)),
    ("< us % of total count", |reader, _| reader.histogram(US)),
    ("<= ns % of total running % count", |reader, _| reader.histogram(NS)),
    ("<= ns % of total count", |reader, _| reader.histogram(NS)),
    ("ns % of total running % count", |reader, _| reader.observed()),
    ("System clock source: {name}", |reader, _| reader.clock(SYSTEM)),
    ("Fast clock source: {name}", Reader::named_clock),
    ("Clock source: {name}", Reader::named_clock),
    ("Detected clock going backwards in time", |reader, _| reader.went_back()),
    ("Time warp: {#amount} {unit}", Reader::warp),
    (TSC_SOURCE, |reader, fields| reader.tsc(|tsc| tsc.source = fields.text("source").and_then(source))),
    ("TSC frequency in use: {#khz} kHz", |reader, fields| {
        reader.tsc(|tsc| tsc.frequency_khz = Fact::of(khz(fields), MISSING))
    }),
    ("TSC frequency from calibration: {#khz} kHz", |reader, fields| reader.tsc(|tsc| tsc.calibrated_khz = khz(fields))),
    ("TSC clock source is not usable", |reader, _| reader.tsc(|tsc| tsc.usable = Some(false))),
    ("TSC clock source will be used by default", |reader, _| reader.tsc(|tsc| tsc.used_by_default = Some(true))),
    ("TSC clock source will not be used by default", |reader, _| reader.tsc(|tsc| tsc.used_by_default = Some(false))),
];

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
        // `12:Testing timing` comes from grep -n.
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        if let Some(text) = line[digits..].strip_prefix(':').filter(|_| digits > 0)
            && !text.starts_with(|c: char| c.is_whitespace() || c.is_ascii_digit())
        {
            line = text;
        }
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
    /// the output being read
    open: Output,
    /// the table for the next rows
    table: Option<Table>,
    /// whether a heading named a clock, as in PostgreSQL 19
    headed: bool,
    /// where the current line begins
    position: usize,
    /// number of words before the last row
    frame: usize,
}

/// `Nov 27 00:01:02 host program:` are the most words that a program writes before a line.
const MAX_FRAME: usize = 5;
/// A row has three or four words, and the one after it decides between both.
const ROW_WORDS: usize = 5;

impl Reader {
    fn line(&mut self, line: &str) {
        let line = html_escape::decode_html_entities(unquote(line)).replace(['|', '│'], " ");
        let mut rest = self.without_frame(line.trim());
        while !rest.is_empty() {
            rest = self.next(rest).trim_start();
        }
    }

    /// Returns the line without what a program has put before the row of an open table: the number of the line, or a time.
    fn without_frame<'a>(&mut self, line: &'a str) -> &'a str {
        if self.table.is_none() {
            return line;
        }
        let words: Vec<&str> = line.split_whitespace().take(MAX_FRAME + ROW_WORDS).collect();
        let rest = |nth: usize| &line[words[nth].as_ptr().addr() - line.as_ptr().addr()..];
        let begins = |nth: &usize| {
            is_elision(words[*nth])
                || Row::of(&words[*nth..]).is_some()
                || SENTENCES.iter().any(|(pattern, _)| at_start(pattern, rest(*nth)).is_some())
        };
        match (0..words.len().min(MAX_FRAME + 1)).find(begins) {
            Some(nth) => {
                self.frame = nth;
                rest(nth)
            }
            None if words.len() > self.frame => rest(self.frame),
            None => "",
        }
    }

    /// Reads the sentence, row or word at the start of a line. Returns the text after it.
    fn next<'a>(&mut self, text: &'a str) -> &'a str {
        for (pattern, read) in SENTENCES {
            if let Some((fields, rest)) = at_start(pattern, text) {
                self.close_table();
                read(self, &fields);
                let after_source = || text[1..].find("TSC ").map_or("", |at| &text[1 + at..]);
                return if *pattern == TSC_SOURCE { after_source() } else { rest };
            }
        }
        let words: Vec<&str> = text.split_whitespace().take(ROW_WORDS).collect();
        let after = |nth: usize| &text[words[nth].as_ptr().addr() - text.as_ptr().addr() + words[nth].len()..];
        let Some(table) = &mut self.table else { return after(0) };
        let first = words[0].trim_start_matches(':');
        if is_elision(first) {
            table.elision();
        } else if let Some((row, length)) = Row::of(&words) {
            table.add(row);
            return after(length - 1);
        } else if first.starts_with(|c: char| c.is_ascii_digit()) {
            // A part of a row. Before the first row, a number can belong to a sentence.
            table.damaged |= !table.rows.is_empty();
        } else if !table.rows.is_empty() && first.contains(char::is_alphabetic) {
            self.close_table();
        }
        after(0)
    }

    /// Ends the current output and starts a new one.
    fn start(&mut self) -> &mut Output {
        self.close_table();
        let output = std::mem::replace(&mut self.open, Output { position: self.position, ..Output::default() });
        self.done.extend(finish(output, self.headed));
        self.headed = false;
        &mut self.open
    }

    /// Returns the current output if it `fits`, or else a new one.
    fn fitting(&mut self, fits: impl FnOnce(&Output) -> bool) -> &mut Output {
        let is_new = self.open == Output { position: self.open.position, ..Output::default() };
        if is_new || !fits(&self.open) { self.start() } else { &mut self.open }
    }

    /// This is the first line of an output, with two exceptions. If stderr goes to the same file, "going backwards" comes before
    /// it. Builds before 19 printed the first clock's heading above it.
    fn testing(&mut self, fields: &Fields) {
        let is_first = |clock: &ClockTable| clock.name == SYSTEM && clock.is_bare();
        let open = self.fitting(|open| open.duration_s.is_none() && open.clocks.iter().all(is_first));
        open.duration_s = fields.number("seconds");
    }

    fn named_clock(&mut self, fields: &Fields) {
        match fields.text("name") {
            Some(name) if name.starts_with("clock_gettime") => self.clock(SYSTEM),
            // PostgreSQL's names are in capitals. `Clock source: tsc` is not from pg_test_timing.
            Some(name) if !name.contains(|c: char| c.is_lowercase()) => self.clock(&name.to_ascii_lowercase()),
            _ => {}
        }
    }

    fn loop_time(&mut self, fields: &Fields) {
        // With a single clock, a run whose clock went back has no loop time, so this is another run.
        if self.open.went_back && !self.headed {
            let duration_s = self.open.duration_s.take_if(|_| self.open.warp_ns.is_none());
            self.start().duration_s = duration_s;
        }
        let open = self.fitting(|open| open.is_bare() && !open.is_over());
        open.clock().loop_ns = fields.text("loop").and_then(decimal);
        self.table = Some(Table::default());
    }

    /// A table belongs to the current clock, or to a new output if the clock already has one.
    fn histogram(&mut self, unit: Option<Unit>) {
        let has_none = |clock: &ClockTable| clock.bins.is_empty() && clock.observed.is_empty();
        self.fitting(|open| open.clocks.last().is_none_or(has_none)).clock();
        self.table = Some(Table { unit, ..Table::default() });
    }

    fn observed(&mut self) {
        let has_none = |clock: &ClockTable| clock.observed.is_empty();
        self.fitting(|open| open.clocks.last().is_none_or(has_none) && !open.is_classic()).clock();
        self.table = Some(Table { is_list: true, ..Table::default() });
    }

    fn went_back(&mut self) {
        self.fitting(|open| !open.went_back && open.is_bare()).went_back = true;
    }

    fn warp(&mut self, fields: &Fields) {
        let factor = match fields.text("unit").unwrap_or("").trim_end_matches(|c: char| !c.is_alphanumeric()) {
            "ns" | "nsec" => 1,
            // Builds between 18 and 19 printed `ms` for nanoseconds, and some versions up to 18 for microseconds.
            "ms" if self.headed => 1,
            "us" | "usec" | "microseconds" | "ms" => 1000,
            _ => return,
        };
        let open = self.fitting(|open| if open.went_back { open.warp_ns.is_none() } else { open.is_bare() });
        open.went_back = true;
        open.warp_ns = fields.number("amount").and_then(|amount: i64| amount.checked_mul(factor));
    }

    /// The lines about the TSC alone are not an output. After a classic table they belong to another output.
    fn tsc(&mut self, add: impl FnOnce(&mut TscReport)) {
        if !(self.open.clocks.is_empty() || self.open.is_classic() || self.open.went_back) {
            add(self.open.tsc.get_or_insert_with(|| TscReport::unavailable(MISSING)));
        }
    }

    fn clock(&mut self, name: &str) {
        let open = self.fitting(|open| match name {
            SYSTEM => open.clocks.is_empty() && !open.is_over(),
            _ => !open.is_classic() && !open.is_over() && open.clocks.iter().all(|clock| clock.name != name),
        });
        open.clocks.push(ClockTable { name: name.into(), ..ClockTable::default() });
        self.headed = true;
    }

    /// Moves the rows of the open table to its clock.
    fn close_table(&mut self) {
        let Some(table) = self.table.take().filter(|table| !table.rows.is_empty()) else { return };
        let clock = self.open.clock();
        let mut lacks_rows = false;
        if table.is_list {
            let observed = |row: &Row| ObservedDuration { ns: row.bound, count: row.count };
            clock.observed = table.rows.iter().map(observed).collect();
        } else {
            clock.unit = table.unit.unwrap_or_default();
            clock.whole = table.is_whole();
            clock.bins = table.rows.iter().filter_map(|row| bin(clock.unit, row)).collect();
            // Every version prints empty rows, too, starting at 0.
            let le_ns = |nth: usize| clock.unit.ns().checked_shl(nth as u32).map(|below| below - 1);
            lacks_rows = clock.bins.iter().enumerate().any(|(nth, bin)| Some(bin.le_ns) != le_ns(nth));
        }
        let total = clock.bins.iter().map(|bin| bin.count as f64).sum();
        self.open.cut_off |= lacks_rows || !table.is_complete(total);
    }
}

/// Returns a rate. A rate of 0 is unknown.
fn khz(fields: &Fields) -> Option<f64> {
    fields.number("khz").filter(|khz: &f64| *khz > 0.0)
}

/// Returns the sources of the TSC's rate. Without line breaks, the next sentence follows them.
fn source(text: &str) -> Option<String> {
    let source = text.split(" TSC ").next()?.trim();
    (!source.is_empty() && !source.ends_with("...")).then(|| source.to_string())
}

/// Returns the output, if it has a figure.
fn finish(mut output: Output, headed: bool) -> Option<Output> {
    // The clock that went back has no figures. Without a heading, it has no name either.
    let last = output.clocks.pop_if(|clock| clock.is_bare()).filter(|_| output.went_back && headed);
    output.clocks.retain(|clock| !clock.is_bare());
    let is_complete = |clock: &ClockTable| clock.loop_ns.is_some() && !clock.bins.is_empty();
    // Releases of PostgreSQL 19 name their clocks and list durations; its development versions do neither.
    let lists = output.clocks.iter().filter(|clock| !clock.observed.is_empty()).count();
    // PostgreSQL 19 prints lines about the TSC after its clocks.
    let ends = match &output.tsc {
        Some(tsc) => is_whole(tsc),
        None => !output.clocks.iter().any(|clock| clock.name.starts_with("rdtsc")),
    };
    output.cut_off |= !output.clocks.iter().all(is_complete)
        || (lists > 0 || headed) && lists < output.clocks.len()
        || !output.went_back && !ends;
    // A source alone may be cut off anywhere.
    let has_rate = |tsc: &TscReport| tsc.frequency_khz.known().or(tsc.calibrated_khz.as_ref()).is_some();
    output.tsc = output.tsc.filter(|tsc| is_whole(tsc) || has_rate(tsc));
    if let Some(tsc) = &mut output.tsc {
        tsc.source.get_or_insert("PostgreSQL 19".into());
        tsc.distrust.extend(tsc.usable.map(|_| "PostgreSQL 19 could not use the TSC".into()));
    }
    output.clocks.extend(last);
    (output.went_back || !output.clocks.is_empty()).then_some(output)
}

/// Returns whether the last line of the output is there.
fn is_whole(tsc: &TscReport) -> bool {
    // If the rates differ by more than 10%, the output ends with a warning on stderr, which is often missing.
    let rates = tsc.frequency_khz.known().zip(tsc.calibrated_khz);
    let warns = rates.is_some_and(|(in_use, calibrated)| (in_use - calibrated).abs() > 0.1 * in_use);
    tsc.used_by_default.is_some() || tsc.usable.is_some() || warns
}

/// The columns of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// bound, share, count: up to 18
    Share,
    /// bound, share, running share, count: 19
    Running,
    /// `bound: count share%`, longest first: in the first builds of 9.2
    Colon,
}

/// A row as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    layout: Layout,
    bound: u64,
    /// in percent; the running share if there is one
    share: f64,
    /// the rounding error of `share`
    rounding: f64,
    count: u64,
}

impl Row {
    /// Parses a row at the start of these words. Returns also the number of its words.
    fn of(words: &[&str]) -> Option<(Row, usize)> {
        let first = whole(words.first()?.trim_end_matches(':'))?;
        let (layout, share, count) = match words {
            [bound, count, share, ..] if bound.ends_with(':') => (Layout::Colon, share.strip_suffix('%')?, count),
            [_, share, running, count, ..] if decimal(share).and(decimal(running)).is_some() => {
                (Layout::Running, *running, count)
            }
            [_, share, count, ..] => (Layout::Share, *share, count),
            _ => return None,
        };
        let length = if layout == Layout::Running { 4 } else { 3 };
        let decimals = share.len() - share.find(['.', ','])? - 1;
        let rounding = 0.5 * 10f64.powi(-i32::try_from(decimals).ok()?);
        Some((Row { layout, bound: first, share: decimal(share)?, rounding, count: whole(count)? }, length))
    }
}

/// Parses a whole number, also with separators of thousands.
fn whole(word: &str) -> Option<u64> {
    let is_grouped = |(first, groups): (&str, &str)| {
        (1..=3).contains(&first.len()) && groups.split(',').all(|group| group.len() == 3)
    };
    let digits = word.split_once(',').is_none_or(is_grouped).then(|| word.replace(',', ""))?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Parses a number with decimals. The decimal separator can be a comma, as in some locales; another separator before it
/// separates thousands.
fn decimal(word: &str) -> Option<f64> {
    let at = word.rfind(['.', ','])?;
    let (integer, fraction) = (&word[..at], &word[at + 1..]);
    let separates_decimals = |c: char| word[at..].starts_with(c);
    if integer.contains(separates_decimals) || !fraction.bytes().all(|b| b.is_ascii_digit()) || fraction.is_empty() {
        return None;
    }
    let integer = whole(&integer.replace(['.', '\''], ","))?;
    format!("{integer}.{fraction}").parse().ok()
}

/// A table that is being read.
#[derive(Default)]
struct Table {
    /// PostgreSQL 19's list of exact durations, and not a histogram
    is_list: bool,
    /// by the titles; without titles, by the layout of the rows
    unit: Option<Unit>,
    /// shortest durations first
    rows: Vec<Row>,
    /// the number of rows before the last `...`
    elided_at: Option<usize>,
    damaged: bool,
}

impl Table {
    /// Adds a row if it fits the rows before it.
    fn add(&mut self, row: Row) {
        let by_layout = if row.layout == Layout::Running { Unit::Nanoseconds } else { Unit::Microseconds };
        let is_valid = bin(*self.unit.get_or_insert(by_layout), &row).is_some() || self.is_list;
        let (at, fits) = match (row.layout, self.rows.first(), self.rows.last()) {
            (Layout::Colon, Some(first), _) => (0, first.layout == row.layout && first.bound > row.bound),
            (_, _, Some(last)) => (self.rows.len(), last.layout == row.layout && last.bound < row.bound),
            _ => (0, true),
        };
        if is_valid && fits { self.rows.insert(at, row) } else { self.damaged = true }
    }

    /// Notes a `...`.
    fn elision(&mut self) {
        // PostgreSQL prints a `...` before the longest duration, and only there.
        self.damaged |= !self.is_list || self.elided_at.is_some();
        self.elided_at = Some(self.rows.len());
    }

    /// Returns whether all rows are there. `total`: the number of readings.
    fn is_complete(&self, total: f64) -> bool {
        let is_own = self.elided_at.is_none_or(|at| at + 1 == self.rows.len());
        !self.damaged && is_own && total > 0.0 && self.shares_agree(total) && self.is_whole()
    }

    /// Returns whether the printed shares add up to 100%.
    fn is_whole(&self) -> bool {
        let Some(last) = self.rows.last() else { return false };
        let sum: f64 = self.rows.iter().map(|row| row.share).sum();
        let sum = if last.layout == Layout::Running { last.share } else { sum };
        (sum - 100.0).abs() <= last.rounding * self.rows.len() as f64
    }

    /// Returns whether each printed share is that of its count, so that no digit and no row is missing.
    fn shares_agree(&self, total: f64) -> bool {
        let mut running = 0.0;
        self.rows.iter().enumerate().all(|(nth, row)| {
            running += row.count as f64;
            let counted = if row.layout == Layout::Running { running } else { row.count as f64 };
            // After the `...` the running share contains durations that are not listed.
            let hidden = self.elided_at.is_some_and(|at| nth >= at);
            let expected = if hidden { 100.0 } else { 100.0 * counted / total };
            (row.share - expected).abs() <= row.rounding * 1.001
        })
    }
}

/// Returns a row of a histogram, or `None` if no version prints such a bound.
///
/// Bounds are powers of two. Those in nanoseconds are inclusive, so they are one less. Microseconds were cut before the
/// subtraction, so a duration can be shorter than the difference by almost 1 us, and rows overlap.
fn bin(unit: Unit, row: &Row) -> Option<Bin> {
    let below = if unit == Unit::Nanoseconds { row.bound.checked_add(1)? } else { row.bound };
    let le_ns = below.checked_mul(unit.ns())?.checked_sub(1)?;
    let ge_ns = (unit == Unit::Microseconds).then(|| (below / 2).saturating_sub(1) * unit.ns());
    below.is_power_of_two().then_some(Bin { le_ns, ge_ns, count: row.count })
}
