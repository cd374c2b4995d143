//! Assigns each line to an output, a clock and a table.

use super::line::{self, is_elision, unquote};
use super::row::{Kind, Row, Titles};
use super::table::Table;
use super::{ClockKind, ClockTable, Output, tsc};

/// Receives a text line by line.
#[derive(Default)]
pub(super) struct Collector {
    done: Vec<Output>,
    open: Option<Open>,
}

/// The output being read.
#[derive(Default)]
struct Open {
    output: Output,
    /// The table for the next rows. Every line of an output opens one, because the lines right above the rows can be
    /// missing.
    table: Option<Table>,
    /// whether there was a table in microseconds; then there is no second clock
    classic: bool,
    /// whether a heading named a clock, as in PostgreSQL 19
    headed: bool,
    /// whether the clock went back during the run, which ended it
    over: bool,
}

impl Collector {
    /// Adds a line. `whole` means that it ends with a newline.
    pub fn line(&mut self, text: &str, whole: bool) {
        let body = unquote(text);
        if body.is_empty() {
            return; // Mails can have empty lines between rows, so this does not end a table.
        }
        if is_elision(body) {
            if let Some(table) = self.table() {
                table.elision();
            }
        } else if Row::is_likely(body) {
            if let Some(table) = self.table() {
                table.row(body, whole);
            }
        } else if let Some(titles) = Titles::of(body) {
            self.announced(titles.kind).title(titles, body);
        } else {
            self.words(body, whole);
        }
    }

    /// Returns all outputs.
    pub fn finish(mut self) -> Vec<Output> {
        self.start();
        self.done
    }

    fn words(&mut self, body: &str, whole: bool) {
        // Any other line ends the rows of a table.
        if let Some(open) = self.open.as_mut().filter(|open| open.has_rows()) {
            open.close_table();
        }
        // If a page lost its line breaks, one line contains several. So each kind is tried, in printed order.
        let known = self.testing(body)
            | self.backwards(body)
            | self.clock(body)
            | self.loop_time(body)
            | self.heading(body, "Histogram of timing durations", Kind::Histogram)
            | self.heading(body, "Observed timing durations up to", Kind::Observed)
            | self.tsc(body, whole);
        if let Some(open) = &mut self.open {
            open.output.cut_off |= known && (body.ends_with("...") || body.ends_with('…'));
        }
    }

    fn table(&mut self) -> Option<&mut Table> {
        self.open.as_mut()?.table.as_mut()
    }

    /// Ends the current output, if there is one, and starts a new one.
    fn start(&mut self) -> &mut Open {
        if let Some(output) = self.open.take().and_then(Open::finish) {
            self.done.push(output);
        }
        self.open.get_or_insert_default()
    }

    /// Returns the current output if it `fits`, or else a new one.
    fn fitting(&mut self, fits: impl FnOnce(&Open) -> bool) -> &mut Open {
        match &self.open {
            Some(open) if open.over || !fits(open) => self.start(),
            _ => self.open.get_or_insert_default(),
        }
    }

    fn testing(&mut self, body: &str) -> bool {
        let Some(duration) = line::duration(body) else { return false };
        // This is the first line of an output, with two exceptions. If stderr goes to the same file, "going backwards"
        // comes before it. Builds before 19 printed the first clock's heading above it.
        let open = self.fitting(|open| {
            let clocks = &open.output.clocks;
            open.output.duration_s.is_none() && clocks.iter().all(|c| c.kind == ClockKind::System && is_bare(c))
        });
        open.output.duration_s = duration;
        open.expect(Kind::Histogram);
        true
    }

    fn backwards(&mut self, body: &str) -> bool {
        // Without an amount the words must start the line, because other texts quote them.
        let detected = body.starts_with("Detected clock going backwards");
        let headed = self.open.as_ref().is_some_and(|open| open.headed);
        let warp = line::warp_ns(body, headed).filter(|ns| ns.is_some() || body.starts_with("Time warp:"));
        if !detected && warp.is_none() {
            return false;
        }
        // The two lines of a pair are printed while a clock is being read, so they come before its loop time.
        let in_a_pair = |open: &Open| !detected && open.output.went_back && open.output.warp_ns.is_none();
        let open = self.fitting(|open| {
            in_a_pair(open) || (!open.output.went_back && open.output.clocks.last().is_none_or(is_bare))
        });
        open.close_table();
        open.output.went_back = true;
        open.output.warp_ns = warp.flatten();
        open.over = warp.is_some() && (open.output.duration_s.is_some() || !open.output.clocks.is_empty());
        true
    }

    fn clock(&mut self, body: &str) -> bool {
        let Some(kind) = line::clock(body) else { return false };
        let open = self.fitting(|open| match kind {
            ClockKind::System => open.output.clocks.is_empty(),
            _ => !open.classic && open.output.clocks.iter().all(|clock| clock.kind != kind),
        });
        open.headed = true;
        open.expect(Kind::Histogram);
        open.push(kind);
        true
    }

    fn loop_time(&mut self, body: &str) -> bool {
        let Some(ns) = line::loop_ns(body) else { return false };
        // With a single clock, a run whose clock went back has no loop time, so this is another run.
        let single = |open: &&mut Open| open.output.went_back && !open.headed && !open.over;
        if let Some(duration) = self.open.as_mut().filter(single).map(|open| open.output.duration_s.take()) {
            self.start().output.duration_s = duration;
        }
        let open = self.fitting(|open| open.output.clocks.last().is_none_or(is_bare));
        open.expect(Kind::Histogram);
        open.clock().loop_ns = Some(ns);
        true
    }

    fn heading(&mut self, body: &str, heading: &str, kind: Kind) -> bool {
        let here = body.contains(heading);
        if here {
            self.announced(kind);
        }
        here
    }

    /// Returns the table of this kind for the current clock, or for a new output if the clock already has one.
    fn announced(&mut self, kind: Kind) -> &mut Table {
        if let Some(open) = self.open.as_mut().filter(|open| open.has_rows()) {
            open.close_table();
        }
        let open = self.fitting(|open| match open.output.clocks.last() {
            None => true,
            Some(clock) if kind == Kind::Histogram => clock.bins.is_empty() && clock.observed.is_empty(),
            Some(clock) => clock.observed.is_empty() && !open.classic,
        });
        open.expect(kind)
    }

    fn tsc(&mut self, body: &str, whole: bool) -> bool {
        // These lines alone are not an output. After a classic table they belong to another output.
        let Some(open) = self.open.as_mut().filter(|open| !open.over && !open.classic) else { return false };
        let mut lines = open.output.tsc.clone().unwrap_or_default();
        let is_tsc_line = tsc::parse_line(body, whole, &mut lines);
        if is_tsc_line {
            open.close_table();
            open.output.tsc = Some(lines);
        }
        is_tsc_line
    }
}

impl Open {
    fn push(&mut self, kind: ClockKind) -> &mut ClockTable {
        self.output.clocks.push(ClockTable {
            kind,
            loop_ns: None,
            unit_ns: 1.0,
            bins: Vec::new(),
            observed: Vec::new(),
        });
        self.output.clocks.last_mut().expect("just pushed")
    }

    /// Returns the current clock. Without a heading it is the system clock, because every other clock has one.
    fn clock(&mut self) -> &mut ClockTable {
        if self.output.clocks.is_empty() {
            self.push(ClockKind::System);
        }
        self.output.clocks.last_mut().expect("not empty")
    }

    fn has_rows(&self) -> bool {
        self.table.as_ref().is_some_and(|table| !table.is_empty())
    }

    /// Expects a table of this kind next.
    fn expect(&mut self, kind: Kind) -> &mut Table {
        if self.table.as_ref().is_some_and(|table| table.kind != kind || !table.is_empty()) {
            self.close_table();
        }
        self.table.get_or_insert_with(|| Table::new(kind))
    }

    fn close_table(&mut self) {
        let Some(mut table) = self.table.take() else { return };
        table.finish();
        self.output.cut_off |= table.is_cut();
        self.classic |= table.is_classic();
        if table.is_empty() {
            return;
        }
        let clock = self.clock();
        match table.kind {
            Kind::Histogram => {
                clock.unit_ns = table.unit_ns();
                clock.bins = table.into_bins();
            }
            Kind::Observed => clock.observed = table.into_observed(),
        }
    }

    /// Returns the output, if it is not empty.
    fn finish(mut self) -> Option<Output> {
        self.close_table();
        self.output.tsc = self.output.tsc.take().and_then(tsc::complete_lines);
        let went_back = self.output.went_back;
        // If the clock went back, the run ended early, so nothing is missing.
        self.output.cut_off |= !went_back && self.ends_too_early();
        // A clock that went back has a heading without a table. It names the clock, so it is kept.
        let last = self.output.clocks.len().saturating_sub(1);
        let mut nth = 0;
        self.output.clocks.retain(|clock| {
            nth += 1;
            !is_bare(clock) || (went_back && nth > last)
        });
        (went_back || !self.output.clocks.is_empty()).then_some(self.output)
    }

    /// Returns whether the end of the output is missing.
    fn ends_too_early(&self) -> bool {
        let Output { clocks, tsc, .. } = &self.output;
        let has = |kind| clocks.iter().any(|clock| clock.kind == kind);
        let (rdtscp, rdtsc) = (has(ClockKind::Rdtscp), has(ClockKind::Rdtsc));
        clocks.iter().any(|clock| clock.bins.is_empty() || (self.headed && clock.observed.is_empty()))
            || rdtscp != rdtsc
            || (rdtsc && tsc.is_none())
            || tsc.as_ref().is_some_and(|lines| !tsc::is_complete(lines))
    }
}

/// Returns whether the clock has only a heading so far.
fn is_bare(clock: &ClockTable) -> bool {
    clock.loop_ns.is_none() && clock.bins.is_empty() && clock.observed.is_empty()
}
